//! What the tasks of a job say to the one who runs them, and what they hear.
//!
//! An epoch ends for a task so: its data end -> `agent.barrier()` -> it scores its share of the validation data ->
//! [`Coordinator::report_epoch`], which blocks until every task has reported and gives every task the same verdict. Between
//! the barrier and the verdict nobody pushes, so the coordinator may export the matrices there.

use crate::error::Error;
use crate::metric::MetricAccumulator;

/// The answer to a progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDecision {
    /// Go on.
    Continue,
    /// Stop at this step (Ctrl-C): the task ends its epoch here and reports it.
    Stop,
}

/// The decision after an epoch, the same for all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum EpochDecision {
    /// Next epoch, if there is one.
    Continue,
    /// Training ends. When an earlier epoch was better, the coordinator puts its matrices back.
    Stop,
}

/// What one task has done in an epoch.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct EpochReport {
    /// The task.
    pub task: u32,
    /// The epoch, from 0.
    pub epoch: u64,
    /// How many epochs there will be unless something stops them; known to every task at the end of the first.
    pub epoch_count: u64,
    /// The clock at the end of the epoch, the same for all tasks.
    pub clock: u64,
    /// Training records of this task in this epoch.
    pub record_count: u64,
    /// From the score of each record BEFORE the update of its batch (progressive validation).
    pub training: MetricAccumulator,
    /// Of this task's share of the validation data, with the weights at the end of the epoch.
    pub validation: Option<MetricAccumulator>,
    /// What the user should know of how the epoch ended.
    pub notice: Option<String>,
}

/// Runs the tasks. One for all of them.
pub trait Coordinator: Sync {
    /// After every step: records and the sum of their weighted losses in this step.
    fn report_progress(&self, task: u32, record_count: u64, loss_sum: f64) -> StepDecision;

    /// At the end of an epoch. Blocks until all tasks have reported; parts are merged in the order of tasks.
    fn report_epoch(&self, report: EpochReport) -> Result<EpochDecision, Error>;
}
