//! What scoring with trees needs besides their tables; saved with them as JSON.

use matrix::MatrixId;
use serde::{Deserialize, Serialize};

use super::bins::{Features, SavedFeature};
use super::constraints::Constraints;
use super::objective::Objective;
use super::tree::TreeTables;

/// Columns of a key in the table `importances`.
pub(super) const IMPORTANCE_COLUMNS: usize = 3;
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
