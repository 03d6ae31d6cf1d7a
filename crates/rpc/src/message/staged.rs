//! Changing parameters exactly once from a host that has no clocks. The name of a change is (session, matrix, token,
//! part). The **token** is a number that the driver of the host creates for one evaluation; tokens only ascend within a
//! matrix. The **part** is the share of the host's data that the change comes from. Each computation of a part is an
//! **attempt**; a part may have several attempts, also at the same time. An attempt stages chunks under its own number,
//! then commits. The first commit of a part counts, on each lane separately. Chunks of other attempts are freed, and
//! the answers to their commits name the attempt that counts.
//!
//! A change may also consist of push functions. They are not staged: the first commit of the part runs them.
//!
//! When the driver has all parts, it closes the token, and late attempts are refused. All these requests may be
//! repeated.

use matrix::{FunctionCall, OwnedValues};

use super::pull::{KeyList, PartitionRun};
use super::{JobId, RequestId};

/// A chunk of a change, stored until its attempt commits. Answered by `Done` when `request` is not 0, also when the
/// part is already committed: then the chunk is not stored.
#[derive(Clone, Debug, PartialEq)]
pub struct PushStaged {
    /// 0: no answer is wanted.
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    /// The evaluation.
    pub token: u64,
    /// The share of the host's data.
    pub part: u32,
    /// Unique among the attempts at the part.
    pub attempt: u64,
    /// The position of the chunk among those for this lane, from 0. A chunk that is already staged is dropped.
    pub chunk: u32,
    pub matrix: u32,
    /// For a matrix that is partitioned by row: 0. By column: the row.
    pub table: u32,
    pub runs: Vec<PartitionRun>,
    pub keys: KeyList,
    /// In the order of the keys, all columns of a key together.
    pub values: OwnedValues,
}

/// Merges all chunks of an attempt, in their order, if no other attempt at the part has committed. Answered by
/// [`Committed`], or by a fault: a chunk is missing, or the token is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    pub matrix: u32,
    /// The evaluation.
    pub token: u64,
    /// The share of the host's data.
    pub part: u32,
    /// The attempt that has staged the chunks.
    pub attempt: u64,
    /// Number of chunks that the attempt has staged on this lane; 0: it has no change for this lane.
    pub chunks: u32,
}

/// Runs push functions as the change of a part, if no attempt at the part has committed. Answered by [`Committed`], or
/// by a fault: then nothing has changed, and the part is not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitFunction {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    pub matrix: u32,
    /// The evaluation.
    pub token: u64,
    /// The share of the host's data.
    pub part: u32,
    /// The attempt that commits. It has staged nothing for the part on this lane.
    pub attempt: u64,
    pub calls: Vec<FunctionCall>,
}

/// The answer to [`Commit`] and [`CommitFunction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub request: RequestId,
    /// The attempt that counts on this lane.
    pub attempt: u64,
}

/// Refuses all later requests for this token and the tokens below it, and frees what is staged under them. Answered by
/// `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseToken {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    pub matrix: u32,
    /// The evaluation that is over.
    pub token: u64,
}
