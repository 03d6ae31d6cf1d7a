//! The errors of a command, and the exit code of each.

use std::path::PathBuf;

use job::Exit;
use model::io_advice;

/// An error of this crate. Variants carry data; the text says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A job that cannot be run as it was asked for.
    #[error(transparent)]
    Job(#[from] job::Error),
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}{}", path.display(), io_advice(source))]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The target of a file exists.
    #[error("{} already exists; choose another {flag}, or add --overwrite to replace it", path.display())]
    FileExists {
        path: PathBuf,
        /// The flag that sets the path.
        flag: String,
    },
    /// An error of a model directory.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// An error of checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// An error of reading data.
    #[error(transparent)]
    Data(#[from] data::Error),
    /// An error of the parameter store.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// An error of an algorithm.
    #[error(transparent)]
    Algo(#[from] algo::Error),
    /// The input files contain no records.
    #[error("no records in {}; check whether the files are empty or contain only comments or a header, or all their records have the weight 0", inputs.join(", "))]
    NoRecords {
        /// The files, folders or patterns.
        inputs: Vec<String>,
    },
    /// The data of all tasks together are unusable; the text uses the terms of the job.
    #[error("{what}")]
    UnusableData {
        /// What is wrong, and what to do.
        what: String,
        exit: Exit,
    },
    /// The user pressed Ctrl-C before anything could be saved.
    #[error("interrupted: {what}")]
    Interrupted {
        /// What the run was doing, or what happened to its output.
        what: String,
    },
    /// An error of another process, or of the connection to it.
    #[error("{text}")]
    Cluster {
        /// What is wrong, where, and what to do.
        text: String,
        exit: Exit,
    },
    /// A server is lost, or has lost its part of a job. The job itself is right, so another run of it may succeed.
    #[error("{text}")]
    Lost { text: String },
    /// The thread of a task panicked.
    #[error(
        "task {task} failed because of a bug in the program: {message}; please report it with the command line"
    )]
    Panic {
        task: u32,
        /// The message of the panic.
        message: String,
    },
}

impl Error {
    /// The exit code of a command that ends with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Job(error) => error.exit(),
            Self::FileExists { .. } => Exit::Usage,
            Self::Model(error) => model_exit(error),
            Self::Io { .. } => Exit::Io,
            Self::Checkpoint(error) => checkpoint_exit(error),
            Self::Data(error) => data_exit(error),
            Self::Algo(error) => algo_exit(error),
            Self::NoRecords { .. } => Exit::Data,
            Self::UnusableData { exit, .. } => *exit,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Cluster { exit, .. } => *exit,
            Self::Lost { .. } => Exit::Io,
            Self::Matrix(error) => matrix_exit(error),
            Self::Panic { .. } => Exit::Internal,
        }
    }

    /// A request that cannot be fulfilled, and what to do.
    pub fn request(what: impl Into<String>, advice: impl Into<String>) -> Self {
        job::Error::InvalidRequest { what: what.into(), advice: advice.into() }.into()
    }

    /// A value that the flag or key `place` does not accept.
    pub fn bad_value(
        place: impl Into<String>,
        actual: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (place, actual, expected) = (place.into(), actual.into(), expected.into());
        job::Error::BadValue { place, actual, expected }.into()
    }

    /// Whether something that the job uses was lost, and the job itself is right.
    pub fn is_loss(&self) -> bool {
        use matrix::Error as M;
        match self {
            Self::Lost { .. } => true,
            Self::Matrix(error) | Self::Algo(algo::Error::Matrix(error)) => {
                matches!(error, M::Server { is_lost: true, .. } | M::Stopped { .. })
            }
            _ => false,
        }
    }

    /// Makes an error about a server; `is_loss` as [`Self::is_loss`] returns it.
    pub fn of_server(text: String, is_loss: bool) -> Self {
        if is_loss { Self::Lost { text } } else { Self::Cluster { text, exit: Exit::Io } }
    }

    /// Makes an error about a process of the cluster, for `map_err`.
    pub fn process(error: impl std::fmt::Display) -> Self {
        Self::Cluster { text: error.to_string(), exit: Exit::Io }
    }

    /// Returns a function for `map_err` that makes an [`Error::Io`].
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn model_exit(error: &model::Error) -> Exit {
    use model::Error as E;
    match error {
        E::Store(error) if error.is_bad_address() => Exit::Usage,
        E::Io { .. } | E::Store(_) => Exit::Io,
        E::Remote { source, .. } => model_exit(source),
        E::ModelExists { .. }
        | E::ModelClaimed { .. }
        | E::ForeignFileInModel { .. }
        | E::NotReplaceable { .. } => Exit::Usage,
        E::NotFinite { .. } => Exit::Data,
        E::NotAModel { .. }
        | E::ModelVersion { .. }
        | E::Checksum { .. }
        | E::Length { .. }
        | E::BadModel { .. } => Exit::Model,
    }
}

