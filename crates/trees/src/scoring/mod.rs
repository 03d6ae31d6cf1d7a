//! Scores: the sum of the leaves that a record reaches.

pub(super) mod forest;
mod quick_scorer;

use data::Batch;
use matrix::{Agent, ValuesMut};

use super::bins::Feature;
use super::model::{IMPORTANCE_COLUMNS, Model};
use super::objective::add_to_metrics;
use super::tree::Tree;
use algo::error::Error;
use algo::job::Scorer;
use algo::metric::MetricAccumulator;
use algo::rows::{ONE_ROW, rows_of};
use forest::{Forest, ValueRows};

/// Scores batches with the trees at the agent.
pub(super) struct TreeScorer {
    pub(super) model: Model,
    rows: ValueRows,
    /// The scores before the first tree and the trees, once they are pulled.
    pulled: Option<(Vec<f64>, Forest)>,
    importances: Vec<f64>,
    slopes: Vec<f64>,
    scores: Vec<f64>,
}

impl TreeScorer {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            rows: ValueRows::new(&model.features()),
            model: model.clone(),
            pulled: None,
            importances: Vec::new(),
            slopes: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// The scores before the first tree, and all trees that the agent may see when it is first called.
    fn pull(&mut self, agent: &mut dyn Agent) -> Result<&(Vec<f64>, Forest), Error> {
        if self.pulled.is_none() {
            let mut forest = Forest::new(&self.model.features());
            let base = pull_trees(&self.model, agent, |tree| forest.push(tree))?;
            self.pulled = Some((base, forest));
        }
        Ok(self.pulled.as_ref().expect("they were just pulled"))
    }

    /// Reads the rows of the features of a batch: what is not there is unknown, and counted as such.
    pub(super) fn count_unknown(&mut self, agent: &mut dyn Agent, batch: &Batch) -> Result<(), Error> {
        if !batch.columns.is_empty() {
            self.importances.resize(IMPORTANCE_COLUMNS * batch.columns.len(), 0.0);
            let rows = ValuesMut::F64(&mut self.importances);
            agent.pull(Model::IMPORTANCES, rows_of(&batch.columns), rows)?;
        }
        Ok(())
    }

    /// Sets `out` to the scores, records x width.
    pub(super) fn score(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        self.count_unknown(agent, batch)?;
        let (count, width) = (batch.record_count(), self.model.width());
        *out = self.pull(agent)?.0.repeat(count);
        let Some((_, forest)) = &self.pulled else { return Ok(()) };
        self.rows.add_scores(forest, batch, width, out);
        Ok(())
    }
}

/// Visits all trees that the agent may see, in their order, and returns the scores before the first one.
pub(super) fn pull_trees(
    model: &Model,
    agent: &mut dyn Agent,
    visit: impl FnMut(&Tree),
) -> Result<Vec<f64>, Error> {
    let width = model.width();
    let mut row = vec![0.0; 1 + width];
    agent.pull(Model::ENSEMBLE, ONE_ROW, ValuesMut::F64(&mut row))?;
    let words: Vec<usize> = model.features().list.iter().map(Feature::word_count).collect();
    model.tables().pull(agent, 0..row[0] as u64 * width as u64, &words, visit)?;
    Ok(row.split_off(1))
}

impl Scorer for TreeScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.score(agent, batch, out)?;
        self.model.objective.predict(self.model.width(), out);
        Ok(())
    }

    fn raw_scores(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.score(agent, batch, out)
    }

    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let mut scores = std::mem::take(&mut self.scores);
        self.score(agent, batch, &mut scores)?;
        add_to_metrics(self.model.labels(), batch, &scores, &mut self.slopes, parts)?;
        self.scores = scores;
        Ok(())
    }
}
