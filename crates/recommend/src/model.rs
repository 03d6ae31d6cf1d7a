//! What is stored of a model of users and items.

use matrix::{ElementType, ListMatrix, MatrixId, MatrixSpec, PushRule};
use serde::{Deserialize, Serialize};

use super::objective::ObjectiveSettings;
use algo::error::Error;
use algo::family;

/// The matrix of how many users have an item.
pub(super) fn counts(partition_count: u32) -> MatrixSpec {
    MatrixSpec::sparse("counts", ElementType::I64, 1, PushRule::Assign, partition_count)
}

pub(super) fn lists(name: &str, partition_count: u32) -> MatrixSpec {
    ListMatrix::spec(name, ElementType::F32, 1, PushRule::Assign, partition_count)
}

/// The lists of what users have, the last matrix of a model.
pub(super) fn seen(model: &dyn family::Model) -> Result<ListMatrix, Error> {
    let specs = model.matrices(1);
    let last = specs.len() - 1;
    Ok(ListMatrix::new(MatrixId(last as u32), &specs[last])?)
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
