//! Scores of a batch. Training, validation, evaluation and prediction share this code path, so that equal parameters
//! give equal bits.

use data::Batch;
use matrix::{Agent, MatrixId, PullTicket, Selection, ValuesMut};

use super::interaction::{Entries, FactorShape, pair_sum};
use super::model::Model;
use algo::batch_loop::pull_or_wait;
use algo::error::Error;
use algo::job::Scorer;
use algo::labels::LabelScale;
use algo::loss::sigmoid_all;
use algo::metric::{MetricAccumulator, add_scores};
use algo::rows::{ONE_ROW, prefetch, rows_of};
use algo::scaling::ValueScaler;

/// The tickets of the pulls of one batch; `None` for what was not prefetched.
pub(super) type ScoreTickets = [Option<PullTicket>; 4];

/// Pulls parameters and computes scores; scratch memory is reused from batch to batch.
#[derive(Debug)]
pub(super) struct BatchScorer {
    model: Model,
    /// Weight of each column.
    pub(super) weights: Vec<f32>,
    intercept: f32,
    /// Columns x width.
    pub(super) factors: Vec<f32>,
    pub(super) scaler: ValueScaler,
    /// Records x k: see [`pair_sum`].
    sums: Vec<f32>,
    /// One score per record.
    pub(super) scores: Vec<f64>,
}

impl BatchScorer {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            model: model.clone(),
            weights: Vec::new(),
            intercept: 0.0,
            factors: Vec::new(),
            scaler: ValueScaler::new(model.scaling().zip(model.moments_id()), model.normalize),
            sums: Vec::new(),
            scores: Vec::new(),
        }
    }

    pub(super) fn shape(&self) -> FactorShape {
        self.model.shape()
    }

    /// What scoring a batch reads.
    fn selections<'b>(&self, batch: &'b Batch) -> [Option<(MatrixId, Selection<'b>)>; 4] {
        let columns = rows_of(&batch.columns);
        [
            Some((Model::WEIGHTS, columns)),
            Some((Model::INTERCEPT, ONE_ROW)),
            Some((Model::FACTORS, columns)),
            self.scaler.selection(batch),
        ]
    }

    /// Prefetches what scoring a batch of the next step reads.
    pub(super) fn prefetch(&self, agent: &mut dyn Agent, batch: &Batch) -> ScoreTickets {
        prefetch(agent, self.selections(batch))
    }

    /// Reads the parameters of the batch that the agent may see now, and computes `scores`.
    pub(super) fn score(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        tickets: &ScoreTickets,
    ) -> Result<(), Error> {
        self.model.check_fields(batch)?;
        self.weights.resize(batch.columns.len(), 0.0);
        self.factors.resize(batch.columns.len() * self.shape().width(), 0.0);
        let [weights, intercept, factors, _] = self.selections(batch);
        pull_or_wait(agent, weights, tickets[0].as_ref(), ValuesMut::F32(&mut self.weights))?;
        let one = std::slice::from_mut(&mut self.intercept);
        pull_or_wait(agent, intercept, tickets[1].as_ref(), ValuesMut::F32(one))?;
        pull_or_wait(agent, factors, tickets[2].as_ref(), ValuesMut::F32(&mut self.factors))?;
        self.scaler.read(agent, batch, tickets[3].as_ref())?;
        self.compute_scores(batch);
        Ok(())
    }

    fn compute_scores(&mut self, batch: &Batch) {
        self.scaler.scale(batch);
        let shape = self.shape();
        let k = shape.factors;
        self.sums.resize(batch.record_count() * k, 0.0);
        self.scores.clear();
        let LabelScale { mean, deviation } = self.model.label_scale.unwrap_or_default();
        for (r, sums) in self.sums.chunks_exact_mut(k).enumerate() {
            let record = entries(batch, &self.scaler.values, r);
            let linear: f64 = record
                .columns
                .iter()
                .zip(record.values)
                .map(|(&column, &value)| f64::from(self.weights[column as usize]) * f64::from(value))
                .sum();
            let pairs = pair_sum(shape, record, &self.factors, sums);
            let score = f64::from(self.intercept) + linear + pairs;
            self.scores.push(mean + deviation * score);
        }
    }

    /// Entries and sums of record `r` of the batch that was scored last.
    pub(super) fn record<'a>(&'a self, batch: &'a Batch, r: usize) -> (Entries<'a>, &'a [f32]) {
        let k = self.shape().factors;
        (entries(batch, &self.scaler.values, r), &self.sums[r * k..][..k])
    }
}

fn entries<'a>(batch: &'a Batch, values: &'a [f32], r: usize) -> Entries<'a> {
    let range = batch.entries(r);
    Entries {
        columns: &batch.indices[range.clone()],
        values: &values[range.clone()],
        fields: batch.fields.get(range).unwrap_or(&[]),
    }
}

/// Scores batches with a saved model, or with one in training.
#[derive(Debug)]
pub(super) struct FactorizationScorer {
    scoring: BatchScorer,
    slopes: Vec<f64>,
}

impl FactorizationScorer {
    pub(super) fn new(model: &Model) -> Self {
        Self { scoring: BatchScorer::new(model), slopes: Vec::new() }
    }
}

impl Scorer for FactorizationScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.raw_scores(agent, batch, out)?;
        if !self.scoring.model.loss.is_real() {
            sigmoid_all(out);
        }
        Ok(())
    }

    fn raw_scores(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.scoring.score(agent, batch, &ScoreTickets::default())?;
        out.clear();
        out.extend_from_slice(&self.scoring.scores);
        Ok(())
    }

    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        self.scoring.score(agent, batch, &ScoreTickets::default())?;
        let loss = self.scoring.model.loss;
        add_scores(loss, batch, &self.scoring.scores, &mut self.slopes, parts);
        Ok(())
    }
}
