//! The parameters of the linear models in the checked and typed form that training uses.

use data::{BatchSize, Shuffle};
use matrix::Schedule;

use super::choices::{ColumnScaling, StartHessian};
use super::optimizer::{
    FTRL, L1Penalty, Method, OPTIMIZERS, Optimizer, PushTraining, RuleSettings, Training,
};
use super::optimizer_params::{L1, L2, LEARNING_RATE, MAX_ITERATIONS, START, TOLERANCE};
use super::param_table::{
    AUTO_EPOCHS_LIMIT, AUTO_RECORD_VISITS, BATCH_SIZE, CLASS_WEIGHTS, CLIP, DIMENSIONS, EPOCHS, GRADIENT,
    INTERCEPT, LOSS, NORMALIZE, OPTIMIZER, STANDARDIZE,
};
use super::schedule::ScheduleKind;
use super::schedule::{SCHEDULE, SCHEDULE_DECAY, SCHEDULE_EVERY, SCHEDULE_FLOOR, SCHEDULE_STRETCH};
use crate::descent::Settings;
use algo::error::Error;
use algo::job::Epochs;
use algo::loss::Loss;
use algo::param::CheckedParams;
use algo::param::common::{
    BatchGradient, RecordScaling, SHUFFLE, VALIDATION_SHARE, early_stopping, positive_label,
};
use algo::stopping::EarlyStopping;

/// Weights of classes.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWeights {
    None,
    /// `records / (classes x records of the class)`.
    Balanced,
    /// Labels as the user writes them, each with its weight; classes that are not named have the weight 1.
    Given(Vec<(String, f64)>),
}

/// Typed parameters of training. `None` is what is still `auto`.
#[derive(Clone, Debug)]
pub struct Params {
    pub optimizer: Option<&'static Optimizer>,
    /// How `optimizer` learns the weights, or FTRL-Proximal if it is not chosen yet.
    pub training: Training,
    /// Weight of `|w|_1`.
    pub l1: f64,
    /// Weight of `0.5 |w|^2`.
    pub l2: Option<f64>,
    /// The learning rate; SVRG and error messages use it.
    pub learning_rate: f64,
    pub epochs: Epochs,
    pub batch_size: BatchSize,
    pub shuffle: Shuffle,
    pub intercept: bool,
    pub column_scaling: Option<ColumnScaling>,
    pub record_scaling: Option<RecordScaling>,
    /// Number of features, if it was declared.
    pub dimensions: Option<u64>,
    pub class_weights: ClassWeights,
    /// The label that counts as 1, as the user writes it.
    pub positive_label: Option<String>,
    /// Largest absolute slope of a record; infinite if clipping is off.
    pub clip: f64,
    pub early_stopping: Option<EarlyStopping>,
    /// Share of the records reserved for validation, in `[0, 1)`.
    pub validation_share: f64,
}

/// Converts checked text to types. It also makes the checks that one row of the table cannot express.
pub(super) fn params(checked: &CheckedParams, loss: Loss) -> Result<Params, Error> {
    let optimizer = checked.auto_choice(&OPTIMIZER);
    let training = training(checked, loss, optimizer)?;
    let clip = checked.real(&CLIP);
    Ok(Params {
        optimizer,
        l1: checked.real(&L1),
        l2: checked.auto_real(&L2),
        learning_rate: learning_rate(checked, loss),
        epochs: match (training.descent(), checked.auto_integer(&EPOCHS)) {
            (Some(settings), _) => Epochs::Fixed(settings.max_iterations.saturating_add(1)),
            (None, Some(count)) => Epochs::Fixed(count),
            (None, None) => Epochs::Auto { record_visits: AUTO_RECORD_VISITS, limit: AUTO_EPOCHS_LIMIT },
        },
        batch_size: checked
            .auto_integer(&BATCH_SIZE)
            .map_or(training.batch_size(), |size| BatchSize::Fixed(size as usize)),
        shuffle: if training.descent().is_some() { Shuffle::None } else { checked.choice(&SHUFFLE) },
        training,
        intercept: checked.flag(&INTERCEPT),
        column_scaling: checked.auto_choice(&STANDARDIZE),
        record_scaling: checked.auto_choice(&NORMALIZE),
        dimensions: checked.auto_integer(&DIMENSIONS),
        class_weights: class_weights(checked, loss)?,
        positive_label: positive_label(checked, loss)?,
        clip: if clip > 0.0 { clip } else { f64::INFINITY },
        early_stopping: early_stopping(checked, loss)?,
        validation_share: checked.real(&VALIDATION_SHARE),
    })
}

/// The learning rate. Records of unit length have small entries, and real labels are scaled to deviation 1: both need
/// larger steps than entries of 1 (news20 with FTRL: accuracy .824 with rate 1, .78 with rate .1).
pub(super) fn learning_rate(checked: &CheckedParams, loss: Loss) -> f64 {
    let is_small = loss.is_real() || checked.auto_choice(&NORMALIZE) == Some(RecordScaling::L2);
    checked.auto_real(&LEARNING_RATE).unwrap_or(if is_small { 1.0 } else { 0.1 })
}

