//! A step of a task: pull, score, push, tick.

use data::Batch;
use matrix::{Agent, Values, ValuesMut};

use super::interaction::add_gradient;
use super::job::Factorization;
use super::model::Model;
use super::score::{BatchScorer, ScoreTickets};
use algo::batch_loop::{
    self, BatchLearner, EpochSums, StepSums, check_classes, check_weight, suspect_column,
};
use algo::error::Error;
use algo::job::TrainTask;
use algo::metric::{MetricAccumulator, add_scores};
use algo::param::common::BatchGradient;
use algo::rows::{ONE_ROW, rows_of};
use algo::scan::scan;
use algo::task_loop::{Learner, TaskState};

/// Begins one task.
pub(super) fn begin<'a>(
    job: &'a Factorization,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    batch_loop::begin(job.params.epochs, saved, |has_admitted| {
        let scaling = model.scaling().zip(model.moments_id()).filter(|_| !task.resumed);
        if has_admitted.is_none() && scaling.is_some() {
            scan(task, scaling, 0, |_| unreachable!("there are no classes"))?;
        }
        Ok(Step {
            job,
            model,
            scoring: BatchScorer::new(model),
            tickets: ScoreTickets::default(),
            slopes: Vec::new(),
            linear: Vec::new(),
            pairs: Vec::new(),
            occurrences: Vec::new(),
            has_admitted: has_admitted.unwrap_or(false),
        })
    })
}

/// One step and its scratch memory.
struct Step<'a> {
    job: &'a Factorization,
    model: &'a Model,
    scoring: BatchScorer,
    /// What was prefetched for the next batch.
    tickets: ScoreTickets,
    /// One slope per record, with its weight.
    slopes: Vec<f64>,
    /// Gradient of the weights, one number per column.
    linear: Vec<f32>,
    /// Gradient of the factors, columns x width.
    pairs: Vec<f32>,
    /// Sum of the weights of the records with each column.
    occurrences: Vec<f32>,
    /// A feature has been seen as often as `admission` says.
    has_admitted: bool,
}

impl Step<'_> {
    /// Multiplies the slopes by the weights of their records, and by the unit of the labels. Returns the sum of the
    /// weights.
    fn weigh(&mut self, batch: &Batch) -> f64 {
        let unit = self.model.label_scale.map_or(1.0, |scale| 1.0 / scale.deviation);
        let mut sum = 0.0;
        for (r, slope) in self.slopes.iter_mut().enumerate() {
            let weight = f64::from(batch.weight(r));
            *slope *= weight * unit;
            sum += weight;
        }
        sum
    }

    /// Computes the gradients of the columns of the batch, each summed over its records.
    fn differentiate(&mut self, batch: &Batch) {
        let shape = self.scoring.shape();
        let (columns, width) = (batch.columns.len(), shape.width());
        for (sums, len) in [
            (&mut self.linear, columns),
            (&mut self.occurrences, columns),
            (&mut self.pairs, columns * width),
        ] {
            sums.clear();
            sums.resize(len, 0.0);
        }
        for (r, &slope) in self.slopes.iter().enumerate() {
            let (record, sums) = self.scoring.record(batch, r);
            let (slope, weight) = (slope as f32, batch.weight(r));
            for (&column, &value) in record.columns.iter().zip(record.values) {
                self.linear[column as usize] += slope * value;
                self.occurrences[column as usize] += weight;
            }
            add_gradient(shape, record, &self.scoring.factors, sums, slope, &mut self.pairs);
        }
        let (l1, l2) = (self.job.params.l1 as f32, self.job.params.l2 as f32);
        let rows = self.pairs.chunks_exact_mut(width).zip(self.scoring.factors.chunks_exact(width));
        for ((gradient, factors), &occurrences) in rows.zip(&self.occurrences) {
            let scale = l2 * occurrences;
            gradient.iter_mut().zip(factors).for_each(|(sum, &factor)| *sum += scale * factor);
            if l1 > 0.0 {
                let scale = l1 * occurrences;
                let of = |factor: f32| if factor == 0.0 { 0.0 } else { scale * factor.signum() };
                gradient.iter_mut().zip(factors).for_each(|(sum, &factor)| *sum += of(factor));
            }
        }
        for (sums, gradient) in
            [(&mut self.pairs, self.job.params.gradient), (&mut self.linear, self.job.params.linear_gradient)]
        {
            if gradient == BatchGradient::Mean {
                let share = 1.0 / batch.record_count() as f32;
                for sum in sums {
                    *sum *= share;
                }
            }
        }
    }

    fn push(&mut self, agent: &mut dyn Agent, batch: &Batch) -> Result<(), Error> {
        let columns = rows_of(&batch.columns);
        agent.push(Model::WEIGHTS, columns, Values::F32(&self.linear))?;
        let mut slope: f64 = self.slopes.iter().sum();
        if self.job.params.linear_gradient == BatchGradient::Mean {
            slope /= batch.record_count() as f64;
        }
        agent.push(Model::INTERCEPT, ONE_ROW, Values::F32(&[slope as f32]))?;
        if self.job.params.admission <= 1 {
            agent.push(Model::FACTORS, columns, Values::F32(&self.pairs))?;
            return Ok(());
        }
        let admitted = self.admit(agent, batch)?;
        if !admitted.is_empty() {
            self.has_admitted = true;
            agent.push(Model::FACTORS, rows_of(&admitted), Values::F32(&self.pairs))?;
        }
        Ok(())
    }

    /// Counts the records, by weight, with the features that have no factors yet. Returns the features that have factors, or have
    /// been seen often enough to get some, and keeps their rows of the gradient alone.
    fn admit(&mut self, agent: &mut dyn Agent, batch: &Batch) -> Result<Vec<u64>, Error> {
        let width = self.scoring.shape().width();
        let has_factors: Vec<bool> = self
            .scoring
            .factors
            .chunks_exact(width)
            .map(|row| row.iter().any(|factor| *factor != 0.0))
            .collect();
        let open: Vec<usize> = (0..batch.columns.len()).filter(|&column| !has_factors[column]).collect();
        let keys: Vec<u64> = open.iter().map(|&column| batch.columns[column]).collect();
        let mut sightings = vec![0f32; keys.len()];
        if !keys.is_empty() {
            let rows = rows_of(&keys);
            agent.pull(self.model.sightings_id(), rows, ValuesMut::F32(&mut sightings))?;
            let new: Vec<f32> = open.iter().map(|&column| self.occurrences[column]).collect();
            agent.push(self.model.sightings_id(), rows, Values::F32(&new))?;
            sightings.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
        }
        let mut is_admitted = has_factors;
        for (&column, &count) in open.iter().zip(&sightings) {
            is_admitted[column] = count >= self.job.params.admission as f32;
        }
        let mut admitted_count = 0;
        for (column, _) in is_admitted.iter().enumerate().filter(|(_, admitted)| **admitted) {
            self.pairs.copy_within(column * width..(column + 1) * width, admitted_count * width);
            admitted_count += 1;
        }
        self.pairs.truncate(admitted_count * width);
        let admitted = batch.columns.iter().zip(&is_admitted).filter(|(_, admitted)| **admitted);
        Ok(admitted.map(|(key, _)| *key).collect())
    }
}

