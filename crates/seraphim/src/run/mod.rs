//! Runs: in one process, where tasks are threads and parameters a store they share, or on servers and workers
//! ([`cluster`]).

pub mod apply;
mod closing;
pub mod cluster;
pub mod coordinator;
pub mod evaluate;
mod failure;
mod input;
pub mod judge;
pub mod local;
#[cfg(feature = "parquet")]
mod parquet;
pub mod permits;
pub mod predict;
mod quality;
mod resume;
mod room;
mod scan;
pub mod score;
mod settle;
pub mod share;
pub mod tasks;
pub mod totals;

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
