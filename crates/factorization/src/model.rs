//! What scoring with a factorization machine needs besides its matrices; saved with them as JSON.

use data::Batch;
use matrix::{ElementType, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::FAMILY;
use super::interaction::FactorShape;
use super::score::FactorizationScorer;
use algo::error::Error;
use algo::family::{self, MissingTable, NO_COEFFICIENTS, RecordNeeds};
use algo::job::{Output, Scorer};
use algo::labels::LabelScale;
use algo::loss::Loss;
use algo::scaling::{MOMENT_COLUMNS, ScaledColumns, ScalingRule, Standardize};

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

impl family::Model for Model {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        let of_features = |name, columns| {
            MatrixSpec::sparse(name, ElementType::F32, columns, PushRule::Assign, partition_count)
        };
        let partitioner = Partitioner::Range { partition_count: 1 };
        let mut specs = vec![
            of_features("weights", 1),
            MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..of_features("intercept", 1) },
            of_features("factors", self.shape().width() as u64),
        ];
        if self.standardize.is_some() {
            specs.push(MatrixSpec { element: ElementType::F64, ..of_features("moments", MOMENT_COLUMNS) });
        }
        specs
    }

    fn output(&self) -> Output {
        if self.loss.is_real() { Output::Value } else { Output::Probability }
    }

    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds {
            keep_zeros: self.standardize == Some(Standardize::Center),
            field_limit: self.fields,
            ..RecordNeeds::of(&self.output(), self.positive_label)
        }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("algorithm", self.algorithm.clone()),
            ("loss", self.loss.name().to_owned()),
            ("k", self.factors.to_string()),
            ("standardize", format!("{:?}", self.standardize)),
            ("normalize", self.normalize.to_string()),
        ]
    }

    fn missing_table(&self) -> Option<MissingTable> {
        Some(NO_COEFFICIENTS)
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(FactorizationScorer::new(self))
    }
}
