//! Errors of clients.

use std::io;
use std::time::Duration;

use tonic::Code;

/// An error of a call. The text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the error text of each variant explains its fields")]
pub enum Error {
    /// The connection cannot be opened.
    #[error(
        "cannot connect: {problem}; check that the master runs and serves HTTP there: at the port after the one of its \
         members, unless --http named another address"
    )]
    Connect { problem: String },

    /// The other end uses another protocol.
    #[error(
        "the other end does not speak gRPC: check the address, which may be a port of frames (HTTP is at the next port, \
         unless --http named another address), and use the same release at both ends"
    )]
    NotGrpc,

    /// The connection ended during the call.
    #[error("the connection was lost before the answer arrived: {problem}")]
    Lost { problem: String },

    /// No answer arrived within the limit.
    #[error("no answer within {:.1} s {during}", limit.as_secs_f64())]
    TimedOut { during: &'static str, limit: Duration },

    /// The other end refused the call.
    #[error("refused ({code:?}): {text}")]
    Refused { code: Code, text: String },

    /// The answer cannot be parsed.
    #[error("the answer is invalid: {problem}; use the same release at both ends")]
    Response { problem: String },

    /// The token has bytes that a header of a call cannot carry.
    #[error(
        "the token has bytes that a call cannot carry: use letters and digits only, as `openssl rand -hex 32` \
         prints them"
    )]
    Token,

    /// The operating system returned an error.
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

impl Error {
    /// Whether the same call may succeed later, at this master or at one that replaces it. It may have arrived or not, so only
    /// a request that may be repeated is sent again.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Connect { .. } | Error::Lost { .. } | Error::TimedOut { .. } => true,
            Error::Refused { code, .. } => matches!(code, Code::DeadlineExceeded | Code::Unavailable),
            Error::NotGrpc | Error::Response { .. } | Error::Token | Error::System { .. } => false,
        }
    }

    /// The code and the text of a refusal by the other end.
    pub fn refusal(&self) -> Option<(Code, &str)> {
        if let Error::Refused { code, text } = self { Some((*code, text)) } else { None }
    }
}
