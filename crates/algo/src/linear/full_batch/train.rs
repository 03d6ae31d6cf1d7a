//! The loop of a task: pass over the data, sum of the losses, command of task 0; at the end of an iteration, validation
//! and report.

use super::super::Linear;
use super::super::model::Model;
use super::super::scan::scan;
use super::super::score::LinearScorer;
use super::local_problem::PassResult;
use super::survey::{survey, write_weights};
use crate::batch_loop::check_classes;
use crate::coordinator::{EpochDecision, EpochReport, StepDecision};
use crate::descent::Settings;
use crate::descent::minimizer::{DescentCommand, DescentFailure, Minimizer};
use crate::descent::vectors::POINT;
use crate::error::Error;
use crate::job::{TrainTask, score_all};
use crate::metric::MetricAccumulator;

/// Trains one task until training ends.
pub(in super::super) fn train(
    job: &Linear,
    settings: &Settings,
    mut task: TrainTask<'_>,
) -> Result<(), Error> {
    let model: &Model = task.model.of()?;
    let class_weights = scan(job, model, &mut task)?;
    let vectors = super::vector_layout(model, settings);
    let mut minimizer = (task.agent.task() == 0)
        .then(|| Minimizer::new(settings.clone(), vectors, super::penalized_columns(model)));
    let mut share = survey(settings, &mut task, class_weights, minimizer.as_ref())?;
    let validates = any_task(&mut task, |task| task.validation.is_some())?;
    let (mut iteration, mut record_count) = (0, 0);
    for pass in 0.. {
        let passed = share.evaluate(&mut task, POINT, pass)?;
        record_count += passed.parts.record_count();
        let (order, flow) = sum_and_decide(model, &mut task, &passed, minimizer.as_mut(), pass)?;
        if !order.iteration {
            continue;
        }
        if validates {
            write_weights(model, &mut task, &mut share, order.row)?;
            task.agent.barrier()?;
        }
        let count = if order.last { iteration + 1 } else { settings.max_iterations };
        let numbers = (iteration, count, std::mem::take(&mut record_count));
        let notice = order.failure.and_then(|why| notice(why, iteration));
        let report = EpochReport { notice, ..report(model, &mut task, passed.parts, flow, numbers)? };
        iteration += 1;
        if task.coordinator.report_epoch(report)? == EpochDecision::Stop || order.last {
            if !validates {
                write_weights(model, &mut task, &mut share, order.row)?;
            }
            break;
        }
    }
    task.agent.finish()?;
    Ok(())
}

/// The report of an iteration, with its number, the number of iterations, and the records read. It validates unless the
/// tasks were told to stop.
pub(super) fn report(
    model: &Model,
    task: &mut TrainTask<'_>,
    training: MetricAccumulator,
    flow: StepDecision,
    (epoch, epoch_count, record_count): (u64, u64, u64),
) -> Result<EpochReport, Error> {
    let validation = match (&mut task.validation, flow) {
        (Some(stream), StepDecision::Continue) => {
            let mut scorer = LinearScorer::new(model);
            Some(score_all(&mut scorer, model.metric_accumulator(), task.agent, *stream)?)
        }
        _ => None,
    };
    let (task, clock) = (task.agent.task(), task.agent.clock());
    Ok(EpochReport { task, epoch, epoch_count, clock, record_count, training, validation, notice: None })
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

/// Whether `own` is true for any task; all tasks get the same answer.
pub(super) fn any_task(
    task: &mut TrainTask<'_>,
    own: impl Fn(&TrainTask<'_>) -> bool,
) -> Result<bool, Error> {
    let mut sums = [f64::from(u8::from(own(task)))];
    task.agent.all_reduce(&mut sums)?;
    Ok(sums[0] > 0.0)
}

/// Sums the losses, has task 0 decide, and sends its command to all tasks.
fn sum_and_decide(
    model: &Model,
    task: &mut TrainTask<'_>,
    passed: &PassResult,
    minimizer: Option<&mut Minimizer>,
    pass: u64,
) -> Result<(DescentCommand, StepDecision), Error> {
    let stopped = f64::from(u8::from(passed.flow == StepDecision::Stop));
    let records = passed.parts.record_count() as f64;
    let mut sums = [passed.loss_sum, stopped, records, passed.positive_count as f64];
    task.agent.all_reduce(&mut sums)?;
    let [loss, stopped, records, positives] = sums;
    let flow = if stopped > 0.0 { StepDecision::Stop } else { StepDecision::Continue };
    if flow == StepDecision::Continue && pass == 0 {
        check_classes(records as u64, positives as u64, model.loss)?;
        if !loss.is_finite() {
            return Err(Error::NonFiniteStart { loss });
        }
    }
    let own = match minimizer {
        Some(minimizer) if flow == StepDecision::Stop => Some(minimizer.stop()),
        Some(minimizer) => Some(minimizer.observe(task.agent, loss)?),
        None => None,
    };
    let mut word = own.map_or([0.0; 3], |order| {
        [f64::from(u8::from(order.iteration)), f64::from(u8::from(order.last)), f64::from(order.row)]
    });
    task.agent.all_reduce(&mut word)?;
    let failure = own.and_then(|order| order.failure);
    Ok((DescentCommand { iteration: word[0] > 0.0, last: word[1] > 0.0, row: word[2] as u32, failure }, flow))
}
