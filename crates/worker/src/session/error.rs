//! What may go wrong in a session.

use rpc::message::Fault;

use crate::lane_client::LaneClient;

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

impl SessionError {
    /// The error of a request of this client.
    pub(super) fn of(client: &LaneClient, error: rpc::Error) -> Self {
        let place = client.address().addresses.first().cloned().unwrap_or_default();
        match error {
            rpc::Error::Refused(fault) => Self::Refused { place, fault },
            rpc::Error::Unexpected { .. } => Self::UnexpectedAnswer { place },
            source => Self::Connection { place, source },
        }
    }

    /// The error of an answer that does not fit its request.
    pub(super) fn unexpected(client: &LaneClient) -> Self {
        Self::of(client, rpc::Error::Unexpected { expected: "its answer", actual: "another one" })
    }
}
