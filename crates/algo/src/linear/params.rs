//! The parameters of the linear models: the table a user sees, and the checked form that training uses.

use matrix::{PushRule, Schedule};

use super::loss::Loss;
use crate::algorithm::Epochs;
use crate::error::Error;
use crate::param::{Bounds, Checked, ParamKind, ParamSpec};

/// `epochs=auto` reads the data until so many records have gone by: online learning needs a number of updates, not a
/// number of passes. One pass is enough for a million records; a small set is read up to [`AUTO_EPOCHS_LIMIT`] times.
pub const AUTO_RECORD_VISITS: u64 = 250_000;
/// Most epochs of `epochs=auto`.
pub const AUTO_EPOCHS_LIMIT: u64 = 50;

const POSITIVE: ParamKind = ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow };
const NOT_NEGATIVE: ParamKind = ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };
const SHARE: ParamKind = ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenHigh };

const fn row(
    name: &'static str,
    kind: ParamKind,
    default: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> ParamSpec {
    ParamSpec { name, kind, default, unit, meaning }
}

const OPTIMIZERS: &[&str] = &["ftrl", "adagrad", "sgd", "momentum", "rmsprop", "adam", "adadelta"];
const SCHEDULES: &[&str] = &["constant", "inverse_time", "exponential", "warm_restarts"];

/// How many rows all linear models share.
const SHARED_COUNT: usize = 28;

/// Rows that all linear models share, with the defaults that differ.
const fn shared(rate: &'static str, standardize: &'static str) -> [ParamSpec; SHARED_COUNT] {
    [
        row(
            "optimizer",
            ParamKind::Choice(OPTIMIZERS),
            "ftrl",
            "",
            "Push rule of the weights; ftrl is FTRL-Proximal, its step sizes are per coordinate",
        ),
        row("learning_rate", POSITIVE, rate, "", "Step size; alpha of ftrl; not used by adadelta"),
        row("beta", NOT_NEGATIVE, "1", "", "ftrl: smooths the first steps"),
        row(
            "l1",
            NOT_NEGATIVE,
            "0",
            "",
            "Weight of |w|_1; for ftrl on the sum of losses, else on each batch's gradient",
        ),
        row(
            "l2",
            NOT_NEGATIVE,
            "0",
            "",
            "Weight of 0.5 |w|^2, in the same units; l1 and l2 together are an elastic net",
        ),
        row("momentum", SHARE, "0.9", "", "momentum: share of the last step that is kept"),
        row("beta1", SHARE, "0.9", "", "adam: share of the first moment that is kept"),
        row("beta2", SHARE, "0.999", "", "adam: share of the second moment that is kept"),
        row("epsilon", POSITIVE, "1e-6", "", "adagrad, rmsprop, adam, adadelta: keeps denominators from 0"),
        row("decay", SHARE, "0.9", "", "rmsprop, adadelta: share of the mean of squares that is kept"),
        row(
            "schedule",
            ParamKind::Choice(SCHEDULES),
            "constant",
            "",
            "Change of the step size with the steps; not for ftrl and adadelta",
        ),
        row(
            "schedule_decay",
            NOT_NEGATIVE,
            "0.01",
            "",
            "inverse_time: rate / (1 + decay t); exponential: rate decay^(t / every)",
        ),
        row(
            "schedule_every",
            POSITIVE,
            "100",
            "steps",
            "exponential: steps for one factor; warm_restarts: steps of the first period",
        ),
        row(
            "schedule_stretch",
            ParamKind::Real { low: 1.0, high: f64::INFINITY, open: Bounds::Closed },
            "2",
            "",
            "warm_restarts: growth of the period",
        ),
        row(
            "schedule_floor",
            ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed },
            "0",
            "",
            "warm_restarts: smallest factor",
        ),
        row(
            "gradient",
            ParamKind::Choice(&["auto", "sum", "mean"]),
            "auto",
            "",
            "Over the records of a batch; auto: mean for sgd and momentum, whose steps scale with it, sum for the rest",
        ),
        row(
            "epochs",
            ParamKind::AutoInteger { low: 1, high: 1_000_000 },
            "auto",
            "passes",
            "Passes over the data; auto: until 250,000 records have gone by, 1 to 50 passes",
        ),
        row(
            "batch_size",
            ParamKind::AutoInteger { low: 1, high: 1 << 20 },
            "auto",
            "records",
            "Records a step, their gradients merged per feature; auto: grows from 64 to 4,096 with the records read",
        ),
        row(
            "shuffle",
            ParamKind::Choice(&["none", "batches", "records"]),
            "batches",
            "",
            "Order of later passes",
        ),
        row("intercept", ParamKind::Flag, "true", "", "Learn a constant, without l1 and l2"),
        row(
            "standardize",
            ParamKind::Flag,
            standardize,
            "",
            "Scale columns by their deviation, seen in a scan; dense formats are centred too",
        ),
        row(
            "normalize",
            ParamKind::Choice(&["none", "l2"]),
            "none",
            "",
            "l2: scale each record to unit length",
        ),
        row(
            "dimensions",
            ParamKind::AutoInteger { low: 1, high: 1 << 40 },
            "auto",
            "features",
            "Number of features, if known: keys are below it and storage is dense",
        ),
        row(
            "early_stopping",
            ParamKind::Integer { low: 0, high: 1_000_000 },
            "0",
            "passes",
            "Stop after so many passes without a better validation loss and keep the best weights; 0 is off",
        ),
        row("validation_share", SHARE, "0", "", "Share of the training records held out for validation"),
        row(
            "class_weights",
            ParamKind::Text,
            "",
            "",
            "'balanced', or label:weight pairs such as 0:1,1:5; not for linear and huber",
        ),
        row(
            "positive_label",
            ParamKind::Text,
            "",
            "",
            "lr, svm: the label that counts as 1; all others count as 0",
        ),
        row("clip", NOT_NEGATIVE, "0", "", "Largest size of a record's slope; 0 is off"),
    ]
}

