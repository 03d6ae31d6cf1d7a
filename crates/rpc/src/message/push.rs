//! Changing parameters. The name of a push is (task, clock, index). A lane applies each name once, in ascending order,
//! and drops a push that it has applied before, so a push may be repeated. The lane may defer it like a pull. Usually
//! no answer is wanted (`request` 0): the next answer of any kind carries the push watermark. A refused push is
//! answered by a `Fault` with the name in it, whether an answer is wanted or not.

use super::pull::{KeyList, PartitionRun};
use super::{JobId, RequestId};
use crate::wire::WireValues;

/// A change, merged by the push rule of the matrix. Answered by `Done` when `request` is not 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    /// 0: no answer is wanted.
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    pub clock: u64,
    /// Counts the pushes of the task to this lane under this clock, from 0, without gaps.
    pub index: u32,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// For a matrix that is partitioned by row: 0. By column: the row.
    pub table: u32,
    pub runs: Vec<PartitionRun>,
    pub keys: KeyList,
    /// In the order of the keys, all columns of a key together.
    pub values: WireValues,
}
