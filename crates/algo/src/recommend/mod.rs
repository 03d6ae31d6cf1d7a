//! Recommenders: what users will like, learned from what they and others have chosen or rated.
//!
//! **Sources.** Ratings (`als`): Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems", Computer 42,
//! 2009, with the penalty of Zhou et al., AAIM 2008. Choices (`ials`): Hu, Koren, Volinsky, "Collaborative filtering for implicit
//! feedback datasets", ICDM 2008, in the form of Rendle et al., "Revisiting the performance of iALS on item recommendation
//! benchmarks", `RecSys` 2021; conjugate gradients with warm start: Takács, Pilászy, Tikk, `RecSys` 2011.
//!
//! **Notation.** u a user, i an item, k factors; p and q their rows, b their biases. A rating is near
//! `mean + b_u + b_i + p_u . q_i`, a choice is scored with `p_u . q_i`.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `users`, `items` | a row for each user, item: k factors, then the bias if there are biases | f32 | assign |
//! | `counts` | items x 1: how many users have the item | i64 | assign |
//! | `scale` | 1 x 3, of ratings: mean, lowest, highest | f64 | assign |
//! | `seen` | lists: for each user its items, with their values | f32 | assign |
//! | `pairs_of_users`, `pairs_of_items`, in training | lists: for each user its items, for each item its users | f32 | as `duplicates` says |
//!
//! **Cost** of an iteration of ALS with conjugate gradients: `steps (pairs k + rows k^2)` multiply-adds for each side; a task
//! pulls each row of the other side that its pairs name once, and pushes its own rows.

mod als;
mod exact;
mod grid;
mod interactions;
mod params;
pub mod ranking;
mod score;
mod solve;
#[cfg(test)]
mod tests;
pub mod top;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{BatchSize, Shuffle};
use matrix::{ElementType, ListMatrix, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use als::Als;
pub use als::Objective;
use grid::Grid;
pub use interactions::{Duplicates, pairs_of as interactions_of};

use crate::error::Error;
use crate::family::{self, AlgorithmRow, Family, RecordNeeds};
use crate::job::{DataFacts, Epochs, Job, Needs, Output, Scorer, TableLayout, TrainTask};
use crate::metric::MetricAccumulator;
use crate::metric::named::NamedAccumulator;
use crate::param::{CheckedParams, ParamSpec};
use crate::task_loop::{Learner, TaskState};

/// Recommenders.
pub const FAMILY: Family = Family {
    name: "recommender",
    algorithms: &[
        AlgorithmRow {
            name: "als",
            title: "Factorization of ratings of items by users, by alternating least squares",
            parameters: &params::ALS,
            configure: |given| {
                Recommender::configure("als", &params::ALS, given, |set| Method::Als(Als::of_ratings(set)))
            },
        },
        AlgorithmRow {
            name: "ials",
            title: "Factorization of choices of items by users (implicit feedback), by alternating least squares",
            parameters: &params::IALS,
            configure: |given| {
                Recommender::configure("ials", &params::IALS, given, |set| Method::Als(Als::of_choices(set)))
            },
        },
        AlgorithmRow {
            name: "mf",
            title: "Factorization of ratings of items by users, by stochastic gradient descent",
            parameters: &params::MF,
            configure: |given| {
                Recommender::configure("mf", &params::MF, given, |set| Method::Grid(Grid::of_ratings(set)))
            },
        },
        AlgorithmRow {
            name: "bpr",
            title: "Factorization of choices of items by users, by the order of pairs of items (BPR)",
            parameters: &params::BPR,
            configure: |given| {
                Recommender::configure("bpr", &params::BPR, given, |set| Method::Grid(Grid::of_choices(set)))
            },
        },
    ],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: |_| Ok(()),
};

/// The columns of users and items, if the user names none.
pub const ID_COLUMNS: [&str; 2] = ["user", "item"];
/// Records that are read at once.
const READ_SIZE: usize = 4096;

/// How a recommender is trained.
#[derive(Clone, Debug)]
enum Method {
    Als(Als),
    Grid(Grid),
}

impl Method {
    fn are_ratings(&self) -> bool {
        match self {
            Self::Als(als) => als.objective.are_ratings(),
            Self::Grid(grid) => grid.are_ratings,
        }
    }

    fn duplicates(&self) -> Duplicates {
        match self {
            Self::Als(als) => als.duplicates,
            Self::Grid(grid) => grid.duplicates,
        }
    }

    fn validation_share(&self) -> f64 {
        match self {
            Self::Als(als) => als.validation_share,
            Self::Grid(grid) => grid.validation_share,
        }
    }
}

/// A job of a recommender.
#[derive(Clone, Debug)]
struct Recommender {
    checked: CheckedParams,
    method: Method,
}

impl Recommender {
    fn configure(
        name: &'static str,
        parameters: &'static [ParamSpec],
        given: &BTreeMap<String, String>,
        method: fn(&CheckedParams) -> Method,
    ) -> Result<Arc<dyn Job>, Error> {
        let checked = CheckedParams::new(name, parameters, given)?;
        Ok(Arc::new(Self { method: method(&checked), checked }))
    }
}

/// A model without its matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Numbers of a row, without the bias.
    pub factors: usize,
    /// Scores are ratings; otherwise they only order items.
    pub are_ratings: bool,
    /// A row ends with a bias.
    pub has_biases: bool,
    /// How the row of a user follows from the items.
    pub objective: Option<Objective>,
}

