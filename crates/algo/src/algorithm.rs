//! The table of algorithms, and what one job of any of them offers.

use std::collections::BTreeMap;

use data::{Batch, BatchSize, BatchStream, LabelRule, Shuffle};
use matrix::{Agent, Consistency, MatrixSpec};
use serde::{Deserialize, Serialize};

use crate::coordinator::Coordinator;
use crate::error::Error;
use crate::linear;
use crate::metric::MetricParts;
use crate::param::{ParamSpec, nearest};
use crate::stopping::EarlyStopping;

/// Checks the parameters of one algorithm.
pub type Configure = fn(&BTreeMap<String, String>) -> Result<Box<dyn Job>, Error>;

/// A row of the table.
#[derive(Debug)]
pub struct Algorithm {
    /// As typed on the command line.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// All parameters.
    pub parameters: &'static [ParamSpec],
    /// Checks the parameters; unknown names and values out of range are errors.
    pub configure: Configure,
}

/// The table.
pub fn algorithms() -> &'static [Algorithm] {
    linear::ALGORITHMS
}

/// The row of `name`, or an error that names the nearest.
pub fn algorithm(name: &str) -> Result<&'static Algorithm, Error> {
    let names = || algorithms().iter().map(|row| row.name);
    algorithms().iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownAlgorithm {
        name: name.to_owned(),
        nearest: nearest(name, names()),
        known: names().collect::<Vec<_>>().join(", "),
    })
}

/// How often the training data are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epochs {
    /// So often.
    Fixed(u64),
    /// Until `record_visits` records have gone by, `limit` times at most: decided by the tasks at the end of epoch 0.
    /// Data must be kept as if there were several epochs; a task that has seen `record_visits` records itself calls
    /// `BatchStream::forget`.
    Auto {
        /// Records to see in all.
        record_visits: u64,
        /// Most epochs.
        limit: u64,
    },
}

impl Epochs {
    /// The number of epochs for `record_count` training records of all tasks.
    pub fn count(self, record_count: u64) -> u64 {
        match self {
            Self::Fixed(count) => count,
            Self::Auto { record_visits, limit } => {
                record_visits.div_ceil(record_count.max(1)).clamp(1, limit)
            }
        }
    }
}

/// What a job asks of the one who opens the data.
#[derive(Clone, Debug, PartialEq)]
pub struct DataNeeds {
    /// How labels become numbers.
    pub label_rule: LabelRule,
    /// All training data must be seen before epoch 0 (`TaskData::scan`): classes, moments or class counts are wanted.
    pub scan: bool,
    /// How often the data are read.
    pub epochs: Epochs,
    /// Records a batch.
    pub batch_size: BatchSize,
    /// Order of the epochs.
    pub shuffle: Shuffle,
    /// Zeros of dense formats must be kept as entries.
    pub keep_zeros: bool,
    /// Share of the records held out for validation when there is no validation file, in `[0, 1)`.
    pub validation_share: f64,
    /// Validation data must be there, from a file or a share: early stopping watches them.
    pub validation_required: bool,
}

/// What is known of the data when the model is laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFacts {
    /// Training records of all tasks; 0 when they have not been scanned.
    pub record_count: u64,
    /// Distinct training labels, ascending; empty when not scanned or not classes.
    pub classes: Vec<f32>,
    /// Columns are dense and numbered, as in CSV: the format writes every value.
    pub dense: bool,
}

/// What scoring needs besides the matrices; saved with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Model {
    /// Any of the linear models.
    Linear(linear::Model),
}

/// What the numbers of a prediction mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// One number: the probability of label 1.
    Probability,
    /// One number: the signed distance, positive for label 1.
    Margin,
    /// One number: the value.
    Value,
    /// One probability a class, in this order.
    Classes(Vec<f32>),
}

impl Output {
    /// Numbers a record.
    pub fn width(&self) -> usize {
        match self {
            Self::Probability | Self::Margin | Self::Value => 1,
            Self::Classes(classes) => classes.len(),
        }
    }
}

impl Model {
    /// The matrices for prediction: in the order of `Job::matrices`, same names and shapes, without optimizer slots,
    /// ASP.
    pub fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        match self {
            Self::Linear(model) => model.matrices_to_predict(partition_count),
        }
    }

    /// What a prediction holds.
    pub fn output(&self) -> Output {
        match self {
            Self::Linear(model) => model.output(),
        }
    }

    /// How labels become numbers when data are evaluated with this model.
    pub fn label_rule(&self) -> LabelRule {
        match self {
            Self::Linear(model) => model.label_rule(),
        }
    }

    /// Zeros of dense formats must be kept as entries.
    pub fn keep_zeros(&self) -> bool {
        match self {
            Self::Linear(model) => model.standardize.is_some(),
        }
    }

    /// A scorer with its own scratch memory; one a thread.
    pub fn scorer(&self) -> Box<dyn Scorer> {
        match self {
            Self::Linear(model) => Box::new(linear::LinearScorer::new(model)),
        }
    }

    /// Empty metric parts of this kind of model.
    pub fn metric_parts(&self) -> MetricParts {
        match self {
            Self::Linear(model) => model.metric_parts(),
        }
    }
}

/// Scores batches; the one code path of validation, evaluate and predict, so that scores are equal to the bit.
pub trait Scorer: Send {
    /// `out` becomes `records x Output::width` numbers. Labels of the batch are not looked at.
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error>;

    /// Scores the batch and adds its records to `parts`.
    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricParts,
    ) -> Result<(), Error>;
}

/// Metrics of all batches of a stream (its epoch 0).
pub fn evaluate(
    model: &Model,
    agent: &mut dyn Agent,
    stream: &mut dyn BatchStream,
) -> Result<MetricParts, Error> {
    let mut parts = model.metric_parts();
    let mut scorer = model.scorer();
    stream.start_epoch(0)?;
    while let Some(batch) = stream.next()? {
        scorer.evaluate(agent, batch, &mut parts)?;
    }
    Ok(parts)
}

/// One task of a job.
pub struct TrainTask<'a> {
    /// The task's way to the parameters.
    pub agent: &'a mut dyn Agent,
    /// Its share of the training data.
    pub data: &'a mut dyn BatchStream,
    /// Its share of the validation data.
    pub validation: Option<&'a mut dyn BatchStream>,
    /// Hears of progress, decides after epochs.
    pub coordinator: &'a dyn Coordinator,
    /// As given by `Job::model`.
    pub model: &'a Model,
    /// The matrices hold an earlier model.
    pub resumed: bool,
}

/// Checked parameters of one algorithm. In order: `data_needs`, open the data, `model`, `matrices`, create them in
/// that order as `MatrixId(0)`, `MatrixId(1)`..., `train` on each task's thread, save the model with the matrices.
pub trait Job: Send + Sync {
    /// Name of the algorithm.
    fn algorithm(&self) -> &'static str;

    /// Every parameter with its value in force.
    fn settings(&self) -> BTreeMap<&'static str, String>;

    /// What is asked of the data.
    fn data_needs(&self) -> DataNeeds;

    /// The facts that scoring needs. With `previous`, training goes on from that model, which must fit.
    fn model(&self, facts: &DataFacts, previous: Option<&Model>) -> Result<Model, Error>;

    /// The matrices, in order of creation.
    fn matrices(
        &self,
        model: &Model,
        consistency: Consistency,
        partition_count: u32,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error>;

    /// One task's loop, on its own thread. Leaves through `agent.finish()`.
    fn train(&self, task: TrainTask<'_>) -> Result<(), Error>;

    /// When to stop early; none when that is off.
    fn stopping(&self) -> Option<EarlyStopping>;
}
