//! An epoch of a task that learns batch by batch: its steps, and then the sums over all tasks. Between two steps all
//! tasks may save their states; a task that begins with such a state reads as many batches as it had read, and goes on.

use std::collections::VecDeque;

use data::{Batch, BatchStream};
use matrix::{Agent, MatrixId, PullTicket, Selection, ValuesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::coordinator::StepDecision;
use crate::error::{Error, FeatureLabel};
use crate::job::{Epochs, TrainTask};
use crate::loss::Loss;
use crate::metric::MetricAccumulator;
use crate::task_loop::{self, EpochEnd, Learner, TaskState};

/// What the loop over batches calls. One value learns for one task.
pub trait BatchLearner {
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

    /// The feature of the batch that most likely is the cause if its loss is not finite.
    fn suspect(&self, _batch: &Batch) -> Option<u64> {
        None
    }

    /// Called at every task when an epoch has ended, after all pushes of all tasks are visible. No task pushes after it
    /// before the next epoch. Returns a message to the user about how the epoch ended.
    fn end_epoch(&mut self, task: &mut TrainTask<'_>, end: &EpochSums) -> Result<Option<String>, Error>;
}

/// Sums over the records of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSums {
    /// Sum of weight x loss.
    pub loss: f64,
    /// Records with label 1, for two classes.
    pub positive_count: u64,
    /// Sum of the weights that the gradients have.
    pub weight: f64,
}

/// Sums over the records of all tasks in an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    pub record_count: u64,
    pub positive_count: u64,
    pub weight: f64,
}

/// Refuses an epoch without records, or with records of one class for a loss of two.
pub fn check_classes(record_count: u64, positive_count: u64, loss: Loss) -> Result<(), Error> {
    let error = |label| Err(Error::OneClass { record_count, label });
    match record_count {
        0 => Err(Error::NoRecords),
        _ if loss.is_binary() && positive_count == 0 => error(0.0),
        _ if loss.is_binary() && positive_count == record_count => error(1.0),
        _ => Ok(()),
    }
}

/// Refuses records that all have the weight 0: nothing would be learned from them.
pub fn check_weight(record_count: u64, weight: f64) -> Result<(), Error> {
    match (record_count, weight) {
        (0, _) => Err(Error::NoRecords),
        (_, 0.0) => Err(Error::NoWeight { what: "every record has the weight 0" }),
        _ => Ok(()),
    }
}

/// The column that most likely makes the loss of a batch infinite or NaN: one with a parameter that is no finite number
/// (`parameters`: columns x any width), or else that of the largest value.
pub fn suspect_column(batch: &Batch, values: &[f32], parameters: &[&[f32]]) -> Option<u64> {
    let columns = batch.columns.len().max(1);
    let not_finite = |of: &&[f32]| of.iter().position(|x| !x.is_finite()).map(|at| at / (of.len() / columns));
    let largest = || {
        let magnitude = |i: &usize| values.get(*i).map_or(1.0, |value| value.abs());
        let entry = (0..batch.indices.len()).max_by(|a, b| magnitude(a).total_cmp(&magnitude(b)))?;
        Some(batch.indices[entry] as usize)
    };
    parameters.iter().find_map(not_finite).or_else(largest).map(|column| batch.columns[column])
}

/// How an epoch ended, the same at every task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochSums {
    pub totals: Totals,
    /// A task was told to stop before its data ended.
    pub is_stopped: bool,
    /// No epoch follows.
    pub is_last: bool,
}

/// A task that learns batch by batch.
struct BatchTask<L> {
    learner: L,
    epochs: Epochs,
    /// The number of epochs, from the end of the first one on.
    epoch_count: Option<u64>,
    /// The epoch that a save has interrupted.
    interrupted: Option<EpochProgress>,
}

/// How far a task has come in an epoch.
#[derive(Clone, Serialize, Deserialize)]
struct EpochProgress {
    /// Batches of the epoch that the task has learned.
    batch_count: u64,
    metrics: MetricAccumulator,
    sums: StepSums,
    /// What is left of [`BatchLearner::take_sample`]. A task that reads its data again needs no sample.
    #[serde(skip)]
    sample: VecDeque<Batch>,
    /// Whether the data stand behind the last learned batch.
    #[serde(skip)]
    is_reading: bool,
    /// Whether the task no longer needs the data after this epoch.
    #[serde(skip)]
    is_cache_released: bool,
}

impl EpochProgress {
    fn new(metrics: MetricAccumulator, sample: Vec<Batch>) -> Self {
        let (sums, sample) = (StepSums::default(), sample.into());
        Self { batch_count: 0, metrics, sums, sample, is_reading: false, is_cache_released: false }
    }

