//! PS functions: code that runs at the partitions, so that long rows need not be sent.
//!
//! A **pull function** reads some rows. Its server half makes a partial answer from the columns of each partition. Its
//! agent half merges the partial answers, in the order of columns, into the answer. A **push function** changes some
//! rows, column by column. Several push functions in one call are a program, which visits every block of columns once.
//!
//! | module | what it holds |
//! |---|---|
//! | [`value`] | arguments and answers as bytes |
//! | [`view`] | the rows and columns that a function gets |
//! | [`table`] | [`FunctionTable`]: the built-ins and your own |
//! | [`call`] | a call by name, and binding it to functions and matrix |
//! | [`sum`] | sums that do not depend on where partitions are cut |
//! | [`row_function`] | folds and changes of all rows of a matrix partitioned by row |
//! | [`reduce`], [`products`], [`extreme`], [`sketch`] | built-in pull functions |
//! | [`map`], [`zip`], [`vector_op`], [`fill`] | built-in push functions |
//!
//! Functions work on matrices partitioned by column, stored dense, whose push rule has no slots; row functions on matrices
//! partitioned by row.
//!
//! **Consistency.** Functions follow the rules of pulls and pushes. Under BSP, a pull function at clock `c` sees
//! exactly the stamps below `c`. A push function is staged and runs when its clock has ended, in the order (task,
//! index) among the other pushes; the pushes before it are merged first. Under SSP and ASP it runs on arrival.
//!
//! **Failures.** After a panic, a fault or a result that is not finite, the rows of that partition are as they were
//! before the whole program. If a function asks for it ([`PushFunction::tries_first`]), as those with a domain do
//! (`log`, `sqrt`, `div`, ..), the program is first tried on all partitions, also on those of other servers, and a
//! fault changes no partition. The caller of a staged function has already returned, so its fault goes to every later
//! read of that partition.

mod builtins;
pub mod call;
pub mod extreme;
mod fault;
pub mod fill;
pub mod map;
pub mod products;
mod program;
pub mod reduce;
pub mod row_function;
mod run;
pub mod sketch;
pub mod sum;
pub mod table;
pub mod value;
pub mod vector_op;
pub mod view;
pub mod zip;

use std::ops::Range;

use crate::element::ElementType;

pub(crate) use call::BoundPull;
pub use call::FunctionCall;
pub use fault::FunctionFault;
pub(crate) use program::{BoundPush, PushProgram};
pub use row_function::{RowChange, RowFold};
pub(crate) use run::{BlockElement, RunMode, StagedProgram, columns, run_program};
pub use table::FunctionTable;
pub use value::{FunctionValue, pack, unpack};
pub use view::{Block, Columns, TypedBlock};

/// The shape of the matrix and the number of rows of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub element: ElementType,
    /// Number of columns of the matrix.
    pub columns: u64,
    /// Number of rows to read in this call.
    pub from: usize,
    /// Number of rows to write in this call.
    pub into: usize,
}

/// How many rows a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Exactly(usize),
    AtLeast(usize),
}

impl Arity {
    fn accepts(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
        }
    }
}

impl std::fmt::Display for Arity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arity::Exactly(n) => write!(f, "{n}"),
            Arity::AtLeast(n) => write!(f, "{n} or more"),
        }
    }
}

/// A function that reads.
///
/// The answer must not depend on where the columns are cut: merging the partial answers of any partitioning gives the
/// answer for the whole row.
pub trait PullFunction: Send + Sync + 'static {
    /// The type of the argument.
    type Argument: FunctionValue + Send + Sync + 'static;
    /// The type of the partial answer of a partition.
    type Partial: FunctionValue;
    /// The type of the answer that the caller gets.
    type Answer: FunctionValue;

    /// The name in calls.
    fn name(&self) -> &str;

    /// The version. Raise it whenever the argument, the partial answer or their meaning changes.
    fn version(&self) -> u32 {
        1
    }

    /// How many rows the function reads.
    fn reads(&self) -> Arity;

    /// Refuses arguments that are not valid, before any partition is visited.
    fn check(&self, _argument: &Self::Argument, _shape: &Shape) -> Result<(), FunctionFault> {
        Ok(())
    }

    /// The server half: computes the partial answer of these columns.
    fn read(&self, argument: &Self::Argument, columns: &Columns<'_>) -> Result<Self::Partial, FunctionFault>;

    /// The agent half: merges the partial answers, which are in the order of columns and complete.
    fn merge(
        &self,
        argument: &Self::Argument,
        shape: &Shape,
        parts: Vec<Self::Partial>,
    ) -> Result<Self::Answer, FunctionFault>;
}

/// A function that changes rows, each column by itself.
pub trait PushFunction: Send + Sync + 'static {
    /// The type of the argument.
    type Argument: FunctionValue + Send + Sync + 'static;

    /// The name in calls.
    fn name(&self) -> &str;

    /// The version. Raise it whenever the argument or its meaning changes.
    fn version(&self) -> u32 {
        1
    }

    /// How many rows the function reads.
    fn reads(&self) -> Arity;

    /// How many rows the function writes.
    fn writes(&self) -> Arity;

    /// Refuses arguments that are not valid, before any partition is visited.
    fn check(&self, _argument: &Self::Argument, _shape: &Shape) -> Result<(), FunctionFault> {
        Ok(())
    }

    /// Whether the function is tried on all partitions before it changes the first, because it has no result for some
    /// values. It costs a second pass; on several servers also a second round trip and a third pass.
    fn tries_first(&self) -> bool {
        false
    }

    /// Whether the function writes every value of the rows to write without reading the old ones. Then `into` may hold
    /// other values, which saves a copy when the rows are also read.
    fn overwrites(&self) -> bool {
        false
    }

    /// Whether finite values of the rows to read always give finite results. Then a program need not check the results
    /// when an earlier step left finite values. Only functions that [overwrite](Self::overwrites) may return true.
    fn keeps_finite(&self, _argument: &Self::Argument) -> bool {
        false
    }

    /// Returns what these columns need of the argument, when that is less than all of it.
    fn split(&self, _argument: &Self::Argument, _columns: Range<u64>) -> Option<Self::Argument> {
        None
    }

    /// Changes a block of columns. It is called for all blocks of a partition, in any order and perhaps more than once;
    /// between two calls for the same block the first is undone.
    fn change(&self, argument: &Self::Argument, block: &mut Block<'_>) -> Result<(), FunctionFault>;
}

/// Refuses matrices of integers, for functions of floating-point numbers.
pub fn floats_only(shape: &Shape) -> Result<(), FunctionFault> {
    if shape.element.is_integer() {
        return Err(no_integers());
    }
    Ok(())
}

/// The fault of a function that does not work on integers.
pub(crate) fn no_integers() -> FunctionFault {
    FunctionFault::argument("element type of the matrix", "an integer", "f32 or f64")
}

/// Checks that a setting is a finite number in a range, which `expected` describes.
pub fn check_real(
    what: &str,
    value: f64,
    holds: impl Fn(f64) -> bool,
    expected: &str,
) -> Result<(), FunctionFault> {
    if value.is_finite() && holds(value) {
        return Ok(());
    }
    Err(FunctionFault::argument(what, value.to_string(), expected))
}
