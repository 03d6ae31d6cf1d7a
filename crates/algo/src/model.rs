//! What scoring needs besides the matrices, of any family.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use data::{BatchStream, KeyLimit, KeyNames, LabelRule, Schema};
use matrix::{Agent, MatrixSpec};
use serde_json::Value;

use crate::error::Error;
use crate::metric::MetricAccumulator;
use crate::output::{Explanation, Output};
use crate::scorer::{Scorer, score_all};

/// What scoring needs besides the matrices. It is saved with them.
pub trait Model: Any + Debug + Send + Sync {
    /// The name of the family.
    fn family(&self) -> &'static str;

    /// The fields of `model.json`, an object that [`crate::Family::load`] reads.
    fn save(&self) -> Value;

    /// The matrices for prediction: in the order of [`crate::Job::matrices`], with the same names and shapes, without
    /// optimizer slots, and with ASP consistency. A job may create more after them; those belong to its optimizer and
    /// are not saved.
    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec>;

    /// What the numbers of a prediction mean.
    fn output(&self) -> Output;

    /// What scoring requires of the records. By default that follows from the output.
    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds::of(&self.output(), None)
    }

    /// What a training that continues from this model must have in common with it: names of settings, with their values.
    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// A table that the model makes of its matrices, for export.
    fn derived_table(&self) -> Option<Box<dyn DerivedTable>> {
        None
    }

    /// A table for which users may ask, as models of its kind mostly have it, and why this one has none.
    fn missing_table(&self) -> Option<MissingTable> {
        None
    }

    /// The same model, with an explanation of its scores as its predictions; `None`: it has none.
    fn explained(
        &self,
        _explanation: Explanation,
        _facts: &ModelFacts<'_>,
    ) -> Option<Result<Arc<dyn Model>, Error>> {
        None
    }

    /// The model as a text of this format, from the tables at the agent; `None`: it has none.
    fn document(
        &self,
        _format: TextFormat,
        _facts: &ModelFacts<'_>,
        _agent: &mut dyn Agent,
    ) -> Option<Result<String, Error>> {
        None
    }

    /// The names of the `count` columns of a matrix of the model, as in a table.
    fn column_names(&self, _matrix: &str, count: usize) -> Vec<String> {
        match count {
            1 => vec!["value".to_owned()],
            _ => (0..count).map(|column| format!("value_{column}")).collect(),
        }
    }

    /// Why no single table of the model may be changed by a function, if it would no longer fit the others: a clause without a
    /// full stop.
    fn bound_tables(&self) -> Option<&'static str> {
        None
    }

    /// Whether the rows of a matrix of the model are features, which have names: not if it has a single row.
    fn has_feature_rows(&self, matrix: &str) -> bool {
        let mut matrices = self.matrices(1).into_iter().enumerate();
        matrices.any(|(at, spec)| spec.name == matrix && (at == 0 || spec.rows != 1))
    }

    /// A scorer with its own scratch memory; each thread needs one.
    fn scorer(&self) -> Box<dyn Scorer>;

    /// An empty metric accumulator for this kind of model. By default it follows from the output.
    fn metric_accumulator(&self) -> MetricAccumulator {
        MetricAccumulator::of(&self.output())
    }
}

/// What a saved model has besides its family's own fields.
#[derive(Clone, Copy, Debug)]
pub struct ModelFacts<'a> {
    /// The columns of the training data.
    pub schema: &'a Schema,
    /// The names of keys.
    pub names: &'a KeyNames,
    /// The tables that have a single row, by their names.
    pub single_rows: &'a BTreeMap<String, Vec<f64>>,
}

/// Formats of a whole model as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// The text model of LightGBM.
    LightGbm,
    /// Trees for people: all of them, or one.
    Text { tree: Option<u64> },
    /// Trees as graphs in the language of Graphviz.
    Graphviz { tree: Option<u64> },
}

