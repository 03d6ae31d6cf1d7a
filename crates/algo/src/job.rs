//! The interface between a job of any family of algorithms and the caller that runs it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use data::{Batch, BatchSize, BatchStream, FormatOptions, KeyLimit, LabelRule, LabelStats, Shuffle, Survey};
use matrix::{Agent, Consistency, MatrixSpec};

use crate::advice::{Remedies, TrainingReport};
use crate::coordinator::Coordinator;
use crate::error::Error;
use crate::family::{Model, check_continues};
use crate::labels;
use crate::metric::MetricAccumulator;
use crate::param::CheckedParams;
use crate::stopping::EarlyStopping;
use crate::task_loop::{Learner, TaskState};

/// Checked parameters of one algorithm. The caller goes through these steps in order: `resolve_settings`, and a new job
/// from the resolved settings; `needs`; open the data; `label_rule`; `model`; `matrices`; create them in that
/// order as `MatrixId(0)`, `MatrixId(1)`, ...; [`train`](crate::task_loop::train) on the thread of each task; save the model with the matrices.
pub trait Job: Debug + Send + Sync {
    /// The algorithm, and every setting with its value in force.
    fn settings(&self) -> &CheckedParams;

    /// Chooses values for the settings that are left open. With `previous`, training continues from that model. If the
    /// data must be surveyed first, they are opened with the `needs` of this unresolved job.
    fn resolve_settings(
        &self,
        _known: &DataProfile<'_>,
        _previous: Option<&dyn Model>,
    ) -> Result<Resolution, Error> {
        let settings =
            self.settings().values().iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Ok(Resolution::Resolved(ResolvedSettings { settings: settings.collect(), reasons: Vec::new() }))
    }

    /// What the job requires of its data, and of how it runs.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The model without its matrices. With `previous`, training continues from that model, whose family and matrices are
    /// those of this one (`check_continues`).
    fn model(&self, facts: &DataFacts, previous: Option<&dyn Model>) -> Result<Arc<dyn Model>, Error>;

    /// The matrices, in order of creation. The caller sets their consistency and their seed.
    fn matrices(&self, model: &dyn Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error>;

    /// Begins one task, on its own thread. Without `saved`, the first values of the matrices are written, or they
    /// contain an earlier model ([`TrainTask::resumed`]). With `saved`, the matrices are as they were when it was
    /// saved: nothing may be pushed that changes them.
    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error>;

    /// What a user can change if the parameters are no longer finite.
    fn divergence_advice(&self) -> String {
        "Lower the step sizes, or scale the values".to_owned()
    }

    /// Notices about a training that has ended: what its losses say, and what may help.
    fn advice(&self, report: &TrainingReport<'_>) -> Vec<String> {
        if self.needs().uses_labels { Remedies::default().notices(report) } else { Vec::new() }
    }
}

impl dyn Job + '_ {
    pub fn algorithm(&self) -> &'static str {
        self.settings().algorithm()
    }

    /// The model without its matrices. With `previous`, training continues from that model.
    ///
    /// # Errors
    /// If the data do not suit the algorithm, or the earlier model does not suit this training.
    pub fn new_model(
        &self,
        facts: &DataFacts,
        previous: Option<&dyn Model>,
    ) -> Result<Arc<dyn Model>, Error> {
        let model = self.model(facts, previous)?;
        previous.map_or(Ok(()), |previous| check_continues(&*model, previous))?;
        Ok(model)
    }

    /// The matrices of a training with this consistency and seed, in order of creation.
    ///
    /// # Errors
    /// If the model belongs to another family.
    pub fn training_matrices(
        &self,
        model: &dyn Model,
        consistency: Consistency,
        layout: TableLayout,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error> {
        let specs = self.matrices(model, layout)?;
        let settled = |spec: MatrixSpec| {
            // Lists do not change while they are read.
            let consistency = if spec.storage.has_lists() { Consistency::Asp } else { consistency };
            MatrixSpec { consistency, seed, ..spec }
        };
        Ok(specs.into_iter().map(settled).collect())
    }

    /// How labels become numbers, once the names in the label column are known. `names` is empty if labels are numbers.
    pub fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error> {
        self.needs().label_rule(names)
    }
}

/// What the matrices of a training depend on besides the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Number of partitions of a matrix.
    pub partition_count: u32,
    /// Number of tasks of the job.
    pub task_count: u32,
}

