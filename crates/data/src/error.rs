//! Everything that can go wrong between a file and a batch. Variants carry data; the text says where, what was
//! expected, what was found, and what to do.

use crate::block::BlockFault;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// A fault of the input, of a setting, or of the disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input named nothing that exists.
    #[error("no data: nothing matches '{pattern}' (looked in {}); check the path and the pattern", folder.display())]
    NothingMatches {
        /// The input as it was given.
        pattern: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A pattern that cannot be understood.
    #[error("bad pattern '{pattern}' at character {at}: {reason}")]
    BadPattern {
        /// The pattern as it was given.
        pattern: String,
        /// Character position in it, 0-based.
        at: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The inputs exist and hold no record.
    #[error("no records in {files}: every line is blank or a comment")]
    NoRecords {
        /// The inputs, shortened.
        files: String,
    },
    /// The operating system refused something.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried ("open", "read", ...).
        action: &'static str,
        /// File, or "standard input".
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A file became shorter while it was read.
    #[error(
        "{file}:{line}: the file became shorter while it was read: it had {opened_bytes} bytes when it was opened, and \
         ends after {ends_at}; start again when nothing writes to it"
    )]
    FileTruncated {
        /// File.
        file: String,
        /// The first line that is missing or cut, 1-based.
        line: u64,
        /// Its size when it was opened.
        opened_bytes: u64,
        /// Bytes that it has now.
        ends_at: u64,
    },
    /// A file that is packed or encoded in a way that is not read.
    #[error("{file} is {what}, which is not read; {}", advice_of(what))]
    UnsupportedEncoding {
        /// File.
        file: String,
        /// What it is, in words.
        what: &'static str,
    },
    /// A compressed file ends early or is damaged.
    #[error("{file}: damaged {kind} data near byte {offset} of the compressed file: {reason}")]
    DamagedCompression {
        /// File.
        file: String,
        /// "gzip" or "zstd".
        kind: &'static str,
        /// Compressed bytes read so far.
        offset: u64,
        /// What the decoder says.
        reason: String,
    },
    /// No format of that name.
    #[error("unknown format '{name}'{}; formats: {known}", did_you_mean(nearest.as_deref()))]
    UnknownFormat {
        /// The name as it was given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// The format cannot be told from the name or the first lines.
    #[error("cannot tell the format of {file} from its name or its first lines; give one of: {known}")]
    FormatNotRecognized {
        /// File.
        file: String,
        /// All names.
        known: String,
    },
    /// A column that is not there.
    #[error("{file}: no column '{column}'{}; columns: {known}", did_you_mean(nearest.as_deref()))]
    UnknownColumn {
        /// File.
        file: String,
        /// The column as it was asked for.
        column: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// The columns that are there.
        known: String,
    },
    /// Columns of this input differ from those of training.
    #[error("{file}: columns differ from training: {difference}")]
    SchemaDiffers {
        /// File.
        file: String,
        /// Which, and what to do.
        difference: String,
    },
    /// A setting that does not fit the format or the data.
    #[error("{option}: {reason}")]
    BadOption {
        /// Name of the setting.
        option: &'static str,
        /// Allowed range, actual value, what to do.
        reason: String,
    },
    /// A line that does not follow the grammar.
    #[error("{0}")]
    BadLine(BadLine),
    /// More bad lines than allowed.
    #[error("{count} bad lines, {limit} allowed by --bad-lines; the first: {first}")]
    TooManyBadLines {
        /// Bad lines of all tasks, or so far of one that met too many by itself.
        count: u64,
        /// How many may be skipped.
        limit: u64,
        /// The first of them, with its place.
        first: String,
    },
    /// A line longer than a buffer may become.
    #[error("{file}: a line of more than {limit_bytes} bytes starts at byte {offset}; is this a text file?")]
    LineTooLong {
        /// File.
        file: String,
        /// Where the line starts, in (decompressed) bytes.
        offset: u64,
        /// The limit.
        limit_bytes: usize,
    },
    /// Labels that do not belong together.
    #[error("labels: {reason}")]
    BadLabels {
        /// What was seen, what was expected, what to do.
        reason: String,
    },
    /// Standard input was asked for again.
    #[error("standard input can be read only once, by one task; write it to a file first, or use one task")]
    StandardInputTaken,
    /// A file in blocks (Parquet) that is damaged or has the wrong types.
    #[error("{file}{}: {reason}", at_record(*record))]
    BadFile {
        /// File.
        file: String,
        /// Record number in the file (0-based), when known.
        record: Option<u64>,
        /// What was expected, found, and what to do.
        reason: String,
    },
    /// The file for kept blocks cannot be made.
    #[error("cannot make a file for kept blocks in the folder {}: {reason}; choose a folder that can be written, or keep blocks in memory", folder.display())]
    CacheCreate {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Kept blocks cannot be written, for example because the disk is full.
    #[error("cannot write {wanted_bytes} bytes of kept blocks to {} after {written_bytes} bytes: {reason}; make room there, choose another folder, or keep blocks in memory", path.display())]
    CacheWrite {
        /// The file.
        path: PathBuf,
        /// Size of the block that did not fit.
        wanted_bytes: u64,
        /// Bytes of the blocks before it.
        written_bytes: u64,
        /// What the system said.
        reason: String,
    },
    /// Kept blocks cannot be read again.
    #[error("cannot read kept blocks from {}: {reason}", path.display())]
    CacheRead {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Blocks in memory have reached their limit.
    #[error(
        "the parsed data of a task needs more than the {limit_bytes} bytes of memory it may take (the next {wanted_bytes} do not fit into what is left after {kept_bytes}); raise the memory limit, or keep blocks on disk or on both"
    )]
    CacheLimit {
        /// The limit of this task.
        limit_bytes: u64,
        /// Bytes kept so far.
        kept_bytes: u64,
        /// Size of the block that did not fit.
        wanted_bytes: u64,
    },
    /// A kept block is not as it was written.
    #[error(
        "kept block {index} in {place} is damaged: {fault}; the memory or the disk is faulty, or something wrote to the file; start again"
    )]
    DamagedBlock {
        /// Number of the block, from 0.
        index: usize,
        /// Memory, or the file and the offset in it.
        place: String,
        /// What is wrong.
        fault: BlockFault,
    },
    /// Another epoch was asked for, but nothing was kept.
    #[error(
        "epoch {epoch} cannot start: the data of task {task} was read once and not kept; set where to keep it (memory, disk or both)"
    )]
    NotCached {
        /// The epoch asked for.
        epoch: u64,
        /// The task.
        task: u64,
    },
}