/// How the weights are learned. Settings that the optimizer does not use are refused.
fn training(
    checked: &CheckedParams,
    loss: Loss,
    optimizer: Option<&'static Optimizer>,
) -> Result<Training, Error> {
    let schedule = schedule(checked)?;
    match optimizer.unwrap_or(&FTRL).method {
        Method::Push { rule, gradient } => {
            if schedule != Schedule::Constant && optimizer.is_some_and(|own| !own.follows_schedule(checked)) {
                return Err(schedule_conflict(checked));
            }
            let settings = |l1, l2| {
                let rate = learning_rate(checked, loss);
                RuleSettings { checked, rate, schedule, l1, l2 }
            };
            Ok(Training::Push(PushTraining {
                rule: rule(&settings(checked.real(&L1), checked.auto_real(&L2).unwrap_or(0.0))),
                intercept_rule: rule(&settings(0.0, 0.0)),
                gradient: checked.auto_choice(&GRADIENT).unwrap_or(gradient),
            }))
        }
        Method::FullBatch { l1, training } => {
            check_full_batch(checked, loss, l1)?;
            training(checked, descent_settings(checked))
        }
    }
}

/// The error for a schedule with a rule that has its own step sizes.
fn schedule_conflict(checked: &CheckedParams) -> Error {
    let names = OPTIMIZERS.iter().filter(|other| other.follows_schedule(checked));
    let names: Vec<_> = names.map(|other| other.name).collect();
    let reason = format!("this rule determines its own step sizes; choose one of {}", names.join(", "));
    checked.conflict(checked.pair(&OPTIMIZER), &SCHEDULE, reason)
}

/// Refuses settings that full-batch optimizers do not use.
fn check_full_batch(checked: &CheckedParams, loss: Loss, l1: L1Penalty) -> Result<(), Error> {
    let conflict = |spec, reason: &'static str| Err(checked.conflict(checked.pair(&OPTIMIZER), spec, reason));
    if loss == Loss::Hinge {
        return conflict(&LOSS, "hinge loss has no gradient at its corner; use loss=squared_hinge");
    }
    match (l1, checked.real(&L1) > 0.0) {
        (L1Penalty::Required, false) => {
            return conflict(&L1, "it is for objectives with |w|_1; set l1 > 0, or use lbfgs");
        }
        (L1Penalty::Refused, true) => {
            return conflict(&L1, "|w|_1 has no gradient at 0; use owlqn or admm");
        }
        (L1Penalty::Required, true) | (L1Penalty::Refused, false) | (L1Penalty::Optional, _) => {}
    }
    if checked.choice::<ScheduleKind>(&SCHEDULE) != ScheduleKind::Constant {
        return conflict(&SCHEDULE, "a line search determines the step sizes; remove schedule");
    }
    if checked.real(&CLIP) > 0.0 {
        return conflict(&CLIP, "clipped gradients belong to another objective; remove clip, or use huber");
    }
    if checked.auto_choice(&GRADIENT) == Some(BatchGradient::Mean) {
        return conflict(&GRADIENT, "the objective is the sum of losses; remove gradient");
    }
    if checked.auto_integer(&EPOCHS).is_some() {
        return conflict(&EPOCHS, "a step reads all records; set max_iterations instead");
    }
    Ok(())
}

/// The settings that full-batch optimizers share; a history is added by those that have one on the servers.
fn descent_settings(checked: &CheckedParams) -> Settings {
    Settings {
        history: 0,
        max_iterations: checked.integer(&MAX_ITERATIONS),
        tolerance: checked.real(&TOLERANCE),
        diagonal: checked.choice::<StartHessian>(&START) == StartHessian::Diagonal,
        l1: checked.real(&L1),
        l2: checked.auto_real(&L2).unwrap_or(0.0),
    }
}

fn schedule(checked: &CheckedParams) -> Result<Schedule, Error> {
    let decay = checked.real(&SCHEDULE_DECAY);
    let every = checked.real(&SCHEDULE_EVERY);
    Ok(match checked.choice(&SCHEDULE) {
        ScheduleKind::Constant => Schedule::Constant,
        ScheduleKind::InverseTime => Schedule::InverseTime { decay, start: 0 },
        ScheduleKind::Exponential if decay <= 0.0 || decay > 1.0 => {
            return Err(checked.invalid_value(&SCHEDULE_DECAY, "a number in (0, 1] for schedule=exponential"));
        }
        ScheduleKind::Exponential => Schedule::Exponential { decay, every, start: 0 },
        ScheduleKind::WarmRestarts => Schedule::WarmRestarts {
            period: every,
            stretch: checked.real(&SCHEDULE_STRETCH),
            floor: checked.real(&SCHEDULE_FLOOR),
            start: 0,
        },
    })
}

fn class_weights(checked: &CheckedParams, loss: Loss) -> Result<ClassWeights, Error> {
    let text = checked.text(&CLASS_WEIGHTS);
    if text.is_empty() {
        return Ok(ClassWeights::None);
    }
    if !loss.is_binary() && loss != Loss::Softmax {
        return Err(checked.invalid_value(&CLASS_WEIGHTS, "nothing: the labels are numbers, not classes"));
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
            &CLASS_WEIGHTS,
            "balanced, or label:weight pairs such as 0:1,1:5 or no:1,yes:5, weights >= 0",
        )
    })
}
