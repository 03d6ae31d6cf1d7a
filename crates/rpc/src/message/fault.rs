//! Refusals: a closed set of kinds, each with one answer to the question whether trying again may help.

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
    /// Too much is under way: come again after the time in the fault.
    Busy,
    /// A digest of keys that is not remembered: send the keys.
    UnknownKeys,
    /// No such job here.
    NoSuchJob,
    /// No such member, matrix, partition, task or lane.
    NotFound,
    /// The task has left.
    TaskLeft,
    /// Other tasks did not come in time.
    WaitedTooLong,
    /// A value that is not finite.
    NonFinite,
    /// A request that can never be granted as it is.
    Invalid,
    /// The job was ended.
    Stopped,
    /// The token of a staged push is closed: the driver has gone on without this attempt.
    TokenClosed,
    /// A PS function was refused or has failed: it alone, nothing else of the task.
    Function,
    /// A fault of the program.
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
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Of the request; 0 when it is not known or wanted no answer.
    pub request: RequestId,
    /// The kind.
    pub kind: FaultKind,
    /// What, where, what was expected, what to do.
    pub text: String,
    /// When it may be tried again; 0 when that does not help.
    pub retry_after_ms: u32,
}
