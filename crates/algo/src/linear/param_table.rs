//! The tables of parameters of the linear models, and the parameters that every optimizer reads: type, range, default,
//! unit and meaning of each.

use super::choices::{BatchGradient, ColumnScaling, MarginLoss, ScheduleKind};
use super::optimizer::Optimizer;
use super::optimizer_params::{
    ADAPTIVE_RHO, BETA, BETA1, BETA2, DECAY, EPSILON, HISTORY, LEARNING_RATE, LOCAL_ITERATIONS,
    MAX_ITERATIONS, MOMENTUM, RHO, SCHEDULE_DECAY, SCHEDULE_EVERY, SCHEDULE_FLOOR, SCHEDULE_STRETCH, START,
    TOLERANCE,
};
use crate::param::common::RecordScaling;
use crate::param::common::{
    EARLY_STOPPING, EARLY_STOPPING_METRIC, NOT_NEGATIVE, POSITIVE, POSITIVE_LABEL, SHUFFLE, VALIDATION_SHARE,
};
use crate::param::{Bounds, ParamKind, ParamSpec, param, words};

/// `epochs=auto` reads the data until this many records have been read: online learning needs a number of updates, not
/// a number of passes. One pass is enough for a million records; a small set is read up to [`AUTO_EPOCHS_LIMIT`] times.
pub const AUTO_RECORD_VISITS: u64 = 250_000;
/// Largest number of epochs of `epochs=auto`.
pub const AUTO_EPOCHS_LIMIT: u64 = 50;

const AUTO_NOT_NEGATIVE: ParamKind =
    ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };

pub(super) const OPTIMIZER: ParamSpec = param(
    "optimizer",
    ParamKind::AutoChoice(words::<&Optimizer>),
    "auto",
    "",
    "Push rule of the weights, or a full-batch optimizer; auto: chosen from the data and the given settings",
);

pub(super) const L1: ParamSpec = param(
    "l1",
    NOT_NEGATIVE,
    "0",
    "",
    "Weight of |w|_1; for ftrl, owlqn and admm on the sum of losses, else on each batch's gradient",
);

pub(super) const L2: ParamSpec = param(
    "l2",
    AUTO_NOT_NEGATIVE,
    "auto",
    "",
    "Weight of 0.5 |w|^2, in the same units; l1 and l2 together are an elastic net; auto: 1 if optimizer=auto \
             chooses lbfgs or owlqn (up to 5 for sparse data with more columns than records), else 0",
);

pub(super) const SCHEDULE: ParamSpec = param(
    "schedule",
    ParamKind::Choice(words::<ScheduleKind>),
    "constant",
    "",
    "Schedule of the step size over the steps; not for rules that determine their own, such as ftrl and adadelta",
);

pub(super) const GRADIENT: ParamSpec = param(
    "gradient",
    ParamKind::AutoChoice(words::<BatchGradient>),
    "auto",
    "",
    "Sum or mean over the records of a batch; auto: mean for rules whose steps scale with it, such as sgd and momentum, sum for the others",
);

pub(super) const EPOCHS: ParamSpec = param(
    "epochs",
    ParamKind::AutoInteger { low: 1, high: 1_000_000 },
    "auto",
    "passes",
    "Passes over the data; auto: 1 to 50 passes, until 250,000 records have been read",
);

pub(super) const BATCH_SIZE: ParamSpec = param(
    "batch_size",
    ParamKind::AutoInteger { low: 1, high: 1 << 20 },
    "auto",
    "records",
    "Records per step, with their gradients merged per feature; auto: grows from 64 to 4,096 with the records \
             read",
);

pub(super) const INTERCEPT: ParamSpec =
    param("intercept", ParamKind::Flag, "true", "", "Learn an intercept, without l1 and l2");

pub(super) const STANDARDIZE: ParamSpec = param(
    "standardize",
    ParamKind::AutoChoice(words::<ColumnScaling>),
    "auto",
    "",
    "true: divide columns by their standard deviation, measured in a scan of the data, and center those of \
             dense formats; columns of 0 and 1 stay as they are; entries: divide by the root mean square of the entries that a column has, for sparse \
             data; idf: multiply by 1 - log(share of records with the column), for texts; auto: true for tables, true \
             or entries if the scales of columns differ a lot, idf for texts",
);

