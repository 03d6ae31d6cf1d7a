//! What passes between a job of any family of algorithms and the one who runs it, in words that name no family. The
//! families stand on this file, and the table of algorithms stands on the families.

use std::collections::BTreeMap;

use data::{Batch, BatchSize, BatchStream, LabelRule, Shuffle, Survey};
use matrix::Agent;

use crate::coordinator::Coordinator;
use crate::error::Error;
use crate::metric::MetricAccumulator;

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
    /// How labels become numbers, before their names are known: `Job::label_rule` says it for the names.
    pub label_rule: LabelRule,
    /// All training data must be seen before epoch 0 (`TaskData::scan`): classes, moments or class counts are wanted.
    pub scan: bool,
    /// The distinct features of each task's training data are counted in that scan.
    pub count_features: bool,
    /// How often the data are read.
    pub epochs: Epochs,
    /// Records a batch.
    pub batch_size: BatchSize,
    /// Order of the epochs.
    pub shuffle: Shuffle,
    /// Zeros of dense formats must be kept as entries.
    pub keep_zeros: bool,
    /// Feature numbers must be below it; none: any number.
    pub key_limit: Option<u64>,
    /// Share of the records held out for validation when there is no validation file, in `[0, 1)`.
    pub validation_share: f64,
    /// Validation data must be there, from a file or a share: early stopping watches them.
    pub validation_required: bool,
}

/// What is known of a job's data when that is chosen which its settings leave open. Nothing of it hangs on a machine, nor on
/// how many threads, workers or servers there are.
#[derive(Clone, Copy, Debug)]
pub struct DataProfile<'a> {
    /// The input is a table that has columns of numbers.
    pub is_table: bool,
    /// Bytes of the input as it lies on disk; none for a stream.
    pub size_bytes: Option<u64>,
    /// Reads see every push before them (`--consistency bsp`).
    pub is_bsp: bool,
    /// What the records look like, once they have been scanned for it.
    pub survey: Option<&'a Survey>,
    /// Distinct labels, once they have been scanned; 0 when they are not classes.
    pub class_count: u64,
}

/// What follows from [`DataProfile`].
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// The data must be surveyed first.
    NeedsSurvey,
    /// All is chosen.
    Resolved(ResolvedSettings),
}

/// Settings of which none is open any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedSettings {
    /// Those that were given, and those that were chosen. A job of these settings trains the same model.
    pub settings: BTreeMap<String, String>,
    /// What was chosen and why, a sentence each.
    pub reasons: Vec<String>,
}

/// What is known of the data when the model is laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFacts {
    /// Training records of all tasks; 0 when they have not been scanned.
    pub record_count: u64,
    /// Distinct training labels as they stand in the data, ascending; empty when not scanned or not classes.
    pub classes: Vec<f32>,
    /// Names in the label column, a class each; empty when labels are numbers.
    pub label_names: Vec<String>,
    /// Columns are dense and numbered, as in CSV: the format writes every value.
    pub dense: bool,
    /// Distinct features of the training data, those of each task added up; 0 when they have not been counted.
    pub feature_count: u64,
    /// Mean and deviation of the training labels; zeros when they have not been scanned.
    pub label_mean: f64,
    /// As `label_mean`.
    pub label_deviation: f64,
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

/// Scores batches; the one code path of validation, evaluate and predict, so that scores are equal to the bit.
pub trait Scorer: Send {
    /// `out` becomes `records x Output::width` numbers. Labels of the batch are not looked at.
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error>;

    /// Scores the batch and adds its records to `parts`.
    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error>;
}

/// Adds all batches of a stream (its epoch 0) to `parts`.
pub(crate) fn score_all(
    scorer: &mut dyn Scorer,
    mut parts: MetricAccumulator,
    agent: &mut dyn Agent,
    stream: &mut dyn BatchStream,
) -> Result<MetricAccumulator, Error> {
    stream.start_epoch(0)?;
    while let Some(batch) = stream.next()? {
        scorer.evaluate(agent, batch, &mut parts)?;
    }
    Ok(parts)
}

/// One task of a job.
pub struct TrainTask<'a, M> {
    /// The task's way to the parameters.
    pub agent: &'a mut dyn Agent,
    /// Its share of the training data.
    pub data: &'a mut dyn BatchStream,
    /// Its share of the validation data.
    pub validation: Option<&'a mut dyn BatchStream>,
    /// Hears of progress, decides after epochs.
    pub coordinator: &'a dyn Coordinator,
    /// What scoring needs besides the matrices.
    pub model: &'a M,
    /// The matrices hold an earlier model.
    pub resumed: bool,
}

impl<'a, M> TrainTask<'a, M> {
    /// The same task, with the model as its family knows it.
    pub(crate) fn with_model<F>(self, model: &'a F) -> TrainTask<'a, F> {
        let Self { agent, data, validation, coordinator, model: _, resumed } = self;
        TrainTask { agent, data, validation, coordinator, model, resumed }
    }
}
