//! Errors of YARN and of the way to it.

/// What can go wrong with an application.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No ResourceManager answers.
    #[error(
        "no ResourceManager answers at {urls}: {reason}. Give --yarn its web address, as in http://rm:8088, or those of all ResourceManagers, \
         separated by commas"
    )]
    Unreachable { urls: String, reason: String },
    /// The ResourceManager refuses a request.
    #[error("the ResourceManager at {url} refuses to {action}: {reason}")]
    Refused { url: String, action: &'static str, reason: String },
    /// Its answer is none that this program knows.
    #[error(
        "the ResourceManager at {url} has answered something else than expected when asked to {action}: {reason}"
    )]
    Answer { url: String, action: &'static str, reason: String },
    /// A container is larger than any that YARN gives.
    #[error(
        "a container of a {role} would have {asked}, and the largest that YARN gives has {largest}; lower {flag}"
    )]
    TooLarge { role: String, asked: String, largest: String, flag: String },
    /// The application has ended.
    #[error("{application} has ended as {state}: {diagnostics}{logs}")]
    Ended { application: String, state: String, diagnostics: String, logs: String },
    /// A file of the application cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file of this machine cannot be read.
    #[error("cannot read {path}: {source}{advice}")]
    File { path: String, source: std::io::Error, advice: &'static str },
}
