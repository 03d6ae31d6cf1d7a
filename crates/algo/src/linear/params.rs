//! The parameters of the linear models in the checked form that training uses.

use matrix::{PushRule, Schedule};

use super::loss::Loss;
use super::table::{AUTO_EPOCHS_LIMIT, AUTO_RECORD_VISITS};
use crate::error::Error;
use crate::job::Epochs;
use crate::param::Checked;

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
