//! The agent: all that an algorithm holds of the parameters. It cannot tell one thread from a hundred machines, nor BSP
//! from ASP.

use crate::clock::Clock;
use crate::element::{Values, ValuesMut};
use crate::error::Error;
use crate::function::{FunctionCall, FunctionFault};

/// A matrix of the job, by order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MatrixId(pub u32);

/// Keys of rows or columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys<'a> {
    /// Strictly ascending.
    Sorted(&'a [u64]),
    /// `init_row..end`.
    Range(u64, u64),
}

/// Which part of a matrix a pull or push speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// Whole rows of a matrix partitioned by row: `keys x columns` values.
    Rows(Keys<'a>),
    /// Some columns of one row of a matrix partitioned by column: one value a key.
    Columns {
        /// The row.
        row: u32,
        /// The columns.
        keys: Keys<'a>,
    },
}

/// What a task does with the parameters. Each call that may wait has a deadline; when it passes, the error says who was
/// waited for.
pub trait Agent: Send {
    /// The task that this agent serves.
    fn task(&self) -> u32;

    /// The number of tasks of the job.
    fn task_count(&self) -> u32;

    /// Ticks made so far.
    fn clock(&self) -> Clock;

    /// Reads values, in the order of the keys, as the consistency of the matrix allows at this clock. Rows that nobody
    /// pushed have their initial values; a pull creates nothing.
    fn pull(&mut self, matrix: MatrixId, part: Selection<'_>, out: ValuesMut<'_>) -> Result<(), Error>;

    /// Says that a pull of exactly this part will follow, at this clock: an agent of servers asks for it at once, and the
    /// pull waits for less. It reads what it would read without. What cannot be asked is an error when it is pulled.
    fn pull_ahead(&mut self, _matrix: MatrixId, _part: Selection<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Sends a change, merged by the push rule of the matrix. A non-finite value is refused whole.
    fn push(&mut self, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error>;

    /// Carries a pull function out on a matrix; the bytes of its answer. It sees what a pull would see.
    /// [`crate::function::call::ask`] takes the answer out of them.
    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        Err(Error::function(&matrix.0.to_string(), &call.name, FunctionFault::UnsupportedAgent))
    }

    /// Carries push functions out on a matrix, in this order and in one visit, when a push would be applied.
    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        let name = steps.first().map_or("", |call| &call.name);
        Err(Error::function(&matrix.0.to_string(), name, FunctionFault::UnsupportedAgent))
    }

    /// Ends a step: advances all matrices of the job.
    fn tick(&mut self) -> Result<(), Error>;

    /// Waits for all tasks. While it waits, this task holds nobody back; when all have come, every push made before is
    /// visible to all and all clocks are set to the largest.
    fn barrier(&mut self) -> Result<(), Error>;

    /// Sums `values` over all tasks, in the order of tasks, and gives every task the sum. A barrier.
    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), Error>;

    /// Leaves: from now on this task holds nobody back.
    fn finish(&mut self) -> Result<(), Error>;
}
