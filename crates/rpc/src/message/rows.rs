//! A tool reads whole matrices from a lane and writes them back. Nothing changes between a barrier and the next push,
//! so the pages of one export belong together. A snapshot has the rows of one moment, whatever is pushed after it. All
//! these requests may be repeated.

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
    /// Of lists: the number of entries of this row that the tool has.
    pub skip: u64,
}

/// The answer to [`Export`] and [`ScanRows`].
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPage {
    pub request: RequestId,
    /// Number of rows of the matrix on this lane.
    pub row_count: u64,
    /// Number of those with a value other than 0, or of lists the number of all entries; 0 in an answer to `ScanRows`, for which
    /// they are not counted.
    pub nonzero_count: u64,
    /// What the request for the next page asks for: the first key after this page, or the number of the next block;
    /// `None` if there are no more rows.
    pub next: Option<u64>,
    /// Of lists: the number of entries of the row `next` that are in this page and those before it.
    pub next_skip: u64,
    /// The keys of n rows: ascending, and in an answer to `ScanRows` in no order. Of lists: n, the keys of the rows, the
    /// number of entries of each, and the keys of all entries (`matrix::RowBlock::into_sections`).
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
    /// With `first`: the number of rows of the whole matrix that are imported, so that the lane makes room; 0 if it is not
    /// known.
    pub row_count: u64,
    /// Whether slots follow the values. If not, the push rule initializes them so that the values do not change.
    pub with_slots: bool,
    /// As in [`ExportPage`], each key once; a list may come in several parts.
    pub keys: Vec<u64>,
    /// As in [`ExportPage`].
    pub values: OwnedValues,
}

/// Number of snapshots that a job may have at the same time: their numbers are below it.
pub const SNAPSHOT_LIMIT: u32 = 2;

/// Takes a snapshot of all rows of the job on this lane, in place of the one with this number. Answered by `Done`, or by
/// a fault `TooLarge` if there is not enough memory for a copy of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepRows {
    pub request: RequestId,
    pub job: JobId,
    pub snapshot: u32,
    /// Whether changes are recorded from now on, for a scan of what has changed at the next such snapshot.
    pub records_changes: bool,
}

/// Replaces all rows by those of a snapshot. Answered by `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRows {
    pub request: RequestId,
    pub job: JobId,
    pub snapshot: u32,
}

/// Frees a snapshot, if there is one with this number. Answered by `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropRows {
    pub request: RequestId,
    pub job: JobId,
    pub snapshot: u32,
}

/// Asks for a block of rows of a snapshot. The blocks are in no order, and each has keys from anywhere. Answered by
/// [`ExportPage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanRows {
    pub request: RequestId,
    pub job: JobId,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    pub snapshot: u32,
    /// The number of the block: 0 first, then what the page before says.
    pub block: u64,
    /// Whether only rows are wanted that may have changed since the snapshot before that recorded changes: all if that
    /// is not known.
    pub only_changed: bool,
}
