//! An iteration of a minimizer: passes over the data, each with the sum of the losses and a command of task 0.

use serde::{Deserialize, Serialize};

use super::super::job::Linear;
use super::super::model::Model;
use super::super::scan::scan;
use super::local_problem::{Detail, LocalProblem, PassResult};
use super::survey::{survey, write_weights};
use crate::descent::Settings;
use crate::descent::minimizer::{DescentCommand, DescentFailure, Minimizer};
use crate::descent::vectors::POINT;
use algo::coordinator::StepDecision;
use algo::error::Error;
use algo::job::TrainTask;
use algo::task_loop::{self, EpochEnd, Learner, TaskState};

/// One task.
struct Descent<'a> {
    model: &'a Model,
    settings: &'a Settings,
    share: LocalProblem<'a>,
    progress: DescentProgress,
}

/// What a task remembers from iteration to iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DescentProgress {
    class_weights: Vec<f64>,
    /// At task 0.
    minimizer: Option<Minimizer>,
    /// Readings of the data.
    pass_count: u64,
    /// The row of the best point.
    row: u32,
}

/// Begins one task.
pub(in super::super) fn begin<'a>(
    job: &Linear,
    settings: &'a Settings,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    let progress = match saved {
        Some(saved) => saved.decode()?,
        None => DescentProgress {
            class_weights: scan(job, model, task)?,
            minimizer: (task.agent.task() == 0).then(|| super::minimizer(model, settings)),
            pass_count: 0,
            row: POINT,
        },
    };
    let share = survey(settings, task, &progress.class_weights, saved)?;
    Ok(Box::new(Descent { model, settings, share, progress }))
}

impl Descent<'_> {
    /// The metrics of an iteration: all that the model has where somebody looks at them, which is at the first and the
    /// last iteration and at points that are validated. An iteration that turns out to be the last is read once more.
    fn detail(&self, task: &TrainTask<'_>, epoch: u64) -> Detail {
        let is_end = epoch == 0 || epoch + 1 >= self.settings.max_iterations;
        if is_end || task.validation.is_some() { Detail::All } else { Detail::Loss }
    }
}

impl Learner for Descent<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let mut record_count = 0;
        let detail = self.detail(task, epoch);
        loop {
            let progress = &mut self.progress;
            let mut passed = self.share.evaluate(task, POINT, progress.pass_count, detail)?;
            record_count += passed.parts.record_count();
            let minimizer = progress.minimizer.as_mut();
            let (order, flow) = sum_and_decide(self.model, task, &passed, minimizer, progress.pass_count)?;
            progress.pass_count += 1;
            progress.row = order.row;
            if order.iteration && order.last && detail == Detail::Loss && flow == StepDecision::Continue {
                self.share.pull_weights(task.agent, order.row)?;
                passed = self.share.read(task, progress.pass_count, Detail::All)?;
                progress.pass_count += 1;
                record_count += passed.parts.record_count();
            }
            if order.iteration {
                return Ok(Some(EpochEnd {
                    training: passed.parts,
                    record_count,
                    epoch_count: if order.last { epoch + 1 } else { self.settings.max_iterations },
                    is_stopped: flow == StepDecision::Stop,
                    is_last: order.last,
                    notice: order.failure.and_then(|why| notice(why, epoch)),
                }));
            }
        }
    }

    fn write_model(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        write_weights(self.model, task, &mut self.share, self.progress.row)
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        task_loop::encode(&self.progress)
    }
}

/// A message for the user about how the minimization ended. There is none for rounding, where every minimization may
/// end.
fn notice(why: DescentFailure, iteration: u64) -> Option<String> {
    let count = iteration + 1;
    match why {
        DescentFailure::Rounding => None,
        DescentFailure::IterationLimit => Some(format!(
            "stopped after max_iterations={count} while the loss was still decreasing; a larger max_iterations comes \
             nearer to the minimum, and a larger l2 reaches it sooner"
        )),
        DescentFailure::LineSearch(why) => Some(format!(
            "iteration {count}: the line search found no better point ({why}); the model is the best point so far"
        )),
    }
}

/// Sums the losses, has task 0 decide, and sends its command to all tasks.
fn sum_and_decide(
    model: &Model,
    task: &mut TrainTask<'_>,
    passed: &PassResult,
    minimizer: Option<&mut Minimizer>,
    pass: u64,
) -> Result<(DescentCommand, StepDecision), Error> {
    let sums = passed.sum_over_tasks(task.agent, &mut [])?;
    if pass == 0 {
        sums.check_start(model.loss)?;
    }
    let flow = sums.flow;
    let own = match minimizer {
        Some(minimizer) if flow == StepDecision::Stop => Some(minimizer.stop()),
        Some(minimizer) => Some(minimizer.observe(task.agent, sums.loss)?),
        None => None,
    };
    let mut word = own.map_or([0.0; 3], |order| {
        [f64::from(u8::from(order.iteration)), f64::from(u8::from(order.last)), f64::from(order.row)]
    });
    task.agent.all_reduce(&mut word)?;
    let failure = own.and_then(|order| order.failure);
    Ok((DescentCommand { iteration: word[0] > 0.0, last: word[1] > 0.0, row: word[2] as u32, failure }, flow))
}
