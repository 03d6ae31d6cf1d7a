//! What scoring with a linear model needs besides its matrices; saved with them as JSON.

use matrix::{ElementType, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};

use algo::error::Error;
use algo::labels::{LabelScale, class_of};
use algo::loss::Loss;
use algo::scaling::{MOMENT_COLUMNS, ScaledColumns, ScalingRule, Standardize};

/// The setting that limits the numbers of features.
pub(super) const DIMENSIONS: &str = "dimensions";

/// A linear model without its matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The name in the table of algorithms.
    pub algorithm: String,
    /// The loss that was minimized.
    pub loss: Loss,
    /// Labels of the classes, ascending, in the order of the columns; `[0, 1]` for two classes, empty for real labels.
    pub classes: Vec<f32>,
    /// The label that counts as 1, if it was named: a number, or the number of a name.
    pub positive_label: Option<f32>,
    /// Weights of the classes in training, in their order; empty if none were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_weights: Vec<f64>,
    /// Whether there is a matrix `intercept`.
    pub intercept: bool,
    /// How columns are standardized; the matrix `moments` exists if they are.
    pub standardize: Option<Standardize>,
    /// Which columns are standardized.
    #[serde(default, skip_serializing_if = "ScaledColumns::is_default")]
    pub scaled_columns: ScaledColumns,
    /// Whether records are scaled to unit length, after standardization.
    pub normalize: bool,
    /// Number of features, if it was declared; the storage is then dense.
    pub dimensions: Option<u64>,
    /// Sum over tasks of the distinct features of their training data, if the optimizer numbers features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbered: Option<u64>,
    /// How scores become labels, if labels were scaled in training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_scale: Option<LabelScale>,
}

impl Model {
    /// Columns of the weights: 1, or one per class for softmax.
    pub fn width(&self) -> usize {
        match self.loss {
            Loss::Softmax => self.classes.len(),
            _ => 1,
        }
    }

    /// The loss, and the labels of the classes.
    pub(crate) fn labels(&self) -> (Loss, &[f32]) {
        (self.loss, &self.classes)
    }

    /// The weights, features x width, f32.
    pub fn weights_id(&self) -> MatrixId {
        MatrixId(0)
    }

    /// The intercept, 1 x width, f32.
    pub fn intercept_id(&self) -> Option<MatrixId> {
        self.intercept.then_some(MatrixId(1))
    }

    /// The moments, features x 3, f64: share of records with the feature, mean, mean of squares.
    pub fn moments_id(&self) -> Option<MatrixId> {
        self.standardize.map(|_| MatrixId(1 + u32::from(self.intercept)))
    }

    pub(crate) fn scaling(&self) -> Option<ScalingRule> {
        self.standardize.map(|mode| ScalingRule { mode, columns: self.scaled_columns })
    }

    /// The index of the class with this label.
    #[inline]
    pub fn class_of(&self, label: f64) -> Result<usize, Error> {
        class_of(&self.classes, label)
    }

    /// The specs of `weights`, and of `intercept` and `moments` if the model has them. `rules` are the push rules of
    /// `weights` and `intercept`.
    pub fn matrices_with(&self, rules: (PushRule, PushRule), partition_count: u32) -> Vec<MatrixSpec> {
        let features = |name: &str, element, columns, rule| {
            let sparse = MatrixSpec::sparse(name, element, columns, rule, partition_count);
            match self.dimensions {
                None => sparse,
                Some(rows) => {
                    let partitioner = Partitioner::Range { partition_count };
                    MatrixSpec { rows, storage: Storage::Dense, partitioner, ..sparse }
                }
            }
        };
        let width = self.width() as u64;
        let mut specs = vec![features("weights", ElementType::F32, width, rules.0)];
        if self.intercept {
            let one_row = features("intercept", ElementType::F32, width, rules.1);
            let partitioner = Partitioner::Range { partition_count: 1 };
            specs.push(MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..one_row });
        }
        if self.standardize.is_some() {
            specs.push(features("moments", ElementType::F64, MOMENT_COLUMNS, PushRule::Add));
        }
        specs
    }
}
