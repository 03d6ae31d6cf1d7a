//! The parameters of the linear models as a user sees them: type, range, default, unit and meaning of each.

use crate::param::{Bounds, ParamKind, ParamSpec};

/// `epochs=auto` reads the data until this many records have been read: online learning needs a number of updates, not
/// a number of passes. One pass is enough for a million records; a small set is read up to [`AUTO_EPOCHS_LIMIT`] times.
pub const AUTO_RECORD_VISITS: u64 = 250_000;
/// Largest number of epochs of `epochs=auto`.
pub const AUTO_EPOCHS_LIMIT: u64 = 50;

const POSITIVE: ParamKind = ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow };
const AUTO_POSITIVE: ParamKind = ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow };
const AUTO_NOT_NEGATIVE: ParamKind =
    ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };
const NOT_NEGATIVE: ParamKind = ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };
const SHARE: ParamKind = ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenHigh };

const fn param(
    name: &'static str,
    kind: ParamKind,
    default: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> ParamSpec {
    ParamSpec { name, kind, default, unit, meaning, read_when: None }
}

/// A row that only these optimizers use.
const fn for_optimizers(optimizers: &'static [&'static str], row: ParamSpec) -> ParamSpec {
    row.read_when("optimizer", optimizers)
}

/// A row that only these schedules use.
const fn for_schedules(schedules: &'static [&'static str], row: ParamSpec) -> ParamSpec {
    row.read_when("schedule", schedules)
}

pub(super) const OPTIMIZERS: &[&str] = &[
    "auto", "ftrl", "adagrad", "sgd", "momentum", "rmsprop", "adam", "adadelta", "lbfgs", "owlqn", "gd",
    "svrg", "admm",
];
/// Optimizers that have the parameter `learning_rate`.
const OPTIMIZERS_WITH_RATE: &[&str] = &["ftrl", "adagrad", "sgd", "momentum", "rmsprop", "adam", "svrg"];
/// Optimizers that see all records at each step.
pub(super) const FULL_BATCH_OPTIMIZERS: &[&str] = &["lbfgs", "owlqn", "gd", "svrg", "admm"];
const SCHEDULES: &[&str] = &["constant", "inverse_time", "exponential", "warm_restarts"];

/// Number of rows that all linear models share.
const SHARED_COUNT: usize = 36;

/// Parameters of push rules.
const fn push_params() -> [ParamSpec; 10] {
    [
        param(
            "optimizer",
            ParamKind::Choice(OPTIMIZERS),
            "auto",
            "",
            "Push rule of the weights (ftrl is FTRL-Proximal), or a full-batch optimizer: lbfgs, owlqn (for l1), gd, \
             svrg, admm; auto: chosen from the data and the given settings",
        ),
        for_optimizers(
            OPTIMIZERS_WITH_RATE,
            param(
                "learning_rate",
                AUTO_POSITIVE,
                "auto",
                "",
                "step size; alpha of ftrl; auto: 0.1, or 1 for linear, huber and normalize=l2",
            ),
        ),
        for_optimizers(&["ftrl"], param("beta", NOT_NEGATIVE, "1", "", "smooths the first steps")),
        param(
            "l1",
            NOT_NEGATIVE,
            "0",
            "",
            "Weight of |w|_1; for ftrl, owlqn and admm on the sum of losses, else on each batch's gradient",
        ),
        param(
            "l2",
            AUTO_NOT_NEGATIVE,
            "auto",
            "",
            "Weight of 0.5 |w|^2, in the same units; l1 and l2 together are an elastic net; auto: 1 if optimizer=auto \
             chooses lbfgs or owlqn (up to 5 for sparse data with more columns than records), else 0",
        ),
        for_optimizers(
            &["momentum"],
            param("momentum", SHARE, "0.9", "", "share of the previous step that is added to each step"),
        ),
        for_optimizers(&["adam"], param("beta1", SHARE, "0.9", "", "decay rate of the first moment")),
        for_optimizers(&["adam"], param("beta2", SHARE, "0.999", "", "decay rate of the second moment")),
        for_optimizers(
            &["adagrad", "rmsprop", "adam", "adadelta"],
            param("epsilon", POSITIVE, "1e-6", "", "added to denominators for numerical stability"),
        ),
        for_optimizers(
            &["rmsprop", "adadelta"],
            param("decay", SHARE, "0.9", "", "decay rate of the running mean of squares"),
        ),
    ]
}

