//! The loop of a task that learns batch by batch: steps, and at the end of an epoch the sums over all tasks, the
//! validation and the report.

use data::Batch;
use matrix::{Agent, MatrixId, PullTicket, Selection, ValuesMut};

use crate::coordinator::{EpochDecision, EpochReport, StepDecision};
use crate::error::Error;
use crate::job::{Epochs, TrainTask, score_all};
use crate::loss::Loss;
use crate::metric::MetricAccumulator;

/// What the loop calls. One value learns for one task.
pub(crate) trait BatchLearner {
    /// Learns a batch, adds its records to `metrics` as they were scored before, and ticks. The parameters of `next`,
    /// the batch after it, may be prefetched.
    ///
    /// A step whose loss is not finite pushes nothing; the loop then ends the training with an error.
    fn step(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        next: Option<&Batch>,
        metrics: &mut MetricAccumulator,
    ) -> Result<StepSums, Error>;

    /// What a user can change if the loss is no longer finite.
    fn divergence_advice(&self) -> String;

    /// Called at every task when an epoch has ended, after all pushes of all tasks are visible. No task pushes after it
    /// before the next epoch. Returns a message to the user about how the epoch ended.
    fn end_epoch(&mut self, task: &mut TrainTask<'_>, end: &EpochEnd) -> Result<Option<String>, Error>;
}

/// Sums over the records of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StepSums {
    /// Sum of weight x loss.
    pub(crate) loss: f64,
    /// Records with label 1, for two classes.
    pub(crate) positive_count: u64,
    /// Sum of the weights that the gradients have.
    pub(crate) weight: f64,
}

/// Sums over the records of all tasks in an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Totals {
    pub(crate) record_count: u64,
    pub(crate) positive_count: u64,
    pub(crate) weight: f64,
}

/// Refuses an epoch without records, or with records of one class for a loss of two.
pub(crate) fn check_classes(record_count: u64, positive_count: u64, loss: Loss) -> Result<(), Error> {
    let error = |label| Err(Error::OneClass { record_count, label });
    match record_count {
        0 => Err(Error::NoRecords),
        _ if loss.is_binary() && positive_count == 0 => error(0.0),
        _ if loss.is_binary() && positive_count == record_count => error(1.0),
        _ => Ok(()),
    }
}

/// Refuses records that all have the weight 0: nothing would be learned from them.
pub(crate) fn check_weight(record_count: u64, weight: f64) -> Result<(), Error> {
    match (record_count, weight) {
        (0, _) => Err(Error::NoRecords),
        (_, 0.0) => Err(Error::NoWeight { what: "every training record has the weight 0" }),
        _ => Ok(()),
    }
}

/// How an epoch ended, the same at every task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EpochEnd {
    pub(crate) totals: Totals,
    /// A task was told to stop before its data ended.
    pub(crate) is_stopped: bool,
    /// No epoch follows.
    pub(crate) is_last: bool,
}

/// Trains one task until training ends.
pub(crate) fn run(
    learner: &mut impl BatchLearner,
    epochs: Epochs,
    mut task: TrainTask<'_>,
) -> Result<(), Error> {
    let mut epoch_count = None;
    for epoch in 0.. {
        let (training, sums, flow) = run_epoch(learner, epochs, &mut task, epoch)?;
        let (totals, is_stopped) = sum_over_tasks(&mut task, training.record_count(), sums, flow)?;
        let epoch_count = *epoch_count.get_or_insert_with(|| epochs.count(totals.record_count));
        let end = EpochEnd { totals, is_stopped, is_last: is_stopped || epoch + 1 >= epoch_count };
        let notice = learner.end_epoch(&mut task, &end)?;
        let validation = match &mut task.validation {
            Some(stream) if !end.is_stopped => {
                let empty = task.model.metric_accumulator();
                Some(score_all(task.model.scorer().as_mut(), empty, task.agent, *stream)?)
            }
            _ => None,
        };
        let notice = notice.filter(|_| task.agent.task() == 0);
        let report =
            EpochReport { validation, notice, ..EpochReport::new(task.agent, epoch, epoch_count, training) };
        if task.coordinator.report_epoch(report)? == EpochDecision::Stop || end.is_last {
            break;
        }
    }
    task.agent.finish()?;
    Ok(())
}

/// Reads the task's data once. It ends early if the coordinator stops the task.
fn run_epoch(
    learner: &mut impl BatchLearner,
    epochs: Epochs,
    task: &mut TrainTask<'_>,
    epoch: u64,
) -> Result<(MetricAccumulator, StepSums, StepDecision), Error> {
    let mut metrics = task.model.metric_accumulator();
    let mut sums = StepSums::default();
    let mut is_cached = epochs.count(0) > 1;
    task.data.start_epoch(epoch)?;
    let mut step = 0;
    while let Some([batch, ahead @ ..]) = task.data.next_window(1)? {
        let own = learner.step(task.agent, batch, ahead.first(), &mut metrics)?;
        if !own.loss.is_finite() {
            return Err(Error::Diverged { epoch, step, loss: own.loss, advice: learner.divergence_advice() });
        }
        step += 1;
        sums.positive_count += own.positive_count;
        sums.weight += own.weight;
        let flow = task.coordinator.report_progress(task.agent.task(), batch.record_count() as u64, own.loss);
        if flow == StepDecision::Stop {
            return Ok((metrics, sums, flow));
        }
        if is_cached && epochs.count(metrics.record_count()) == 1 {
            is_cached = false;
            task.data.release_cache();
        }
    }
    Ok((metrics, sums, StepDecision::Continue))
}

/// Sums over all tasks at the end of an epoch, which is also a barrier: afterwards every push is visible, and every
/// task has the same totals, so all tasks make the same decisions.
fn sum_over_tasks(
    task: &mut TrainTask<'_>,
    record_count: u64,
    sums: StepSums,
    flow: StepDecision,
) -> Result<(Totals, bool), Error> {
    let stopped = f64::from(u8::from(flow == StepDecision::Stop));
    let mut all = [record_count as f64, sums.positive_count as f64, sums.weight, stopped];
    task.agent.all_reduce(&mut all)?;
    let [record_count, positive_count, weight, stopped] = all;
    let totals = Totals { record_count: record_count as u64, positive_count: positive_count as u64, weight };
    Ok((totals, stopped > 0.0))
}

/// Reads a selection, if there is one: with its ticket, if it was prefetched.
pub(crate) fn pull_or_wait(
    agent: &mut dyn Agent,
    pull: Option<(MatrixId, Selection<'_>)>,
    ticket: Option<&PullTicket>,
    out: ValuesMut<'_>,
) -> Result<(), Error> {
    match (ticket, pull) {
        (Some(ticket), _) => agent.wait(ticket, out)?,
        (None, Some((matrix, selection))) => agent.pull(matrix, selection, out)?,
        (None, None) => {}
    }
    Ok(())
}
