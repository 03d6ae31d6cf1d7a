//! What scoring with trees needs besides their tables; saved with them as JSON.

use std::sync::Arc;

use matrix::{Agent, ElementType, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bins::{Features, SavedFeature};
use super::constraints::Constraints;
use super::explain::explained;
use super::objective::Objective;
use super::render::render;
use super::scoring::{TreeScorer, pull_trees};
use super::tree::{NODE_COLUMN_NAMES, NODE_COLUMNS, TreeTables};
use algo::error::Error;
use algo::family::{self, MissingTable, ModelFacts, NO_COEFFICIENTS, RecordNeeds, TextFormat};
use algo::job::{Explanation, Output, Scorer};
use algo::metric::MetricAccumulator;
use algo::metric::ndcg::RankingAccumulator;

/// Columns of a key in the table `importances`.
pub(super) const IMPORTANCE_COLUMNS: usize = 3;
const IMPORTANCE_COLUMN_NAMES: [&str; IMPORTANCE_COLUMNS] = ["splits", "gain", "feature"];

/// Trees without their tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// What was minimized.
    pub objective: Objective,
    /// Labels of the classes, ascending; `[0, 1]` for two classes, empty for real labels.
    pub classes: Vec<f32>,
    /// The label that counts as 1, if it was named: a number, or the number of a name.
    pub positive_label: Option<f32>,
    /// A record without a number of a column has none, as in a table; otherwise it has 0.
    pub is_table: bool,
    /// Largest number of leaves of a tree.
    pub leaves: u64,
    /// What its trees were made to obey.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// The features, in the order of their numbers.
    pub features: Vec<SavedFeature>,
    /// The model was read from another program's, so that its bins are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_imported: bool,
}

impl Model {
    /// A row for each key of the data that has a meaning: splits, gain and 1 + the number of its feature.
    pub(super) const IMPORTANCES: MatrixId = MatrixId(0);
    /// One row: the number of iterations, then the score of each class before the first tree.
    pub(super) const ENSEMBLE: MatrixId = MatrixId(1);
    const NODES: MatrixId = MatrixId(2);
    const CATEGORIES: MatrixId = MatrixId(3);
    /// Number of these matrices.
    pub(super) const MATRIX_COUNT: u32 = 4;

    /// Trees of an iteration, and scores of a record: 1, or one for each class.
    pub fn width(&self) -> usize {
        if self.objective == Objective::Softmax { self.classes.len() } else { 1 }
    }

    /// The objective, and the labels of the classes.
    pub(super) fn labels(&self) -> (Objective, &[f32]) {
        (self.objective, &self.classes)
    }

    pub(super) fn features(&self) -> Features {
        Features::new(&self.features, self.is_table)
    }

    pub(super) fn tables(&self) -> TreeTables {
        TreeTables { nodes: Self::NODES, categories: Self::CATEGORIES, stride: 2 * self.leaves - 1 }
    }
}

impl family::Model for Model {
    fn family(&self) -> &'static str {
        super::FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        let table = |name: &str, element, columns, rule| {
            MatrixSpec::sparse(name, element, columns, rule, partition_count)
        };
        let ensemble = table("ensemble", ElementType::F64, 1 + self.width() as u64, PushRule::Assign);
        let partitioner = Partitioner::Range { partition_count: 1 };
        vec![
            table("importances", ElementType::F64, IMPORTANCE_COLUMNS as u64, PushRule::Add),
            MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..ensemble },
            table("nodes", ElementType::F64, NODE_COLUMNS as u64, PushRule::Assign),
            table("categories", ElementType::I64, 1, PushRule::Assign),
        ]
    }

    fn column_names(&self, matrix: &str, count: usize) -> Vec<String> {
        let names: Vec<&str> = match matrix {
            "importances" => IMPORTANCE_COLUMN_NAMES.to_vec(),
            "nodes" => NODE_COLUMN_NAMES.to_vec(),
            _ => Vec::new(),
        };
        if names.len() == count {
            return names.into_iter().map(str::to_owned).collect();
        }
        (0..count)
            .map(|column| if column == 0 { "value".to_owned() } else { format!("value_{column}") })
            .collect()
    }

    fn output(&self) -> Output {
        self.objective.output(&self.classes)
    }

    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds {
            keep_zeros: true,
            label_rule: self.objective.label_rule(self.positive_label),
            ..RecordNeeds::of(&self.output(), self.positive_label)
        }
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        match self.objective {
            Objective::LambdaRank { truncation } => {
                MetricAccumulator::Ranking(RankingAccumulator::new(truncation as usize))
            }
            _ => MetricAccumulator::of(&self.output()),
        }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![("objective", self.objective.name().to_owned()), ("leaves", self.leaves.to_string())]
    }

    fn explained(
        &self,
        explanation: Explanation,
        facts: &ModelFacts<'_>,
    ) -> Option<Result<Arc<dyn family::Model>, Error>> {
        Some(explained(self, explanation, facts))
    }

    fn document(
        &self,
        format: TextFormat,
        facts: &ModelFacts<'_>,
        agent: &mut dyn Agent,
    ) -> Option<Result<String, Error>> {
        let mut trees = Vec::new();
        let base = pull_trees(self, agent, |tree| trees.push(tree.clone()));
        Some(base.and_then(|base| render(self, facts, format, (&base, &trees))))
    }

    fn missing_table(&self) -> Option<MissingTable> {
        Some(NO_COEFFICIENTS)
    }

    fn bound_tables(&self) -> Option<&'static str> {
        Some("the tables of trees refer to each other")
    }

    fn has_feature_rows(&self, matrix: &str) -> bool {
        matrix == "importances"
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(TreeScorer::new(self))
    }
}
