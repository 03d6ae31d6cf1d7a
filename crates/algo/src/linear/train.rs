//! The loop of a task: pull, score, push, tick; at the end of an epoch barrier, validation, report.

use data::Batch;
use matrix::{Keys, Selection, Values};

use super::Linear;
use super::choices::BatchGradient;
use super::csr::scale;
use super::loss::Loss;
use super::model::{LabelScale, Model};
use super::scan::scan;
use super::score::{BatchScorer, LinearScorer, ScoreTickets, add_to_metrics};
use crate::coordinator::{EpochDecision, EpochReport, StepDecision};
use crate::error::Error;
use crate::job::{TrainTask, score_all};
use crate::metric::MetricAccumulator;

/// Trains one task until training ends.
pub(super) fn train(job: &Linear, gradient: BatchGradient, mut task: TrainTask<'_>) -> Result<(), Error> {
    let model: &Model = task.model.of()?;
    let class_weights = scan(job, model, &mut task)?;
    let mut step = Step::new(job, model, gradient, class_weights);
    let mut epoch_count = None;
    for epoch in 0.. {
        let (parts, flow) = run_epoch(job, &mut step, &mut task, epoch)?;
        let (totals, weight_sum) = sum_over_tasks(&mut task, &parts, &step)?;
        if flow == StepDecision::Continue {
            totals.check(model)?;
            check_weight(totals.record_count, weight_sum)?;
        }
        let epoch_count = *epoch_count.get_or_insert_with(|| job.params.epochs.count(totals.record_count));
        let validation = match (&mut task.validation, flow) {
            (Some(stream), StepDecision::Continue) => {
                let mut scorer = LinearScorer::new(model);
                Some(score_all(&mut scorer, model.metric_accumulator(), task.agent, *stream)?)
            }
            _ => None,
        };
        let report = EpochReport { validation, ..EpochReport::new(task.agent, epoch, epoch_count, parts) };
        if task.coordinator.report_epoch(report)? == EpochDecision::Stop || epoch + 1 >= epoch_count {
            break;
        }
    }
    task.agent.finish()?;
    Ok(())
}

/// Reads the task's data once. It ends early if the coordinator stops the task.
fn run_epoch(
    job: &Linear,
    step: &mut Step<'_>,
    task: &mut TrainTask<'_>,
    epoch: u64,
) -> Result<(MetricAccumulator, StepDecision), Error> {
    let mut parts = step.model.metric_accumulator();
    (step.positive_count, step.weight_sum) = (0, 0.0);
    let mut kept = !job.needs_one_epoch(0);
    task.data.start_epoch(epoch)?;
    let mut step_number = 0;
    let mut tickets = ScoreTickets::default();
    while let Some([batch, ahead @ ..]) = task.data.next_window(1)? {
        step.scoring.pull(task.agent, batch, &tickets)?;
        // The answers travel while this step computes, or at least while the batch after the next one is parsed.
        tickets = ahead.first().map_or_else(Default::default, |next| step.scoring.prefetch(task.agent, next));
        let loss_sum = step.train(task.agent, batch, &mut parts)?;
        let rate = job.params.learning_rate;
        if !loss_sum.is_finite() {
            return Err(Error::Diverged { epoch, step: step_number, loss: loss_sum, rate });
        }
        step_number += 1;
        if task.coordinator.report_progress(task.agent.task(), batch.record_count() as u64, loss_sum)
            == StepDecision::Stop
        {
            return Ok((parts, StepDecision::Stop));
        }
        if kept && job.needs_one_epoch(parts.record_count()) {
            kept = false;
            task.data.release_cache();
        }
    }
    Ok((parts, StepDecision::Continue))
}

/// Counts of all tasks in an epoch.
pub(super) struct Totals {
    pub(super) record_count: u64,
    pub(super) positive_count: u64,
}

impl Totals {
    pub(super) fn check(&self, model: &Model) -> Result<(), Error> {
        match (self.record_count, self.positive_count) {
            (0, _) => Err(Error::NoRecords),
            (record_count, 0) if model.loss.is_binary() => Err(Error::OneClass { record_count, label: 0.0 }),
            (all, positive) if model.loss.is_binary() && all == positive => {
                Err(Error::OneClass { record_count: all, label: 1.0 })
            }
            _ => Ok(()),
        }
    }
}

/// Sums over all tasks at the end of an epoch, which is also a barrier: afterwards every push is visible, and every
/// task has the same totals, so all tasks make the same decisions.
fn sum_over_tasks(
    task: &mut TrainTask<'_>,
    parts: &MetricAccumulator,
    step: &Step<'_>,
) -> Result<(Totals, f64), Error> {
    let mut sums = [parts.record_count() as f64, step.positive_count as f64, step.weight_sum];
    task.agent.all_reduce(&mut sums)?;
    Ok((Totals { record_count: sums[0] as u64, positive_count: sums[1] as u64 }, sums[2]))
}

/// Refuses records that all have the weight 0: the gradient would be 0, and so would the model.
pub(super) fn check_weight(record_count: u64, weight_sum: f64) -> Result<(), Error> {
    if record_count > 0 && weight_sum == 0.0 {
        return Err(Error::NoWeight { what: "every training record has the weight 0" });
    }
    Ok(())
}

