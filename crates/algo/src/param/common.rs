//! Parameters and ranges that several families have.

use data::Shuffle;

use super::{Bounds, CheckedParams, Choice, ParamKind, ParamSpec, words};
use crate::error::Error;
use crate::loss::Loss;
use crate::metric::{STOPPING_METRICS, StoppingMetric};
use crate::stopping::EarlyStopping;

pub const POSITIVE: ParamKind = ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow };
pub const NOT_NEGATIVE: ParamKind = ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };
pub const SHARE: ParamKind = ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenHigh };
pub const AUTO_POSITIVE: ParamKind =
    ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow };

crate::params! {
    /// What to shuffle in passes after the first
    pub SHUFFLE = "shuffle": ParamKind::Choice(words::<Shuffle>), "batches";
    /// Stop after this many passes without a better validation metric and keep the best weights; 0: off
    pub EARLY_STOPPING = "early_stopping": ParamKind::Integer { low: 0, high: 1_000_000 }, "0", "passes";
    /// Validation metric of early_stopping, one of those that the algorithm reports; whether larger is better follows
    /// from it
    pub EARLY_STOPPING_METRIC = "early_stopping_metric": ParamKind::Choice(words::<StoppingMetric>), "loss";
    /// Share of the training records held out for validation
    pub VALIDATION_SHARE = "validation_share": SHARE, "0";
    /// For two classes: the label that counts as 1, as in the data; all others count as 0 [1; of two names, the
    /// second in alphabetical order]
    pub POSITIVE_LABEL = "positive_label": ParamKind::Text, "";
}

/// What is held out and when it stops a training.
pub const VALIDATION: &[ParamSpec] = &[EARLY_STOPPING, EARLY_STOPPING_METRIC, VALIDATION_SHARE];

/// The rule for early stopping, by a metric that a model with this loss has; `None` if it is off.
pub fn early_stopping(checked: &CheckedParams, loss: Loss) -> Result<Option<EarlyStopping>, Error> {
    early_stopping_by(
        checked,
        match loss {
            Loss::Logistic => &["loss", "log_loss", "auc", "gauc", "accuracy", "precision", "recall", "f1"],
            Loss::Hinge | Loss::SquaredHinge => {
                &["loss", "auc", "gauc", "accuracy", "precision", "recall", "f1"]
            }
            Loss::Softmax => &["loss", "log_loss", "accuracy", "macro_f1"],
            Loss::Squared | Loss::Huber { .. } => &["loss", "rmse", "mae", "r2"],
        },
    )
}

/// The rule for early stopping, by one of these metrics; `None` if it is off.
pub fn early_stopping_by(
    checked: &CheckedParams,
    available: &[&str],
) -> Result<Option<EarlyStopping>, Error> {
    let metric: StoppingMetric = checked.choice(&EARLY_STOPPING_METRIC);
    if !available.contains(&metric.name) {
        return Err(checked.invalid_value(&EARLY_STOPPING_METRIC, available.join(" | ")));
    }
    let Some(patience) = checked.auto_integer(&EARLY_STOPPING) else { return Ok(None) };
    match patience {
        0 if metric.name != "loss" => {
            let expected = "nothing while early_stopping is 0; set early_stopping to a number of passes";
            Err(checked.invalid_value(&EARLY_STOPPING_METRIC, expected))
        }
        0 => Ok(None),
        patience => Ok(Some(EarlyStopping::new(patience, metric))),
    }
}

/// The label that counts as 1, as the user writes it.
pub fn positive_label(checked: &CheckedParams, loss: Loss) -> Result<Option<String>, Error> {
    let text = checked.text(&POSITIVE_LABEL);
    if text.is_empty() {
        return Ok(None);
    }
    if !loss.is_binary() {
        return Err(checked
            .invalid_value(&POSITIVE_LABEL, "nothing: only models of two classes have a positive label"));
    }
    Ok(Some(text.to_owned()))
}

impl Choice for Shuffle {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("none", Self::None), ("batches", Self::Batches), ("records", Self::Records)]
    }
}

impl Choice for StoppingMetric {
    fn all() -> Vec<(&'static str, Self)> {
        STOPPING_METRICS.iter().map(|metric| (metric.name, *metric)).collect()
    }
}

crate::choices! {
    /// How the gradients of the records of a batch become one gradient.
    pub enum BatchGradient {
        Sum = "sum";
        Mean = "mean";
    }

    /// The scaling of records.
    pub enum RecordScaling {
        None = "none";
        /// To Euclidean length 1.
        L2 = "l2";
    }
}
