//! The loop of a task, the same for all families: epochs, validation, reports, and what a task keeps between epochs.
//!
//! A task begins with [`Job::begin`], which returns its [`Learner`]. Then for each epoch: the learner trains it; the
//! model is written, if the matrices of the model do not follow the training by themselves; the task scores its share
//! of the validation data; the coordinator decides. Between two epochs, and within an epoch of a learner that can
//! interrupt it, what the learner keeps can be saved. A task that begins with it, on the matrices of that moment,
//! trains on to the same final bytes.

use matrix::Agent;

use crate::coordinator::{EpochDecision, EpochReport};
use crate::error::Error;
use crate::job::Job;
pub use crate::learner::{EpochEnd, Learner};
use crate::scorer::score_all;
pub use crate::task_state::{TaskState, encode};
use crate::train_task::TrainTask;

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
        check_saved(saved, job.algorithm(), &task)?;
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

/// Checks that a state was saved by the same task of the same algorithm.
fn check_saved(saved: &TaskState, algorithm: &str, task: &TrainTask<'_>) -> Result<(), Error> {
    let (number, count) = (task.agent.task(), task.agent.task_count());
    if saved.algorithm != algorithm {
        return Err(saved.misfit(format!("this job trains {algorithm:?}")));
    }
    if (saved.task, saved.task_count) != (number, count) {
        let of = (saved.task, saved.task_count);
        let reason = format!(
            "it is that of task {} of {}, and this is task {number} of {count}: the number of tasks must be the same",
            of.0, of.1
        );
        return Err(saved.misfit(reason));
    }
    Ok(())
}
