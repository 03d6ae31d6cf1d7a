//! Scores of a batch. Training, validation, evaluation and prediction share this code path, so that equal weights give
//! equal bits.

use data::Batch;
use matrix::{Agent, MatrixId, PullTicket, Selection, ValuesMut};

use super::model::Model;
use algo::batch_loop::pull_or_wait;
use algo::csr::CsrRows;
use algo::error::Error;
use algo::job::Scorer;
use algo::loss::{Loss, probabilities, sigmoid_all};
use algo::metric::{MetricAccumulator, add_to_metrics};
use algo::rows::{ONE_ROW, prefetch, rows_of};
use algo::scaling::ValueScaler;

/// The tickets of the pulls of one batch; `None` for what was not prefetched.
pub(super) type ScoreTickets = [Option<PullTicket>; 3];

/// Pulls parameters, transforms values and computes scores; scratch memory is reused from batch to batch.
#[derive(Debug)]
pub(super) struct BatchScorer {
    pub(super) model: Model,
    pub(super) weights: Vec<f32>,
    /// Zeros if the model has no intercept.
    bias: Vec<f32>,
    scaler: ValueScaler,
    /// Shape: records x width.
    pub(super) scores: Vec<f64>,
}

impl BatchScorer {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            model: model.clone(),
            weights: Vec::new(),
            bias: vec![0.0; model.width()],
            scaler: ValueScaler::new(model.scaling().zip(model.moments_id()), model.normalize),
            scores: Vec::new(),
        }
    }

    /// What scoring a batch reads: weights, intercept, moments.
    fn selections<'a>(&self, batch: &'a Batch) -> [Option<(MatrixId, Selection<'a>)>; 3] {
        [
            Some((self.model.weights_id(), rows_of(&batch.columns))),
            self.model.intercept_id().map(|id| (id, ONE_ROW)),
            self.scaler.selection(batch),
        ]
    }

    /// Prefetches what scoring a batch of the next step reads.
    pub(super) fn prefetch(&self, agent: &mut dyn Agent, batch: &Batch) -> ScoreTickets {
        prefetch(agent, self.selections(batch))
    }

    /// Reads the parameters of the batch that the agent may see now.
    pub(super) fn pull(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        tickets: &ScoreTickets,
    ) -> Result<(), Error> {
        self.weights.resize(batch.columns.len() * self.model.width(), 0.0);
        let [weights, intercept, _] = self.selections(batch);
        pull_or_wait(agent, weights, tickets[0].as_ref(), ValuesMut::F32(&mut self.weights))?;
        pull_or_wait(agent, intercept, tickets[1].as_ref(), ValuesMut::F32(&mut self.bias))?;
        self.scaler.read(agent, batch, tickets[2].as_ref())
    }

    /// Computes `scores` of the batch, from the parameters that the agent may see now.
    pub(super) fn score(&mut self, agent: &mut dyn Agent, batch: &Batch) -> Result<(), Error> {
        self.pull(agent, batch, &ScoreTickets::default())?;
        self.compute_scores(batch);
        Ok(())
    }

    /// Computes `scores` of the batch, from the parameters that were pulled for it.
    pub(super) fn compute_scores(&mut self, batch: &Batch) {
        if !self.scaler.is_identity() {
            self.scaler.scale(batch);
        }
        let bias: Vec<f64> = self.bias.iter().map(|&bias| f64::from(bias)).collect();
        let mut scores = std::mem::take(&mut self.scores);
        self.entries(batch).forward(&self.weights, &bias, &mut scores);
        self.model.label_scale.unwrap_or_default().apply(&mut scores);
        self.scores = scores;
    }

    /// The entries that were scored last.
    pub(super) fn entries<'a>(&'a self, batch: &'a Batch) -> CsrRows<'a> {
        CsrRows::new(&batch.offsets, &batch.indices, self.transformed(batch))
    }

    /// The values of the entries that were scored last; empty if all are 1.
    pub(super) fn transformed<'a>(&'a self, batch: &'a Batch) -> &'a [f32] {
        if self.scaler.is_identity() { &batch.values } else { &self.scaler.values }
    }
}

/// Scores batches with a saved model, or with one in training.
#[derive(Debug)]
pub struct LinearScorer {
    scoring: BatchScorer,
    slopes: Vec<f64>,
}

impl LinearScorer {
    pub fn new(model: &Model) -> Self {
        Self { scoring: BatchScorer::new(model), slopes: Vec::new() }
    }
}

impl Scorer for LinearScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.raw_scores(agent, batch, out)?;
        match self.scoring.model.loss {
            Loss::Logistic => sigmoid_all(out),
            Loss::Softmax => out.chunks_exact_mut(self.scoring.model.width()).for_each(probabilities),
            Loss::Hinge | Loss::SquaredHinge | Loss::Squared | Loss::Huber { .. } => {}
        }
        Ok(())
    }

    fn raw_scores(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.scoring.score(agent, batch)?;
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
        self.scoring.score(agent, batch)?;
        let labels = self.scoring.model.labels();
        add_to_metrics(labels, batch, &self.scoring.scores, &mut self.slopes, parts).map(|_| ())
    }
}