pub(super) const NORMALIZE: ParamSpec = param(
    "normalize",
    ParamKind::AutoChoice(words::<RecordScaling>),
    "auto",
    "",
    "l2: scale each record to unit length; auto: l2 for sparse counts in records of very different length, such as texts",
);

pub(super) const DIMENSIONS: ParamSpec = param(
    "dimensions",
    ParamKind::AutoInteger { low: 1, high: 1 << 40 },
    "auto",
    "features",
    "Number of features, if known: keys are below it and storage is dense",
);

pub(super) const CLASS_WEIGHTS: ParamSpec = param(
    "class_weights",
    ParamKind::Text,
    "",
    "",
    "'balanced', or label:weight pairs such as 0:1,1:5 or no:1,yes:5, labels as in the data; not for linear and huber",
);

pub(super) const CLIP: ParamSpec =
    param("clip", NOT_NEGATIVE, "0", "", "Maximum absolute gradient of a record's loss by its score; 0: off");

/// Only `svm` has it.
pub(super) const LOSS: ParamSpec = param(
    "loss",
    ParamKind::Choice(words::<MarginLoss>),
    "squared_hinge",
    "",
    "squared_hinge, which is smooth and ranks better, or hinge",
);

/// Only `huber` has it.
pub(super) const DELTA: ParamSpec = param(
    "delta",
    POSITIVE,
    "1.35",
    "units of the label",
    "Error at which the loss changes from squared to absolute",
);

/// Number of rows that all linear models share.
const SHARED_COUNT: usize = 36;

/// Rows of the classifiers.
const CLASSIFIER: [ParamSpec; SHARED_COUNT] = shared_params(SHUFFLE);

/// Rows of regression, which reads in file order. With growing batches the last steps of a pass are then the large
/// ones, which average the noise of single records (California RMSE .7238, and .7285 with permuted batches).
const REGRESSION: [ParamSpec; SHARED_COUNT] = shared_params(ParamSpec { default: "none", ..SHUFFLE });

/// Rows that all linear models share, in the order of help texts.
const fn shared_params(shuffle: ParamSpec) -> [ParamSpec; SHARED_COUNT] {
    [
        OPTIMIZER,
        LEARNING_RATE,
        BETA,
        L1,
        L2,
        MOMENTUM,
        BETA1,
        BETA2,
        EPSILON,
        DECAY,
        HISTORY,
        MAX_ITERATIONS,
        TOLERANCE,
        START,
        RHO,
        ADAPTIVE_RHO,
        LOCAL_ITERATIONS,
        SCHEDULE,
        SCHEDULE_DECAY,
        SCHEDULE_EVERY,
        SCHEDULE_STRETCH,
        SCHEDULE_FLOOR,
        GRADIENT,
        EPOCHS,
        BATCH_SIZE,
        shuffle,
        INTERCEPT,
        STANDARDIZE,
        NORMALIZE,
        DIMENSIONS,
        EARLY_STOPPING,
        EARLY_STOPPING_METRIC,
        VALIDATION_SHARE,
        CLASS_WEIGHTS,
        POSITIVE_LABEL,
        CLIP,
    ]
}

/// The shared rows and one more row.
const fn with_extra(shared: &[ParamSpec; SHARED_COUNT], extra: ParamSpec) -> [ParamSpec; SHARED_COUNT + 1] {
    let mut all = [extra; SHARED_COUNT + 1];
    let (first, _) = all.split_at_mut(SHARED_COUNT);
    first.copy_from_slice(shared);
    all
}

/// Table of `lr`.
pub const LR: &[ParamSpec] = &CLASSIFIER;
/// Table of `svm`.
pub const SVM: &[ParamSpec] = &with_extra(&CLASSIFIER, LOSS);
/// Table of `softmax`.
pub const SOFTMAX: &[ParamSpec] = &CLASSIFIER;
/// Table of `linear`.
pub const LINEAR: &[ParamSpec] = &REGRESSION;
/// Table of `huber`.
pub const HUBER: &[ParamSpec] = &with_extra(&REGRESSION, DELTA);
