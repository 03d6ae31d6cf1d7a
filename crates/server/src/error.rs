//! Errors of a server process.

#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the error text of each variant explains its fields")]
pub enum Error {
    /// A setting outside of its range.
    #[error("server: {field} is {actual}, expected {expected}")]
    Config { field: &'static str, actual: String, expected: String },

    /// The address can be reached from other machines, and there is no token.
    #[error(
        "server: {address} can be reached from other machines, which needs a shared token (--token-file); without \
         one, listen on 127.0.0.1"
    )]
    NoToken { address: String },

    /// The write-ahead log cannot be used.
    #[error("server: the write-ahead log {path}: {problem}")]
    WriteAheadLog { path: std::path::PathBuf, problem: String },

    /// An error of the sockets.
    #[error("server: {0}")]
    Network(#[from] rpc::Error),
}
