//! Scores: the sum of the leaves that a record reaches.

use std::collections::HashMap;

use data::Batch;
use matrix::{Agent, ValuesMut};

use super::bins::{Features, KeyMeaning};
use super::model::Model;
use super::tree::Tree;
use crate::error::Error;
use crate::job::Scorer;
use crate::loss::{Loss, probabilities, sigmoid_all};
use crate::metric::{MetricAccumulator, add_to_metrics};
use crate::rows::ONE_ROW;

/// The trees of a model and the scores to which they add.
#[derive(Debug, Default)]
pub(super) struct Forest {
    /// Scores of a record before the first tree.
    pub(super) base: Vec<f64>,
    pub(super) trees: Vec<Tree>,
}

impl Forest {
    /// Pulls all trees that the agent may see now.
    pub(super) fn pull(agent: &mut dyn Agent, model: &Model, features: &Features) -> Result<Self, Error> {
        let width = model.width();
        let mut row = vec![0.0; 1 + width];
        agent.pull(Model::ENSEMBLE, ONE_ROW, ValuesMut::F64(&mut row))?;
        let words: Vec<usize> = features.list.iter().map(|feature| feature.word_count()).collect();
        let trees = model.tables().pull(agent, 0..row[0] as u64 * width as u64, &words)?;
        Ok(Self { base: row.split_off(1), trees })
    }
}

/// Scores batches with the trees at the agent.
pub(super) struct TreeScorer {
    model: Model,
    meanings: HashMap<u64, KeyMeaning>,
    /// The value of a feature without an entry.
    absent: Vec<f32>,
    features: Features,
    forest: Option<Forest>,
    slopes: Vec<f64>,
    scores: Vec<f64>,
}

impl TreeScorer {
    pub(super) fn new(model: &Model) -> Self {
        let features = model.features();
        let absent =
            features.list.iter().map(|feature| if feature.is_zero_absent() { 0.0 } else { f32::NAN });
        Self {
            absent: absent.collect(),
            meanings: features.by_key.clone(),
            features,
            model: model.clone(),
            forest: None,
            slopes: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Sets `out` to the scores, records x width.
    pub(super) fn score(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let forest = match &mut self.forest {
            Some(forest) => forest,
            empty => empty.insert(Forest::pull(agent, &self.model, &self.features)?),
        };
        let meanings: Vec<Option<KeyMeaning>> =
            batch.columns.iter().map(|key| self.meanings.get(key).copied()).collect();
        let width = self.model.width();
        out.clear();
        let mut values = self.absent.clone();
        for r in 0..batch.record_count() {
            for i in batch.entries(r) {
                if let Some(meaning) = meanings[batch.indices[i] as usize] {
                    let value = batch.values.get(i).copied().unwrap_or(1.0);
                    values[meaning.feature as usize] =
                        meaning.category.map_or(value, |category| category as f32);
                }
            }
            let first = out.len();
            out.extend_from_slice(&forest.base);
            for (number, tree) in forest.trees.iter().enumerate() {
                out[first + number % width] += leaf_value(tree, &values);
            }
            for i in batch.entries(r) {
                if let Some(meaning) = meanings[batch.indices[i] as usize] {
                    let feature = meaning.feature as usize;
                    values[feature] = self.absent[feature];
                }
            }
        }
        Ok(())
    }
}

fn leaf_value(tree: &Tree, values: &[f32]) -> f64 {
    let mut node = &tree[0];
    while !node.is_leaf() {
        let next = if node.goes_left(values[node.feature as usize]) { node.left } else { node.right };
        node = &tree[next as usize];
    }
    node.value
}

impl Scorer for TreeScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.score(agent, batch, out)?;
        match self.model.loss {
            Loss::Logistic => sigmoid_all(out),
            Loss::Softmax => out.chunks_exact_mut(self.model.width()).for_each(probabilities),
            _ => {}
        }
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