/// Parameters of full-batch optimizers.
const DESCENT_PARAMS: [ParamSpec; 7] = [
    for_optimizers(
        &["lbfgs", "owlqn", "admm"],
        param(
            "history",
            ParamKind::Integer { low: 1, high: 1000 },
            "10",
            "pairs",
            "history length (owlqn: up to 100); each pair is two vectors on the servers, or in each task for admm",
        ),
    ),
    for_optimizers(
        FULL_BATCH_OPTIMIZERS,
        param(
            "max_iterations",
            ParamKind::Integer { low: 1, high: 1_000_000 },
            "100",
            "",
            "maximum number of iterations; an iteration makes one or a few passes over the data",
        ),
    ),
    for_optimizers(
        FULL_BATCH_OPTIMIZERS,
        param(
            "tolerance",
            NOT_NEGATIVE,
            "1e-6",
            "",
            "stops when five steps decreased the objective by at most this share on average; admm: when both \
             residuals are at most its square root, absolute and relative",
        ),
    ),
    for_optimizers(
        FULL_BATCH_OPTIMIZERS,
        param(
            "start",
            ParamKind::Choice(&["diagonal", "identity"]),
            "diagonal",
            "",
            "initial Hessian: curvature of the loss in each column (diagonal), or one number for all columns",
        ),
    ),
    for_optimizers(
        &["admm"],
        param(
            "rho",
            POSITIVE,
            "0.1",
            "",
            "ADMM penalty parameter, the weight of 0.5 |x - z|^2; with start=diagonal the loss has curvature 1 in \
             each column",
        ),
    ),
    for_optimizers(
        &["admm"],
        param("adaptive_rho", ParamKind::Flag, "true", "", "adapt rho to the residuals, by factors of 2"),
    ),
    for_optimizers(
        &["admm"],
        param(
            "local_iterations",
            ParamKind::Integer { low: 1, high: 1000 },
            "5",
            "",
            "maximum number of L-BFGS steps that a task makes over its records in each iteration",
        ),
    ),
];

/// Parameters of the learning-rate schedule.
const SCHEDULE_PARAMS: [ParamSpec; 6] = [
    param(
        "schedule",
        ParamKind::Choice(SCHEDULES),
        "constant",
        "",
        "Schedule of the step size over the steps; not for ftrl and adadelta",
    ),
    for_schedules(
        &["inverse_time", "exponential"],
        param("schedule_decay", NOT_NEGATIVE, "0.01", "", "rate / (1 + decay t), or rate decay^(t / every)"),
    ),
    for_schedules(
        &["exponential", "warm_restarts"],
        param(
            "schedule_every",
            POSITIVE,
            "100",
            "steps",
            "steps per decay factor, or length of the first period",
        ),
    ),
    for_schedules(
        &["warm_restarts"],
        param(
            "schedule_stretch",
            ParamKind::Real { low: 1.0, high: f64::INFINITY, open: Bounds::Closed },
            "2",
            "",
            "growth factor of the period",
        ),
    ),
    for_schedules(
        &["warm_restarts"],
        param(
            "schedule_floor",
            ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed },
            "0",
            "",
            "smallest factor of the step size",
        ),
    ),
    param(
        "gradient",
        ParamKind::Choice(&["auto", "sum", "mean"]),
        "auto",
        "",
        "Sum or mean over the records of a batch; auto: mean for sgd and momentum, whose steps scale with it, sum for \
         the others",
    ),
];

/// Parameters of reading the data.
const fn data_params(shuffle: &'static str) -> [ParamSpec; 7] {
    [
        param(
            "epochs",
            ParamKind::AutoInteger { low: 1, high: 1_000_000 },
            "auto",
            "passes",
            "Passes over the data; auto: 1 to 50 passes, until 250,000 records have been read",
        ),
        param(
            "batch_size",
            ParamKind::AutoInteger { low: 1, high: 1 << 20 },
            "auto",
            "records",
            "Records per step, with their gradients merged per feature; auto: grows from 64 to 4,096 with the records \
             read",
        ),
        param(
            "shuffle",
            ParamKind::Choice(&["none", "batches", "records"]),
            shuffle,
            "",
            "What to shuffle in passes after the first",
        ),
        param("intercept", ParamKind::Flag, "true", "", "Learn an intercept, without l1 and l2"),
        param(
            "standardize",
            ParamKind::Choice(&["auto", "true", "false", "entries", "idf"]),
            "auto",
            "",
            "true: divide columns by their standard deviation, measured in a scan of the data, and center those of \
             dense formats; entries: divide by the root mean square of the entries that a column has, for sparse \
             data; idf: multiply by 1 - log(share of records with the column), for texts; auto: true for tables, true \
             or entries if the scales of columns differ a lot, idf for texts",
        ),
        param(
            "normalize",
            ParamKind::Choice(&["auto", "none", "l2"]),
            "auto",
            "",
            "l2: scale each record to unit length; auto: l2 for sparse counts in records of very different length, such as texts",
        ),
        param(
            "dimensions",
            ParamKind::AutoInteger { low: 1, high: 1 << 40 },
            "auto",
            "features",
            "Number of features, if known: keys are below it and storage is dense",
        ),
    ]
}

