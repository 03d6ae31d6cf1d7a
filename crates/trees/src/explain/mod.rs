//! Explanations of scores: the leaf that a record reaches in each tree, and what each feature adds to the score.

mod contributions;
mod quadrature;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use data::Batch;
use matrix::{Agent, MatrixSpec};
use serde_json::Value;

use super::model::Model;
use super::names::named_features;
use super::scoring::forest::{Forest, ValueRows};
use super::scoring::{TreeScorer, pull_trees};
use super::tree::leaf_numbers;
use algo::error::Error;
use algo::family::{self, ModelFacts, RecordNeeds};
use algo::job::{Explanation, Output, Scorer};
use algo::labels;
use contributions::{LANES, Scratch, TreeContributions, has_counts};

/// The last contribution: what is expected of any record.
const EXPECTED: &str = "expected_value";
/// Columns of an explanation. Each record of a batch has a number in each of them.
const COLUMN_LIMIT: usize = 10_000;

/// A model whose predictions are explanations.
#[derive(Clone, Debug)]
struct ExplainedModel {
    model: Model,
    explanation: Explanation,
    columns: Vec<String>,
    /// The features in the order of their contributions: as the data have their columns.
    order: Vec<usize>,
}

/// Makes explanations the predictions of a model.
pub(super) fn explained(
    model: &Model,
    explanation: Explanation,
    facts: &ModelFacts<'_>,
) -> Result<Arc<dyn family::Model>, Error> {
    let named = named_features(&model.features, facts);
    let mut order: Vec<usize> = (0..named.len()).collect();
    order.sort_by_key(|&feature| (named[feature].position.unwrap_or(u64::MAX), feature));
    let columns = match explanation {
        Explanation::Leaves => {
            let iterations = facts.single_rows.get("ensemble").map_or(0.0, |row| row[0]);
            (0..iterations as usize * model.width()).map(|tree| format!("tree_{tree}")).collect()
        }
        Explanation::Contributions => {
            let names = order.iter().map(|feature| named[*feature].name.clone());
            contribution_columns(model, facts, names.collect())
        }
    };
    if columns.len() > COLUMN_LIMIT {
        let reason = format!(
            "each record would have {} numbers, and the limit is {COLUMN_LIMIT}: train with fewer features, trees or classes",
            columns.len()
        );
        return Err(Error::UnsuitableData { reason });
    }
    if columns.is_empty() {
        return Err(Error::UnsuitableData { reason: "the model has no trees to explain".to_owned() });
    }
    Ok(Arc::new(ExplainedModel { model: model.clone(), explanation, columns, order }))
}

/// The features and the expected value, for each class.
fn contribution_columns(model: &Model, facts: &ModelFacts<'_>, features: Vec<String>) -> Vec<String> {
    let names: Vec<String> = features.into_iter().chain([EXPECTED.to_owned()]).collect();
    if model.width() == 1 {
        return names;
    }
    let class_names =
        model.classes.iter().map(|&class| labels::text(class.into(), &facts.schema.label_names));
    class_names.flat_map(|class| names.iter().map(move |name| format!("{class}:{name}"))).collect()
}

impl family::Model for ExplainedModel {
    fn family(&self) -> &'static str {
        self.model.family()
    }

    fn save(&self) -> Value {
        self.model.save()
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        self.model.matrices(partition_count)
    }

    fn output(&self) -> Output {
        Output::Columns(self.columns.clone())
    }

    fn record_needs(&self) -> RecordNeeds {
        self.model.record_needs()
    }

    fn has_feature_rows(&self, matrix: &str) -> bool {
        self.model.has_feature_rows(matrix)
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        let rows = ValueRows::new(&self.model.features());
        let known = TreeScorer::new(&self.model);
        match self.explanation {
            Explanation::Leaves => Box::new(LeafScorer { known, rows, leaves: None }),
            Explanation::Contributions => {
                let (order, scratch) = (self.order.clone(), Scratch::default());
                Box::new(ContributionScorer { known, rows, order, trees: None, scratch })
            }
        }
    }
}

/// Gives the numbers of leaves.
struct LeafScorer {
    known: TreeScorer,
    rows: ValueRows,
    /// Trees whose leaves have their numbers as values, with the number of trees.
    leaves: Option<(Forest, usize)>,
}

impl Scorer for LeafScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.known.count_unknown(agent, batch)?;
        if self.leaves.is_none() {
            let (mut forest, mut count) = (Forest::new(&self.known.model.features()), 0);
            pull_trees(&self.known.model, agent, |tree| {
                let (mut tree, numbers) = (tree.clone(), leaf_numbers(tree));
                tree.iter_mut().zip(numbers).for_each(|(node, number)| node.value = number.into());
                forest.push(&tree);
                count += 1;
            })?;
            self.leaves = Some((forest, count));
        }
        let Some((forest, count)) = &self.leaves else { return Ok(()) };
        out.clear();
        out.resize(batch.record_count() * count, 0.0);
        // Each tree is added to a score of its own.
        self.rows.add_scores(forest, batch, *count, out);
        Ok(())
    }
}

/// Gives contributions.
struct ContributionScorer {
    known: TreeScorer,
    rows: ValueRows,
    order: Vec<usize>,
    /// For each class the expected score and its trees.
    trees: Option<Vec<(f64, Vec<TreeContributions>)>>,
    scratch: Scratch,
}

impl ContributionScorer {
    fn pull(&mut self, agent: &mut dyn Agent) -> Result<(), Error> {
        if self.trees.is_some() {
            return Ok(());
        }
        let (width, mut number, mut is_counted) = (self.known.model.width(), 0, true);
        let mut classes = vec![(0.0, Vec::new()); width];
        let base = pull_trees(&self.known.model, agent, |tree| {
            is_counted &= has_counts(tree);
            if is_counted {
                classes[number % width].1.push(TreeContributions::new(tree));
            }
            number += 1;
        })?;
        if !is_counted {
            let reason = "the model does not say how many training records its nodes had (they were not in the imported \
                          file), and contributions need them: train it here, or export it with counts"
                .to_owned();
            return Err(Error::UnsuitableData { reason });
        }
        for ((expected, trees), base) in classes.iter_mut().zip(base) {
            *expected = base + trees.iter().map(|tree| tree.expected).sum::<f64>();
        }
        self.trees = Some(classes);
        Ok(())
    }
}

impl Scorer for ContributionScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.known.count_unknown(agent, batch)?;
        self.pull(agent)?;
        let (Some(classes), order) = (&self.trees, &self.order) else { return Ok(()) };
        let feature_count = self.known.model.features.len();
        let width = classes.len() * (feature_count + 1);
        out.clear();
        out.resize(batch.record_count() * width, 0.0);
        let mut sums = vec![[0.0; LANES]; feature_count];
        let scratch = &mut self.scratch;
        self.rows.for_each_block(batch, |records, values| {
            for first in (0..records.len()).step_by(LANES) {
                let values = &values[first * feature_count..(first + LANES) * feature_count];
                let out = &mut out[(records.start + first) * width..];
                for (class, (expected, trees)) in classes.iter().enumerate() {
                    sums.fill([0.0; LANES]);
                    for tree in trees {
                        tree.add(values, feature_count, scratch, &mut sums);
                    }
                    for lane in 0..LANES.min(records.len() - first) {
                        let row = &mut out[lane * width + class * (feature_count + 1)..][..=feature_count];
                        row.iter_mut().zip(order).for_each(|(out, feature)| *out = sums[*feature][lane]);
                        row[feature_count] = *expected;
                    }
                }
            }
        });
        Ok(())
    }
}
