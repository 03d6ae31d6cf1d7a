//! Whole rows of a matrix that is partitioned by row. They are read and changed by number, or read block by block while
//! the next blocks are prefetched.

use std::collections::VecDeque;
use std::ops::Range;

use crate::agent::{Agent, Keys, MatrixId, Selection};
use crate::element::{ElementType, OwnedValues, Values};
use crate::error::Error;
use crate::pull_ticket::PullTicket;
use crate::spec::{Axis, MatrixSpec};

/// Maximum number of blocks that are requested before they are used.
const IN_FLIGHT_LIMIT: usize = 4;

/// A matrix whose rows are embeddings, centers or factors: each row is read and changed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRows {
    matrix: MatrixId,
    name: String,
    element: ElementType,
    columns: usize,
}

impl MatrixRows {
    /// Wraps a matrix that was created with `spec`. A matrix partitioned by column is refused.
    pub fn new(matrix: MatrixId, spec: &MatrixSpec) -> Result<Self, Error> {
        if spec.axis != Axis::Row {
            return Err(Error::WrongAxis { matrix: spec.name.clone(), axis: "column", asked: "row" });
        }
        let (name, element, columns) = (spec.name.clone(), spec.element, spec.columns as usize);
        Ok(Self { matrix, name, element, columns })
    }

    /// Number of values of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the values (n x columns) of `rows` (n), which are strictly ascending.
    pub fn get(&self, agent: &mut (impl Agent + ?Sized), rows: &[u64]) -> Result<OwnedValues, Error> {
        let len = rows.len() * self.columns;
        let mut out = OwnedValues::zeros(self.element, len);
        agent.pull(self.matrix, Selection::Rows(Keys::Sorted(rows)), out.slice_mut(0..len))?;
        Ok(out)
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

    /// Reads `rows`, which are strictly ascending, in blocks of `block_len`. Up to `in_flight` blocks (at most 4) are
    /// requested before they are used; with 0 each is requested when it is needed.
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
            tickets: VecDeque::new(),
        }
    }
}

/// Rows in blocks. The agent may be used for anything between two blocks. Whether a block that is already requested
/// sees a push made meanwhile depends on the consistency of the matrix.
#[derive(Debug)]
pub struct RowBlocks<'a> {
    matrix_rows: &'a MatrixRows,
    rows: &'a [u64],
    block_len: usize,
    in_flight: usize,
    /// Number of rows returned; `requested_count` is the number of rows requested.
    returned_count: usize,
    requested_count: usize,
    /// The tickets of the blocks between these two.
    tickets: VecDeque<PullTicket>,
}

impl<'a> RowBlocks<'a> {
    /// Returns the next block, or `None` after the last: row numbers (n) and values (n x columns).
    pub fn next(
        &mut self,
        agent: &mut (impl Agent + ?Sized),
    ) -> Result<Option<(&'a [u64], OwnedValues)>, Error> {
        let rows = &self.rows[self.block(self.returned_count)];
        if rows.is_empty() {
            return Ok(None);
        }
        let ahead = self.returned_count.saturating_add((self.in_flight + 1).saturating_mul(self.block_len));
        while self.in_flight > 0 && self.requested_count < ahead.min(self.rows.len()) {
            let block = self.block(self.requested_count);
            let selection = Selection::Rows(Keys::Sorted(&self.rows[block.clone()]));
            self.tickets.push_back(agent.prefetch(self.matrix_rows.matrix, selection, agent.clock()));
            self.requested_count = block.end;
        }
        let len = rows.len() * self.matrix_rows.columns;
        let mut values = OwnedValues::zeros(self.matrix_rows.element, len);
        let out = values.slice_mut(0..len);
        match self.tickets.front() {
            Some(ticket) => agent.wait(ticket, out)?,
            None => agent.pull(self.matrix_rows.matrix, Selection::Rows(Keys::Sorted(rows)), out)?,
        }
        self.tickets.pop_front();
        self.returned_count += rows.len();
        Ok(Some((rows, values)))
    }

    fn block(&self, start: usize) -> Range<usize> {
        start..self.rows.len().min(start.saturating_add(self.block_len))
    }
}