/// What scoring requires of the records.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordNeeds {
    /// An evaluation needs labels.
    pub uses_labels: bool,
    /// How labels become numbers when data are evaluated.
    pub label_rule: LabelRule,
    /// Zeros of dense formats must be kept as entries.
    pub keep_zeros: bool,
    /// Feature numbers must be below this limit; `None` allows any number.
    pub key_limit: Option<KeyLimit>,
    /// The fields of entries must be below this limit; `None` allows any field.
    pub field_limit: Option<u32>,
    /// A record must have a feature that is not 0.
    pub requires_entries: bool,
}

impl RecordNeeds {
    /// Those of a prediction. `positive` is the label that counts as 1, if it is not 1.
    pub fn of(output: &Output, positive: Option<f32>) -> Self {
        let label_rule = match output {
            Output::Probability | Output::Margin => LabelRule::Binary { positive },
            Output::Classes(_) => LabelRule::Class,
            Output::Value | Output::None | Output::Columns(_) => LabelRule::Real,
        };
        Self {
            uses_labels: !matches!(output, Output::None | Output::Columns(_)),
            label_rule,
            keep_zeros: false,
            key_limit: None,
            field_limit: None,
            requires_entries: false,
        }
    }
}

/// A table that a model does not have.
#[derive(Clone, Copy, Debug)]
pub struct MissingTable {
    pub name: &'static str,
    /// A clause without a full stop.
    pub reason: &'static str,
}

/// What models say whose scores are no linear function of the values of a record.
pub const NO_COEFFICIENTS: MissingTable = MissingTable {
    name: "coefficients",
    reason: "this model is not linear in the values of its records, so it has no coefficients",
};

/// A table that a model makes of its matrices: a row for each row of the first, then one more.
pub trait DerivedTable {
    fn name(&self) -> &'static str;

    /// The matrix whose rows become rows of the table; one that has rows of the same keys; one of a single row. The last two
    /// need not be in the model.
    fn matrices(&self) -> [&'static str; 3];

    /// Makes a row in place. `beside` is the row of the key in the second matrix, if it has one, and `origin` the number from
    /// which the values of the column of the key are counted.
    fn make_row(&mut self, key: u64, row: &mut [f64], beside: Option<&[f64]>, origin: f64);

    /// The name of the last row.
    fn last_name(&self) -> &'static str;

    /// Makes the last row in place, from the single row of the third matrix, or from zeros.
    fn make_last_row(&self, row: &mut [f64]);
}

/// Checks that a training may continue from `previous`, whose rows it takes over: the fixed settings are the same, and the
/// matrices have the same names and columns.
///
/// # Errors
/// [`Error::ModelMismatch`] with what differs.
pub(crate) fn check_continues(model: &dyn Model, previous: &dyn Model) -> Result<(), Error> {
    let settings = model.fixed_settings().into_iter().zip(previous.fixed_settings());
    for ((what, job), (_, model)) in settings {
        if job != model {
            return Err(Error::ModelMismatch { what: what.to_owned(), model, job });
        }
    }
    let before = previous.matrices(1);
    for matrix in model.matrices(1) {
        let columns = before.iter().find(|other| other.name == matrix.name).map_or(0, |other| other.columns);
        if columns != matrix.columns {
            let what = format!("columns of the table '{}'", matrix.name);
            let (model, job) = (columns.to_string(), matrix.columns.to_string());
            return Err(Error::ModelMismatch { what, model, job });
        }
    }
    Ok(())
}

impl dyn Model {
    /// The model as the type of its family.
    ///
    /// # Errors
    /// [`Error::ModelFamily`] if the model belongs to another family.
    pub fn of<M: Model>(&self) -> Result<&M, Error> {
        let any: &dyn Any = self;
        any.downcast_ref().ok_or_else(|| Error::ModelFamily { actual: self.family().to_owned() })
    }

    /// The number of matrices of the model.
    pub fn matrix_count(&self) -> usize {
        self.matrices(1).len()
    }
}

/// Computes the metrics over all batches of a stream (its epoch 0).
pub fn evaluate(
    model: &dyn Model,
    agent: &mut dyn Agent,
    stream: &mut dyn BatchStream,
) -> Result<MetricAccumulator, Error> {
    score_all(model.scorer().as_mut(), model.metric_accumulator(), agent, stream)
}
