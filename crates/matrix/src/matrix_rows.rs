//! Whole rows of a matrix that is partitioned by row: read and changed by number, or block after block while the blocks
//! behind the one in use are under way.

use std::ops::Range;

use crate::agent::{Agent, Keys, MatrixId, Selection};
use crate::element::{ElementType, OwnedValues, Values};
use crate::error::Error;
use crate::spec::{Axis, MatrixSpec};

/// Blocks that are asked for before they are used, at most.
const IN_FLIGHT_LIMIT: usize = 4;

/// A matrix whose rows are embeddings, centers, factors: each is read and changed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRows {
    matrix: MatrixId,
    name: String,
    element: ElementType,
    columns: usize,
}

impl MatrixRows {
    /// The rows of a matrix that was created with `spec`. Refuses one that is partitioned by column.
    pub fn new(matrix: MatrixId, spec: &MatrixSpec) -> Result<Self, Error> {
        if spec.axis != Axis::Row {
            return Err(Error::WrongAxis { matrix: spec.name.clone(), axis: "column", asked: "row" });
        }
        let (name, element, columns) = (spec.name.clone(), spec.element, spec.columns as usize);
        Ok(Self { matrix, name, element, columns })
    }

    /// Values of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The values (n x columns) of `rows` (n), which are strictly ascending.
    pub fn get(&self, agent: &mut (impl Agent + ?Sized), rows: &[u64]) -> Result<OwnedValues, Error> {
        self.pull(agent, Keys::Sorted(rows), rows.len())
    }

    /// Merges `values` (n x columns) into `rows` (n), which are strictly ascending, by the push rule of the matrix.
    pub fn update(
        &self,
        agent: &mut (impl Agent + ?Sized),
        rows: &[u64],
        values: Values<'_>,
    ) -> Result<(), Error> {
        let (expected, actual) = (rows.len() * self.columns, values.len());
        if expected != actual {
            return Err(Error::ValueCount { matrix: self.name.clone(), expected, actual });
        }
        agent.push(self.matrix, Selection::Rows(Keys::Sorted(rows)), values)
    }

    /// Goes through `rows`, which are strictly ascending, in blocks of `block_len`. Up to `in_flight` blocks (at most 4)
    /// are asked for before they are used; 0 asks for each when it is wanted.
    ///
    /// # Panics
    /// When `block_len` is 0.
    pub fn blocks<'a>(&'a self, rows: &'a [u64], block_len: usize, in_flight: usize) -> RowBlocks<'a> {
        assert!(block_len > 0, "a block has at least one row");
        RowBlocks {
            matrix_rows: self,
            rows,
            block_len,
            in_flight: in_flight.min(IN_FLIGHT_LIMIT),
            returned_count: 0,
            requested_count: 0,
        }
    }

    fn pull(
        &self,
        agent: &mut (impl Agent + ?Sized),
        keys: Keys<'_>,
        count: usize,
    ) -> Result<OwnedValues, Error> {
        let len = count * self.columns;
        let mut out = OwnedValues::zeros(self.element, len);
        agent.pull(self.matrix, Selection::Rows(keys), out.slice_mut(0..len))?;
        Ok(out)
    }
}

/// Rows in blocks. Between two blocks the agent may be used for anything; what was pushed to a row that is under way is
/// seen as the consistency of the matrix says.
#[derive(Debug)]
pub struct RowBlocks<'a> {
    matrix_rows: &'a MatrixRows,
    rows: &'a [u64],
    block_len: usize,
    in_flight: usize,
    /// Rows given out, and rows asked for.
    returned_count: usize,
    requested_count: usize,
}

/// Some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBlock<'a> {
    /// Their numbers (n).
    pub rows: &'a [u64],
    /// Their values (n x columns).
    pub values: OwnedValues,
}

impl<'a> RowBlocks<'a> {
    /// The next block; none behind the last.
    pub fn next(&mut self, agent: &mut (impl Agent + ?Sized)) -> Result<Option<RowBlock<'a>>, Error> {
        let rows = &self.rows[self.block(self.returned_count)];
        if rows.is_empty() {
            return Ok(None);
        }
        let ahead = self.returned_count.saturating_add((self.in_flight + 1).saturating_mul(self.block_len));
        while self.in_flight > 0 && self.requested_count < ahead.min(self.rows.len()) {
            let block = self.block(self.requested_count);
            agent.pull_ahead(
                self.matrix_rows.matrix,
                Selection::Rows(Keys::Sorted(&self.rows[block.clone()])),
            )?;
            self.requested_count = block.end;
        }
        let values = self.matrix_rows.get(agent, rows)?;
        self.returned_count += rows.len();
        Ok(Some(RowBlock { rows, values }))
    }

    fn block(&self, start: usize) -> Range<usize> {
        start..self.rows.len().min(start.saturating_add(self.block_len))
    }
}