impl Model {
    /// Rows of users.
    pub const USERS: MatrixId = MatrixId(0);
    /// Rows of items.
    pub const ITEMS: MatrixId = MatrixId(1);
    /// How many users have an item.
    pub const COUNTS: MatrixId = MatrixId(2);
    /// Mean, lowest and highest rating.
    pub const SCALE: MatrixId = MatrixId(3);

    /// The lists of what users have, the last matrix of a model.
    fn seen(model: &dyn family::Model) -> Result<ListMatrix, Error> {
        let specs = model.matrices(1);
        let last = specs.len() - 1;
        Ok(ListMatrix::new(MatrixId(last as u32), &specs[last])?)
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.factors + usize::from(self.has_biases)
    }
}

impl family::Model for Model {
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
            rows("counts", ElementType::I64, 1),
        ];
        if self.are_ratings {
            let partitioner = Partitioner::Range { partition_count: 1 };
            let spec = rows("scale", ElementType::F64, 3);
            specs.push(MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..spec });
        }
        specs.push(ListMatrix::spec("seen", ElementType::F32, 1, PushRule::Assign, partition_count));
        specs
    }

    fn output(&self) -> Output {
        if self.are_ratings { Output::Value } else { Output::Columns(vec!["score".to_owned()]) }
    }

    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds { field_limit: Some(2), ..RecordNeeds::of(&self.output(), None) }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![("factors", self.factors.to_string())]
    }

    fn bound_tables(&self) -> Option<&'static str> {
        Some("a score is a product of a row of 'users' and one of 'items'")
    }

    fn column_names(&self, matrix: &str, count: usize) -> Vec<String> {
        match matrix {
            "counts" => vec!["users".to_owned()],
            "seen" => vec!["value".to_owned()],
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

impl Job for Recommender {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn needs(&self) -> Needs {
        Needs {
            ids: &ID_COLUMNS,
            uses_labels: self.method.are_ratings(),
            repeats_validation: true,
            requires_bsp: true,
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Fixed(READ_SIZE),
            shuffle: Shuffle::None,
            validation_share: self.method.validation_share(),
            ..Needs::default()
        }
    }

    fn model(&self, _: &DataFacts, _: Option<&dyn family::Model>) -> Result<Arc<dyn family::Model>, Error> {
        Ok(Arc::new(match &self.method {
            Method::Als(als) => als.model(),
            Method::Grid(grid) => grid.model(),
        }))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let mut specs = model.matrices(layout.partition_count);
        specs.extend(interactions::specs(self.method.duplicates(), layout.partition_count));
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        match &self.method {
            Method::Als(als) => als::begin(als, task, saved),
            Method::Grid(grid) => grid::begin(grid, task, saved),
        }
    }

    fn divergence_advice(&self) -> String {
        match &self.method {
            Method::Als(als) => als.divergence_advice(),
            Method::Grid(grid) => grid.divergence_advice(),
        }
    }
}
