//! SVRG: steps on batches whose variance goes to 0 (Johnson, Zhang, "Accelerating stochastic gradient descent using
//! predictive variance reduction", NIPS 2013, the procedure of figure 1 with option I).
//!
//! An iteration reads all records at a point z0 to compute its gradient g0, then makes a step for each batch: `z -=
//! rate (g(z) - g(z0) + g0)`, where g is the gradient of the batch times (all records / records of the batch). The
//! tasks push the difference, which is sparse; g0 and the penalty, which have all columns, stay at the partitions. With
//! several tasks, each contributes its share of a step. Points are scaled as in [`crate::descent`], so that a rate
//! below 1 / (number of entries of a record) is safe.

use crate::descent::function::quasi_newton::{Penalty, QuasiNewtonProducts};
use crate::descent::function::step::PenaltyGradient;
use matrix::FunctionCall;
use matrix::function::call::call_pull;
use matrix::function::zip::{Combine, Zip};
use serde::{Deserialize, Serialize};

use super::super::job::Linear;
use super::super::model::Model;
use super::super::scan::scan;
use super::local_problem::{Detail, LocalProblem};
use super::survey::{survey, write_weights};
use crate::descent::Settings;
use crate::descent::two_loop::QuasiNewtonAnswer;
use crate::descent::vectors::{DIRECTION, GRADIENT, POINT, SCALE, VectorLayout};
use algo::coordinator::StepDecision;
use algo::error::Error;
use algo::job::TrainTask;
use algo::task_loop::{self, EpochEnd, Learner, TaskState};

/// Steps are too long if the objective has grown by this factor since the start.
const DIVERGED: f64 = 10.0;

/// One task.
struct Svrg<'a> {
    job: &'a Linear,
    model: &'a Model,
    settings: &'a Settings,
    share: LocalProblem<'a>,
    progress: SvrgProgress,
}

/// What a task remembers from iteration to iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SvrgProgress {
    class_weights: Vec<f64>,
    /// The objective at the start, and at the best point.
    first: f64,
    best: f64,
    /// Records of all tasks.
    record_count: f64,
}

/// Begins one task.
pub(in super::super) fn begin<'a>(
    job: &'a Linear,
    settings: &'a Settings,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    let progress = match saved {
        Some(saved) => saved.decode()?,
        None => SvrgProgress {
            class_weights: scan(job, model, task)?,
            first: f64::INFINITY,
            best: f64::INFINITY,
            record_count: 0.0,
        },
    };
    let share = survey(settings, task, &progress.class_weights, saved)?;
    Ok(Box::new(Svrg { job, model, settings, share, progress }))
}

impl Learner for Svrg<'_> {
    /// Steps from the last point to the next one, and the reading of all records there. Epoch 0 reads them at the first
    /// point.
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let Self { job, model, settings, share, progress } = self;
        let vectors = super::vector_layout(model, settings);
        let penalty = (0.0, settings.l2, super::penalized_columns(model));
        if epoch > 0 {
            let factor = job.params.learning_rate / f64::from(task.agent.task_count());
            let numbers = (progress.record_count, 2 * epoch - 1);
            run_inner_loop(task, share, (vectors, &penalty), factor, numbers)?;
        }
        let passed = share.evaluate(task, POINT, 2 * epoch, Detail::All)?;
        let sums = passed.sum_over_tasks(task.agent, &mut [])?;
        sums.check_classes(model.loss)?;
        let loss = sums.loss + penalty_of(task, vectors, &penalty)?;
        if epoch == 0 {
            progress.first = loss;
        }
        if !loss.is_finite() || loss > DIVERGED * progress.first {
            let (feature, advice) = (None, String::new());
            return Err(Error::Diverged { epoch: epoch + 1, step: epoch + 1, loss, feature, advice });
        }
        let is_stopped = sums.flow == StepDecision::Stop;
        let is_last = progress.best - loss <= settings.tolerance * loss.abs()
            || epoch + 1 >= settings.max_iterations
            || is_stopped;
        progress.best = progress.best.min(loss);
        progress.record_count = sums.record_count;
        let record_count = passed.parts.record_count();
        let epoch_count = if is_last { epoch + 1 } else { settings.max_iterations };
        let training = passed.parts;
        Ok(Some(EpochEnd { training, record_count, epoch_count, is_stopped, is_last, notice: None }))
    }

    fn write_model(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        write_weights(self.model, task, &mut self.share, POINT)
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        task_loop::encode(&self.progress)
    }
}

/// The penalty at the point. Afterwards the gradient at the partitions is that of the losses alone: the gradient of the
/// penalty is computed anew in each step.
fn penalty_of(task: &mut TrainTask<'_>, vectors: VectorLayout, penalty: &Penalty) -> Result<f64, Error> {
    let mut own = [0.0];
    if task.agent.task() == 0 {
        let rows = [POINT, GRADIENT, SCALE, POINT, GRADIENT];
        let answer = call_pull(task.agent, vectors.id, &QuasiNewtonProducts, &rows, penalty)?;
        own[0] = QuasiNewtonAnswer(&answer).penalty();
        let calls = [
            FunctionCall::push(&PenaltyGradient, &[POINT, SCALE], &[DIRECTION], penalty),
            FunctionCall::push(&Zip::Sub, &[GRADIENT, DIRECTION], &[GRADIENT], &()),
        ];
        task.agent.push_function(vectors.id, &calls)?;
    }
    task.agent.all_reduce(&mut own)?;
    Ok(own[0])
}

/// Makes one step for each batch; then prepares the gradient for the next reading of all records.
fn run_inner_loop(
    task: &mut TrainTask<'_>,
    share: &mut LocalProblem<'_>,
    (vectors, penalty): (VectorLayout, &Penalty),
    factor: f64,
    (record_count, pass): (f64, u64),
) -> Result<(), Error> {
    share.pull_weights(task.agent, POINT)?;
    let before = share.weights.clone();
    let from = [POINT, GRADIENT, DIRECTION];
    let step = [
        FunctionCall::push(&PenaltyGradient, &[POINT, SCALE], &[DIRECTION], penalty),
        FunctionCall::push(&Combine, &from, &[POINT], &vec![1.0, -factor, -factor]),
    ];
    task.data.start_epoch(pass)?;
    while let Some(batch) = task.data.next()? {
        share.pull_weights(task.agent, POINT)?;
        let scale = -factor * record_count / batch.record_count() as f64;
        let difference = share.difference(batch, &before, scale)?;
        share.push(task.agent, POINT, &difference)?;
        task.agent.push_function(vectors.id, &step)?;
        task.agent.tick()?;
        if task.coordinator.report_progress(task.agent.task(), batch.record_count() as u64, 0.0)
            == StepDecision::Stop
        {
            break;
        }
    }
    task.agent.barrier()?;
    if task.agent.task() == 0 {
        let ready = FunctionCall::push(&PenaltyGradient, &[POINT, SCALE], &[GRADIENT], penalty);
        task.agent.push_function(vectors.id, &[ready])?;
    }
    Ok(task.agent.barrier()?)
}
