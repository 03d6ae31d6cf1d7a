//! Refusals: a closed set of kinds. Each says whether a retry may help.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RequestId;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The token is wrong.
    BadToken,
    /// Another version of the protocol.
    BadVersion,
    /// Bytes that are no frame, or a message that may not come here.
    BadFrame,
    /// More than a limit allows.
    TooLarge,
    /// Too much is under way: retry after the time in the fault.
    Busy,
    /// The lane does not have the list of keys with this digest: send the keys.
    UnknownKeys,
    /// The process does not have this job.
    NoSuchJob,
    /// No such member, matrix, partition, task or lane.
    NotFound,
    /// The task has left.
    TaskLeft,
    /// Other tasks did not arrive in time.
    WaitedTooLong,
    /// A value is not finite.
    NonFinite,
    /// The request can never be granted as it is.
    Invalid,
    /// The job was ended.
    Stopped,
    /// The token of a staged push is closed: the driver has continued without this attempt.
    TokenClosed,
    /// A PS function was refused or has failed. Other requests of the task are not affected.
    Function,
    /// A bug of the program.
    Internal,
}

impl FaultKind {
    /// Whether the same request may be granted later.
    pub fn retry_may_help(self) -> bool {
        match self {
            FaultKind::Busy | FaultKind::UnknownKeys => true,
            FaultKind::BadToken
            | FaultKind::BadVersion
            | FaultKind::BadFrame
            | FaultKind::TooLarge
            | FaultKind::NoSuchJob
            | FaultKind::NotFound
            | FaultKind::TaskLeft
            | FaultKind::WaitedTooLong
            | FaultKind::NonFinite
            | FaultKind::Invalid
            | FaultKind::Stopped
            | FaultKind::TokenClosed
            | FaultKind::Function
            | FaultKind::Internal => false,
        }
    }

    /// Whether the process does not have any more, or not yet, what a right request is about: another run of the job may
    /// succeed.
    pub fn is_loss(self) -> bool {
        match self {
            FaultKind::Busy
            | FaultKind::UnknownKeys
            | FaultKind::NoSuchJob
            | FaultKind::TaskLeft
            | FaultKind::Stopped
            | FaultKind::TokenClosed => true,
            FaultKind::BadToken
            | FaultKind::BadVersion
            | FaultKind::BadFrame
            | FaultKind::TooLarge
            | FaultKind::NotFound
            | FaultKind::WaitedTooLong
            | FaultKind::NonFinite
            | FaultKind::Invalid
            | FaultKind::Function
            | FaultKind::Internal => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The number of the request; 0 when it is not known or when the request wanted no answer.
    pub request: RequestId,
    pub kind: FaultKind,
    /// Says what and where, what was expected, and what to do.
    pub text: String,
    /// Milliseconds until a retry may help; 0 when no retry helps.
    pub retry_after_ms: u32,
}

impl Fault {
    /// Time until a retry may help.
    pub fn retry_after(&self) -> Duration {
        Duration::from_millis(self.retry_after_ms.into())
    }
}
