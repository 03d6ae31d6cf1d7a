//! What the program knows of the family: its rows, its job and its models.

use std::sync::Arc;

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family, RecordNeeds};
use algo::job::{DataFacts, Epochs, Job, Needs, Output, Scorer, TableLayout, TrainTask};
use algo::metric::MetricAccumulator;
use algo::metric::named::NamedAccumulator;
use algo::param::CheckedParams;
use algo::task_loop::{Learner, TaskState};
use data::{BatchSize, Shuffle};
use matrix::{ElementType, MatrixSpec, Partitioner, PushRule, Storage};
use serde_json::Value;

use super::als::{self, Als};
use super::grid::{self, Grid};
use super::job::{Method, Recommender};
use super::model::{FactorModel, NeighborModel, counts, lists};
use super::neighbors::{self, Neighbors};
use super::{dealing, implicit, params, score};

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
        AlgorithmRow {
            name: "itemknn",
            title: "Neighbors of items, by the users that have both",
            parameters: &params::ITEMKNN,
            configure: |given| {
                Recommender::configure("itemknn", &params::ITEMKNN, given, |set| {
                    Method::Neighbors(Neighbors::of_similarities(set))
                })
            },
        },
        AlgorithmRow {
            name: "ease",
            title: "Neighbors of items, by a linear model of all items (EASE^R)",
            parameters: &params::EASE,
            configure: |given| {
                Recommender::configure("ease", &params::EASE, given, |set| {
                    Method::Neighbors(Neighbors::of_ease(set))
                })
            },
        },
    ],
    load,
    functions: |_| Ok(()),
};

/// The columns of users and items, if the user names none.
pub const ID_COLUMNS: [&str; 2] = ["user", "item"];
/// Records that are read at once.
const READ_SIZE: usize = 4096;

/// Reads a model of either kind.
pub(super) fn load(fields: &Value) -> Result<Arc<dyn family::Model>, serde_json::Error> {
    Ok(match fields.get("factors") {
        Some(_) => Arc::new(serde_json::from_value::<FactorModel>(fields.clone())?),
        None => Arc::new(serde_json::from_value::<NeighborModel>(fields.clone())?),
    })
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
        Ok(match &self.method {
            Method::Als(als) => Arc::new(als.model()),
            Method::Grid(grid) => Arc::new(grid.model()),
            Method::Neighbors(neighbors) => Arc::new(neighbors.model()),
        })
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let mut specs = model.matrices(layout.partition_count);
        specs.extend(dealing::specs(self.method.duplicates(), layout.partition_count));
        match &self.method {
            Method::Neighbors(_) => specs.push(neighbors::sizes(layout.partition_count)),
            Method::Als(als) if als.implicit_weight > 0.0 => {
                specs.extend(implicit::specs(als.model().width(), layout.partition_count));
            }
            Method::Als(_) | Method::Grid(_) => {}
        }
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
            Method::Neighbors(neighbors) => neighbors::begin(neighbors, task, saved),
        }
    }

    fn divergence_advice(&self) -> String {
        match &self.method {
            Method::Als(als) => als.divergence_advice(),
            Method::Grid(grid) => grid.divergence_advice(),
            Method::Neighbors(_) => String::new(),
        }
    }
}

/// The column of how many users have an item.
const COUNT_COLUMN: &str = "users";
/// The column of the strengths or ratings of what users have.
const SEEN_COLUMN: &str = "value";

/// What the scores of choices need of records.
fn record_needs(output: &Output) -> RecordNeeds {
    RecordNeeds { field_limit: Some(2), ..RecordNeeds::of(output, None) }
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
