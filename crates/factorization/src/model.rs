//! What scoring with a factorization machine needs besides its matrices; saved with them as JSON.

use data::Batch;
use matrix::MatrixId;
use serde::{Deserialize, Serialize};

use super::interaction::FactorShape;
use algo::error::Error;
use algo::labels::LabelScale;
use algo::loss::Loss;
use algo::scaling::{ScaledColumns, ScalingRule, Standardize};

/// The advice for data without fields.
pub(super) const NO_FIELDS: &str = "the entries of the data have no fields, which ffm needs: give libffm, or a table (CSV, \
                                    Parquet), where each column is a field; or use fm";

/// A factorization machine without its matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The name in the table of algorithms.
    pub algorithm: String,
    /// The loss that was minimized: logistic or squared.
    pub loss: Loss,
    /// Factors of a feature, for each field if there are fields.
    pub factors: usize,
    /// Number of fields, for `ffm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<u32>,
    /// How columns are standardized; the matrix `moments` exists if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standardize: Option<Standardize>,
    /// Which columns are standardized.
    #[serde(default, skip_serializing_if = "ScaledColumns::is_default")]
    pub scaled_columns: ScaledColumns,
    /// Whether records are scaled to unit length, after standardization.
    pub normalize: bool,
    /// The label that counts as 1, if it was named: a number, or the number of a name.
    pub positive_label: Option<f32>,
    /// How scores become labels, if labels were scaled in training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_scale: Option<LabelScale>,
}

impl Model {
    pub(super) const WEIGHTS: MatrixId = MatrixId(0);
    pub(super) const INTERCEPT: MatrixId = MatrixId(1);
    pub(super) const FACTORS: MatrixId = MatrixId(2);

    /// The moments of columns, features x 3, f64, if columns are standardized.
    pub(super) fn moments_id(&self) -> Option<MatrixId> {
        self.standardize.map(|_| MatrixId(3))
    }

    pub(super) fn scaling(&self) -> Option<ScalingRule> {
        self.standardize.map(|mode| ScalingRule { mode, columns: self.scaled_columns })
    }

    /// The records with each feature, in training with admission.
    pub(super) fn sightings_id(&self) -> MatrixId {
        MatrixId(3 + u32::from(self.standardize.is_some()))
    }

    pub(super) fn shape(&self) -> FactorShape {
        FactorShape { factors: self.factors, fields: self.fields.map(|count| count as usize) }
    }

    /// Refuses entries without a field, or with one that training did not have.
    pub(super) fn check_fields(&self, batch: &Batch) -> Result<(), Error> {
        let Some(count) = self.fields else { return Ok(()) };
        let reason = match batch.fields.iter().max() {
            None if batch.entry_count() == 0 => return Ok(()),
            None => NO_FIELDS.to_owned(),
            Some(&field) if field >= count => format!(
                "an entry has the field {field}, and the model knows {count} fields, from 0: leave such entries out, or \
                 train on data with this field"
            ),
            Some(_) => return Ok(()),
        };
        Err(Error::UnsuitableData { reason })
    }
}
