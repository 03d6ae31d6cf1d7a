//! The share of a task of the validation data, with the scores of the trees so far: an iteration adds its own trees.

use data::Batch;

use super::model::Model;
use super::objective::add_to_metrics;
use super::scoring::TreeScorer;
use super::scoring::forest::{Forest, ValueRows};
use super::tree::Tree;
use algo::error::Error;
use algo::family::Model as _;
use algo::job::TrainTask;
use algo::metric::MetricAccumulator;

/// The validation records of a task.
pub(super) struct Validation {
    /// Batches with their scores.
    batches: Vec<(Batch, Vec<f64>)>,
    rows: ValueRows,
    /// A forest without trees.
    empty: Forest,
}

impl Validation {
    /// Reads the records, and scores them with the trees that the task may see.
    pub(super) fn read(task: &mut TrainTask<'_>, model: &Model) -> Result<Option<Self>, Error> {
        let Some(stream) = &mut task.validation else { return Ok(None) };
        let (mut scorer, mut batches) = (TreeScorer::new(model), Vec::new());
        stream.start_epoch(0)?;
        while let Some(batch) = stream.next()? {
            let mut scores = Vec::new();
            scorer.score(task.agent, batch, &mut scores)?;
            let mut batch = batch.clone();
            model.objective.read_labels(&mut batch.labels)?;
            batches.push((batch, scores));
        }
        let features = model.features();
        Ok(Some(Self { batches, rows: ValueRows::new(&features), empty: Forest::new(&features) }))
    }

    /// Adds the trees of an iteration to the scores.
    pub(super) fn add(&mut self, model: &Model, trees: &[Tree]) {
        let mut forest = self.empty.clone();
        for tree in trees {
            forest.push(tree);
        }
        for (batch, scores) in &mut self.batches {
            self.rows.add_scores(&forest, batch, model.width(), scores);
        }
    }

    pub(super) fn metrics(&self, model: &Model) -> Result<MetricAccumulator, Error> {
        let (mut parts, mut slopes) = (model.metric_accumulator(), Vec::new());
        for (batch, scores) in &self.batches {
            add_to_metrics(model.labels(), batch, scores, &mut slopes, &mut parts)?;
        }
        Ok(parts)
    }
}
