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

use super::super::Linear;
use super::super::model::Model;
use super::super::scan::scan;
use super::local_problem::{LocalProblem, PassResult};
use super::survey::{survey, write_weights};
use super::train::{any_task, report};
use crate::batch_loop::check_classes;
use crate::coordinator::{EpochDecision, StepDecision};
use crate::descent::Settings;
use crate::descent::minimizer::Minimizer;
use crate::descent::two_loop::QuasiNewtonAnswer;
use crate::descent::vectors::{DIRECTION, GRADIENT, POINT, SCALE, VectorLayout};
use crate::error::Error;
use crate::job::TrainTask;

/// Steps are too long if the objective has grown by this factor since the start.
const DIVERGED: f64 = 10.0;

/// Trains one task until training ends.
pub(in super::super) fn train(
    job: &Linear,
    settings: &Settings,
    mut task: TrainTask<'_>,
) -> Result<(), Error> {
    let model: &Model = task.model.of()?;
    let class_weights = scan(job, model, &mut task)?;
    let vectors = super::vector_layout(model, settings);
    let penalty = (0.0, settings.l2, super::penalized_columns(model));
    let minimizer = (task.agent.task() == 0).then(|| Minimizer::new(settings.clone(), vectors, penalty.2));
    let mut share = survey(settings, &mut task, class_weights, minimizer.as_ref())?;
    let validates = any_task(&mut task, |task| task.validation.is_some())?;
    let rate = job.params.learning_rate;
    let (mut first, mut best) = (f64::INFINITY, f64::INFINITY);
    for iteration in 0.. {
        let passed = share.evaluate(&mut task, POINT, 2 * iteration)?;
        let seen = objective(model, &mut task, &passed, vectors, &penalty)?;
        if iteration == 0 {
            first = seen.value;
        }
        let (step, loss) = (iteration, seen.value);
        if !loss.is_finite() || loss > DIVERGED * first {
            return Err(Error::Diverged { epoch: iteration, step, loss, advice: job.divergence_advice() });
        }
        let is_last = best - loss <= settings.tolerance * loss.abs()
            || iteration + 1 >= settings.max_iterations
            || seen.flow == StepDecision::Stop;
        best = best.min(loss);
        if validates {
            write_weights(model, &mut task, &mut share, POINT)?;
            task.agent.barrier()?;
        }
        let records = passed.parts.record_count();
        let count = if is_last { iteration + 1 } else { settings.max_iterations };
        let report = report(model, &mut task, passed.parts, seen.flow, (iteration, count, records))?;
        if task.coordinator.report_epoch(report)? == EpochDecision::Stop || is_last {
            break;
        }
        let factor = rate / f64::from(task.agent.task_count());
        run_inner_loop(
            &mut task,
            &mut share,
            (vectors, &penalty),
            factor,
            (seen.record_count, 2 * iteration + 1),
        )?;
    }
    if !validates {
        write_weights(model, &mut task, &mut share, POINT)?;
    }
    task.agent.finish()?;
    Ok(())
}

/// Sums over all tasks at the point.
struct ObjectiveSums {
    value: f64,
    record_count: f64,
    flow: StepDecision,
}

fn objective(
    model: &Model,
    task: &mut TrainTask<'_>,
    passed: &PassResult,
    vectors: VectorLayout,
    penalty: &Penalty,
) -> Result<ObjectiveSums, Error> {
    let stopped = f64::from(u8::from(passed.flow == StepDecision::Stop));
    let records = passed.parts.record_count() as f64;
    let mut sums = [passed.loss_sum, stopped, records, passed.positive_count as f64];
    task.agent.all_reduce(&mut sums)?;
    let [loss, stopped, record_count, positives] = sums;
    let flow = if stopped > 0.0 { StepDecision::Stop } else { StepDecision::Continue };
    if flow == StepDecision::Continue {
        check_classes(record_count as u64, positives as u64, model.loss)?;
    }
    let mut own = [0.0];
    if task.agent.task() == 0 {
        let rows = [POINT, GRADIENT, SCALE, POINT, GRADIENT];
        let answer = call_pull(task.agent, vectors.id, &QuasiNewtonProducts, &rows, penalty)?;
        own[0] = QuasiNewtonAnswer(&answer).penalty();
        // From here on the gradient is that of the losses alone: the gradient of the penalty is computed anew in each
        // step.
        let calls = [
            FunctionCall::push(&PenaltyGradient, &[POINT, SCALE], &[DIRECTION], penalty),
            FunctionCall::push(&Zip::Sub, &[GRADIENT, DIRECTION], &[GRADIENT], &()),
        ];
        task.agent.push_function(vectors.id, &calls)?;
    }
    task.agent.all_reduce(&mut own)?;
    Ok(ObjectiveSums { value: loss + own[0], record_count, flow })
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
