//! Whole matrices out of a lane and back, by a tool. Between a barrier and the next push nothing changes, so that pages of
//! one export belong together. All may be repeated.

use matrix::OwnedValues;
use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Asks for rows of a matrix, ascending by key, from `after` on. Answered by [`ExportPage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// Rows before this one are left out: how many the asker has.
    pub offset: u64,
}

/// The answer to [`Export`]: as many rows as fit a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPage {
    /// Of the request.
    pub request: RequestId,
    /// Rows of the matrix on this lane.
    pub row_count: u64,
    /// n keys, ascending, as in `matrix::ExportedRows`.
    pub keys: Vec<u64>,
    /// The values of all rows, then slot after slot, each row-major.
    pub values: OwnedValues,
}

/// Writes rows of the partitions of this lane. Answered by `TaskTimes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// Whether all rows there are dropped first.
    pub first: bool,
    /// Whether slots follow the values; if not, the push rule starts them so that the values stand.
    pub with_slots: bool,
    /// n keys, ascending.
    pub keys: Vec<u64>,
    /// As in [`ExportPage`].
    pub values: OwnedValues,
}

/// Keeps a copy of all rows of the job on this lane, instead of the one kept before. Answered by `TaskTimes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRows {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
}

/// Puts the kept rows back. Answered by `TaskTimes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRows {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
}
