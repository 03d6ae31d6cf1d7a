//! Errors of the master process.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid setting; the text says which one, and what to do.
    #[error("{0}")]
    Config(String),

    /// The folder of the state cannot be used; the text says why.
    #[error("{0}")]
    State(String),

    /// An error of the network.
    #[error(transparent)]
    Rpc(#[from] rpc::Error),
}
