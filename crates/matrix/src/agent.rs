//! The agent: everything that an algorithm uses to reach the parameters. An algorithm runs unchanged on one thread or a
//! hundred machines, under BSP, SSP or ASP.

use serde::{Deserialize, Serialize};
use std::ops::Range;

use crate::clock::Clock;
use crate::element::{Values, ValuesMut};
use crate::error::Error;
use crate::function::{FunctionCall, FunctionFault};
use crate::pull_ticket::PullTicket;

/// A matrix of the job. Matrices are numbered in the order of their creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MatrixId(pub u32);

/// Keys of rows or columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys<'a> {
    /// Strictly ascending keys.
    Sorted(&'a [u64]),
    /// The keys `start..end`.
    Range(u64, u64),
}

impl<'a> Keys<'a> {
    /// Number of keys.
    pub fn len(self) -> usize {
        match self {
            Keys::Sorted(keys) => keys.len(),
            Keys::Range(start, end) => end.saturating_sub(start) as usize,
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the keys with these indices. Panics when a list has fewer keys.
    #[must_use]
    pub fn slice(self, indices: Range<usize>) -> Keys<'a> {
        match self {
            Keys::Sorted(keys) => Keys::Sorted(&keys[indices]),
            Keys::Range(start, _) => Keys::Range(start + indices.start as u64, start + indices.end as u64),
        }
    }
}

/// The part of a matrix that a pull or push names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// Whole rows of a matrix partitioned by row: `keys x columns` values.
    Rows(Keys<'a>),
    /// Some columns of one row of a matrix partitioned by column: one value for each key.
    Columns {
        /// Number of the row.
        row: u32,
        /// Column numbers.
        keys: Keys<'a>,
    },
}

/// Operations of a task on the parameters. Each call that may wait has a deadline; when it passes, the error names the
/// task that was waited for.
pub trait Agent: Send {
    /// Number of the task that this agent serves.
    fn task(&self) -> u32;

    /// Number of tasks of the job.
    fn task_count(&self) -> u32;

    /// Number of ticks that the task has made.
    fn clock(&self) -> Clock;

    /// Reads values in the order of the keys, as the consistency of the matrix allows at this clock. Rows that were
    /// never pushed have their initial values, or 0 if [the initializer](crate::Initializer) says so; a pull creates no
    /// rows.
    fn pull(&mut self, matrix: MatrixId, part: Selection<'_>, out: ValuesMut<'_>) -> Result<(), Error>;

    /// Whether prefetches are sent before their wait. If not, a prefetch gains nothing.
    fn sends_prefetches(&self) -> bool {
        false
    }

    /// Requests a pull before its values are needed. `clock` is the clock at which the task means to wait for the ticket:
    /// the current clock or a later one. An agent of servers sends the request as early as [`crate::Prefetch`] allows.
    /// An agent in the process of the matrices pulls at the wait. What is wrong with the selection is an error of the
    /// wait.
    fn prefetch(&mut self, matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> PullTicket {
        PullTicket::new(matrix, selection, clock)
    }

    /// Reads the values of a ticket, as a pull of its selection would at this clock. The answer of the request is used if
    /// [`crate::Consistency::may_use_prefetch`] allows it, and once; otherwise the values are pulled anew.
    fn wait(&mut self, ticket: &PullTicket, out: ValuesMut<'_>) -> Result<(), Error> {
        self.pull(ticket.matrix(), ticket.selection(), out)
    }

    /// Sends a change, which the push rule of the matrix merges. A push with a non-finite value is refused as a whole.
    fn push(&mut self, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error>;

    /// Runs a pull function on a matrix and returns the bytes of its answer. The function sees what a pull would see.
    /// [`crate::function::call::call_pull`] decodes the answer.
    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        Err(Error::function(&matrix.0.to_string(), &call.name, FunctionFault::UnsupportedAgent))
    }

    /// Runs push functions on a matrix, in this order and in one visit, when a push would be applied.
    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        let name = steps.first().map_or("", |call| &call.name);
        Err(Error::function(&matrix.0.to_string(), name, FunctionFault::UnsupportedAgent))
    }

    /// Ends a step: advances all matrices of the job.
    fn tick(&mut self) -> Result<(), Error>;

    /// Waits for all tasks. A task that waits here does not hold back the others. When all have arrived, every push
    /// made before is visible to all, and all clocks are set to the largest.
    fn barrier(&mut self) -> Result<(), Error>;

    /// Sums `values` over all tasks, in the order of tasks, and gives every task the sum. This call is also a barrier.
    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), Error>;

    /// Ends the task: from now on it does not hold back the others.
    fn finish(&mut self) -> Result<(), Error>;
}
