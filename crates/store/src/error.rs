//! Errors of stores.

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{location:?} has the scheme {scheme:?}, and this program knows paths and file://")]
    UnknownScheme { location: String, scheme: String },
    #[error("{path:?} is no path of a file in a store: {reason}")]
    BadPath { path: String, reason: &'static str },
    #[error("there is no file {path} in {location}")]
    NotFound { location: String, path: String },
    #[error("cannot {action} {path} in {location}: {source}")]
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

    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}