/// The shared rows and `extra` ones.
const fn with<const N: usize>(shared: [ParamSpec; SHARED_COUNT], extra: [ParamSpec; 1]) -> [ParamSpec; N] {
    let mut all = [extra[0]; N];
    let mut i = 0;
    while i < SHARED_COUNT {
        all[i] = shared[i];
        i += 1;
    }
    all
}

/// Table of `lr`.
pub(super) const LR: &[ParamSpec] = &shared("0.1", "false");
/// Table of `svm`.
pub(super) const SVM: &[ParamSpec] = &with::<{ SHARED_COUNT + 1 }>(
    shared("0.1", "false"),
    [row(
        "loss",
        ParamKind::Choice(&["hinge", "squared_hinge"]),
        "hinge",
        "",
        "hinge, or squared_hinge, which is smooth",
    )],
);
/// Table of `softmax`.
pub(super) const SOFTMAX: &[ParamSpec] = &shared("0.1", "false");
/// Table of `linear`.
pub(super) const LINEAR: &[ParamSpec] = &shared("1", "true");
/// Table of `huber`.
pub(super) const HUBER: &[ParamSpec] = &with::<{ SHARED_COUNT + 1 }>(
    shared("1", "true"),
    [row("delta", POSITIVE, "1.35", "units of the label", "Where squares end and absolutes begin")],
);

/// Weights of classes.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWeights {
    /// All 1.
    None,
    /// `records / (classes x records of the class)`.
    Balanced,
    /// As given; classes not named have 1.
    Given(Vec<(f32, f64)>),
}

/// Parameters that training looks at, in their types.
#[derive(Clone, Debug)]
pub struct Params {
    /// Rule of the weights.
    pub rule: PushRule,
    /// The same without l1 and l2.
    pub intercept_rule: PushRule,
    /// Gradients are divided by the number of records.
    pub mean_gradient: bool,
    /// Passes.
    pub epochs: Epochs,
    /// Of labels.
    pub class_weights: ClassWeights,
    /// Label that counts as 1.
    pub positive_label: Option<f32>,
    /// Largest slope of a record; infinite when off.
    pub clip: f64,
    /// For messages.
    pub learning_rate: f64,
}