/// A line that does not follow its grammar, with its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}:{column}: expected {expected}, found {found}")]
pub struct BadLine {
    /// File.
    pub file: String,
    /// Line number, 1-based.
    pub line: u64,
    /// Byte column in the line, 1-based.
    pub column: u64,
    /// What the grammar allows here, and what to do.
    pub expected: String,
    /// What stands here.
    pub found: String,
}

/// What a parser says of a bad line; the reader adds file and line number.
#[derive(Clone, Debug, PartialEq)]
pub struct LineError {
    /// Byte in the line, 0-based.
    pub at: usize,
    /// What the grammar allows here.
    pub expected: Cow<'static, str>,
    /// What stands here; filled from the line when empty.
    pub found: String,
}

impl LineError {
    /// An error at byte `at`; what stands there is shown from the line.
    #[cold]
    pub fn new(at: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { at, expected: expected.into(), found: String::new() }
    }

    /// An error at byte `at` that says itself what it found.
    #[cold]
    pub fn with_found(at: usize, expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Self { at, expected: expected.into(), found: found.into() }
    }
}

/// The name in `seen_keys` that is nearest to `name`, when near enough to be a slip.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    /// Jaro-Winkler similarity below which two names are just different.
    const NEAR: f64 = 0.75;
    known
        .into_iter()
        .map(|other| (strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase()), other))
        .filter(|(near, _)| *near >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, other)| other.to_owned())
}

fn advice_of(what: &str) -> &'static str {
    if what.contains("UTF-16") {
        "save it as UTF-8"
    } else if what.contains("CR alone") {
        "end them with LF, as `tr '\\r' '\\n'` does"
    } else {
        "unpack it, and pack it with gzip or zstd if you like"
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean '{name}'?)"))
}

fn at_record(record: Option<u64>) -> String {
    record.map_or(String::new(), |record| format!(", record {record}"))
}

impl Error {
    /// An operating system error on a file.
    pub fn io(action: &'static str, file: impl Into<String>, source: io::Error) -> Self {
        Self::Io { action, file: file.into(), source }
    }
}
