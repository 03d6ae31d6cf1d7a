//! PS functions: code that runs where the partitions are, so that long rows need not travel.
//!
//! A **pull function** reads some rows: its server half makes a part from the columns of each partition, its agent half
//! merges the parts, given in the order of columns, into the answer. A **push function** changes some rows, column by
//! column; several in one call are a program that visits every block of columns once.
//!
//! | module | what it holds |
//! |---|---|
//! | [`value`] | arguments and answers as bytes |
//! | [`view`] | what a function sees |
//! | [`table`] | [`FunctionTable`]: the built-ins and your own |
//! | [`call`] | a call by name, and binding it to functions and matrix |
//! | [`sum`] | sums that do not hang on where partitions are cut |
//! | [`reduce`], [`extreme`], [`sketch`] | built-ins that pull |
//! | [`map`], [`zip`], [`vector_op`], [`fill`] | built-ins that push |
//! | [`quasi_newton`], [`orthant`], [`descent`] | built-ins of L-BFGS and OWL-QN |
//! | [`consensus`] | the built-in of ADMM |
//!
//! Functions work on matrices partitioned by column, stored dense, whose push rule keeps no slots.
//!
//! **When.** As pulls and pushes: a pull function at clock `c` sees, under BSP, exactly the stamps below `c`; a push function
//! is staged and carried out when its clock is over, in the order (task, index) among the other pushes, of which those before
//! it are merged first. Under SSP and ASP it is carried out when it comes.
//!
//! **What stays when it fails.** A panic, a fault or a result that is not finite leaves the rows of that partition as they were
//! before the whole program. When a function [`PushFunction::tries_first`], as those do that have a domain (`log`, `sqrt`,
//! `div`, ..), the program is first tried on all partitions, also on those of other servers, and a fault leaves all as they
//! were. A staged function has nobody left to answer to: its fault is told to everybody who reads that partition from then on.

mod builtins;
pub mod call;
pub mod consensus;
pub mod descent;
pub mod extreme;
mod fault;
pub mod fill;
pub mod map;
pub mod orthant;
pub mod quasi_newton;
pub mod reduce;
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

pub use call::FunctionCall;
pub(crate) use call::{BoundPull, PushProgram};
pub use fault::FunctionFault;
pub(crate) use run::{BlockElement, StagedProgram, columns, run_on_partitions, try_all};
pub use table::FunctionTable;
pub use value::{FunctionValue, pack, unpack};
pub use view::{Block, Columns, TypedBlock};

/// What is known of the matrix and the rows of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Type of the elements.
    pub element: ElementType,
    /// Columns of the matrix.
    pub columns: u64,
    /// Rows to read in this call.
    pub from: usize,
    /// Rows to write in this call.
    pub into: usize,
}

/// How many rows a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// As many.
    Exactly(usize),
    /// As many or more.
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
/// The answer must not hang on where the columns are cut: merging the parts of any cut gives the answer of the whole.
pub trait PullFunction: Send + Sync + 'static {
    /// What the caller says.
    type Argument: FunctionValue + Send + Sync + 'static;
    /// What a partition answers.
    type Partial: FunctionValue;
    /// What the caller gets.
    type Answer: FunctionValue;

    /// The name by which it is called.
    fn name(&self) -> &str;

    /// To be raised whenever argument, part or meaning change.
    fn version(&self) -> u32 {
        1
    }

    /// How many rows it reads.
    fn reads(&self) -> Arity;

    /// Refuses arguments that cannot be, before anything is visited.
    fn check(&self, _argument: &Self::Argument, _shape: &Shape) -> Result<(), FunctionFault> {
        Ok(())
    }

    /// The server half: the part of these columns.
    fn read(&self, argument: &Self::Argument, columns: &Columns<'_>) -> Result<Self::Partial, FunctionFault>;

    /// The agent half: merges the parts, which come in the order of columns and leave none out.
    fn merge(
        &self,
        argument: &Self::Argument,
        shape: &Shape,
        parts: Vec<Self::Partial>,
    ) -> Result<Self::Answer, FunctionFault>;
}

/// A function that changes rows, each column by itself.
pub trait PushFunction: Send + Sync + 'static {
    /// What the caller says.
    type Argument: FunctionValue + Send + Sync + 'static;

    /// The name by which it is called.
    fn name(&self) -> &str;

    /// To be raised whenever argument or meaning change.
    fn version(&self) -> u32 {
        1
    }

    /// How many rows it reads.
    fn reads(&self) -> Arity;

    /// How many rows it writes.
    fn writes(&self) -> Arity;

    /// Refuses arguments that cannot be, before anything is visited.
    fn check(&self, _argument: &Self::Argument, _shape: &Shape) -> Result<(), FunctionFault> {
        Ok(())
    }

    /// Whether it is to be tried on all partitions before it changes the first: it has values for which it has no result.
    /// Costs a second pass; on several servers also a second round trip, and a third pass.
    fn tries_first(&self) -> bool {
        false
    }

    /// Whether it writes every value of the rows to write without looking at what they held. Then it may be given others
    /// there, which saves a copy when the rows are also read.
    fn overwrites(&self) -> bool {
        false
    }

    /// Whether finite values of the rows to read always give finite results. Then a program need not look for others where
    /// a step before has left finite values. Only said of functions that [overwrite](Self::overwrites).
    fn keeps_finite(&self, _argument: &Self::Argument) -> bool {
        false
    }

    /// What of the argument these columns need, when that is less than all.
    fn split(&self, _argument: &Self::Argument, _columns: Range<u64>) -> Option<Self::Argument> {
        None
    }

    /// Changes a block of columns. Called for all blocks of a partition, in any order and perhaps more than once, and then
    /// undone in between.
    fn change(&self, argument: &Self::Argument, block: &mut Block<'_>) -> Result<(), FunctionFault>;
}

/// What is wrong when a function of floating-point numbers is asked to work on integers.
pub(crate) fn floats_only(shape: &Shape) -> Result<(), FunctionFault> {
    if shape.element == ElementType::I64 {
        return Err(no_integers());
    }
    Ok(())
}

/// The fault of a function that does not work on integers.
pub(crate) fn no_integers() -> FunctionFault {
    FunctionFault::argument("element type of the matrix", "i64", "f32 or f64")
}

/// Whether a setting is a finite number in `range_keys`, which `expected` describes.
pub(crate) fn check_real(
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
