//! Runs of jobs. A training job has one [`driver`] and one or more [`worker`]s, in one process ([`local`]) or on a
//! [`cluster`].

pub mod apply;
pub mod cluster;
pub mod driver;
pub mod evaluate;
pub mod failure;
mod input;
pub mod local;
#[cfg(feature = "parquet")]
mod parquet;
pub mod predict;
mod resume;
mod run_info;
pub mod score;
pub mod task_count;
pub mod task_streams;
pub mod totals;
mod training_checks;
pub mod worker;

use data::FormatTable;
use matrix::FunctionTable;

use crate::interrupt::Interrupt;

/// The dependencies of a run.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The formats of input files.
    pub formats: &'a FormatTable,
    /// The PS functions that tasks may call, also on servers.
    pub functions: &'a FunctionTable,
    pub interrupt: &'a Interrupt,
}