fn data_exit(error: &data::Error) -> Exit {
    use data::Error as E;
    match error {
        E::Store(error) if error.is_bad_address() => Exit::Usage,
        E::Store(_)
        | E::Io { .. }
        | E::CacheCreate { .. }
        | E::CacheWrite { .. }
        | E::CacheRead { .. }
        | E::NothingMatches { .. }
        | E::EmptyFolder { .. }
        | E::NoArrays { .. } => Exit::Io,
        E::BadPattern { .. }
        | E::UnknownFormat { .. }
        | E::FormatNotRecognized { .. }
        | E::UnknownColumn { .. }
        | E::BadOption { .. }
        | E::StandardInputTaken => Exit::Usage,
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
        | E::BadArrays { .. }
        | E::BadFile { .. }
        | E::DamagedBlock { .. } => Exit::Data,
    }
}

/// Returns the exit of an error of the parameter store. Only errors that settings, data and other processes cannot
/// cause are [`Exit::Internal`].
fn matrix_exit(error: &matrix::Error) -> Exit {
    use matrix::Error as E;
    match error {
        E::Spec { .. } | E::Function { .. } | E::FunctionAtServer { .. } => Exit::Usage,
        E::NonFinite { .. } | E::Overflow { .. } | E::Lists { .. } | E::KeyOutOfRange { .. } => Exit::Data,
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

fn checkpoint_exit(error: &checkpoint::Error) -> Exit {
    use checkpoint::Error as E;
    match error {
        E::Store(_) | E::Write { .. } => Exit::Io,
        E::Damaged { .. }
        | E::FileSize { .. }
        | E::MissingFile { .. }
        | E::MissingBase { .. }
        | E::NewerFormat { .. } => Exit::Model,
        E::OtherTraining { .. } | E::NoCheckpoint { .. } | E::UnknownNumber { .. } => Exit::Usage,
    }
}

fn algo_exit(error: &algo::Error) -> Exit {
    use algo::Error as E;
    match error {
        E::FamilyTaken { .. }
        | E::UnknownAlgorithm { .. }
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
        | E::NoWeight { .. }
        | E::UnsuitableData { .. } => Exit::Data,
        E::Diverged { .. }
        | E::DataChanged { .. }
        | E::FewerBatches { .. }
        | E::NonFiniteStart { .. }
        | E::LargeValues { .. }
        | E::LargeWeight { .. } => Exit::Data,
        E::ModelMismatch { .. }
        | E::UnknownFamily { .. }
        | E::BadModel { .. }
        | E::ModelFamily { .. }
        | E::TaskState { .. } => Exit::Model,
        E::EncodeState { .. } => Exit::Internal,
        E::Coordinator { .. } => Exit::Io,
        E::Matrix(error) => matrix_exit(error),
        E::Data(error) => data_exit(error),
    }
}
