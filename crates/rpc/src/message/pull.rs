//! Reading parameters. A pull is held at the lane until the consistency of its matrix allows the answer, at most until
//! the wait limit of the job or until who asks no longer waits. It changes nothing and may be repeated.

use super::{JobId, PushPosition, RequestId};
use crate::wire::{WireType, WireValues};

/// Keys of one partition in a pull or push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRun {
    /// The partition.
    pub partition: u32,
    /// Number of its keys.
    pub count: u32,
}

/// The keys of a pull or push: those of the first run, then those of the second ...; in each run strictly ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyList {
    /// All of them. The lane remembers the list by its digest for a while.
    Listed(Vec<u64>),
    /// `start..end`, cut into runs.
    Range {
        /// First key.
        start: u64,
        /// Behind the last.
        end: u64,
    },
    /// A list that was sent before on this connection, by the 128-bit digest of runs and keys. A lane that does not know
    /// it answers `UnknownKeys`, and the request is sent again in full.
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
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task that asks.
    pub task: u32,
    /// Its clock.
    pub clock: u64,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// By row: 0. By column: the row.
    pub table: u32,
    /// Milliseconds for which the task still waits for the answer, from the sending on; 0: as long as the job allows.
    pub wait_ms: u32,
    /// The partitions.
    pub runs: Vec<PartitionRun>,
    /// The keys.
    pub keys: KeyList,
    /// How the values are to travel; other than `F32` only of an `f32` matrix.
    pub wire: WireType,
}

/// The answer to [`Pull`].
#[derive(Clone, Debug, PartialEq)]
pub struct Pulled {
    /// Of the request.
    pub request: RequestId,
    /// m when the values were read.
    pub minimum: u64,
    /// Nanoseconds that the lane held the pull, waiting for other tasks.
    pub held_ns: u64,
    /// How far the pushes of the asking task have come.
    pub applied: PushPosition,
    /// In the order of the keys, all columns of a key together.
    pub values: WireValues,
}