/// From checked text to types; what one row of the table cannot say is checked here.
pub(super) fn params(checked: &Checked, loss: Loss) -> Result<Params, Error> {
    let (l1, l2) = (checked.real("l1"), checked.real("l2"));
    let adaptive = !matches!(checked.text("optimizer"), "sgd" | "momentum");
    let epochs = match checked.auto_integer("epochs") {
        Some(count) => Epochs::Fixed(count),
        None => Epochs::Auto { record_visits: AUTO_RECORD_VISITS, limit: AUTO_EPOCHS_LIMIT },
    };
    if checked.text("schedule") != "constant" && matches!(checked.text("optimizer"), "ftrl" | "adadelta") {
        return Err(Error::Conflict {
            algorithm: checked.algorithm(),
            first: format!("optimizer={}", checked.text("optimizer")),
            second: format!("schedule={}", checked.text("schedule")),
            reason: "this rule finds its own step sizes; choose sgd, momentum, adagrad, rmsprop or adam",
        });
    }
    let clip = checked.real("clip");
    Ok(Params {
        rule: rule(checked, l1, l2)?,
        intercept_rule: rule(checked, 0.0, 0.0)?,
        mean_gradient: match checked.text("gradient") {
            "sum" => false,
            "mean" => true,
            _ => !adaptive,
        },
        epochs,
        class_weights: class_weights(checked, loss)?,
        positive_label: positive_label(checked, loss)?,
        clip: if clip > 0.0 { clip } else { f64::INFINITY },
        learning_rate: checked.real("learning_rate"),
    })
}

fn rule(checked: &Checked, l1: f64, l2: f64) -> Result<PushRule, Error> {
    let rate = checked.real("learning_rate");
    let epsilon = checked.real("epsilon");
    let decay = checked.real("decay");
    let schedule = schedule(checked)?;
    Ok(match checked.text("optimizer") {
        "ftrl" => PushRule::FtrlProximal { alpha: rate, beta: checked.real("beta"), l1, l2 },
        "adagrad" => PushRule::AdaGrad { rate, epsilon, schedule, l1, l2 },
        "sgd" => PushRule::Sgd { rate, schedule, l1, l2 },
        "momentum" => PushRule::Momentum { rate, momentum: checked.real("momentum"), schedule, l1, l2 },
        "rmsprop" => PushRule::RmsProp { rate, decay, epsilon, schedule, l1, l2 },
        "adam" => {
            let (beta1, beta2) = (checked.real("beta1"), checked.real("beta2"));
            PushRule::Adam { rate, beta1, beta2, epsilon, schedule, l1, l2 }
        }
        _ => PushRule::AdaDelta { decay, epsilon, l1, l2 },
    })
}

fn schedule(checked: &Checked) -> Result<Schedule, Error> {
    let decay = checked.real("schedule_decay");
    let every = checked.real("schedule_every");
    Ok(match checked.text("schedule") {
        "inverse_time" => Schedule::InverseTime { decay },
        "exponential" if decay <= 0.0 || decay > 1.0 => {
            return Err(checked.refuse("schedule_decay", "a number in (0, 1] for schedule=exponential"));
        }
        "exponential" => Schedule::Exponential { decay, every },
        "warm_restarts" => Schedule::WarmRestarts {
            period: every,
            stretch: checked.real("schedule_stretch"),
            floor: checked.real("schedule_floor"),
        },
        _ => Schedule::Constant,
    })
}

fn class_weights(checked: &Checked, loss: Loss) -> Result<ClassWeights, Error> {
    let text = checked.text("class_weights");
    if text.is_empty() {
        return Ok(ClassWeights::None);
    }
    if !loss.is_binary() && loss != Loss::Softmax {
        return Err(checked.refuse("class_weights", "nothing: the labels are numbers, not classes"));
    }
    if text == "balanced" {
        return Ok(ClassWeights::Balanced);
    }
    let pair = |part: &str| -> Option<(f32, f64)> {
        let (label, weight) = part.split_once(':')?;
        let weight = weight.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0)?;
        Some((label.trim().parse().ok()?, weight))
    };
    let given: Option<Vec<_>> = text.split(',').map(pair).collect();
    given.map(ClassWeights::Given).ok_or_else(|| {
        checked.refuse("class_weights", "balanced, or label:weight pairs such as 0:1,1:5, weights >= 0")
    })
}

fn positive_label(checked: &Checked, loss: Loss) -> Result<Option<f32>, Error> {
    let text = checked.text("positive_label");
    if text.is_empty() {
        return Ok(None);
    }
    if !loss.is_binary() {
        return Err(checked.refuse("positive_label", "nothing: only lr and svm have a positive label"));
    }
    match text.parse::<f32>() {
        Ok(label) if label.is_finite() => Ok(Some(label)),
        _ => Err(checked.refuse("positive_label", "a number")),
    }
}
