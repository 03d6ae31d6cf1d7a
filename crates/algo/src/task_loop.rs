//! The loop of a task, the same for all families: epochs, validation, reports, and what a task keeps between epochs.
//!
//! A task begins with [`Job::begin`], which returns its [`Learner`]. Then for each epoch: the learner trains it; the
//! model is written, if the matrices of the model do not follow the training by themselves; the task scores its share
//! of the validation data; the coordinator decides. Between two epochs, and within an epoch of a learner that can
//! interrupt it, what the learner keeps can be saved. A task that begins with it, on the matrices of that moment,
//! trains on to the same final bytes.

use matrix::Agent;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::coordinator::{EpochDecision, EpochReport};
use crate::error::Error;
use crate::job::{Job, TrainTask, score_all};
use crate::metric::MetricAccumulator;

/// The training of one task, epoch by epoch.
pub trait Learner {
    /// Trains an epoch, from 0. When it returns, every push of every task is visible, and no task pushes before the
    /// next call of one of these functions. `None`: all tasks save their states within the epoch; the next call
    /// continues it.
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error>;

    /// Writes the matrices of the model as they are after the last epoch. When it returns, every task can read them. A
    /// learner whose pushes change the model itself has nothing to do. It is called at every task or at none: before a
    /// validation, and at the end of training.
    fn write_model(&mut self, _task: &mut TrainTask<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The metrics of the task's share of the validation data, or of what the learner has held out, if it finds them itself.
    /// `None`: the validation data, if there are any, are scored with the model.
    fn validate(&mut self, _task: &mut TrainTask<'_>) -> Result<Option<MetricAccumulator>, Error> {
        Ok(None)
    }

    /// What the task remembers besides the matrices, for [`Job::begin`]. It is made with [`encode`]. What the data say
    /// again when they are read again need not be in it.
    fn save_state(&self) -> Result<Vec<u8>, Error>;
}

/// How an epoch of a task has ended.
#[derive(Clone, Debug)]
pub struct EpochEnd {
    /// Metrics from the score of each record of the task before the update of its batch.
    pub training: MetricAccumulator,
    /// Records that the task has read, which may be several times those of the metrics.
    pub record_count: u64,
    /// The number of epochs unless training ends early, the same at every task.
    pub epoch_count: u64,
    /// A task was told to stop before its data ended; the same at every task.
    pub is_stopped: bool,
    /// No epoch follows; the same at every task.
    pub is_last: bool,
    /// A message to the user. That of task 0 is shown.
    pub notice: Option<String>,
}

impl EpochEnd {
    /// The end of the only epoch of a family that reads its data once.
    pub fn of_last(training: MetricAccumulator) -> Self {
        let record_count = training.record_count();
        Self { training, record_count, epoch_count: 1, is_stopped: false, is_last: true, notice: None }
    }
}

/// What a task keeps besides the matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// The algorithm that has saved it.
    pub algorithm: String,
    pub task: u32,
    pub task_count: u32,
    /// The epoch that comes next, or that continues.
    pub epoch: u64,
    /// Ticks since the training began, before the run that has saved it too.
    pub clock: u64,
    /// What [`Learner::save_state`] returned.
    pub bytes: Vec<u8>,
}

impl TaskState {
    /// What the learner has saved.
    ///
    /// # Errors
    /// [`Error::TaskState`] if it is of another type, as after a change of the program.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut rest = self.bytes.as_slice();
        let value = rmp_serde::from_read(&mut rest).map_err(|error| self.misfit(error.to_string()))?;
        if rest.is_empty() {
            return Ok(value);
        }
        Err(self.misfit(format!("{} bytes follow its end", rest.len())))
    }

    /// The error that this state does not fit, for this reason.
    pub fn misfit(&self, reason: String) -> Error {
        Error::TaskState { task: self.task, algorithm: self.algorithm.clone(), reason }
    }

    /// Checks that it was saved by the same task of the same algorithm.
    fn check(&self, algorithm: &str, task: &TrainTask<'_>) -> Result<(), Error> {
        let (number, count) = (task.agent.task(), task.agent.task_count());
        if self.algorithm != algorithm {
            return Err(self.misfit(format!("this job trains {algorithm:?}")));
        }
        if (self.task, self.task_count) != (number, count) {
            let saved = (self.task, self.task_count);
            let reason = format!(
                "it is that of task {} of {}, and this is task {number} of {count}: the number of tasks must be the same",
                saved.0, saved.1
            );
            return Err(self.misfit(reason));
        }
        Ok(())
    }
}

