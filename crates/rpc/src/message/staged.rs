//! Changing parameters exactly once from a host that has no clocks. A change is named (session, matrix, token, part): the
//! **token** is a number that the driver of the host makes for one evaluation, and that only rises within a matrix; the
//! **part** is the share of the host's data that the change comes from. Whoever computes a part, maybe several times and
//! maybe at once, is an **attempt** at it: it stages chunks under its own number, and commits. The first commit of a part
//! counts, on each lane by itself; what other attempts have staged is freed, and their commits are told whose counts.
//!
//! A change may also be push functions. They are not staged: the first commit of the part carries them out.
//!
//! When the driver has all parts, it closes the token, and late attempts are refused. All of it may be repeated.

use matrix::{FunctionCall, OwnedValues};

use super::pull::{KeyList, PartitionRun};
use super::{JobId, RequestId};

/// A chunk of a change, kept aside until its attempt commits. Answered by `TaskTimes` when `request` is not 0, also when the part
/// has been committed already: then nothing is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PushStaged {
    /// Of this request, or 0.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
    /// The evaluation.
    pub token: u64,
    /// The share of the host's data.
    pub part: u32,
    /// Who computes it, unique among those who do.
    pub attempt: u64,
    /// Which of its chunks for this lane, from 0. A chunk that is staged already is dropped.
    pub chunk: u32,
    /// The matrix.
    pub matrix: u32,
    /// By row: 0. By column: the row.
    pub table: u32,
    /// The partitions.
    pub runs: Vec<PartitionRun>,
    /// The keys.
    pub keys: KeyList,
    /// In the order of the keys, all columns of a key together.
    pub values: OwnedValues,
}

/// Merges all chunks of an attempt, in their order, if no other attempt at the part was first. Answered by [`Committed`], or a
/// fault: a chunk is missing, the token is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
    /// The matrix.
    pub matrix: u32,
    /// The evaluation.
    pub token: u64,
    /// The share of the host's data.
    pub part: u32,
    /// Whose chunks.
    pub attempt: u64,
    /// How many chunks it has staged on this lane; 0: it has nothing for it.
    pub chunks: u32,
}

/// Carries push functions out as the change of a part, if no attempt at the part was first. Answered by [`Committed`], or a fault:
/// then nothing has changed, and the part is not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitFunction {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
    /// The matrix.
    pub matrix: u32,
    /// The evaluation.
    pub token: u64,
    /// The share of the host's data.
    pub part: u32,
    /// Who commits. It has staged nothing for the part on this lane.
    pub attempt: u64,
    /// The functions.
    pub calls: Vec<FunctionCall>,
}

/// The answer to [`Commit`] and [`CommitFunction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Of the request.
    pub request: RequestId,
    /// The attempt that counts on this lane.
    pub attempt: u64,
}

/// Refuses whatever comes for this token and all below it from now on, and frees what is staged under them. Answered by
/// `TaskTimes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseToken {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
    /// The matrix.
    pub matrix: u32,
    /// The evaluation that is over.
    pub token: u64,
}
