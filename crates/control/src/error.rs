//! What can go wrong for one who calls.

use std::io;
use std::time::Duration;

use tonic::Code;

/// An error of a call. The text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum Error {
    /// Nobody takes the connection.
    #[error("cannot connect: {source}; look whether the master runs and listens there")]
    Connect { source: io::Error },

    /// Something else listens there.
    #[error(
        "what answers there does not speak gRPC: look at the address, and use the same release at both ends"
    )]
    NotGrpc,

    /// The connection ended in the middle.
    #[error("the connection broke before the answer came: {problem}")]
    Lost { problem: String },

    /// No answer within the limit.
    #[error("no answer came within {:.1} s {during}", limit.as_secs_f64())]
    TimedOut { during: &'static str, limit: Duration },

    /// The other end says no.
    #[error("refused ({code:?}): {text}")]
    Refused { code: Code, text: String },

    /// An answer that cannot be understood.
    #[error("the answer cannot be understood: {problem}; use the same release at both ends")]
    Response { problem: String },

    /// A token that does not fit into the head of a call.
    #[error(
        "the token has bytes that a call cannot carry: take one of letters and digits, as `openssl rand -hex 32` makes it"
    )]
    Token,

    /// The system said no.
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

impl Error {
    /// The code and the text, when the other end says no.
    pub fn refusal(&self) -> Option<(Code, &str)> {
        if let Error::Refused { code, text } = self { Some((*code, text)) } else { None }
    }

    /// Whether it is not known if the request arrived, so that one that may be repeated should be.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Error::Connect { .. } | Error::Lost { .. } | Error::TimedOut { .. } => true,
            Error::Refused { code, .. } => *code == Code::DeadlineExceeded,
            Error::NotGrpc | Error::Response { .. } | Error::Token | Error::System { .. } => false,
        }
    }
}