/// The bytes of a state.
///
/// # Errors
/// [`Error::EncodeState`] if the value has a form that cannot be encoded, such as a map whose length is not known.
pub fn encode(state: &impl Serialize) -> Result<Vec<u8>, Error> {
    rmp_serde::to_vec(state).map_err(|source| Error::EncodeState { source })
}

/// Trains one task to its end, on the thread of the task. With `saved`, the matrices must be as they were when it was
/// saved; training continues from there.
pub fn train<'a>(job: &'a dyn Job, task: TrainTask<'a>, saved: Option<&TaskState>) -> Result<(), Error> {
    train_epochs(job, task, saved).map_err(|mut error| {
        if let Error::Diverged { advice, .. } = &mut error {
            *advice = job.divergence_advice();
        }
        error
    })
}

fn train_epochs<'a>(
    job: &'a dyn Job,
    mut task: TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<(), Error> {
    if let Some(saved) = saved {
        saved.check(job.algorithm(), &task)?;
    }
    let mut learner = job.begin(&mut task, saved)?;
    let ticks = Ticks::new(task.agent, saved);
    let mut validates = [f64::from(u8::from(task.validation.is_some()))];
    task.agent.all_reduce(&mut validates)?;
    let validates = validates[0] > 0.0;
    let mut epoch = saved.map_or(0, |saved| saved.epoch);
    loop {
        let Some(end) = learner.train_epoch(&mut task, epoch)? else {
            save(job, &task, &*learner, (epoch, ticks))?;
            continue;
        };
        let (is_last, is_written) = (end.is_last, validates || end.is_last);
        if is_written {
            learner.write_model(&mut task)?;
        }
        let decision = report(&mut task, &mut *learner, (epoch, ticks), end)?;
        if is_last {
            break;
        }
        if decision == EpochDecision::Stop {
            if !is_written {
                learner.write_model(&mut task)?;
            }
            break;
        }
        epoch += 1;
        if decision == EpochDecision::Save {
            save(job, &task, &*learner, (epoch, ticks))?;
        }
    }
    task.agent.finish()?;
    Ok(())
}

/// Counts the ticks of a training over its runs. Those with which a task begins with a saved state count once.
#[derive(Clone, Copy)]
struct Ticks {
    saved: u64,
    /// The clock when the task had begun.
    begun: u64,
}

impl Ticks {
    fn new(agent: &dyn Agent, saved: Option<&TaskState>) -> Self {
        match saved {
            Some(saved) => Self { saved: saved.clock, begun: agent.clock() },
            None => Self { saved: 0, begun: 0 },
        }
    }

    fn count(self, agent: &dyn Agent) -> u64 {
        self.saved + agent.clock() - self.begun
    }
}

/// Gives the state of the task to the coordinator. `epoch` is the one that comes next or continues.
fn save(
    job: &dyn Job,
    task: &TrainTask<'_>,
    learner: &dyn Learner,
    (epoch, ticks): (u64, Ticks),
) -> Result<(), Error> {
    task.coordinator.save_state(TaskState {
        algorithm: job.algorithm().to_owned(),
        task: task.agent.task(),
        task_count: task.agent.task_count(),
        epoch,
        clock: ticks.count(task.agent),
        bytes: learner.save_state()?,
    })
}

/// Scores the validation data, unless the tasks were told to stop, and reports the epoch.
fn report<'a>(
    task: &mut TrainTask<'a>,
    learner: &mut (dyn Learner + 'a),
    (epoch, ticks): (u64, Ticks),
    end: EpochEnd,
) -> Result<EpochDecision, Error> {
    let mut validation = if end.is_stopped { None } else { learner.validate(task)? };
    if let (Some(stream), false, None) = (&mut task.validation, end.is_stopped, &validation) {
        let empty = task.model.metric_accumulator();
        validation = Some(score_all(task.model.scorer().as_mut(), empty, task.agent, *stream)?);
    }
    task.coordinator.report_epoch(EpochReport {
        task: task.agent.task(),
        epoch,
        epoch_count: end.epoch_count,
        clock: ticks.count(task.agent),
        record_count: end.record_count,
        training: end.training,
        validation,
        notice: end.notice.filter(|_| task.agent.task() == 0),
    })
}
