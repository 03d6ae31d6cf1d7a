//! A step of a task: pull, score, push, tick.

use data::Batch;
use matrix::{Agent, Values};

use super::job::Linear;
use super::model::Model;
use super::scan::scan;
use super::score::{BatchScorer, ScoreTickets};
use algo::batch_loop::{
    self, BatchLearner, EpochSums, StepSums, check_classes, check_weight, suspect_column,
};
use algo::csr::scale;
use algo::error::Error;
use algo::job::TrainTask;
use algo::labels::LabelScale;
use algo::loss::Loss;
use algo::metric::{MetricAccumulator, add_to_metrics};
use algo::param::common::BatchGradient;
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::{Learner, TaskState};

/// Begins one task.
pub(super) fn begin<'a>(
    job: &'a Linear,
    gradient: BatchGradient,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    batch_loop::begin(job.params.epochs, saved, |state| {
        let class_weights = match state {
            Some(class_weights) => class_weights,
            None => scan(job, model, task)?,
        };
        Ok(Step::new(job, model, gradient, class_weights))
    })
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
    /// What was prefetched for the next batch.
    tickets: ScoreTickets,
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
            tickets: ScoreTickets::default(),
        }
    }

    /// Multiplies the slopes by the weight of the record and of its class; for a mean gradient also divides by the
    /// number of records. Returns the sum of these weights.
    fn weigh(&mut self, batch: &Batch) -> Result<f64, Error> {
        let clip = self.job.params.clip;
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
        weigh(self.model, batch, &self.class_weights, share, &mut self.slopes)
    }

    /// Computes `gradient` for the columns of the batch, each summed over its records.
    fn differentiate(&mut self, batch: &Batch) {
        let width = self.model.width();
        self.sums.clear();
        self.sums.resize(batch.columns.len() * width, 0.0);
        self.scoring.entries(batch).backward(&self.slopes, width, &mut self.sums);
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

impl BatchLearner for Step<'_> {
    /// The weights of the classes.
    type State = Vec<f64>;

    fn state(&self) -> Vec<f64> {
        self.class_weights.clone()
    }

    fn step(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        next: Option<&Batch>,
        metrics: &mut MetricAccumulator,
    ) -> Result<StepSums, Error> {
        self.scoring.pull(agent, batch, &self.tickets)?;
        // The answers travel while this step computes, or at least while the batch after the next one is parsed.
        self.tickets = next.map_or_else(Default::default, |next| self.scoring.prefetch(agent, next));
        self.scoring.compute_scores(batch);
        let loss =
            add_to_metrics(self.model.labels(), batch, &self.scoring.scores, &mut self.slopes, metrics)?;
        if !loss.is_finite() {
            return Ok(StepSums { loss, ..StepSums::default() });
        }
        let weight = self.weigh(batch)?;
        self.differentiate(batch);
        if self.gradient.iter().any(|sum| !sum.is_finite()) {
            // The sums are outside of the range of f32; the servers would refuse them.
            return Ok(StepSums { loss: f64::INFINITY, ..StepSums::default() });
        }
        agent.push(self.model.weights_id(), rows_of(&batch.columns), Values::F32(&self.gradient))?;
        if let Some(id) = self.model.intercept_id() {
            let sums = self.intercept_gradient();
            agent.push(id, ONE_ROW, Values::F32(&sums))?;
        }
        agent.tick()?;
        let positive_count = batch.labels.iter().filter(|&&label| label > 0.0).count() as u64;
        Ok(StepSums { loss, positive_count, weight })
    }

    fn suspect(&self, batch: &Batch) -> Option<u64> {
        if self.job.large_class_weight().is_some() {
            return None;
        }
        suspect_column(batch, self.scoring.transformed(batch), &[&self.scoring.weights])
    }

    fn end_epoch(&mut self, _: &mut TrainTask<'_>, end: &EpochSums) -> Result<Option<String>, Error> {
        if end.is_stopped {
            return Ok(None);
        }
        check_classes(end.totals.record_count, end.totals.positive_count, self.model.loss)?;
        check_weight(end.totals.record_count, end.totals.weight)?;
        Ok(None)
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
