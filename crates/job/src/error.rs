//! What is wrong with a job.

use std::path::PathBuf;

use crate::Exit;

/// A job that cannot be run as it was asked for. Variants carry data; the text says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key that is not in the table of keys.
    #[error("unknown key {key:?} in {place}{}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// The key as the user wrote it.
        key: String,
        /// The file or flag in which the key stands.
        place: String,
        /// The most similar key of the table.
        nearest: Option<String>,
    },
    /// A required key is missing.
    #[error("{command} needs {what}: give {flag}")]
    MissingKey {
        command: &'static str,
        /// What the key stands for.
        what: &'static str,
        /// The flag, and the key of the job file if there is one.
        flag: String,
    },
    /// A value that the key does not accept.
    #[error("{place}: {actual:?} is not {expected}")]
    BadValue {
        /// The flag or the key with its file.
        place: String,
        /// The value as the user wrote it.
        actual: String,
        /// A description of the accepted values.
        expected: String,
    },
    /// A job file that is not valid TOML.
    #[error("job file {}: {message}", path.display())]
    JobFile {
        path: PathBuf,
        /// The message of the TOML reader, with line and column.
        message: String,
    },
    /// A request that cannot be fulfilled.
    #[error("{what}; {advice}")]
    InvalidRequest {
        /// What is wrong with the request.
        what: String,
        /// What to do.
        advice: String,
    },
    /// An error of the parameters of the algorithm.
    #[error(transparent)]
    Algo(#[from] algo::Error),
}

impl Error {
    /// The exit code of a command that ends with this error: the request is wrong.
    pub fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Returns `; did you mean "x"?`, or nothing when no name is similar.
fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}