impl BatchLearner for Step<'_> {
    /// Whether a feature has been admitted.
    type State = bool;

    fn state(&self) -> bool {
        self.has_admitted
    }

    fn step(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        next: Option<&Batch>,
        metrics: &mut MetricAccumulator,
    ) -> Result<StepSums, Error> {
        self.scoring.score(agent, batch, &self.tickets)?;
        // The answers travel while this step computes, or at least while the batch after the next one is parsed.
        self.tickets = next.map_or_else(Default::default, |next| self.scoring.prefetch(agent, next));
        let loss = add_scores(self.model.loss, batch, &self.scoring.scores, &mut self.slopes, metrics);
        if !loss.is_finite() {
            return Ok(StepSums { loss, ..StepSums::default() });
        }
        let weight = self.weigh(batch);
        self.differentiate(batch);
        // Without a way out of the loop, which is then several times as fast.
        let are_finite = |sums: &[f32]| sums.iter().fold(true, |finite, sum| finite & sum.is_finite());
        if !are_finite(&self.linear) || !are_finite(&self.pairs) {
            // The servers would refuse them.
            return Ok(StepSums { loss: f64::INFINITY, ..StepSums::default() });
        }
        self.push(agent, batch)?;
        agent.tick()?;
        let positive_count = batch.labels.iter().filter(|&&label| label > 0.0).count() as u64;
        Ok(StepSums { loss, positive_count, weight })
    }

    fn suspect(&self, batch: &Batch) -> Option<u64> {
        suspect_column(batch, &self.scoring.scaler.values, &[&self.scoring.weights, &self.scoring.factors])
    }

    fn end_epoch(&mut self, task: &mut TrainTask<'_>, end: &EpochSums) -> Result<Option<String>, Error> {
        let admission = self.job.params.admission;
        if end.is_last && admission > 1 {
            let mut with_factors = [f64::from(u8::from(self.has_admitted))];
            task.agent.all_reduce(&mut with_factors)?;
            if with_factors[0] == 0.0 {
                return Ok(Some(format!(
                    "no feature was seen {admission} times (admission), so none has factors and the model is linear: lower \
                     admission"
                )));
            }
        }
        if end.is_stopped {
            return Ok(None);
        }
        check_classes(end.totals.record_count, end.totals.positive_count, self.model.loss)?;
        check_weight(end.totals.record_count, end.totals.weight)?;
        Ok(None)
    }
}