/// How often the training data are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epochs {
    /// Exactly this many times.
    Fixed(u64),
    /// Until `record_visits` records have been read in total, and at most `limit` times. The tasks decide this at the
    /// end of epoch 0. Data must be cached as for several epochs; a task that has itself read `record_visits` records
    /// calls [`BatchStream::release_cache`].
    Auto {
        /// Records to read in all epochs.
        record_visits: u64,
        /// Largest number of epochs.
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

/// What a job requires of the caller that opens the data and runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// How labels become numbers before their names are known ([`Self::label_rule`]).
    pub label_rule: LabelRule,
    /// The label that counts as 1, as the user writes it, for a rule of two classes.
    pub positive_label: Option<String>,
    /// The family learns from labels. If not, a table without `--label` has none, and all its columns are features.
    pub uses_labels: bool,
    /// The training data must be scanned before epoch 0 (`TaskData::scan`), for classes, moments or class counts.
    pub scan: bool,
    /// That scan also counts the distinct features of each task's training data.
    pub count_features: bool,
    /// The training data must be surveyed before epoch 0 with the quantiles of their columns, for bins
    /// ([`DataFacts::survey`]). A family that keeps its own form of the records then frees the others with
    /// [`BatchStream::release_cache`].
    pub quantiles: bool,
    pub epochs: Epochs,
    /// Records per batch.
    pub batch_size: BatchSize,
    /// The order of records in each epoch.
    pub shuffle: Shuffle,
    /// Zeros of dense formats must be kept as entries.
    pub keep_zeros: bool,
    /// Numbers of a column that are close together and far from 0 may be counted from another origin: the model has an
    /// intercept, and is the same for them.
    pub subtracts_origins: bool,
    /// The columns of a table that name the parts of a record, such as its user and its item: they are its only features, in this
    /// order, and every record has a name in each. Those that the user gives (`--user`, `--item`) stand in their place.
    pub ids: &'static [&'static str],
    /// Entries must have fields.
    pub uses_fields: bool,
    /// The tokens of a record stay in their order, repeated ones too. Otherwise a record has each of its tokens once, with its
    /// count.
    pub keeps_token_order: bool,
    /// The family reads the times of the records ([`Batch::times`]), if they have some.
    pub uses_times: bool,
    /// The validation data are scored more often than the training data are read.
    pub repeats_validation: bool,
    /// Batches have the numbers of their records ([`Batch::numbers`]), for what a task remembers of each record.
    pub uses_record_numbers: bool,
    /// Feature numbers must be below this limit; `None` allows any number.
    pub key_limit: Option<KeyLimit>,
    /// A record must have a feature that is not 0.
    pub requires_entries: bool,
    /// Share of the records reserved for validation if there is no validation file, in `[0, 1)`.
    pub validation_share: f64,
    /// The rule for early stopping, which requires validation data from a file or a share; `None` if it is off.
    pub early_stopping: Option<EarlyStopping>,
    /// Tasks can save their states within an epoch ([`crate::Coordinator::is_save_due`]). If not, they save between two
    /// epochs.
    pub saves_within_epochs: bool,
    /// All reads must see every earlier push: another consistency than bsp is refused.
    pub requires_bsp: bool,
}

impl Needs {
    /// The edges of a graph, with keys of nodes and without labels.
    #[must_use]
    pub fn edges() -> Self {
        Self { uses_labels: false, ..Self::default() }
    }

    /// Reads the data this many times, or makes this many rounds.
    #[must_use]
    pub fn epochs(self, count: u64) -> Self {
        Self { epochs: Epochs::Fixed(count), ..self }
    }

    /// Sets what the format of the data must do.
    pub fn set_options(&self, options: &mut FormatOptions) {
        options.label_rule = self.label_rule;
        options.uses_labels = self.uses_labels;
        options.keep_zeros = self.keep_zeros;
        options.subtracts_origins = self.subtracts_origins;
        let given = std::mem::take(&mut options.id_columns);
        let column = |(&id, given): (&&str, Option<&String>)| match given {
            Some(given) if !given.is_empty() => given.clone(),
            _ => id.to_owned(),
        };
        let given = given.iter().map(Some).chain(std::iter::repeat(None));
        options.id_columns = self.ids.iter().zip(given).map(column).collect();
        options.uses_fields = self.uses_fields || !self.ids.is_empty();
        options.keeps_token_order = self.keeps_token_order;
        options.key_limit = self.key_limit;
        options.requires_entries = self.requires_entries;
    }

    /// How labels become numbers, once the names in the label column are known. `names` is empty if labels are numbers.
    ///
    /// # Errors
    /// If the label that counts as 1 is not among them.
    pub fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error> {
        Ok(match self.label_rule {
            LabelRule::Binary { .. } => {
                LabelRule::Binary { positive: labels::positive(self.positive_label.as_deref(), names)? }
            }
            LabelRule::Any => match names.len() {
                0 => LabelRule::Any,
                1 | 2 => LabelRule::Binary { positive: labels::positive(None, names)? },
                _ => LabelRule::Class,
            },
            rule => rule,
        })
    }
}

impl Default for Needs {
    /// One pass over records with real labels, in the order of the files.
    fn default() -> Self {
        Self {
            label_rule: LabelRule::Real,
            positive_label: None,
            uses_labels: true,
            scan: false,
            count_features: false,
            quantiles: false,
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Growing,
            shuffle: Shuffle::None,
            keep_zeros: false,
            subtracts_origins: false,
            ids: &[],
            uses_fields: false,
            keeps_token_order: false,
            uses_times: false,
            repeats_validation: false,
            uses_record_numbers: false,
            key_limit: None,
            requires_entries: false,
            validation_share: 0.0,
            early_stopping: None,
            saves_within_epochs: false,
            requires_bsp: false,
        }
    }
}

