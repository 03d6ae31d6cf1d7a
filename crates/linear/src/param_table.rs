//! The parameters of the linear models, in the order of help texts: type, range, default, unit and meaning of each. Who
//! reads those that not all read is said where the [optimizers](super::optimizer) and the
//! [schedules](super::choices::ScheduleKind) are.

use super::choices::{ColumnScaling, MarginLoss, ScheduleKind, StartHessian};
use super::optimizer::Optimizer;
use algo::param::common::{
    AUTO_POSITIVE, BatchGradient, NOT_NEGATIVE, POSITIVE, POSITIVE_LABEL, RecordScaling, SHARE, SHUFFLE,
    VALIDATION,
};
use algo::param::{Bounds, ParamKind, ParamSpec, joined, words};

/// `epochs=auto` reads the data until this many records have been read: online learning needs a number of updates, not
/// a number of passes. One pass is enough for a million records; a small set is read up to [`AUTO_EPOCHS_LIMIT`] times.
pub const AUTO_RECORD_VISITS: u64 = 250_000;
/// Largest number of epochs of `epochs=auto`.
pub const AUTO_EPOCHS_LIMIT: u64 = 50;

const AUTO_NOT_NEGATIVE: ParamKind =
    ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };

algo::params! {
    const OPTIMIZATION = [
        /// Push rule of the weights, or a full-batch optimizer; auto: chosen from the data and the given settings
        pub(super) OPTIMIZER = "optimizer": ParamKind::AutoChoice(words::<&Optimizer>), "auto";
        /// step size; alpha of ftrl; auto: 0.1, or 1 for linear, huber and normalize=l2
        pub(super) LEARNING_RATE = "learning_rate": AUTO_POSITIVE, "auto";
        /// smooths the first steps
        pub(super) BETA = "beta": NOT_NEGATIVE, "1";
        /// Weight of |w|_1; for ftrl, owlqn and admm on the sum of losses, else on each batch's gradient
        pub(super) L1 = "l1": NOT_NEGATIVE, "0";
        /// Weight of 0.5 |w|^2, in the same units; l1 and l2 together are an elastic net; auto: 1 if optimizer=auto
        /// chooses lbfgs or owlqn (up to 5 for sparse data with more columns than records), else 0
        pub(super) L2 = "l2": AUTO_NOT_NEGATIVE, "auto";
        /// share of the previous step that is added to each step
        pub(super) MOMENTUM = "momentum": SHARE, "0.9";
        /// decay rate of the first moment
        pub(super) BETA1 = "beta1": SHARE, "0.9";
        /// decay rate of the second moment
        pub(super) BETA2 = "beta2": SHARE, "0.999";
        /// added to denominators for numerical stability
        pub(super) EPSILON = "epsilon": POSITIVE, "1e-6";
        /// decay rate of the running mean of squares
        pub(super) DECAY = "decay": SHARE, "0.9";
        /// history length (owlqn: up to 100); each pair is two vectors on the servers, or in each task for admm
        pub(super) HISTORY = "history": ParamKind::Integer { low: 1, high: 1000 }, "10", "pairs";
        /// maximum number of iterations; an iteration makes one or a few passes over the data
        pub(super) MAX_ITERATIONS = "max_iterations": ParamKind::Integer { low: 1, high: 1_000_000 }, "100";
        /// stops when five steps decreased the objective by at most this share on average; admm: when both residuals
        /// are at most its square root, absolute and relative
        pub(super) TOLERANCE = "tolerance": NOT_NEGATIVE, "1e-6";
        /// initial Hessian: curvature of the loss in each column (diagonal), or one number for all columns
        pub(super) START = "start": ParamKind::Choice(words::<StartHessian>), "diagonal";
        /// ADMM penalty parameter, the weight of 0.5 |x - z|^2; with start=diagonal the loss has curvature 1 in each
        /// column
        pub(super) RHO = "rho": POSITIVE, "0.1";
        /// adapt rho to the residuals, by factors of 2
        pub(super) ADAPTIVE_RHO = "adaptive_rho": ParamKind::Flag, "true";
        /// maximum number of L-BFGS steps that a task makes over its records in each iteration
        pub(super) LOCAL_ITERATIONS = "local_iterations": ParamKind::Integer { low: 1, high: 1000 }, "5";
        /// Schedule of the step size over the steps; not for rules that determine their own, such as ftrl and
        /// adadelta
        pub(super) SCHEDULE = "schedule": ParamKind::Choice(words::<ScheduleKind>), "constant";
        /// rate / (1 + decay t), or rate decay^(t / every)
        pub(super) SCHEDULE_DECAY = "schedule_decay": NOT_NEGATIVE, "0.01";
        /// steps per decay factor, or length of the first period
        pub(super) SCHEDULE_EVERY = "schedule_every": POSITIVE, "100", "steps";
        /// growth factor of the period
        pub(super) SCHEDULE_STRETCH = "schedule_stretch":
            ParamKind::Real { low: 1.0, high: f64::INFINITY, open: Bounds::Closed }, "2";
        /// smallest factor of the step size
        pub(super) SCHEDULE_FLOOR = "schedule_floor":
            ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed }, "0";
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
pub const LR: &[ParamSpec] = &joined::<36>(&[&OPTIMIZATION, &[SHUFFLE], &FEATURES, VALIDATION, LABELS]);
/// Table of `svm`.
pub const SVM: &[ParamSpec] = &joined::<37>(&[LR, &[LOSS]]);
/// Table of `softmax`.
pub const SOFTMAX: &[ParamSpec] = LR;
/// Table of `linear`.
pub const LINEAR: &[ParamSpec] =
    &joined::<36>(&[&OPTIMIZATION, &[FILE_ORDER], &FEATURES, VALIDATION, LABELS]);
/// Table of `huber`.
pub const HUBER: &[ParamSpec] = &joined::<37>(&[LINEAR, &[DELTA]]);
