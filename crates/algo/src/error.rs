//! The errors of the algorithms.

use std::borrow::Cow;

/// An error of this crate. Variants carry data; the text says what went wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown algorithm {name:?}{}; algorithms: {known}", nearest_text(.nearest.as_deref()))]
    UnknownAlgorithm {
        name: String,
        /// The most similar name, if one is similar enough.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    #[error(
        "the model is of the family {name:?}, which this program does not have; it knows {known}. Use the program that \
         has trained the model, or add the family to this one (docs/library.md)"
    )]
    UnknownFamily {
        name: String,
        /// The names of the families that the program has.
        known: String,
    },
    #[error("the fields of a model of the family {family:?} cannot be read: {source}")]
    BadModel { family: &'static str, source: serde_json::Error },
    #[error(
        "a model of the family {actual:?} was given to a job of another family: train with an algorithm of its own"
    )]
    ModelFamily {
        /// The family of the model.
        actual: String,
    },
    #[error("the program has a family or an algorithm of the name {name:?} already: choose another")]
    FamilyTaken { name: String },
    #[error("{algorithm} has no parameter {name:?}{}; `seraphim algorithms {algorithm}` lists them all", nearest_text(.nearest.as_deref()))]
    UnknownParameter {
        algorithm: &'static str,
        name: String,
        /// The most similar name, if one is similar enough.
        nearest: Option<String>,
    },
    /// A value outside the range of its parameter.
    #[error("parameter {name} of {algorithm} is {actual:?}, expected {expected}")]
    Parameter {
        algorithm: &'static str,
        name: &'static str,
        /// The value as given.
        actual: String,
        /// The values that are allowed.
        expected: String,
    },
    /// Two parameters exclude each other.
    #[error("{algorithm}: {first} and {second} cannot be combined: {reason}")]
    Conflict {
        algorithm: &'static str,
        /// One parameter, with its value.
        first: String,
        /// The other parameter, with its value.
        second: String,
        /// Why they exclude each other, and what to do.
        reason: Cow<'static, str>,
    },
    /// The job would not use this value.
    #[error(
        "{algorithm}: {name}={actual} has no effect with {with}, only with {readers}: remove it, or choose one of \
         these"
    )]
    UnusedParameter {
        algorithm: &'static str,
        name: &'static str,
        /// The value as given.
        actual: String,
        /// The other parameter, with its value.
        with: String,
        /// The values of the other parameter with which this one is used.
        readers: String,
    },
    /// There is nothing to learn from.
    #[error("the training data have no records")]
    NoRecords,
    /// The data do not suit the algorithm.
    #[error("{reason}")]
    UnsuitableData {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The training data have only one class.
    #[error(
        "training labels have one class only: all {record_count} records have label {label}. A classifier needs both; \
         check the label column, or name the positive label with positive_label"
    )]
    OneClass {
        record_count: u64,
        /// The label of all records.
        label: f32,
    },
    /// The positive label is too large to be exact in single precision.
    #[error(
        "positive_label={label}: labels are stored in single precision, where numbers from {limit} on cannot be \
         distinguished; give the classes smaller numbers, or names"
    )]
    LargeLabel {
        /// The label as given.
        label: String,
        /// The first number that is not exact.
        limit: u64,
    },
    /// The label column has only one name.
    #[error("all records have the label '{name}', and a classifier needs two; check the label column")]
    SingleLabelName {
        /// The only name.
        name: String,
    },
    /// The model has two classes, and the label column has more names.
    #[error(
        "the label column has {count} distinct names: {known}. This algorithm learns two classes: set positive_label \
         to the name that counts as 1, or use softmax"
    )]
    TooManyLabelNames {
        count: usize,
        /// The first names.
        known: String,
    },
    /// A parameter names a label that no record has.
    #[error("{parameter}: no record has the label '{label}'{}; the labels are: {known}", nearest_text(.nearest.as_deref()))]
    UnknownLabel {
        parameter: &'static str,
        /// The label as given.
        label: String,
        /// The most similar label, if one is similar enough.
        nearest: Option<String>,
        /// The labels that occur, or the first of them if there are many.
        known: String,
    },
    /// A parameter names a label twice.
    #[error("{parameter} names the label '{label}' twice; remove one of the two")]
    DuplicateLabel {
        /// The parameter that names it.
        parameter: &'static str,
        label: String,
    },
    /// The labels cannot be looked up, because they were not listed.
    #[error(
        "{parameter}: the labels are not classes: some are fractions, or there are too many different labels; use \
         --weight for weights of records"
    )]
    UncountableLabels {
        /// The parameter that names labels.
        parameter: &'static str,
    },
    /// Labels that count as one class have different weights.
    #[error(
        "class_weights: the labels '{first}' (weight {first_weight}) and '{other}' (weight {other_weight}) count as one class; \
         give both the same weight, or use softmax"
    )]
    UnequalWeights {
        /// A label of the class.
        first: String,
        /// The weight of `first`.
        first_weight: f64,
        /// Another label of the class.
        other: String,
        /// The weight of `other`.
        other_weight: f64,
    },
    /// Every record has the weight 0.
    #[error("{what}: nothing would be learned. Give a weight above 0 to some records of each class")]
    NoWeight {
        /// The reason.
        what: &'static str,
    },
    /// There are too few or too many classes.
    #[error(
        "the labels have {actual} classes, softmax supports 2 to {limit}; for real targets use linear or huber"
    )]
    ClassCount {
        /// The number of distinct labels.
        actual: usize,
        /// The largest number of classes.
        limit: usize,
    },
    /// A label is not a class of the model.
    #[error("label {label} is none of the {class_count} classes of the model ({first} ... {last})")]
    UnknownClass {
        label: f64,
        class_count: usize,
        /// The smallest class.
        first: f32,
        /// The largest class.
        last: f32,
    },
    /// The metric of early stopping is not defined.
    #[error(
        "early_stopping_metric={metric} is not defined on the validation data: it needs {needs}; choose another \
         metric or other data"
    )]
    UndefinedMetric {
        metric: &'static str,
        /// What the data lack.
        needs: &'static str,
    },
    /// Training cannot continue from this model.
    #[error("cannot continue training from this model: its {what} is {model}, that of the job is {job}")]
    ModelMismatch {
        /// The property that differs.
        what: String,
        /// Its value in the model.
        model: String,
        /// Its value in the job.
        job: String,
    },
    /// The weights became infinite or NaN.
    #[error("training diverged in epoch {epoch}, step {step}: the loss of a batch is {loss}{}. {advice}", most_likely_text(.feature.as_ref()))]
    Diverged {
        /// The epoch and its step, from 1.
        epoch: u64,
        step: u64,
        loss: f64,
        /// The feature that most likely is the cause.
        feature: Option<FeatureLabel>,
        /// The settings to change, with their values ([`crate::Job::divergence_advice`]); [`crate::train`] fills it in.
        advice: String,
    },
    /// A later reading of the data found something else than the first reading.
    #[error(
        "the data changed during training: the first pass read {expected} {what}, this pass read {actual}"
    )]
    DataChanged {
        /// What was counted.
        what: &'static str,
        /// The count of this reading.
        actual: String,
        /// The count of the first reading.
        expected: String,
    },
    /// The objective is not finite where a full-batch optimizer starts.
    #[error(
        "the sum of losses at the starting point is {loss}: scale the columns (standardize=true), or start without \
         --from"
    )]
    NonFiniteStart {
        /// The sum of losses.
        loss: f64,
    },
    /// The squares of the values overflow the elements of a vector.
    #[error(
        "the values of {feature} are too large: the sum of their squares is {sum:.1e}, and the limit is 3.4e38. {advice}"
    )]
    LargeValues {
        feature: FeatureLabel,
        /// The sum of squares.
        sum: f64,
        /// What to change.
        advice: &'static str,
    },
    /// The weights of records overflow the elements of a vector.
    #[error(
        "a record has the weight {weight:.1e}, with that of its class, and sums of losses with it leave the range of single \
         precision: give smaller weights (class_weights, --weight). Only their ratios to each other and to the penalties matter"
    )]
    LargeWeight { weight: f64 },
    /// What a task has saved does not fit the task that begins with it.
    #[error(
        "the saved state of task {task} of {algorithm:?} cannot be used: {reason}. Continue with the program, the \
         settings and the number of tasks of the run that has saved it"
    )]
    TaskState { task: u32, algorithm: String, reason: String },
    /// The data of a task have become fewer since its state was saved.
    #[error(
        "task {task} had learned {expected} batches of epoch {epoch} when its state was saved, and its data have only \
         {actual} now: the data have changed. Train from the beginning"
    )]
    FewerBatches { task: u32, epoch: u64, expected: u64, actual: u64 },
    /// What a task remembers cannot be written.
    #[error("the state of a task cannot be encoded: {source}")]
    EncodeState { source: rmp_serde::encode::Error },
    /// The coordinator gave up.
    #[error("{reason}")]
    Coordinator {
        /// Its reason.
        reason: String,
    },
    /// An error of the parameter server.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// An error of the data.
    #[error(transparent)]
    Data(#[from] data::Error),
}

/// A feature in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureLabel {
    pub key: u64,
    /// Its name, where there is one and it is known.
    pub name: Option<String>,
}

impl FeatureLabel {
    /// A feature whose name is not known here.
    pub fn new(key: u64) -> Self {
        Self { key, name: None }
    }
}

impl std::fmt::Display for FeatureLabel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(out, "the feature '{name}'"),
            None => write!(out, "the feature {}", self.key),
        }
    }
}

impl Error {
    /// The error of data that do not suit an algorithm; `reason` says what is wrong, and what to do.
    pub fn unsuitable(reason: impl Into<String>) -> Self {
        Self::UnsuitableData { reason: reason.into() }
    }

    /// The feature that the message names, for its name.
    pub fn feature_mut(&mut self) -> Option<&mut FeatureLabel> {
        match self {
            Self::Diverged { feature, .. } => feature.as_mut(),
            Self::LargeValues { feature, .. } => Some(feature),
            _ => None,
        }
    }
}

fn most_likely_text(feature: Option<&FeatureLabel>) -> String {
    feature.map_or_else(String::new, |feature| format!(", most likely because of {feature}"))
}

fn nearest_text(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
