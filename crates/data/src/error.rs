//! All errors between a file and a batch. Variants carry data; their texts say where the error is, what was expected,
//! what was found, and what to do.

use crate::block::BlockFault;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// An error of the input, of a setting, or of the disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input matches no file.
    #[error("no data: nothing matches '{pattern}' (looked in {}); check the path and the pattern", folder.display())]
    NothingMatches {
        /// The input as it was given.
        pattern: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A folder has no files.
    #[error(
        "no data: the folder {} has no files; names that begin with . or _ are left out, with all that is in such folders",
        folder.display()
    )]
    EmptyFolder { folder: PathBuf },
    /// A file pattern is not valid.
    #[error("bad pattern '{pattern}' at character {at}: {reason}")]
    BadPattern {
        /// The pattern as it was given.
        pattern: String,
        /// Character position in it, 0-based.
        at: usize,
        reason: String,
    },
    /// A store cannot be used, or a file of it not read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An input in memory does not exist.
    #[error("no data: there are no arrays of the name '{input}'")]
    NoArrays {
        /// The input as it was given.
        input: String,
    },
    /// The shapes or numbers of arrays do not fit.
    #[error("{name}: {what}")]
    BadArrays {
        /// The input that means the arrays.
        name: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The inputs exist and have no records.
    #[error("no records in {files}: every line is blank or a comment")]
    NoRecords {
        /// Names of the inputs, shortened.
        files: String,
    },
    /// A call of the operating system failed.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// The action that failed ("open", "read", ...).
        action: &'static str,
        /// Name of the file, or "standard input".
        file: String,
        source: io::Error,
    },
    /// A file became shorter while it was read.
    #[error(
        "{file}:{line}: the file became shorter while it was read: it had {opened_bytes} bytes when it was opened, \
         and has {ends_at} now; run again when no process writes to it"
    )]
    FileTruncated {
        file: String,
        /// The first line that is missing or cut, 1-based.
        line: u64,
        /// Size of the file when it was opened.
        opened_bytes: u64,
        /// Size of the file now, in bytes.
        ends_at: u64,
    },
    /// The compression or encoding of a file is not supported.
    #[error("{file} is {what}, which is not supported; {}", advice_of(what))]
    UnsupportedEncoding {
        file: String,
        /// Name of the compression or encoding, for the message.
        what: &'static str,
    },
    /// A compressed file ends early or is damaged.
    #[error("{file}: damaged {kind} data near byte {offset} of the compressed file: {reason}")]
    DamagedCompression {
        file: String,
        /// "gzip" or "zstd".
        kind: &'static str,
        /// Compressed bytes read so far.
        offset: u64,
        /// Message of the decoder.
        reason: String,
    },
    /// There is no format of this name.
    #[error("unknown format '{name}'{}; formats: {known}", did_you_mean(nearest.as_deref()))]
    UnknownFormat {
        /// The name as it was given.
        name: String,
        /// The nearest existing name.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// Neither the name nor the first lines of a file determine its format.
    #[error("cannot tell the format of {file} from its name or its first lines; give one of: {known}")]
    FormatNotRecognized {
        file: String,
        /// Names of all formats.
        known: String,
    },
    /// A column does not exist.
    #[error("{file}: no column '{column}'{}; columns: {known}", did_you_mean(nearest.as_deref()))]
    UnknownColumn {
        file: String,
        /// The column as it was requested.
        column: String,
        /// The nearest existing name.
        nearest: Option<String>,
        /// The existing columns.
        known: String,
    },
    /// Columns of this input differ from those of training.
    #[error("{file}: columns differ from training: {difference}")]
    SchemaDiffers {
        file: String,
        /// Which columns differ, and what to do.
        difference: String,
    },
    /// A setting does not fit the format or the data.
    #[error("{option}: {reason}")]
    BadOption {
        /// Name of the setting.
        option: &'static str,
        /// Allowed range, actual value, what to do.
        reason: String,
    },
    /// A line does not follow the grammar.
    #[error("{0}")]
    BadLine(BadLine),
    /// There are more bad lines than allowed.
    #[error("{count} bad lines, {limit} allowed by --bad-lines; the first: {first}")]
    TooManyBadLines {
        /// Number of bad lines of all tasks, or of one task that alone exceeds the limit.
        count: u64,
        /// How many bad lines may be skipped.
        limit: u64,
        /// The first of them, with its position.
        first: String,
    },
    /// A line is longer than the largest buffer.
    #[error("{file}: a line of more than {limit_bytes} bytes starts at byte {offset}; is this a text file?")]
    LineTooLong {
        file: String,
        /// Offset of the line, in (decompressed) bytes.
        offset: u64,
        limit_bytes: usize,
    },
    /// Labels do not match the label rule, or each other.
    #[error("labels: {reason}")]
    BadLabels {
        /// The labels of the input, what was expected, and what to do.
        reason: String,
    },
    /// Standard input is read more than once.
    #[error("standard input can be read only once, by one task; write it to a file first, or use one task")]
    StandardInputTaken,
    /// A Parquet file is damaged or has columns of the wrong types.
    #[error("{file}{}: {reason}", at_record(*record))]
    BadFile {
        file: String,
        /// Record number in the file (0-based), when known.
        record: Option<u64>,
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// The cache file cannot be created.
    #[error("cannot create the cache file in the folder {}: {reason}; choose a folder that can be written, or cache \
             in memory", folder.display())]
    CacheCreate {
        folder: PathBuf,
        /// Message of the system.
        reason: String,
    },
    /// The cache file cannot be written, for example because the disk is full.
    #[error("cannot write {wanted_bytes} bytes to the cache file {} after {written_bytes} bytes: {reason}; free disk \
             space, choose another folder, or cache in memory", path.display())]
    CacheWrite {
        path: PathBuf,
        /// Size of the block that did not fit.
        wanted_bytes: u64,
        /// Bytes of the blocks before it.
        written_bytes: u64,
        /// Message of the system.
        reason: String,
    },
    /// The cache file cannot be read.
    #[error("cannot read the cache file {}: {reason}", path.display())]
    CacheRead {
        path: PathBuf,
        /// Message of the system.
        reason: String,
    },
    /// A cached block has changed since it was written.
    #[error(
        "cached block {index} in {place} is damaged: {fault}; the memory or the disk is faulty, or another process \
         wrote to the file; run again"
    )]
    DamagedBlock {
        /// Number of the block, from 0.
        index: usize,
        /// "memory", or the file and the offset in it.
        place: String,
        fault: BlockFault,
    },
    /// A later epoch was requested, but there is no block cache.
    #[error(
        "epoch {epoch} cannot start: the data of task {task} was read once and not cached; set `keep` to memory, disk \
         or both"
    )]
    NotCached {
        /// The requested epoch.
        epoch: u64,
        task: u64,
    },
}

