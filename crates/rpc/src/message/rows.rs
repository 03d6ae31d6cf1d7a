//! A tool reads whole matrices from a lane and writes them back. Nothing changes between a barrier and the next push,
//! so the pages of one export belong together. All these requests may be repeated.

use matrix::OwnedValues;
use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Asks for the rows of a matrix on this lane, in ascending order of keys, from the key `from` on. Answered by
/// [`ExportPage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    pub request: RequestId,
    pub job: JobId,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// The smallest key that the tool has not.
    pub from: u64,
}

/// The answer to [`Export`]: as many rows as fit into a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPage {
    pub request: RequestId,
    /// Number of rows of the matrix on this lane.
    pub row_count: u64,
    /// Number of those with a value other than 0.
    pub nonzero_count: u64,
    /// The first key after this page; `None` if there is no row after it.
    pub next: Option<u64>,
    /// n keys, ascending, as in `matrix::ExportedRows`.
    pub keys: Vec<u64>,
    /// The values of all rows, then slot after slot, each row-major.
    pub values: OwnedValues,
}

/// Writes rows of the partitions of this lane. Answered by `Done`.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    pub request: RequestId,
    pub job: JobId,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// Whether the lane drops all rows of the matrix first.
    pub first: bool,
    /// Whether slots follow the values. If not, the push rule initializes them so that the values do not change.
    pub with_slots: bool,
    /// n keys, ascending.
    pub keys: Vec<u64>,
    /// As in [`ExportPage`].
    pub values: OwnedValues,
}

/// Copies all rows of the job on this lane, in place of the previous copy. Answered by `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRows {
    pub request: RequestId,
    pub job: JobId,
}

/// Restores the copied rows. Answered by `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRows {
    pub request: RequestId,
    pub job: JobId,
}
