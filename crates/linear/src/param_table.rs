//! The parameters of the linear models, in the order of help texts: type, range, default, unit and meaning of each. Who
//! reads those that not all read is said where the [optimizers](super::optimizer) and the
//! [schedules](super::schedule::ScheduleKind) are.

use super::choices::{ColumnScaling, MarginLoss};
use super::optimizer::Optimizer;
use super::optimizer_params::OPTIMIZER_ROWS;
use super::schedule::SCHEDULE_ROWS;
use algo::param::common::{
    BatchGradient, NOT_NEGATIVE, POSITIVE, POSITIVE_LABEL, RecordScaling, SHUFFLE, VALIDATION,
};
use algo::param::{ParamKind, ParamSpec, joined, words};

/// `epochs=auto` reads the data until this many records have been read: online learning needs a number of updates, not
/// a number of passes. One pass is enough for a million records; a small set is read up to [`AUTO_EPOCHS_LIMIT`] times.
pub const AUTO_RECORD_VISITS: u64 = 250_000;
/// Largest number of epochs of `epochs=auto`.
pub const AUTO_EPOCHS_LIMIT: u64 = 50;

algo::params! {
    const STEPS = [
        /// Sum or mean over the records of a batch; auto: mean for rules whose steps scale with it, such as sgd and
        /// momentum, sum for the others
        pub(super) GRADIENT = "gradient": ParamKind::AutoChoice(words::<BatchGradient>), "auto";
        /// Passes over the data; auto: 1 to 50 passes, until 250,000 records have been read
        pub(super) EPOCHS = "epochs": ParamKind::AutoInteger { low: 1, high: 1_000_000 }, "auto", "passes";
        /// Records per step, with their gradients merged per feature; auto: grows from 64 to 4,096 with the records
        /// read
        pub(super) BATCH_SIZE = "batch_size": ParamKind::AutoInteger { low: 1, high: 1 << 20 }, "auto", "records";
    ];
}

algo::params! {
    const FEATURES = [
        /// Learn an intercept, without l1 and l2
        pub(super) INTERCEPT = "intercept": ParamKind::Flag, "true";
        /// true: divide columns by their standard deviation, measured in a scan of the data, and center those of
        /// dense formats; columns of 0 and 1 stay as they are; entries: divide by the root mean square of the entries
        /// that a column has, for sparse data; idf: multiply by 1 - log(share of records with the column), for texts;
        /// auto: true for tables, true or entries if the scales of columns differ a lot, idf for texts
        pub(super) STANDARDIZE = "standardize": ParamKind::AutoChoice(words::<ColumnScaling>), "auto";
        /// l2: scale each record to unit length; auto: l2 for sparse counts in records of very different length, such
        /// as texts
        pub(super) NORMALIZE = "normalize": ParamKind::AutoChoice(words::<RecordScaling>), "auto";
        /// Number of features, if known: keys are below it and storage is dense
        pub(super) DIMENSIONS = "dimensions": ParamKind::AutoInteger { low: 1, high: 1 << 40 }, "auto", "features";
    ];
}

algo::params! {
    /// Push rule of the weights, or a full-batch optimizer; auto: chosen from the data and the given settings
    pub(super) OPTIMIZER = "optimizer": ParamKind::AutoChoice(words::<&Optimizer>), "auto";
    /// 'balanced', or label:weight pairs such as 0:1,1:5 or no:1,yes:5, labels as in the data; not for linear and
    /// huber
    pub(super) CLASS_WEIGHTS = "class_weights": ParamKind::Text, "";
    /// Maximum absolute gradient of a record's loss by its score; 0: off
    pub(super) CLIP = "clip": NOT_NEGATIVE, "0";

    // Only `svm` has it.
    /// squared_hinge, which is smooth and ranks better, or hinge
    pub(super) LOSS = "loss": ParamKind::Choice(words::<MarginLoss>), "squared_hinge";

    // Only `huber` has it.
    /// Error at which the loss changes from squared to absolute
    pub(super) DELTA = "delta": POSITIVE, "1.35", "units of the label";
}

/// Regression reads in file order. With growing batches the last steps of a pass are then the large ones, which average
/// the noise of single records (California RMSE .7238, and .7285 with permuted batches).
const FILE_ORDER: ParamSpec = ParamSpec { default: "none", ..SHUFFLE };

const LABELS: &[ParamSpec] = &[CLASS_WEIGHTS, POSITIVE_LABEL, CLIP];

/// Table of `lr`.
pub const LR: &[ParamSpec] = &joined::<36>(&[
    &[OPTIMIZER],
    &OPTIMIZER_ROWS,
    &SCHEDULE_ROWS,
    &STEPS,
    &[SHUFFLE],
    &FEATURES,
    VALIDATION,
    LABELS,
]);
/// Table of `svm`.
pub const SVM: &[ParamSpec] = &joined::<37>(&[LR, &[LOSS]]);
/// Table of `softmax`.
pub const SOFTMAX: &[ParamSpec] = LR;
/// Table of `linear`.
pub const LINEAR: &[ParamSpec] = &joined::<36>(&[
    &[OPTIMIZER],
    &OPTIMIZER_ROWS,
    &SCHEDULE_ROWS,
    &STEPS,
    &[FILE_ORDER],
    &FEATURES,
    VALIDATION,
    LABELS,
]);
/// Table of `huber`.
pub const HUBER: &[ParamSpec] = &joined::<37>(&[LINEAR, &[DELTA]]);
