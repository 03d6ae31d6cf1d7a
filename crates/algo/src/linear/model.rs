//! What scoring with a linear model needs besides its matrices; saved with them as JSON.

use data::LabelRule;
use matrix::{
    Axis, Consistency, ElementType, Initializer, MatrixId, MatrixSpec, Partitioner, PushRule, Storage,
};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::job::Output;
use crate::labels::LabelScale;
use crate::loss::Loss;
use crate::metric::classification::ClassCounts;
use crate::metric::loss::LossAccumulator;
use crate::metric::{BinaryAccumulator, ClassAccumulator, MetricAccumulator, RealAccumulator};
use crate::scaling::{MOMENT_COLUMNS, ScaledColumns, ScalingRule, Standardize};

/// Rows of a matrix if the number of features is not known: keys are below 2^63.
const UNKNOWN_ROWS: u64 = 1 << 63;
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

    /// The number of matrices of the model. A job may create more after them for its optimizer.
    pub fn matrix_count(&self) -> u32 {
        1 + u32::from(self.intercept) + u32::from(self.standardize.is_some())
    }

    /// What the numbers of a prediction mean.
    pub fn output(&self) -> Output {
        match self.loss {
            Loss::Logistic => Output::Probability,
            Loss::Hinge | Loss::SquaredHinge => Output::Margin,
            Loss::Squared | Loss::Huber { .. } => Output::Value,
            Loss::Softmax => Output::Classes(self.classes.clone()),
        }
    }

    /// How labels become numbers.
    pub fn label_rule(&self) -> LabelRule {
        match self.loss {
            Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => {
                LabelRule::Binary { positive: self.positive_label }
            }
            Loss::Softmax => LabelRule::Class,
            Loss::Squared | Loss::Huber { .. } => LabelRule::Real,
        }
    }

    /// An empty metric accumulator for this kind of model.
    pub fn metric_accumulator(&self) -> MetricAccumulator {
        match self.loss {
            Loss::Logistic => MetricAccumulator::Binary(Box::new(BinaryAccumulator {
                probabilities: true,
                ..Default::default()
            })),
            Loss::Hinge | Loss::SquaredHinge => MetricAccumulator::Binary(Box::default()),
            Loss::Squared | Loss::Huber { .. } => MetricAccumulator::Real(RealAccumulator::default()),
            Loss::Softmax => {
                let counts = ClassCounts::new(self.classes.len());
                MetricAccumulator::Classes(Box::new(ClassAccumulator {
                    loss: LossAccumulator::default(),
                    counts,
                    confusion: None,
                }))
            }
        }
    }

    /// The index of the class with this label.
    #[inline]
    pub fn class_of(&self, label: f64) -> Result<usize, Error> {
        self.classes.binary_search_by(|class| f64::from(*class).total_cmp(&label)).map_err(|_| {
            Error::UnknownClass {
                label,
                class_count: self.classes.len(),
                first: self.classes.first().copied().unwrap_or_default(),
                last: self.classes.last().copied().unwrap_or_default(),
            }
        })
    }

    /// The specs of `weights`, and of `intercept` and `moments` if the model has them. `rules` are the push rules of
    /// `weights` and `intercept`.
    pub fn matrices(
        &self,
        rules: (PushRule, PushRule),
        consistency: Consistency,
        partition_count: u32,
        seed: u64,
    ) -> Vec<MatrixSpec> {
        let features = |name: &str, element, columns, rule| MatrixSpec {
            name: name.to_owned(),
            element,
            rows: self.dimensions.unwrap_or(UNKNOWN_ROWS),
            columns,
            axis: Axis::Row,
            storage: if self.dimensions.is_some() { Storage::Dense } else { Storage::Sparse },
            partitioner: match self.dimensions {
                Some(_) => Partitioner::Range { partition_count },
                None => Partitioner::Hash { partition_count },
            },
            initializer: Initializer::Zero,
            rule,
            consistency,
            seed,
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

    /// The specs for a store that only predicts.
    pub fn matrices_to_predict(&self, partition_count: u32) -> Vec<MatrixSpec> {
        let rules = (PushRule::Assign, PushRule::Assign);
        let mut specs = self.matrices(rules, Consistency::Asp, partition_count, 0);
        for spec in &mut specs {
            spec.rule = PushRule::Assign;
        }
        specs
    }

    /// Checks that training may continue from `previous` as this model: everything that scoring depends on must be
    /// equal. `text` formats a label as the user writes it.
    pub fn check_continues(&self, previous: &Self, text: impl Fn(f32) -> String) -> Result<(), Error> {
        let label = |label: Option<f32>| label.map_or_else(|| "none".to_owned(), &text);
        let pairs = [
            ("loss", self.loss.name().to_owned(), previous.loss.name().to_owned()),
            ("classes", format!("{:?}", self.classes), format!("{:?}", previous.classes)),
            ("positive_label", label(self.positive_label), label(previous.positive_label)),
            ("intercept", self.intercept.to_string(), previous.intercept.to_string()),
            ("standardize", fact_text(self.standardize), fact_text(previous.standardize)),
            ("normalize", self.normalize.to_string(), previous.normalize.to_string()),
            ("dimensions", fact_text(self.dimensions), fact_text(previous.dimensions)),
        ];
        match pairs.into_iter().find(|(_, job, model)| job != model) {
            Some((what, job, model)) => Err(Error::ModelMismatch { what, model, job }),
            None => Ok(()),
        }
    }
}

/// Formats an optional property for a message.
fn fact_text<T: std::fmt::Debug>(fact: Option<T>) -> String {
    fact.map_or_else(|| "none".to_owned(), |fact| format!("{fact:?}").to_lowercase())
}
