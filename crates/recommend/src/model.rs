//! What is stored of a model of users and items.

use std::sync::Arc;

use matrix::{ElementType, ListMatrix, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::objective::ObjectiveSettings;
use super::{FAMILY, neighbors, score};
use algo::error::Error;
use algo::family::{self, RecordNeeds};
use algo::job::{Output, Scorer};
use algo::metric::MetricAccumulator;
use algo::metric::named::NamedAccumulator;

/// The column of how many users have an item.
const COUNT_COLUMN: &str = "users";
/// The column of the strengths or ratings of what users have.
const SEEN_COLUMN: &str = "value";

/// Reads a model of either kind.
pub(super) fn load(fields: &Value) -> Result<Arc<dyn family::Model>, serde_json::Error> {
    Ok(match fields.get("factors") {
        Some(_) => Arc::new(serde_json::from_value::<FactorModel>(fields.clone())?),
        None => Arc::new(serde_json::from_value::<NeighborModel>(fields.clone())?),
    })
}

/// The matrix of how many users have an item.
fn counts(partition_count: u32) -> MatrixSpec {
    MatrixSpec::sparse("counts", ElementType::I64, 1, PushRule::Assign, partition_count)
}

fn lists(name: &str, partition_count: u32) -> MatrixSpec {
    ListMatrix::spec(name, ElementType::F32, 1, PushRule::Assign, partition_count)
}

/// The lists of what users have, the last matrix of a model.
pub(super) fn seen(model: &dyn family::Model) -> Result<ListMatrix, Error> {
    let specs = model.matrices(1);
    let last = specs.len() - 1;
    Ok(ListMatrix::new(MatrixId(last as u32), &specs[last])?)
}

/// What the scores of choices need of records.
fn record_needs(output: &Output) -> RecordNeeds {
    RecordNeeds { field_limit: Some(2), ..RecordNeeds::of(output, None) }
}

/// A model of factors, without its matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorModel {
    /// Numbers of a row, without the bias.
    pub factors: usize,
    /// Scores are ratings; otherwise they only order items.
    pub are_ratings: bool,
    /// A row ends with a bias.
    pub has_biases: bool,
    /// How the row of a user follows from the items.
    pub objective: Option<ObjectiveSettings>,
}

impl FactorModel {
    /// Rows of users.
    pub const USERS: MatrixId = MatrixId(0);
    /// Rows of items.
    pub const ITEMS: MatrixId = MatrixId(1);
    /// How many users have an item.
    pub const COUNTS: MatrixId = MatrixId(2);
    /// Mean, lowest and highest rating.
    pub const SCALE: MatrixId = MatrixId(3);

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.factors + usize::from(self.has_biases)
    }
}

impl family::Model for FactorModel {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        let rows = |name: &str, element, columns: usize| {
            MatrixSpec::sparse(name, element, columns as u64, PushRule::Assign, partition_count)
        };
        let mut specs = vec![
            rows("users", ElementType::F32, self.width()),
            rows("items", ElementType::F32, self.width()),
            counts(partition_count),
        ];
        if self.are_ratings {
            let partitioner = Partitioner::Range { partition_count: 1 };
            let spec = rows("scale", ElementType::F64, 3);
            specs.push(MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..spec });
        }
        specs.push(lists("seen", partition_count));
        specs
    }

    fn output(&self) -> Output {
        if self.are_ratings { Output::Value } else { Output::Columns(vec!["score".to_owned()]) }
    }

    fn record_needs(&self) -> RecordNeeds {
        record_needs(&self.output())
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![("factors", self.factors.to_string())]
    }

    fn bound_tables(&self) -> Option<&'static str> {
        Some("a score is a product of a row of 'users' and one of 'items'")
    }

    fn column_names(&self, matrix: &str, count: usize) -> Vec<String> {
        match matrix {
            "counts" => vec![COUNT_COLUMN.to_owned()],
            "seen" => vec![SEEN_COLUMN.to_owned()],
            "scale" => ["mean", "lowest", "highest"].map(str::to_owned).to_vec(),
            _ => {
                let name =
                    |at: usize| if at < self.factors { format!("factor_{at}") } else { "bias".to_owned() };
                (0..count).map(name).collect()
            }
        }
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(score::PairScorer::new(self))
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        match self.output() {
            Output::Value => MetricAccumulator::of(&Output::Value),
            _ => MetricAccumulator::Named(NamedAccumulator::default()),
        }
    }
}

/// A model of neighbors of items, without its matrices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighborModel {
    /// Most neighbors of an item.
    pub neighbors: u64,
}

impl NeighborModel {
    /// For each item its neighbors, with their weights.
    pub const NEIGHBORS: MatrixId = MatrixId(0);
    /// How many users have an item.
    pub const COUNTS: MatrixId = MatrixId(1);

    /// The lists of neighbors.
    pub(super) fn lists() -> Result<ListMatrix, Error> {
        Ok(ListMatrix::new(Self::NEIGHBORS, &lists("neighbors", 1))?)
    }
}

impl family::Model for NeighborModel {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        vec![lists("neighbors", partition_count), counts(partition_count), lists("seen", partition_count)]
    }

    fn output(&self) -> Output {
        Output::Columns(vec!["score".to_owned()])
    }

    fn record_needs(&self) -> RecordNeeds {
        record_needs(&self.output())
    }

    fn column_names(&self, matrix: &str, _: usize) -> Vec<String> {
        let name = match matrix {
            "counts" => COUNT_COLUMN,
            "seen" => SEEN_COLUMN,
            _ => "weight",
        };
        vec![name.to_owned()]
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(neighbors::NeighborScorer::default())
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        MetricAccumulator::Named(NamedAccumulator::default())
    }
}