    /// Moves the data behind the last learned batch.
    fn start(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_reading, true) || !self.sample.is_empty() {
            return Ok(());
        }
        task.data.start_epoch(epoch)?;
        for read in 0..self.batch_count {
            if task.data.next()?.is_none() {
                let (task, expected) = (task.agent.task(), self.batch_count);
                return Err(Error::FewerBatches { task, epoch, expected, actual: read });
            }
        }
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct BatchState<S> {
    /// 0: the first epoch has not ended.
    epoch_count: u64,
    learner: S,
    interrupted: Option<EpochProgress>,
}

/// Begins a task with the learner that `make` returns, for its state if one was saved.
pub fn begin<'a, L: BatchLearner + 'a>(
    epochs: Epochs,
    saved: Option<&TaskState>,
    make: impl FnOnce(Option<L::State>) -> Result<L, Error>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let saved = saved.map(TaskState::decode::<BatchState<L::State>>).transpose()?;
    let Some(BatchState { epoch_count, learner, interrupted }) = saved else {
        return Ok(Box::new(BatchTask {
            learner: make(None)?,
            epochs,
            epoch_count: None,
            interrupted: None,
        }));
    };
    let epoch_count = Some(epoch_count).filter(|count| *count > 0);
    Ok(Box::new(BatchTask { learner: make(Some(learner))?, epochs, epoch_count, interrupted }))
}

impl<L: BatchLearner> Learner for BatchTask<L> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let mut progress = self.interrupted.take().unwrap_or_else(|| {
            let sample = if epoch == 0 { self.learner.take_sample() } else { Vec::new() };
            EpochProgress::new(task.model.metric_accumulator(), sample)
        });
        let end = self.run_steps(task, epoch, &mut progress)?;
        let (totals, end) = sum_over_tasks(task, progress.metrics.record_count(), progress.sums, end)?;
        if end == StepsEnd::Save {
            self.interrupted = Some(progress);
            return Ok(None);
        }
        let (training, is_stopped) = (progress.metrics, end == StepsEnd::Stopped);
        let epoch_count = *self.epoch_count.get_or_insert_with(|| self.epochs.count(totals.record_count));
        let is_last = is_stopped || epoch + 1 >= epoch_count;
        let notice = self.learner.end_epoch(task, &EpochSums { totals, is_stopped, is_last })?;
        let record_count = training.record_count();
        Ok(Some(EpochEnd { training, record_count, epoch_count, is_stopped, is_last, notice }))
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        let epoch_count = self.epoch_count.unwrap_or(0);
        let (learner, interrupted) = (self.learner.state(), self.interrupted.clone());
        task_loop::encode(&BatchState { epoch_count, learner, interrupted })
    }
}

impl<L: BatchLearner> BatchTask<L> {
    /// Learns from the task's data until they end or the coordinator interrupts the task.
    fn run_steps(
        &mut self,
        task: &mut TrainTask<'_>,
        epoch: u64,
        progress: &mut EpochProgress,
    ) -> Result<StepsEnd, Error> {
        progress.start(task, epoch)?;
        let EpochProgress { batch_count, metrics, sums, sample, is_cache_released, .. } = progress;
        let mut replayed = ReplayedStream { sample, batch: Batch::default(), rest: &mut *task.data };
        let data: &mut dyn BatchStream =
            if replayed.sample.is_empty() { &mut *replayed.rest } else { &mut replayed };
        let (number, is_cached) = (task.agent.task(), self.epochs.count(0) > 1);
        loop {
            if task.coordinator.is_save_due(number, task.agent.clock())? {
                return Ok(StepsEnd::Save);
            }
            let Some([batch, ahead @ ..]) = data.next_window(1)? else { return Ok(StepsEnd::DataEnded) };
            let own = self.learner.step(task.agent, batch, ahead.first(), metrics)?;
            if !own.loss.is_finite() {
                let feature = self.learner.suspect(batch).map(FeatureLabel::new);
                let (epoch, step) = (epoch + 1, *batch_count + 1);
                return Err(Error::Diverged { epoch, step, loss: own.loss, feature, advice: String::new() });
            }
            *batch_count += 1;
            sums.positive_count += own.positive_count;
            sums.weight += own.weight;
            let count = batch.record_count() as u64;
            if task.coordinator.report_progress(number, count, own.loss) == StepDecision::Stop {
                return Ok(StepsEnd::Stopped);
            }
            if is_cached && !*is_cache_released && self.epochs.count(metrics.record_count()) == 1 {
                *is_cache_released = true;
                data.release_cache();
            }
        }
    }
}

/// A stream whose first batches of epoch 0 were read before.
struct ReplayedStream<'a> {
    sample: &'a mut VecDeque<Batch>,
    batch: Batch,
    rest: &'a mut dyn BatchStream,
}

impl BatchStream for ReplayedStream<'_> {
    fn start_epoch(&mut self, _epoch: u64) -> Result<(), data::Error> {
        Ok(())
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        match self.sample.pop_front() {
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

/// Why a task makes no more steps for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepsEnd {
    DataEnded,
    /// The coordinator stops the training.
    Stopped,
    /// The tasks save their states.
    Save,
}

/// Sums over all tasks, which is also a barrier: afterwards every push is visible, and every task has the same totals
/// and knows why all of them wait. The tasks save if one of them was asked to and none is stopped: those whose data
/// have ended wait for the end of the epoch again afterwards.
fn sum_over_tasks(
    task: &mut TrainTask<'_>,
    record_count: u64,
    sums: StepSums,
    end: StepsEnd,
) -> Result<(Totals, StepsEnd), Error> {
    let is = |other| f64::from(u8::from(end == other));
    let (stopped, saving) = (is(StepsEnd::Stopped), is(StepsEnd::Save));
    let mut all = [record_count as f64, sums.positive_count as f64, sums.weight, stopped, saving];
    task.agent.all_reduce(&mut all)?;
    let [record_count, positive_count, weight, stopped, saving] = all;
    let totals = Totals { record_count: record_count as u64, positive_count: positive_count as u64, weight };
    let end = match (stopped > 0.0, saving > 0.0) {
        (true, _) => StepsEnd::Stopped,
        (false, true) => StepsEnd::Save,
        (false, false) => StepsEnd::DataEnded,
    };
    Ok((totals, end))
}

/// Reads a selection, if there is one: with its ticket, if it was prefetched.
pub fn pull_or_wait(
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
