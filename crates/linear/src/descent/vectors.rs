//! The rows of the matrix of vectors.

use matrix::{Consistency, ElementType, MatrixId, MatrixSpec, VectorPool};
use serde::{Deserialize, Serialize};

/// The point z.
pub const POINT: u32 = 0;
/// The gradient at the point.
pub const GRADIENT: u32 = 1;
/// The scale of each column.
pub const SCALE: u32 = 2;
pub const DIRECTION: u32 = 3;
/// Number of rows before those of the history.
const FIXED_ROWS: u32 = 4;

/// Up to this number of columns the elements are f64: the extra digits cost little, and users compare small problems to
/// the last digit. 24 rows of this length take 50 MB.
pub const F64_COLUMNS: u64 = 1 << 18;

/// The layout of a matrix of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorLayout {
    pub id: MatrixId,
    pub columns: u64,
    /// Number of pairs of the history, at least 1: the current step needs rows for its pair too.
    pub slots: u32,
}

impl VectorLayout {
    /// The layout for `history` pairs.
    pub fn new(id: MatrixId, columns: u64, history: usize) -> Self {
        Self { id, columns, slots: history.max(1) as u32 }
    }

    pub fn element(&self) -> ElementType {
        if self.columns <= F64_COLUMNS { ElementType::F64 } else { ElementType::F32 }
    }

    /// The row of a slot that holds the point before the step during a search, and the step afterwards.
    pub fn step_row(&self, slot: u32) -> u32 {
        FIXED_ROWS + slot
    }

    /// The row of a slot that holds the gradient before the step during a search, and its change afterwards.
    pub fn change_row(&self, slot: u32) -> u32 {
        FIXED_ROWS + self.slots + slot
    }

    /// The matrix. Its pushes and functions wait for the end of their clock and are merged in the order of tasks, so
    /// that sums have the same bytes in every run.
    pub fn spec(&self, partition_count: u32) -> MatrixSpec {
        let rows = FIXED_ROWS + 2 * self.slots;
        VectorPool::spec("vectors", self.element(), rows, self.columns, partition_count, Consistency::Bsp)
    }
}
