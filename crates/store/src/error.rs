//! Errors of stores.

/// The schemes that this build knows, and what adds others.
const KNOWN: &str = match (cfg!(feature = "cloud"), cfg!(feature = "hdfs")) {
    (false, false) => {
        " and file://; built with the feature cloud it knows s3://, gs:// and az://, with hdfs hdfs://"
    }
    (true, false) => ", file://, s3://, gs:// and az://; built with the feature hdfs it knows hdfs://",
    (false, true) => ", file:// and hdfs://; built with the feature cloud it knows s3://, gs:// and az://",
    (true, true) => ", file://, s3://, gs://, az:// and hdfs://",
};

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{location:?} has the scheme {scheme:?}, and this program knows paths{KNOWN}")]
    UnknownScheme { location: String, scheme: String },
    #[error("{location} cannot be used: {problem}")]
    Unusable { location: String, problem: String },
    #[error("{path:?} is no path of a file in a store: {reason}")]
    BadPath { path: String, reason: &'static str },
    #[error("there is no file {}", place(path, location))]
    NotFound { location: String, path: String },
    #[error("cannot {action} {}: {source}{}", place(path, location), io_advice(source))]
    Io { action: &'static str, location: String, path: String, source: std::io::Error },
}

impl Error {
    /// The error of an action on a path of the store at `location`.
    pub(crate) fn io(action: &'static str, location: &str, path: &str, source: std::io::Error) -> Self {
        let (location, path) = (location.to_owned(), path.to_owned());
        match source.kind() {
            std::io::ErrorKind::NotFound => Self::NotFound { location, path },
            _ => Self::Io { action, location, path, source },
        }
    }

    /// The reason why a file is not read any further.
    pub(crate) fn changed() -> std::io::Error {
        std::io::Error::other("it has changed since it was opened; start again when nobody writes to it")
    }

    /// Whether it is the address, or the settings of its store, that cannot be.
    pub fn is_bad_address(&self) -> bool {
        matches!(self, Self::UnknownScheme { .. } | Self::Unusable { .. } | Self::BadPath { .. })
    }

    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// Names a file of a store, or its root.
fn place(path: &str, location: &str) -> String {
    if path.is_empty() { location.to_owned() } else { format!("{}/{path}", location.trim_end_matches('/')) }
}

/// Returns what a user may do about an error of the operating system, for the end of a message; often empty.
pub fn io_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "; free some space or choose another path",
        std::io::ErrorKind::PermissionDenied => {
            "; check the permissions of the folder or choose another path"
        }
        std::io::ErrorKind::NotFound => "; check the path",
        _ => "",
    }
}
