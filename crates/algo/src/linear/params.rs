//! The parameters of the linear models in the checked and typed form that training uses.

use data::BatchSize;
use matrix::{PushRule, Schedule};

use super::loss::Loss;
use super::param_table::{AUTO_EPOCHS_LIMIT, AUTO_RECORD_VISITS};
use crate::descent::{Consensus, Settings};
use crate::error::Error;
use crate::job::Epochs;
use crate::metric::{STOPPING_METRICS, StoppingMetric};
use crate::param::{AUTO, CheckedParams};

/// Weights of classes.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWeights {
    None,
    /// `records / (classes x records of the class)`.
    Balanced,
    /// Labels as the user writes them, each with its weight; classes that are not named have the weight 1.
    Given(Vec<(String, f64)>),
}

/// Typed parameters of training.
#[derive(Clone, Debug)]
pub struct Params {
    /// Push rule of the weights.
    pub rule: PushRule,
    /// Push rule of the intercept: the same without l1 and l2.
    pub intercept_rule: PushRule,
    /// Whether gradients are divided by the number of records.
    pub mean_gradient: bool,
    pub epochs: Epochs,
    /// Records per batch, unless the user sets it.
    pub batch_size: BatchSize,
    /// Settings of full-batch optimizers.
    pub descent: Option<Settings>,
    /// Settings of ADMM, besides `descent`.
    pub consensus: Option<Consensus>,
    pub class_weights: ClassWeights,
    /// The label that counts as 1, as the user writes it.
    pub positive_label: Option<String>,
    /// Largest absolute slope of a record; infinite if clipping is off.
    pub clip: f64,
    /// The metric of early stopping.
    pub stopping_metric: StoppingMetric,
    /// The learning rate; SVRG and error messages use it.
    pub learning_rate: f64,
}

/// Records of a step of SVRG, which changes all columns: few enough for many steps per pass.
const SVRG_BATCH: usize = 512;
/// Records per batch in a pass over all records: the columns that occur in a batch stay in the cache.
const FULL_BATCH: usize = 4096;

/// Largest history of OWL-QN: the answers of its products have about 1.5 times the square of it in sums, each of up to
/// 255 terms per lane.
const OWLQN_HISTORY: u64 = 100;

/// Converts checked text to types. It also makes the checks that one row of the table cannot express.
pub(super) fn params(checked: &CheckedParams, loss: Loss) -> Result<Params, Error> {
    let (l1, l2) = (checked.real("l1"), l2(checked));
    let adaptive = !matches!(checked.text("optimizer"), "sgd" | "momentum");
    let descent = descent(checked, loss)?;
    let epochs = match checked.auto_integer("epochs") {
        _ if let Some(settings) = &descent => Epochs::Fixed(settings.max_iterations.saturating_add(1)),
        Some(count) => Epochs::Fixed(count),
        None => Epochs::Auto { record_visits: AUTO_RECORD_VISITS, limit: AUTO_EPOCHS_LIMIT },
    };
    if checked.text("schedule") != "constant" && matches!(checked.text("optimizer"), "ftrl" | "adadelta") {
        return Err(Error::Conflict {
            algorithm: checked.algorithm(),
            first: format!("optimizer={}", checked.text("optimizer")),
            second: format!("schedule={}", checked.text("schedule")),
            reason: "this rule determines its own step sizes; choose sgd, momentum, adagrad, rmsprop or adam",
        });
    }
    let clip = checked.real("clip");
    Ok(Params {
        rule: rule(checked, loss, l1, l2)?,
        intercept_rule: rule(checked, loss, 0.0, 0.0)?,
        mean_gradient: match checked.text("gradient") {
            "sum" => false,
            "mean" => true,
            _ => !adaptive,
        },
        epochs,
        batch_size: match (&descent, checked.text("optimizer")) {
            (None, _) => BatchSize::Growing,
            (Some(_), "svrg") => BatchSize::Fixed(SVRG_BATCH),
            (Some(_), _) => BatchSize::Fixed(FULL_BATCH),
        },
        descent,
        consensus: (checked.text("optimizer") == "admm").then(|| Consensus {
            rho: checked.real("rho"),
            adaptive: checked.flag("adaptive_rho"),
            local_iterations: checked.integer("local_iterations"),
            history: checked.integer("history") as usize,
        }),
        class_weights: class_weights(checked, loss)?,
        positive_label: positive_label(checked, loss)?,
        clip: if clip > 0.0 { clip } else { f64::INFINITY },
        stopping_metric: stopping_metric(checked, loss)?,
        learning_rate: learning_rate(checked, loss),
    })
}

