//! What can go wrong in a command, and the exit code of each.

use std::path::PathBuf;

use control::Code;

use crate::exit::Exit;

/// An error of this crate. Variants carry data; the text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key that the table does not have.
    #[error("unknown key {key:?} in {place}{}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// As written.
        key: String,
        /// Where it stands.
        place: String,
        /// The most similar key there is.
        nearest: Option<String>,
    },
    /// A key that is needed.
    #[error("{command} needs {what}: give {flag}")]
    MissingKey {
        /// The command.
        command: &'static str,
        /// What the key stands for.
        what: &'static str,
        /// How to give it.
        flag: String,
    },
    /// A value that a key cannot have.
    #[error("{place}: {actual:?} is not {expected}")]
    BadValue {
        /// The flag or the key with its file.
        place: String,
        /// As written.
        actual: String,
        /// What it may be.
        expected: String,
    },
    /// A job file that is no TOML.
    #[error("job file {}: {message}", path.display())]
    JobFile {
        /// The file.
        path: PathBuf,
        /// What the TOML reader says, with line and column.
        message: String,
    },
    /// A request that cannot be met.
    #[error("{what}; {advice}")]
    InvalidRequest {
        /// What cannot be.
        what: String,
        /// What to do.
        advice: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), io_advice(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The place of a new model is taken.
    #[error("{} is there already; choose another --model, or add --overwrite to replace it", path.display())]
    ModelExists {
        /// The directory.
        path: PathBuf,
    },
    /// The place of a file is taken.
    #[error("{} is there already; choose another {flag}, or add --overwrite to replace it", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
        /// The flag that names it.
        flag: String,
    },
    /// `--overwrite` on a model with which something else lies.
    #[error(
        "{} holds {}, which is no part of the model, so --overwrite does not touch it; move it away, or choose another --model",
        path.display(),
        file.display()
    )]
    ForeignFileInModel {
        /// The directory.
        path: PathBuf,
        /// The name of the file.
        file: PathBuf,
    },
    /// `--overwrite` on something that is not ours.
    #[error("{} is neither a model nor an empty folder, so --overwrite does not touch it; choose another --model", path.display())]
    NotReplaceable {
        /// The directory.
        path: PathBuf,
    },
    /// No model here.
    #[error("{} is no model: {reason}; give the directory that `seraphim train --model` wrote", path.display())]
    NotAModel {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A model that another version of the program wrote.
    #[error(
        "{} has model format version {found}, this program ({}) reads version {known}; use the program that wrote it ({written_by}), or train again{}",
        path.display(),
        env!("CARGO_PKG_VERSION"),
        damage_note(*damage)
    )]
    ModelVersion {
        /// The manifest.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The version that we read.
        known: u64,
        /// The program version in the file.
        written_by: String,
        /// Recorded and actual checksum, when they differ: then the version itself may be damage.
        damage: Option<(u32, u32)>,
    },
    /// A file whose bytes changed since they were written.
    #[error("{} is damaged: its checksum is {actual:08x}, recorded was {expected:08x}; restore the file or train again", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Recorded CRC-32C.
        expected: u32,
        /// CRC-32C of the bytes that are there.
        actual: u32,
    },
    /// A file of another length than recorded.
    #[error("{} is damaged: it has {actual} bytes, recorded were {expected}; restore the file or train again", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Recorded length in bytes.
        expected: u64,
        /// Length in bytes.
        actual: u64,
    },
    /// A model file that does not say what it must.
    #[error("{}: {what}; restore the model or train again", path.display())]
    BadModel {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// From reading data.
    #[error(transparent)]
    Data(#[from] data::Error),
    /// From parameters.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// From an algorithm.
    #[error(transparent)]
    Algo(#[from] algo::Error),
    /// No record in all the files.
    #[error("no records in {}; look whether the files are empty, or hold comments only", inputs.join(", "))]
    NoRecords {
        /// The files, folders or patterns.
        inputs: Vec<String>,
    },
    /// What follows from the data of all tasks, in the words of the job.
    #[error("{what}")]
    Conclusion {
        /// What it is, and what to do.
        what: String,
        /// The exit code of it.
        exit: Exit,
    },
    /// Ctrl-C before there was anything worth saving.
    #[error("interrupted: {what}")]
    Interrupted {
        /// What became of the work.
        what: String,
    },
    /// Something at another process, or between processes.
    #[error("{text}")]
    Cluster {
        /// What, where, what to do.
        text: String,
        /// The exit code of it.
        exit: Exit,
    },
    /// A task's thread died.
    #[error("task {task} ended by a fault of the program: {message}; please report it with the command line")]
    Panic {
        /// The task.
        task: u32,
        /// What it said.
        message: String,
    },
}

impl Error {
    /// The exit code of a command that ends with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::UnknownKey { .. }
            | Self::MissingKey { .. }
            | Self::BadValue { .. }
            | Self::JobFile { .. }
            | Self::InvalidRequest { .. } => Exit::Usage,
            Self::ModelExists { .. }
            | Self::FileExists { .. }
            | Self::ForeignFileInModel { .. }
            | Self::NotReplaceable { .. } => Exit::Usage,
            Self::NotAModel { .. }
            | Self::ModelVersion { .. }
            | Self::Checksum { .. }
            | Self::Length { .. }
            | Self::BadModel { .. } => Exit::Model,
            Self::Io { .. } => Exit::Io,
            Self::Data(error) => data_exit(error),
            Self::Algo(error) => algo_exit(error),
            Self::NoRecords { .. } => Exit::Data,
            Self::Conclusion { exit, .. } => *exit,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Cluster { exit, .. } => *exit,
            Self::Matrix(error) => matrix_exit(error),
            Self::Panic { .. } => Exit::Internal,
        }
    }

    /// What went wrong with a process at an address, for `map_err`.
    pub fn server(address: &impl std::fmt::Display) -> impl FnOnce(rpc::Error) -> Self {
        let address = address.to_string();
        move |error| Self::Cluster { text: format!("{address}: {error}"), exit: Exit::Io }
    }

    /// What went wrong with a call of the master at an address, for `map_err`.
    pub fn master(address: &impl std::fmt::Display) -> impl FnOnce(control::Error) -> Self {
        let address = address.to_string();
        move |error| match error.refusal() {
            // What the master says of a job is what this program would have said.
            Some((Code::InvalidArgument, text)) => Self::Cluster {
                text: format!("the master at {address} refuses it: {text}"),
                exit: Exit::Usage,
            },
            Some((Code::Unauthenticated, text)) => Self::Cluster {
                text: format!("the master at {address} does not let this command in: {text}"),
                exit: Exit::Usage,
            },
            Some((Code::NotFound, text)) => {
                Self::Cluster { text: format!("the master at {address} says: {text}"), exit: Exit::Usage }
            }
            _ => Self::Cluster { text: format!("the master at {address}: {error}"), exit: Exit::Io },
        }
    }

    /// What went wrong in a process of a cluster, for `map_err`.
    pub fn process(error: impl std::fmt::Display) -> Self {
        Self::Cluster { text: error.to_string(), exit: Exit::Io }
    }

    /// An [`Error::Io`] maker for `map_err`.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// `; did you mean "x"?`, or what to do without a similar name.
pub(crate) fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// The most similar of some names, when it is similar at all.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    /// Below this Jaro-Winkler similarity a suggestion confuses more than it helps.
    const SIMILAR: f64 = 0.7;
    names
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}

