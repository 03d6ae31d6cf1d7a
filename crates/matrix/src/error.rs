//! Errors of operations on parameters.

use crate::clock::{Clock, ClockFault};
use crate::element::ElementType;
use crate::function::FunctionFault;

/// An error of this crate. Variants carry data; the text says what, where, and what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum Error {
    /// A field of a spec is not valid.
    #[error("matrix {matrix:?}: {field} is {actual}, expected {expected}")]
    Spec { matrix: String, field: &'static str, actual: String, expected: String },

    /// Two matrices have the same name.
    #[error("matrix {matrix:?} exists already: names are unique in a job, choose another")]
    DuplicateName { matrix: String },

    /// No matrix has this id.
    #[error("there is no matrix {id}: this job has {count}, numbered from 0 by order of creation")]
    NoSuchMatrix { id: u32, count: usize },

    /// The selection is along the axis by which the matrix is not partitioned.
    #[error("matrix {matrix:?} is partitioned by {axis}: select {axis}s, not {asked}s")]
    WrongAxis { matrix: String, axis: &'static str, asked: &'static str },

    /// The matrix does not have this row.
    #[error("matrix {matrix:?}: row {row} is out of range, it has {rows} rows")]
    NoSuchRow { matrix: String, row: u32, rows: u64 },

    /// The partition is not on this lane.
    #[error("matrix {matrix:?}: partition {partition} of {count} is not on this lane")]
    NoSuchPartition { matrix: String, partition: u32, count: u32 },

    /// The number of values is not the number of keys times columns.
    #[error("matrix {matrix:?}: {actual} values, expected {expected}: all columns of each key")]
    ValueCount { matrix: String, expected: usize, actual: usize },

    /// The matrix does not have this key.
    #[error("matrix {matrix:?}: key {key} is out of range, keys are below {bound}")]
    KeyOutOfRange { matrix: String, key: u64, bound: u64 },

    /// A key lies in another partition than the one that it was sent to.
    #[error(
        "matrix {matrix:?}: key {key} is not of partition {partition}, which has the keys from {} to below {}; the \
         matrix has all keys below {bound}; its partition map gives the partition of each key",
        range.start,
        range.end
    )]
    KeyOutOfPartition { matrix: String, key: u64, partition: u32, range: std::ops::Range<u64>, bound: u64 },

    /// The keys are not strictly ascending.
    #[error("matrix {matrix:?}: key {key} follows {before}; sort the keys and list each once")]
    KeysNotAscending { matrix: String, before: u64, key: u64 },

    /// The values have another element type.
    #[error("matrix {matrix:?} has elements of type {expected:?}, not {actual:?}")]
    ElementType { matrix: String, expected: ElementType, actual: ElementType },

    /// A push has a NaN or an infinity. It is refused as a whole.
    #[error(
        "push to matrix {matrix:?} refused: the value for key {key}, column {column} is {value}; \
             nothing of it was applied (a smaller step size or scaled features often help)"
    )]
    NonFinite { matrix: String, key: u64, column: u64, value: f64 },

    /// A sum of pushes does not fit a 32-bit integer.
    #[error(
        "matrix {matrix:?}: the sum for key {key}, column {column} has left the range of {element}; use i64 for sums as large"
    )]
    Overflow { matrix: String, key: u64, column: u64, element: &'static str },

    /// A call does not suit the lists of a matrix.
    #[error("matrix {matrix:?}: {what}")]
    Lists { matrix: String, what: String },

    /// The rows to import do not fit the matrix.
    #[error("import into matrix {matrix:?}: {what} is {actual}, expected {expected}")]
    Import { matrix: String, what: String, actual: String, expected: String },

    /// A wait exceeded its limit.
    #[error(
        "task {task} at clock {clock} waited {seconds:.1} s {purpose} and timed out, waiting for {waited_for}. If \
         that task is only slow, raise the wait limit; if it failed, look for its error first"
    )]
    WaitTimeout { task: u32, clock: Clock, seconds: f64, purpose: String, waited_for: SlowestTask },

    /// The job is stopping.
    #[error("stopped: {reason}")]
    Stopped { reason: String },

    /// The state of the task does not allow the call.
    #[error("task {task}: {call} was refused: {fault}")]
    Task { task: u32, call: &'static str, fault: ClockFault },

    /// The tasks pass vectors of different lengths to a reduction.
    #[error(
        "all_reduce: task {first_task} passed {first_len} numbers and task {task} passed {len}; all tasks must pass \
         the same number"
    )]
    ReduceLength { first_task: u32, first_len: usize, task: u32, len: usize },

    /// A PS function was refused or failed.
    #[error("function {function:?} on matrix {matrix:?}: {fault}")]
    Function { matrix: String, function: String, fault: Box<FunctionFault> },

    /// A server refused a PS function or failed to run it. The task itself has not failed.
    #[error("server {server}: {text}")]
    FunctionAtServer { server: String, text: String },

    /// A server refused a request, was lost, or lost its partitions.
    #[error("server {server}: {text}")]
    Server {
        server: String,
        text: String,
        /// Whether the server is lost, or has lost its part of the job: the request itself was right.
        is_lost: bool,
    },

    /// A task panicked in the middle of a change.
    #[error(
        "a task panicked while it changed {what}: its values may be inconsistent, restart from a model or checkpoint"
    )]
    Panicked { what: String },
}

impl Error {
    /// Creates the error of a function that was refused or failed.
    pub fn function(matrix: &str, function: &str, fault: FunctionFault) -> Self {
        let (matrix, function) = (matrix.to_owned(), function.to_owned());
        Error::Function { matrix, function, fault: Box::new(fault) }
    }
}

/// The task that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowestTask {
    /// The slowest task and its clock, if there is one.
    pub task_and_clock: Option<(u32, Clock)>,
}

impl std::fmt::Display for SlowestTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.task_and_clock {
            Some((task, clock)) => write!(f, "task {task}, which is at clock {clock}"),
            None => write!(f, "no task (a fault of the program)"),
        }
    }
}
