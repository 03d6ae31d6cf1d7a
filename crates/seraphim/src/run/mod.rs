//! Runs: in one process, where tasks are threads that share a parameter store, or on servers and workers ([`cluster`]).

pub mod apply;
pub mod cluster;
pub mod coordinator;
pub mod epoch_monitor;
pub mod evaluate;
mod failure;
mod input;
pub mod local;
mod memory_check;
#[cfg(feature = "parquet")]
mod parquet;
pub mod predict;
mod resume;
mod run_info;
mod scan;
pub mod score;
pub mod semaphore;
mod settings_chooser;
pub mod task_count;
pub mod task_streams;
pub mod totals;
mod training_checks;

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
