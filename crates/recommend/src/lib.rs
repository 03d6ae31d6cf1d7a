//! Recommenders: what users will like, learned from what they and others have chosen or rated.
//!
//! **Sources.** Ratings (`als`): Koren, Bell, Volinsky, "Matrix factorization techniques for recommender systems", Computer 42,
//! 2009, with the penalty of Zhou et al., AAIM 2008. Choices (`ials`): Hu, Koren, Volinsky, "Collaborative filtering for implicit
//! feedback datasets", ICDM 2008, in the form of Rendle et al., "Revisiting the performance of iALS on item recommendation
//! benchmarks", `RecSys` 2021; conjugate gradients with warm start: Takács, Pilászy, Tikk, `RecSys` 2011.
//!
//! Neighbors (`itemknn`): Sarwar et al., "Item-based collaborative filtering recommendation algorithms", WWW 2001; `ease`: Steck,
//! "Embarrassingly shallow autoencoders for sparse data", WWW 2019.
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
//! | `neighbors`, of neighbors | lists: for each item its neighbors, with their weights | f32 | assign |
//! | `pairs_of_users`, `validation_pairs`, `pairs_of_items`, in training | lists: for each user its items, for each item its users | f32 | as `duplicates` says |
//! | `implicit_users`, `implicit_items`, in training with `implicit_weight` | as `users` and `items` | f32 | assign |
//! | `sizes`, in training of neighbors | items x 1: what all users have of an item | f64 | assign |
//!
//! **Cost** of an iteration of ALS with conjugate gradients: `steps (pairs k + rows k^2)` multiply-adds for each side; a task
//! pulls each row of the other side that its pairs name once, and pushes its own rows.

mod als;
mod ease;
mod exact;
mod grid;
mod implicit;
mod interactions;
mod model;
mod neighbors;
mod objective;
mod params;
pub mod ranking;
mod score;
mod solve;
#[cfg(test)]
mod tests;
pub mod top;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{BatchSize, Shuffle};
use matrix::MatrixSpec;

use als::Als;
use grid::Grid;
pub use interactions::{Duplicates, pairs_of as interactions_of};
pub use model::{FactorModel, NeighborModel};
use neighbors::Neighbors;
pub use objective::{Objective, ObjectiveSettings};

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family};
use algo::job::{DataFacts, Epochs, Job, Needs, TableLayout, TrainTask};
use algo::param::{CheckedParams, ParamSpec};
use algo::task_loop::{Learner, TaskState};

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
    load: model::load,
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
    Neighbors(Neighbors),
}

impl Method {
    fn are_ratings(&self) -> bool {
        match self {
            Self::Als(als) => als.are_ratings(),
            Self::Grid(grid) => grid.are_ratings,
            Self::Neighbors(_) => false,
        }
    }

    fn duplicates(&self) -> Duplicates {
        match self {
            Self::Als(als) => als.duplicates,
            Self::Grid(grid) => grid.duplicates,
            Self::Neighbors(neighbors) => neighbors.duplicates,
        }
    }

    /// Share of the records that is held out. Of choices, a record may have all items of a user, so the task that owns the user
    /// holds out items.
    fn validation_share(&self) -> f64 {
        match self {
            Self::Als(als) if als.are_ratings() => als.validation_share,
            Self::Grid(grid) if grid.are_ratings => grid.validation_share,
            Self::Als(_) | Self::Grid(_) | Self::Neighbors(_) => 0.0,
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
        specs.extend(interactions::specs(self.method.duplicates(), layout.partition_count));
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
