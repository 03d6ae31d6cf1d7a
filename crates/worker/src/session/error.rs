//! What may go wrong in a session.

use rpc::message::Fault;

/// An error of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A connection is broken, or could not be made.
    #[error("{place}: {source}")]
    Connection { place: String, source: rpc::Error },
    /// The master or a server refused a request.
    #[error("{place} refused the request: {}", fault.text)]
    Refused { place: String, fault: Fault },
    #[error("{place} sent an answer that does not belong to the request")]
    UnexpectedAnswer { place: String },
    #[error("the session has no matrix {name:?}; it has: {known}")]
    UnknownMatrix { name: String, known: String },
    /// A selection, values or a function do not fit the matrix.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
}
