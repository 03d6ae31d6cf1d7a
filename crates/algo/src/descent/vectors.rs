//! The rows of the matrix of vectors.

use matrix::{Consistency, ElementType, MatrixId, MatrixSpec, VectorPool};

/// The point z.
pub const POINT: u32 = 0;
/// The gradient there.
pub const GRADIENT: u32 = 1;
/// The scale of each column.
pub const SCALE: u32 = 2;
/// The direction.
pub const DIRECTION: u32 = 3;
/// Rows before those of the history.
const FIXED_ROWS: u32 = 4;

/// Up to so many columns elements are f64: the last digits cost little, and small problems are those that are compared to
/// the last digit. 24 rows of it are 50 MB.
pub const F64_COLUMNS: u64 = 1 << 18;

/// A matrix of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorLayout {
    /// The matrix.
    pub id: MatrixId,
    /// Columns.
    pub columns: u64,
    /// Pairs of the history, at least 1: the pair that is under way needs its rows too.
    pub slots: u32,
}

impl VectorLayout {
    /// For `history` pairs.
    pub fn new(id: MatrixId, columns: u64, history: usize) -> Self {
        Self { id, columns, slots: history.max(1) as u32 }
    }

    /// Type of the elements.
    pub fn element(&self) -> ElementType {
        if self.columns <= F64_COLUMNS { ElementType::F64 } else { ElementType::F32 }
    }

    /// Point before the step of a slot while that is under way, then the step.
    pub fn step_row(&self, slot: u32) -> u32 {
        FIXED_ROWS + slot
    }

    /// Gradient before the step of a slot while that is under way, then its change.
    pub fn change_row(&self, slot: u32) -> u32 {
        FIXED_ROWS + self.slots + slot
    }

    /// The declared matrix. Pushes and functions wait for the end of their clock and are merged in the order of tasks, so that
    /// sums have the same bytes in every run.
    pub fn spec(&self, partition_count: u32) -> MatrixSpec {
        let rows = FIXED_ROWS + 2 * self.slots;
        VectorPool::spec("vectors", self.element(), rows, self.columns, partition_count, Consistency::Bsp)
    }
}
