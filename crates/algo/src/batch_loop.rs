//! An epoch of a task that learns batch by batch: its steps, and then the sums over all tasks.

use data::{Batch, BatchStream};
use matrix::{Agent, MatrixId, PullTicket, Selection, ValuesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::coordinator::StepDecision;
use crate::error::Error;
use crate::job::{Epochs, TrainTask};
use crate::loss::Loss;
use crate::metric::MetricAccumulator;
use crate::task_loop::{self, EpochEnd, Learner, TaskState};

/// What the loop over batches calls. One value learns for one task.
pub(crate) trait BatchLearner {
    /// What it remembers from epoch to epoch besides the matrices.
    type State: Serialize + DeserializeOwned;

    fn state(&self) -> Self::State;

    /// The first batches of epoch 0, if they were read before to choose the first parameters.
    fn take_sample(&mut self) -> Vec<Batch> {
        Vec::new()
    }

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
    fn end_epoch(&mut self, task: &mut TrainTask<'_>, end: &EpochSums) -> Result<Option<String>, Error>;
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
pub(crate) struct EpochSums {
    pub(crate) totals: Totals,
    /// A task was told to stop before its data ended.
    pub(crate) is_stopped: bool,
    /// No epoch follows.
    pub(crate) is_last: bool,
}

/// A task that learns batch by batch.
struct BatchTask<L> {
    learner: L,
    epochs: Epochs,
    /// The number of epochs, from the end of the first one on.
    epoch_count: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct BatchState<S> {
    epoch_count: u64,
    learner: S,
}

/// Begins a task with the learner that `make` returns, for its state if one was saved.
pub(crate) fn begin<'a, L: BatchLearner + 'a>(
    epochs: Epochs,
    saved: Option<&TaskState>,
    make: impl FnOnce(Option<L::State>) -> Result<L, Error>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let saved = saved.map(TaskState::decode::<BatchState<L::State>>).transpose()?;
    let (epoch_count, state) = saved.map(|saved| (saved.epoch_count, saved.learner)).unzip();
    Ok(Box::new(BatchTask { learner: make(state)?, epochs, epoch_count }))
}

impl<L: BatchLearner> Learner for BatchTask<L> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<EpochEnd, Error> {
        let (training, sums, flow) = self.run_steps(task, epoch)?;
        let (totals, is_stopped) = sum_over_tasks(task, training.record_count(), sums, flow)?;
        let epoch_count = *self.epoch_count.get_or_insert_with(|| self.epochs.count(totals.record_count));
        let is_last = is_stopped || epoch + 1 >= epoch_count;
        let notice = self.learner.end_epoch(task, &EpochSums { totals, is_stopped, is_last })?;
        let record_count = training.record_count();
        Ok(EpochEnd { training, record_count, epoch_count, is_stopped, is_last, notice })
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        let epoch_count = self.epoch_count.unwrap_or(0);
        task_loop::encode(&BatchState { epoch_count, learner: self.learner.state() })
    }
}

impl<L: BatchLearner> BatchTask<L> {
    /// Reads the task's data once. It ends early if the coordinator stops the task.
    fn run_steps(
        &mut self,
        task: &mut TrainTask<'_>,
        epoch: u64,
    ) -> Result<(MetricAccumulator, StepSums, StepDecision), Error> {
        let mut metrics = task.model.metric_accumulator();
        let mut sums = StepSums::default();
        let mut is_cached = self.epochs.count(0) > 1;
        let sample = if epoch == 0 { self.learner.take_sample() } else { Vec::new() };
        let mut replayed =
            ReplayedStream { sample: sample.into_iter(), batch: Batch::default(), rest: &mut *task.data };
        let data: &mut dyn BatchStream =
            if replayed.sample.len() > 0 { &mut replayed } else { &mut *replayed.rest };
        data.start_epoch(epoch)?;
        let mut step = 0;
        while let Some([batch, ahead @ ..]) = data.next_window(1)? {
            let own = self.learner.step(task.agent, batch, ahead.first(), &mut metrics)?;
            if !own.loss.is_finite() {
                let advice = self.learner.divergence_advice();
                return Err(Error::Diverged { epoch, step, loss: own.loss, advice });
            }
            step += 1;
            sums.positive_count += own.positive_count;
            sums.weight += own.weight;
            let (number, count) = (task.agent.task(), batch.record_count() as u64);
            let flow = task.coordinator.report_progress(number, count, own.loss);
            if flow == StepDecision::Stop {
                return Ok((metrics, sums, flow));
            }
            if is_cached && self.epochs.count(metrics.record_count()) == 1 {
                is_cached = false;
                data.release_cache();
            }
        }
        Ok((metrics, sums, StepDecision::Continue))
    }
}

/// A stream whose first batches of epoch 0 were read before.
struct ReplayedStream<'a> {
    sample: std::vec::IntoIter<Batch>,
    batch: Batch,
    rest: &'a mut dyn BatchStream,
}

impl BatchStream for ReplayedStream<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        if self.sample.len() > 0 { Ok(()) } else { self.rest.start_epoch(epoch) }
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        match self.sample.next() {
            Some(batch) => {
                self.batch = batch;
                Ok(Some(&self.batch))
            }
            None => self.rest.next(),
        }
    }

    fn release_cache(&mut self) {
        self.rest.release_cache();
    }
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