/// Weight of the squares of the weights; 0 for `auto`.
fn l2(checked: &CheckedParams) -> f64 {
    checked.auto_real("l2").unwrap_or(0.0)
}

/// The learning rate. Records of unit length have small entries, and real labels are scaled to deviation 1: both need
/// larger steps than entries of 1 (news20 with FTRL: accuracy .824 with rate 1, .78 with rate .1).
pub(super) fn learning_rate(checked: &CheckedParams, loss: Loss) -> f64 {
    let is_small = loss.is_real() || checked.text("normalize") == "l2";
    checked.auto_real("learning_rate").unwrap_or(if is_small { 1.0 } else { 0.1 })
}

/// The settings of a full-batch optimizer; `None` for a push rule. Settings that the optimizer does not use are
/// refused.
fn descent(checked: &CheckedParams, loss: Loss) -> Result<Option<Settings>, Error> {
    let optimizer = checked.text("optimizer");
    if !matches!(optimizer, "lbfgs" | "owlqn" | "gd" | "svrg" | "admm") {
        return Ok(None);
    }
    let conflict = |name: &str, reason| {
        let (first, second) = (format!("optimizer={optimizer}"), format!("{name}={}", checked.text(name)));
        Err(Error::Conflict { algorithm: checked.algorithm(), first, second, reason })
    };
    if loss == Loss::Hinge {
        return conflict("loss", "hinge loss has no gradient at its corner; use loss=squared_hinge");
    }
    let l1 = checked.real("l1");
    if optimizer == "owlqn" && l1 == 0.0 {
        return conflict("l1", "it is for objectives with |w|_1; set l1 > 0, or use lbfgs");
    }
    if optimizer == "owlqn" && checked.integer("history") > OWLQN_HISTORY {
        return conflict("history", "each step needs the products of all pairs; the limit of owlqn is 100");
    }
    if !matches!(optimizer, "owlqn" | "admm") && l1 > 0.0 {
        return conflict("l1", "|w|_1 has no gradient at 0; use owlqn or admm");
    }
    if checked.text("schedule") != "constant" {
        return conflict("schedule", "a line search determines the step sizes; remove schedule");
    }
    if checked.real("clip") > 0.0 {
        return conflict("clip", "clipped gradients belong to another objective; remove clip, or use huber");
    }
    if checked.text("gradient") == "mean" {
        return conflict("gradient", "the objective is the sum of losses; remove gradient");
    }
    if checked.auto_integer("epochs").is_some() {
        return conflict("epochs", "a step reads all records; set max_iterations instead");
    }
    Ok(Some(Settings {
        // The history of ADMM is on its tasks, not on the servers.
        history: if matches!(optimizer, "gd" | "svrg" | "admm") {
            0
        } else {
            checked.integer("history") as usize
        },
        max_iterations: checked.integer("max_iterations"),
        tolerance: checked.real("tolerance"),
        diagonal: checked.text("start") == "diagonal",
        l1,
        l2: l2(checked),
    }))
}

