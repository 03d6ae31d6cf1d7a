//! What can go wrong with a server process.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum Error {
    /// A setting that cannot be.
    #[error("server: {field} is {actual}, expected {expected}")]
    Config { field: &'static str, actual: String, expected: String },

    /// An address beyond this machine without a secret.
    #[error(
        "server: {address} can be reached from other machines, which needs a shared token (--token-file); without \
         one, listen on 127.0.0.1"
    )]
    NoToken { address: String },

    /// Sockets.
    #[error("server: {0}")]
    Network(#[from] rpc::Error),
}