/// One step and its scratch memory.
struct Step<'a> {
    job: &'a Linear,
    model: &'a Model,
    batch_gradient: BatchGradient,
    /// One weight per class; empty if all are 1.
    class_weights: Vec<f64>,
    scoring: BatchScorer,
    slopes: Vec<f64>,
    sums: Vec<f64>,
    gradient: Vec<f32>,
    positive_count: u64,
    /// Sum of weight of record x weight of class.
    weight_sum: f64,
}

impl<'a> Step<'a> {
    fn new(job: &'a Linear, model: &'a Model, gradient: BatchGradient, class_weights: Vec<f64>) -> Self {
        Self {
            job,
            model,
            batch_gradient: gradient,
            class_weights,
            scoring: BatchScorer::new(model),
            slopes: Vec::new(),
            sums: Vec::new(),
            gradient: Vec::new(),
            positive_count: 0,
            weight_sum: 0.0,
        }
    }

    /// Scores with the parameters that were pulled for the batch, adds to the metrics (before the update: progressive
    /// validation), pushes, ticks. Returns the sum of weight x loss.
    fn train(
        &mut self,
        agent: &mut dyn matrix::Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<f64, Error> {
        self.scoring.compute_scores(batch);
        let loss_sum = add_to_metrics(self.model, batch, &self.scoring.scores, &mut self.slopes, parts)?;
        if !loss_sum.is_finite() {
            return Ok(loss_sum);
        }
        self.weigh(batch)?;
        self.differentiate(batch);
        if self.gradient.iter().any(|sum| !sum.is_finite()) {
            // The sums are outside of the range of f32; the servers would refuse them.
            return Ok(f64::INFINITY);
        }
        let columns = Selection::Rows(Keys::Sorted(&batch.columns));
        agent.push(self.model.weights_id(), columns, Values::F32(&self.gradient))?;
        if let Some(id) = self.model.intercept_id() {
            let sums = self.intercept_gradient();
            agent.push(id, Selection::Rows(Keys::Range(0, 1)), Values::F32(&sums))?;
        }
        agent.tick()?;
        Ok(loss_sum)
    }

    /// Multiplies the slopes by the weight of the record and of its class; for a mean gradient also divides by the
    /// number of records.
    fn weigh(&mut self, batch: &Batch) -> Result<(), Error> {
        let clip = self.job.params.clip;
        self.positive_count += batch.labels.iter().filter(|&&label| label > 0.0).count() as u64;
        if clip.is_finite() {
            self.slopes.iter_mut().for_each(|slope| *slope = slope.clamp(-clip, clip));
        }
        let share = match self.batch_gradient {
            BatchGradient::Sum => 1.0,
            BatchGradient::Mean => 1.0 / batch.record_count() as f64,
        };
        // The loss of scaled labels is that of labels divided by deviation^2, and a weight changes the score by the
        // deviation. Slopes of Huber's loss end at delta, in units of the label.
        let unit = |scale: LabelScale| match self.model.loss {
            Loss::Huber { delta } => scale.deviation.min(delta),
            _ => scale.deviation,
        };
        let share = self.model.label_scale.map_or(share, |scale| share / unit(scale));
        self.weight_sum += weigh(self.model, batch, &self.class_weights, share, &mut self.slopes)?;
        Ok(())
    }

    /// Computes `gradient` for the columns of the batch, each summed over its records.
    fn differentiate(&mut self, batch: &Batch) {
        let width = self.model.width();
        self.sums.clear();
        self.sums.resize(batch.columns.len() * width, 0.0);
        let entries = self.scoring.entries(batch);
        if width == 1 {
            entries.backward(&self.slopes, &mut self.sums);
        } else {
            entries.backward_classes(&self.slopes, width, &mut self.sums);
        }
        self.gradient.clear();
        self.gradient.extend(self.sums.iter().map(|&sum| sum as f32));
    }

    fn intercept_gradient(&self) -> Vec<f32> {
        let width = self.model.width();
        let mut sums = vec![0f64; width];
        for slopes in self.slopes.chunks_exact(width) {
            sums.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    }
}

/// Multiplies slopes (records x width) by `share` x weight of record x weight of class. Returns the sum of these
/// weights.
pub(super) fn weigh(
    model: &Model,
    batch: &Batch,
    class_weights: &[f64],
    share: f64,
    slopes: &mut [f64],
) -> Result<f64, Error> {
    if batch.weights.is_empty() && class_weights.is_empty() {
        scale(slopes, share);
        return Ok(batch.record_count() as f64);
    }
    let mut weight_sum = 0.0;
    for (r, slopes) in slopes.chunks_exact_mut(model.width()).enumerate() {
        let class_weight =
            if class_weights.is_empty() { 1.0 } else { class_weights[model.class_of(batch.labels[r])?] };
        let weight = f64::from(batch.weight(r));
        scale(slopes, share * class_weight * weight);
        weight_sum += class_weight * weight;
    }
    Ok(weight_sum)
}