fn damage_note(damage: Option<(u32, u32)>) -> String {
    damage.map_or_else(String::new, |(expected, actual)| {
        format!(" (the file was changed after it was written: its checksum is {actual:08x}, recorded was {expected:08x})")
    })
}

fn io_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "; free some space or name another place",
        std::io::ErrorKind::PermissionDenied => "; check the rights of the folder or name another place",
        std::io::ErrorKind::NotFound => "; check the path",
        _ => "",
    }
}

fn data_exit(error: &data::Error) -> Exit {
    use data::Error as E;
    match error {
        E::Io { .. }
        | E::CacheCreate { .. }
        | E::CacheWrite { .. }
        | E::CacheRead { .. }
        | E::NothingMatches { .. } => Exit::Io,
        E::BadPattern { .. }
        | E::UnknownFormat { .. }
        | E::FormatNotRecognized { .. }
        | E::UnknownColumn { .. }
        | E::BadOption { .. }
        | E::StandardInputTaken
        | E::CacheLimit { .. } => Exit::Usage,
        E::NotCached { .. } => Exit::Internal,
        E::NoRecords { .. }
        | E::FileTruncated { .. }
        | E::UnsupportedEncoding { .. }
        | E::DamagedCompression { .. }
        | E::SchemaDiffers { .. }
        | E::BadLine(_)
        | E::TooManyBadLines { .. }
        | E::LineTooLong { .. }
        | E::BadLabels { .. }
        | E::BadFile { .. }
        | E::DamagedBlock { .. } => Exit::Data,
    }
}

/// What settings, data and other processes can bring about is no fault of the program.
fn matrix_exit(error: &matrix::Error) -> Exit {
    use matrix::Error as E;
    match error {
        E::Spec { .. } | E::Function { .. } | E::FunctionAtServer { .. } => Exit::Usage,
        E::NonFinite { .. } | E::KeyOutOfRange { .. } => Exit::Data,
        E::Import { .. } => Exit::Model,
        E::Server { .. } | E::Stopped { .. } | E::WaitTimeout { .. } => Exit::Io,
        E::DuplicateName { .. }
        | E::NoSuchMatrix { .. }
        | E::WrongAxis { .. }
        | E::NoSuchRow { .. }
        | E::NoSuchPartition { .. }
        | E::KeyOutOfPartition { .. }
        | E::ValueCount { .. }
        | E::KeysNotAscending { .. }
        | E::ElementType { .. }
        | E::Task { .. }
        | E::ReduceLength { .. }
        | E::Panicked { .. } => Exit::Internal,
    }
}

fn algo_exit(error: &algo::Error) -> Exit {
    use algo::Error as E;
    match error {
        E::UnknownAlgorithm { .. }
        | E::UnknownParameter { .. }
        | E::Parameter { .. }
        | E::Conflict { .. }
        | E::UnusedParameter { .. }
        | E::TooManyLabelNames { .. }
        | E::LargeLabel { .. }
        | E::UnknownLabel { .. }
        | E::DuplicateLabel { .. }
        | E::UncountableLabels { .. }
        | E::UnequalWeights { .. } => Exit::Usage,
        E::NoRecords
        | E::OneClass { .. }
        | E::SingleLabelName { .. }
        | E::ClassCount { .. }
        | E::UnknownClass { .. }
        | E::UndefinedMetric { .. }
        | E::NoWeight { .. } => Exit::Data,
        E::Diverged { .. } | E::DataChanged { .. } | E::NonFiniteStart { .. } | E::LargeValues { .. } => {
            Exit::Data
        }
        E::ModelMismatch { .. } => Exit::Model,
        E::Coordinator { .. } => Exit::Io,
        E::Matrix(error) => matrix_exit(error),
        E::Data(error) => data_exit(error),
    }
}
