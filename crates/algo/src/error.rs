//! What can go wrong in an algorithm.

/// An error of this crate. Variants carry data; the text says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such algorithm.
    #[error("unknown algorithm {name:?}{}; there are: {known}", nearest_text(.nearest.as_deref()))]
    UnknownAlgorithm {
        /// As asked.
        name: String,
        /// The most similar name, when one is near.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// No such parameter.
    #[error("{algorithm} has no parameter {name:?}{}; `seraphim algorithms {algorithm}` lists them all", nearest_text(.nearest.as_deref()))]
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// As asked.
        name: String,
        /// The most similar name, when one is near.
        nearest: Option<String>,
    },
    /// A value outside of what a parameter allows.
    #[error("parameter {name} of {algorithm} is {actual:?}, expected {expected}")]
    Parameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        name: &'static str,
        /// As given.
        actual: String,
        /// What it may be.
        expected: String,
    },
    /// Two parameters that exclude each other.
    #[error("{algorithm}: {first} and {second} do not go together: {reason}")]
    Conflict {
        /// The algorithm.
        algorithm: &'static str,
        /// One, with its value.
        first: String,
        /// The other, with its value.
        second: String,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A value that nobody would read.
    #[error(
        "{algorithm}: {name}={actual} means nothing with {with}, only with {readers}: leave it out, or choose one of these"
    )]
    UnusedParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        name: &'static str,
        /// As given.
        actual: String,
        /// The other parameter, with its value.
        with: String,
        /// The values of the other with which it is read.
        readers: String,
    },
    /// Nothing to learn from.
    #[error("the training data hold no records")]
    NoRecords,
    /// Only one class was seen.
    #[error(
        "training labels have one class only: all {record_count} records have label {label}. A classifier needs both; \
         check the label column, or name the positive label with positive_label"
    )]
    OneClass {
        /// Number of records seen.
        record_count: u64,
        /// Their label.
        label: f32,
    },
    /// A positive label that has more digits than labels keep.
    #[error(
        "positive_label={label}: numbers of labels are kept in single precision, in which those from {limit} on are not told \
         apart; give the classes smaller numbers, or names"
    )]
    LargeLabel {
        /// As given.
        label: String,
        /// The first such number.
        limit: u64,
    },
    /// The label column holds one name only.
    #[error("all records have the label '{name}', and a classifier needs two; check the label column")]
    SingleLabelName {
        /// The name.
        name: String,
    },
    /// A model of two classes, and a label column with more names.
    #[error(
        "the label column holds {count} names: {known}. This algorithm tells two classes apart: name the one that counts \
         as 1 with positive_label, or use softmax"
    )]
    TooManyLabelNames {
        /// How many.
        count: usize,
        /// The first of them.
        known: String,
    },
    /// A parameter names a label that no record has.
    #[error("{parameter}: no record has the label '{label}'{}; the labels are: {known}", nearest_text(.nearest.as_deref()))]
    UnknownLabel {
        /// The parameter.
        parameter: &'static str,
        /// As given.
        label: String,
        /// The most similar label, when one is near.
        nearest: Option<String>,
        /// The labels that occur, the first of them when there are many.
        known: String,
    },
    /// A parameter names a label twice.
    #[error("{parameter} names the label '{label}' twice; leave one of them out")]
    DuplicateLabel {
        /// The parameter.
        parameter: &'static str,
        /// The label.
        label: String,
    },
    /// Labels cannot be looked up.
    #[error(
        "{parameter}: the labels are no classes, there are fractions among them or too many of them; \
         use --weight for weights of records"
    )]
    UncountableLabels {
        /// The parameter.
        parameter: &'static str,
    },
    /// Labels that count as one class have several weights.
    #[error(
        "class_weights: the labels '{first}' (weight {first_weight}) and '{other}' (weight {other_weight}) count as one class; \
         give both the same weight, or use softmax"
    )]
    UnequalWeights {
        /// A label.
        first: String,
        /// Its weight.
        first_weight: f64,
        /// Another label of its class.
        other: String,
        /// Its weight.
        other_weight: f64,
    },
    /// No record counts.
    #[error("{what}: nothing would be learned. Give a weight above 0 to some records of each class")]
    NoWeight {
        /// What makes it so.
        what: &'static str,
    },
    /// Too few or too many classes.
    #[error(
        "the labels have {actual} classes, softmax takes 2 to {limit}; for real targets use linear or huber"
    )]
    ClassCount {
        /// Distinct labels seen.
        actual: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A label that is no class of the model.
    #[error("label {label} is none of the {class_count} classes of the model ({first} ... {last})")]
    UnknownClass {
        /// The label.
        label: f32,
        /// Number of classes.
        class_count: usize,
        /// Smallest class.
        first: f32,
        /// Largest class.
        last: f32,
    },
    /// The metric that early stopping watches is not defined.
    #[error(
        "early_stopping_metric={metric} is not defined on the validation data, which need {needs}; choose another metric or other data"
    )]
    UndefinedMetric {
        /// The metric.
        metric: &'static str,
        /// What the data lack.
        needs: &'static str,
    },
    /// Training on from a model that does not fit.
    #[error("cannot train on from this model: its {what} is {model}, the job's {job}")]
    ModelMismatch {
        /// What differs.
        what: &'static str,
        /// In the model.
        model: String,
        /// In the job.
        job: String,
    },
    /// The weights became infinite or NaN.
    #[error(
        "training diverged in epoch {epoch}, step {step}: the loss of a batch is {loss}. Lower learning_rate \
         (now {rate}), or standardize the columns (standardize=true)"
    )]
    Diverged {
        /// The epoch.
        epoch: u64,
        /// Step in the epoch.
        step: u64,
        /// The loss.
        loss: f64,
        /// The rate in force.
        rate: f64,
    },
    /// A later reading of the data showed something else than the first.
    #[error(
        "the data have changed while they were read: the first reading found {expected} {what}, this one {actual}"
    )]
    DataChanged {
        /// What was counted.
        what: &'static str,
        /// Now.
        actual: String,
        /// At first.
        expected: String,
    },
    /// The objective is no number where an optimizer of all records begins.
    #[error(
        "the sum of losses at the first point is {loss}: scale the columns (standardize=true), or start without --from"
    )]
    NonFiniteStart {
        /// The sum.
        loss: f64,
    },
    /// Values whose squares no vector holds.
    #[error(
        "the values of a column are too large: their squares add up to {sum:.1e}, and 3.4e38 is the most. Scale the columns \
         (standardize=true), or divide them by a power of ten"
    )]
    LargeValues {
        /// The sum.
        sum: f64,
    },
    /// The one who runs the tasks gave up.
    #[error("{reason}")]
    Coordinator {
        /// Why.
        reason: String,
    },
    /// From the parameters.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// From the data.
    #[error(transparent)]
    Data(#[from] data::Error),
}

fn nearest_text(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
