//! Runs: in one process, where tasks are threads and parameters a store they share, or on servers and workers
//! ([`cluster`]).

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

/// What a run is given from outside.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The formats that may be read.
    pub formats: &'a FormatTable,
    /// The PS functions that tasks may call; on servers too.
    pub functions: &'a FunctionTable,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}
