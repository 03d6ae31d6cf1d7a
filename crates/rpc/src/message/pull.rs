//! Reading parameters. The lane defers a pull until the consistency of its matrix allows the answer, at most until the
//! wait limit of the job or until the task stops waiting. A pull changes nothing and may be repeated.

use super::{JobId, PushPosition, RequestId};
use crate::wire::{WireType, WireValues};

/// The keys of one partition in a pull or push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRun {
    pub partition: u32,
    /// Number of keys.
    pub count: u32,
}

/// The keys of a pull or push: those of the first run, then those of the second, and so on; in each run strictly
/// ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyList {
    /// All keys. The lane caches the list under its digest for a while.
    Listed(Vec<u64>),
    /// The keys `start..end`, cut into runs.
    Range {
        start: u64,
        /// The key after the last one.
        end: u64,
    },
    /// A list that was sent before on this connection, named by the 128-bit digest of runs and keys. A lane that does
    /// not have it answers `UnknownKeys`, and the request is sent again in full.
    Cached {
        /// [`KeyList::digest`] of the list.
        digest: u128,
        /// Number of keys.
        count: u32,
    },
}

/// Asks for values.
#[derive(Clone, Debug, PartialEq)]
pub struct Pull {
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    pub clock: u64,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// For a matrix that is partitioned by row: 0. By column: the row.
    pub table: u32,
    /// Milliseconds that the task still waits for the answer, counted from when it sends the request. 0: as long as the
    /// job allows.
    pub wait_ms: u32,
    pub runs: Vec<PartitionRun>,
    pub keys: KeyList,
    /// The form in which the values travel; other than `F32` only for an `f32` matrix.
    pub wire: WireType,
}

/// The answer to [`Pull`].
#[derive(Clone, Debug, PartialEq)]
pub struct Pulled {
    pub request: RequestId,
    /// The smallest clock (m) when the values were read.
    pub minimum: u64,
    /// Nanoseconds that the lane deferred the pull, waiting for other tasks.
    pub deferred_ns: u64,
    /// The push watermark of the task that sent the request.
    pub applied: PushPosition,
    /// In the order of the keys, all columns of a key together.
    pub values: WireValues,
}