/// Parameters of early stopping and validation, of labels, and of the weight of a record.
const STOPPING_PARAMS: [ParamSpec; 6] = [
    param(
        "early_stopping",
        ParamKind::Integer { low: 0, high: 1_000_000 },
        "0",
        "passes",
        "Stop after this many passes without a better validation metric and keep the best weights; 0: off",
    ),
    param(
        "early_stopping_metric",
        ParamKind::Choice(&[
            "loss",
            "log_loss",
            "auc",
            "gauc",
            "accuracy",
            "precision",
            "recall",
            "f1",
            "macro_f1",
            "rmse",
            "mae",
            "r2",
        ]),
        "loss",
        "",
        "Validation metric of early_stopping, one of those that the algorithm reports; whether larger is better \
         follows from it",
    ),
    param("validation_share", SHARE, "0", "", "Share of the training records held out for validation"),
    param(
        "class_weights",
        ParamKind::Text,
        "",
        "",
        "'balanced', or label:weight pairs such as 0:1,1:5 or no:1,yes:5, labels as in the data; not for linear and huber",
    ),
    param(
        "positive_label",
        ParamKind::Text,
        "",
        "",
        "lr, svm: the label that counts as 1, as in the data; all others count as 0 [1; of two names, the second in \
         alphabetical order]",
    ),
    param("clip", NOT_NEGATIVE, "0", "", "Maximum absolute gradient of a record's loss by its score; 0: off"),
];

/// Rows that all linear models share, with the defaults that differ.
///
/// Regression reads in file order. With growing batches the last steps of a pass are then the large ones, which average
/// the noise of single records (California RMSE .7238, and .7285 with permuted batches).
const fn shared_params(shuffle: &'static str) -> [ParamSpec; SHARED_COUNT] {
    let mut all = [STOPPING_PARAMS[0]; SHARED_COUNT];
    let at = copy_params(&mut all, 0, &push_params());
    let at = copy_params(&mut all, at, &DESCENT_PARAMS);
    let at = copy_params(&mut all, at, &SCHEDULE_PARAMS);
    let at = copy_params(&mut all, at, &data_params(shuffle));
    let end = copy_params(&mut all, at, &STOPPING_PARAMS);
    assert!(end == SHARED_COUNT, "every row is written");
    all
}

/// Copies `rows` into `all` from row `at`; returns the index after them.
const fn copy_params(all: &mut [ParamSpec], at: usize, rows: &[ParamSpec]) -> usize {
    let mut i = 0;
    while i < rows.len() {
        all[at + i] = rows[i];
        i += 1;
    }
    at + rows.len()
}

/// The shared rows and one more row.
const fn with_extra(shared: &[ParamSpec; SHARED_COUNT], extra: ParamSpec) -> [ParamSpec; SHARED_COUNT + 1] {
    let mut all = [extra; SHARED_COUNT + 1];
    copy_params(&mut all, 0, shared);
    all
}

const CLASSIFIER: [ParamSpec; SHARED_COUNT] = shared_params("batches");
const REGRESSION: [ParamSpec; SHARED_COUNT] = shared_params("none");

/// Table of `lr`.
pub const LR: &[ParamSpec] = &CLASSIFIER;
/// Table of `svm`.
pub const SVM: &[ParamSpec] = &with_extra(
    &CLASSIFIER,
    param(
        "loss",
        ParamKind::Choice(&["hinge", "squared_hinge"]),
        "hinge",
        "",
        "hinge, or squared_hinge, which is smooth",
    ),
);
/// Table of `softmax`.
pub const SOFTMAX: &[ParamSpec] = &CLASSIFIER;
/// Table of `linear`.
pub const LINEAR: &[ParamSpec] = &REGRESSION;
/// Table of `huber`.
pub const HUBER: &[ParamSpec] = &with_extra(
    &REGRESSION,
    param(
        "delta",
        POSITIVE,
        "1.35",
        "units of the label",
        "Error at which the loss changes from squared to absolute",
    ),
);