/// What is known of a job's data when its open settings are resolved. It does not depend on the machine, nor on the
/// number of threads, workers or servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataProfile<'a> {
    /// The input is a table with columns of numbers.
    pub is_table: bool,
    /// Size of the input on disk in bytes; `None` for a stream.
    pub size_bytes: Option<u64>,
    /// Reads see every earlier push (`--consistency bsp`).
    pub is_bsp: bool,
    /// Validation data are given, or are held out by their times.
    pub has_validation: bool,
    /// Statistics of the records, once they have been scanned.
    pub survey: Option<&'a Survey>,
    /// Number of distinct labels, once they have been scanned; 0 if labels are not classes.
    pub class_count: u64,
    /// Number of names in the label column; 0 if labels are numbers.
    pub label_name_count: usize,
    /// The labels as they are in the data, once they have been scanned.
    pub labels: Option<&'a LabelStats>,
}

/// The result of resolving the settings for a [`DataProfile`].
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// The data must be surveyed first.
    NeedsSurvey,
    /// All settings are chosen.
    Resolved(ResolvedSettings),
}

/// Settings without `auto`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedSettings {
    /// The settings that were given and those that were chosen. A job with these settings trains the same model.
    pub settings: BTreeMap<String, String>,
    /// What was chosen and why, one sentence each.
    pub reasons: Vec<String>,
}

/// What is known of the data when the model is created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataFacts {
    /// Training records of all tasks; 0 if they have not been scanned.
    pub record_count: u64,
    /// Distinct training labels as they are in the data, ascending; empty if not scanned or not classes.
    pub classes: Vec<f32>,
    /// Names in the label column, one per class; empty if labels are numbers.
    pub label_names: Vec<String>,
    /// Names of the columns of features, in the order of their keys; empty if the data have no columns.
    pub columns: Vec<String>,
    /// Columns are dense and numbered, as in CSV: the format writes every value.
    pub dense: bool,
    /// Features that have names may have other values than 1, or the columns are not known.
    pub names_have_values: bool,
    /// Sum over tasks of the distinct features of their training data; 0 if they have not been counted.
    pub feature_count: u64,
    /// The fields of the training data are below this number; 0 if entries have no fields, or were not scanned.
    pub field_count: u64,
    /// Mean of the training labels; 0 if they have not been scanned.
    pub label_mean: f64,
    /// Standard deviation of the training labels; 0 if they have not been scanned.
    pub label_deviation: f64,
    /// Statistics of the training records of all tasks; `None` if they have not been surveyed.
    pub survey: Option<Arc<Survey>>,
}

/// What the numbers of a prediction mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The algorithm predicts nothing.
    None,
    /// One number: the probability of label 1.
    Probability,
    /// One number: the signed distance, positive for label 1.
    Margin,
    /// One number: the predicted value.
    Value,
    /// One probability per class, in this order.
    Classes(Vec<f32>),
    /// One number for each of these columns, which are no prediction of a label.
    Columns(Vec<String>),
}

impl Output {
    /// The names of the columns of a prediction before the probabilities of classes.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Probability | Self::Margin | Self::Value => vec!["score"],
            Self::Classes(_) => vec!["predicted"],
            Self::None => Vec::new(),
            Self::Columns(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// Numbers per record.
    pub fn width(&self) -> usize {
        match self {
            Self::Probability | Self::Margin | Self::Value => 1,
            Self::Classes(classes) => classes.len(),
            Self::None => 0,
            Self::Columns(names) => names.len(),
        }
    }
}

/// What a prediction can say of a record besides its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The number of the leaf that the record reaches in each tree.
    Leaves,
    /// What each feature adds to the raw score, and the raw score that is expected of any record.
    Contributions,
}

/// Scores batches. Validation, evaluation and prediction share this code path, so that their scores are equal to the
/// bit.
pub trait Scorer: Send {
    /// Sets `out` to `records x Output::width` numbers. It does not read the labels of the batch.
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error>;

    /// Sets `out` to the scores of which `predict` makes probabilities, or to what `predict` gives if that has none.
    fn raw_scores(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.predict(agent, batch, out)
    }

    /// Scores the batch and adds its records to `parts`. If it is not implemented, the predictions must be values.
    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let mut predictions = Vec::new();
        self.predict(agent, batch, &mut predictions)?;
        let MetricAccumulator::Real(parts) = parts else {
            unreachable!("a scorer of other predictions than values implements this method")
        };
        for (r, (&prediction, &label)) in predictions.iter().zip(&batch.labels).enumerate() {
            parts.add(prediction, label, f64::from(batch.weight(r)));
        }
        Ok(())
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
pub struct TrainTask<'a> {
    /// Access to the parameters.
    pub agent: &'a mut dyn Agent,
    /// The task's share of the training data.
    pub data: &'a mut dyn BatchStream,
    /// The task's share of the validation data.
    pub validation: Option<&'a mut dyn BatchStream>,
    /// Receives the progress, and decides after each epoch.
    pub coordinator: &'a dyn Coordinator,
    /// What scoring needs besides the matrices.
    pub model: &'a dyn Model,
    /// Whether the matrices already contain an earlier model.
    pub resumed: bool,
    /// The seed of the job.
    pub seed: u64,
}
