//! What can go wrong with the process of a master.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that cannot be; the text says which, and what to do.
    #[error("{0}")]
    Config(String),

    /// The network.
    #[error(transparent)]
    Rpc(#[from] rpc::Error),
}