/// A line that does not follow its grammar, with its position.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}:{column}: expected {expected}, found {actual}")]
pub struct BadLine {
    pub file: String,
    /// Line number, 1-based.
    pub line: u64,
    /// Byte column in the line, 1-based.
    pub column: u64,
    /// What the grammar allows here, and what to do.
    pub expected: String,
    /// The text at this position.
    pub actual: String,
}

/// An error in a line or another record; the reader adds the file and the number of the line or record.
#[derive(Clone, Debug, PartialEq)]
pub struct LineError {
    /// Byte in the line or number of the column, 0-based.
    pub at: usize,
    /// What the grammar allows here.
    pub expected: Cow<'static, str>,
    /// The text at this position; the reader fills it from the line when it is empty.
    pub actual: String,
}

impl LineError {
    /// Makes an error at byte `at`; the reader fills `actual` from the line.
    #[cold]
    pub fn new(at: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { at, expected: expected.into(), actual: String::new() }
    }

    /// Makes an error at byte `at` with its own text for `actual`.
    #[cold]
    pub fn with_actual(at: usize, expected: impl Into<Cow<'static, str>>, actual: impl Into<String>) -> Self {
        Self { at, expected: expected.into(), actual: actual.into() }
    }

    /// The error with its place: the file and the number of the record, from 1.
    #[cold]
    pub(crate) fn at_line(self, file: &str, line: u64) -> BadLine {
        let (expected, column) = (self.expected.into_owned(), self.at as u64 + 1);
        BadLine { file: file.to_owned(), line, column, expected, actual: self.actual }
    }
}

/// Returns the name in `known` that is nearest to `name`, when it is similar enough for a typing error.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    /// Names with a lower Jaro-Winkler similarity are not suggested.
    const NEAR: f64 = 0.6;
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
        "convert the line ends to LF, for example with `tr '\\r' '\\n'`"
    } else {
        "decompress it, or compress it with gzip or zstd"
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean '{name}'?)"))
}

fn at_record(record: Option<u64>) -> String {
    record.map_or(String::new(), |record| format!(", record {record}"))
}

impl Error {
    pub fn io(action: &'static str, file: impl Into<String>, source: io::Error) -> Self {
        Self::Io { action, file: file.into(), source }
    }
}
