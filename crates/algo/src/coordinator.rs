//! What the tasks of a job report to the coordinator that runs them, and what it answers.
//!
//! An epoch ends in these steps for each task: its data end; `agent.barrier()`; it scores its share of the validation
//! data; [`Coordinator::report_epoch`], which blocks until every task has reported and returns the same decision to
//! every task. No task pushes between the barrier and the decision, so the coordinator may export the matrices there.

use matrix::Clock;

use crate::error::Error;
use crate::metric::MetricAccumulator;
use crate::task_state::TaskState;

/// The answer to a progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDecision {
    Continue,
    /// Stop at this step (Ctrl-C): the task ends its epoch here and reports it.
    Stop,
}

/// The decision after an epoch, the same for all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum EpochDecision {
    Continue,
    /// Training continues after every task has given its state to [`Coordinator::save_state`].
    Save,
    /// Training ends. If an earlier epoch was better, the coordinator restores its matrices.
    Stop,
}

/// What one task has done in an epoch.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct EpochReport {
    pub task: u32,
    /// The epoch, from 0.
    pub epoch: u64,
    /// The total number of epochs unless training stops early. Every task knows it at the end of the first epoch.
    pub epoch_count: u64,
    /// Ticks from the beginning of the training to the end of the epoch, the same for all tasks.
    pub clock: u64,
    /// Training records of this task in this epoch.
    pub record_count: u64,
    /// Metrics from the score of each record BEFORE the update of its batch (progressive validation).
    pub training: MetricAccumulator,
    /// Metrics of this task's share of the validation data, with the weights at the end of the epoch.
    pub validation: Option<MetricAccumulator>,
    /// A message to the user about how the epoch ended.
    pub notice: Option<String>,
}

/// Runs the tasks of a job. All tasks share one coordinator.
pub trait Coordinator: Sync {
    /// Each task calls this after every step, with the records of the step and the sum of their weighted losses.
    fn report_progress(&self, task: u32, record_count: u64, loss_sum: f64) -> StepDecision;

    /// Each task calls this at the end of an epoch. It blocks until all tasks have reported, and merges the
    /// accumulators in the order of tasks.
    fn report_epoch(&self, report: EpochReport) -> Result<EpochDecision, Error>;

    /// A task that can save its state within an epoch calls this before every step. `true`: it waits for the others
    /// before this step, and they save their states unless one of them was told to stop. The call may block while it
    /// is not decided whether all tasks can save at this clock.
    fn is_save_due(&self, _task: u32, _clock: Clock) -> Result<bool, Error> {
        Ok(false)
    }

    /// Takes the state of a task when all tasks save theirs and every push of every task is visible. It blocks until
    /// the parameters of that moment are copied; then training goes on.
    fn save_state(&self, _state: TaskState) -> Result<(), Error> {
        Ok(())
    }
}