fn rule(checked: &CheckedParams, loss: Loss, l1: f64, l2: f64) -> Result<PushRule, Error> {
    let rate = learning_rate(checked, loss);
    let epsilon = checked.real("epsilon");
    let decay = checked.real("decay");
    let schedule = schedule(checked)?;
    Ok(match checked.text("optimizer") {
        "lbfgs" | "owlqn" | "gd" | "svrg" | "admm" => PushRule::Assign,
        // `auto` is resolved before a matrix is created.
        AUTO | "ftrl" => PushRule::FtrlProximal { alpha: rate, beta: checked.real("beta"), l1, l2 },
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

fn schedule(checked: &CheckedParams) -> Result<Schedule, Error> {
    let decay = checked.real("schedule_decay");
    let every = checked.real("schedule_every");
    Ok(match checked.text("schedule") {
        "inverse_time" => Schedule::InverseTime { decay, start: 0 },
        "exponential" if decay <= 0.0 || decay > 1.0 => {
            return Err(
                checked.invalid_value("schedule_decay", "a number in (0, 1] for schedule=exponential")
            );
        }
        "exponential" => Schedule::Exponential { decay, every, start: 0 },
        "warm_restarts" => Schedule::WarmRestarts {
            period: every,
            stretch: checked.real("schedule_stretch"),
            floor: checked.real("schedule_floor"),
            start: 0,
        },
        _ => Schedule::Constant,
    })
}

fn class_weights(checked: &CheckedParams, loss: Loss) -> Result<ClassWeights, Error> {
    let text = checked.text("class_weights");
    if text.is_empty() {
        return Ok(ClassWeights::None);
    }
    if !loss.is_binary() && loss != Loss::Softmax {
        return Err(checked.invalid_value("class_weights", "nothing: the labels are numbers, not classes"));
    }
    if text == "balanced" {
        return Ok(ClassWeights::Balanced);
    }
    let pair = |part: &str| -> Option<(String, f64)> {
        // A name may contain a colon; a weight does not.
        let (label, weight) = part.rsplit_once(':')?;
        let weight = weight.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0)?;
        Some((label.trim().to_owned(), weight))
    };
    let given: Option<Vec<_>> = text.split(',').map(pair).collect();
    given.map(ClassWeights::Given).ok_or_else(|| {
        checked.invalid_value(
            "class_weights",
            "balanced, or label:weight pairs such as 0:1,1:5 or no:1,yes:5, weights >= 0",
        )
    })
}

/// The metric of early stopping. It must be one that a model with this loss has.
fn stopping_metric(checked: &CheckedParams, loss: Loss) -> Result<StoppingMetric, Error> {
    let name = checked.text("early_stopping_metric");
    let known: &[&str] = match loss {
        Loss::Logistic => &["loss", "log_loss", "auc", "gauc", "accuracy", "precision", "recall", "f1"],
        Loss::Hinge | Loss::SquaredHinge => &["loss", "auc", "gauc", "accuracy", "precision", "recall", "f1"],
        Loss::Softmax => &["loss", "log_loss", "accuracy", "macro_f1"],
        Loss::Squared | Loss::Huber { .. } => &["loss", "rmse", "mae", "r2"],
    };
    let metric = STOPPING_METRICS.iter().find(|metric| metric.name == name && known.contains(&name));
    let metric = metric.ok_or_else(|| checked.invalid_value("early_stopping_metric", known.join(" | ")))?;
    if name != "loss" && checked.integer("early_stopping") == 0 {
        let expected = "nothing while early_stopping is 0; set early_stopping to a number of passes";
        return Err(checked.invalid_value("early_stopping_metric", expected));
    }
    Ok(*metric)
}

fn positive_label(checked: &CheckedParams, loss: Loss) -> Result<Option<String>, Error> {
    let text = checked.text("positive_label");
    if text.is_empty() {
        return Ok(None);
    }
    if !loss.is_binary() {
        return Err(checked.invalid_value("positive_label", "nothing: only lr and svm have a positive label"));
    }
    Ok(Some(text.to_owned()))
}
