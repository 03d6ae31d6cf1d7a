//! Changing parameters. A push is named (task, clock, index); a lane applies each name once, in ascending order, and drops
//! what it has applied before, so that it may be repeated. It is held like a pull. Usually no answer is wanted
//! (`request` 0): the next answer of any kind says how far the pushes have come. A refusal is a `Fault` with the name in
//! it, answer wanted or not.

use super::pull::{KeyList, PartitionRun};
use super::{JobId, RequestId};
use crate::wire::WireValues;

/// A change, merged by the push rule of the matrix. Answered by `TaskTimes` when `request` is not 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    /// Of this request, or 0.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: u32,
    /// Its clock.
    pub clock: u64,
    /// Counts the pushes of the task to this lane under this clock, from 0, without gaps.
    pub index: u32,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// By row: 0. By column: the row.
    pub table: u32,
    /// The partitions.
    pub runs: Vec<PartitionRun>,
    /// The keys.
    pub keys: KeyList,
    /// In the order of the keys, all columns of a key together.
    pub values: WireValues,
}
