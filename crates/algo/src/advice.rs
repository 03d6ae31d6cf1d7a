//! What the losses of a training say: whether the model has learned anything, and what may help. The checks are the same for
//! all families; what helps is said by the family, in the words of its settings ([`Remedies`]).

use std::collections::BTreeMap;

/// Maximum relative difference at which a loss still counts as no worse than another.
const MARGIN: f64 = 0.01;
/// A model that reduces the loss of the best constant prediction by at most this share has learned nothing.
const MIN_EXPLAINED: f64 = 5e-4;
/// Minimum AUC of a model that has learned something, whatever its losses are.
const MIN_AUC: f64 = 0.6;
/// Losses that rise by at most this share of the first one are near the minimum.
const STATIONARY_SHARE: f64 = 1e-3;
/// Relative rise of validation losses that still counts as no worse: after epochs of steps, and after the steps of
/// an optimizer over all records. Such an optimizer approaches a minimum that is seldom the best for other records.
const VALIDATION_MARGINS: (f64, f64) = (0.05, 0.25);

/// The metrics of an epoch, by name.
#[derive(Clone, Copy, Debug)]
pub struct EpochMetrics<'a> {
    pub epoch: u64,
    pub training: &'a BTreeMap<String, f64>,
    pub validation: Option<&'a BTreeMap<String, f64>>,
}

/// What a training has reached, for the advice of its family.
#[derive(Clone, Debug, Default)]
pub struct TrainingReport<'a> {
    pub epochs: Vec<EpochMetrics<'a>>,
    /// The epoch whose parameters are kept, if early stopping chose one.
    pub best_epoch: Option<u64>,
    /// Losses of the best constant prediction for the records of the last epoch: training data, validation data.
    pub constant_losses: (Option<f64>, Option<f64>),
}

/// What a family knows of its training, and what may help it: each a clause without a full stop.
#[derive(Clone, Debug, Default)]
pub struct Remedies {
    /// A step sees all records, so that the losses of an epoch are those of one set of parameters.
    pub steps_see_all: bool,
    /// The losses are not comparable with those of a constant prediction, as with weights of classes.
    pub is_reweighted: bool,
    /// Helps a model that does not fit its training records.
    pub for_underfitting: Option<String>,
    /// Helps a model that fits its training records and not others.
    pub for_overfitting: Option<String>,
    /// Helps a model whose probabilities, but not their order, are wrong for other records.
    pub for_calibration: Option<String>,
    /// Helps if the training loss rises.
    pub for_rising_loss: Option<String>,
    /// Helps if the validation loss rises.
    pub for_rising_validation: Option<String>,
}

impl Remedies {
    /// Returns notices about the losses of a training.
    pub fn notices(&self, report: &TrainingReport<'_>) -> Vec<String> {
        let saved = match report.best_epoch {
            Some(best) => report.epochs.iter().find(|line| line.epoch == best),
            None => report.epochs.last(),
        };
        let Some(saved) = saved else { return Vec::new() };
        let mut notices = Vec::new();
        if !self.is_reweighted {
            notices.extend(self.check_constant(report, saved));
        }
        if notices.is_empty() {
            notices.extend(self.rising_training(&report.epochs));
        }
        if report.best_epoch.is_none() {
            notices.extend(self.rising_validation(&report.epochs));
        }
        notices
    }

    /// Compares the metrics that are saved with those of a constant prediction.
    fn check_constant(&self, report: &TrainingReport<'_>, saved: &EpochMetrics<'_>) -> Option<String> {
        // In the first epoch each record is scored before the model has learned from it.
        let is_learned = self.steps_see_all || report.epochs.len() > 1;
        let constant = report.constant_losses;
        let training = MetricsCheck { metrics: saved.training, constant: constant.0, is_learned };
        let Some(metrics) = saved.validation else {
            return Some(format!("the training {}{}", training.problem()?, self.underfitting(&training)));
        };
        let validation = MetricsCheck { metrics, constant: constant.1, is_learned: true };
        let advice = match (training.has_learned(), validation.ranks_well()) {
            (false, _) => self.underfitting(&validation),
            (true, true) => sentence(
                "The model ranks these records well, but its probabilities do not fit them: their share of positives may \
                 differ from that of the training records",
                ", or ",
                self.for_calibration.as_ref(),
            ),
            (true, false) => {
                let helps = self.for_overfitting.as_ref().map(|helps| format!("{helps}, or more data"));
                sentence("The model fits the training records and not these", ": ", helps.as_ref())
            }
        };
        Some(format!("the validation {}{advice}", validation.problem()?))
    }

    fn underfitting(&self, check: &MetricsCheck<'_>) -> String {
        let begin = if check.ranks_well() { "" } else { "The model has learned nothing" };
        sentence(begin, ". ", self.for_underfitting.as_ref())
    }

    /// Checks the training losses: records of later epochs were learned before, so their losses have no reason to rise.
    fn rising_training(&self, epochs: &[EpochMetrics<'_>]) -> Option<String> {
        let losses = epochs.iter().map(|line| line.training.get("loss").copied());
        let (best, lowest, last) = lowest_and_last_loss(losses)?;
        let first = epochs.first()?.training.get("loss").copied()?;
        let rises = last > lowest * (1.0 + MARGIN) && last - lowest > STATIONARY_SHARE * first;
        (rises && !self.steps_see_all).then(|| {
            let epoch = best + 1;
            let fact =
                format!("the training loss rose from {lowest:.4} in epoch {epoch} to {last:.4} in the last");
            fact + &sentence("", "", self.for_rising_loss.as_ref())
        })
    }

    fn rising_validation(&self, epochs: &[EpochMetrics<'_>]) -> Option<String> {
        let losses = epochs.iter().map(|line| line.validation?.get("loss").copied());
        let (best, lowest, last) = lowest_and_last_loss(losses)?;
        let margin = if self.steps_see_all { VALIDATION_MARGINS.1 } else { VALIDATION_MARGINS.0 };
        (last > lowest * (1.0 + margin)).then(|| {
            let epoch = best + 1;
            let fact =
                format!("the validation loss was lowest after epoch {epoch}, {lowest:.4}, and is {last:.4} after the last");
            fact + &sentence("", "", self.for_rising_validation.as_ref())
        })
    }
}

/// A sentence of a fact and what helps, either of which may be missing, after the sentence before it.
fn sentence(fact: &str, joint: &str, helps: Option<&String>) -> String {
    match helps {
        None if fact.is_empty() => String::new(),
        None => format!(". {fact}"),
        Some(helps) if fact.is_empty() => format!(". {helps}"),
        Some(helps) => format!(". {fact}{joint}{helps}"),
    }
}

/// Returns a notice about the metrics of a model on other records.
pub fn notice_of_evaluation(metrics: &BTreeMap<String, f64>) -> Option<String> {
    let r2 = metrics.get("r2").filter(|r2| **r2 < 0.0)?;
    Some(format!(
        "r2 is {r2:.3}: predicting the mean of these labels for all records would be better; are the records of the \
         same kind as those of training?"
    ))
}

/// Metrics, and the loss of the best constant prediction where r2 does not already compare with it.
struct MetricsCheck<'a> {
    metrics: &'a BTreeMap<String, f64>,
    constant: Option<f64>,
    /// The metrics are of weights that have learned from all records at least once.
    is_learned: bool,
}

impl MetricsCheck<'_> {
    fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).copied()
    }

    /// Returns the share of the constant prediction's loss that the model removes.
    fn explained(&self) -> Option<f64> {
        let constant = self.constant.filter(|constant| *constant > 0.0);
        self.metric("r2").or_else(|| Some(1.0 - self.metric("loss")? / constant?))
    }

    fn has_learned(&self) -> bool {
        self.explained().is_some_and(|share| share > MIN_EXPLAINED)
    }

    fn ranks_well(&self) -> bool {
        self.metric("auc").is_some_and(|auc| auc >= MIN_AUC)
    }

    /// Describes what is wrong with the model, without the subject of the sentence.
    fn problem(&self) -> Option<String> {
        let explained = self.explained()?;
        let is_worse = explained < if self.metric("r2").is_some() { 0.0 } else { -MARGIN };
        let is_none = self.is_learned && explained < MIN_EXPLAINED && !self.ranks_well();
        if !is_worse && !is_none {
            return None;
        }
        Some(match (self.metric("r2"), self.metric("loss"), self.constant) {
            (Some(r2), ..) if is_worse => {
                format!("r2 is {r2:.3}: predicting the mean for all records would be better")
            }
            (Some(r2), ..) => format!("r2 is {r2:.5}: predicting the mean for all records would be as good"),
            (None, loss, constant) => {
                let (loss, constant) = (loss?, constant?);
                let verdict = if is_worse { "better" } else { "as good" };
                format!(
                    "loss is {loss:.4}, and that of the same prediction for all records is {constant:.4}, which would be {verdict}"
                )
            }
        })
    }
}

/// Returns the epoch with the lowest loss (from 0), that loss, and the last loss; none if there are fewer than two
/// epochs.
fn lowest_and_last_loss(losses: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64, f64)> {
    let losses = losses.collect::<Option<Vec<f64>>>()?;
    let (best, lowest) = losses.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (losses.len() > 1).then(|| (best, lowest, losses[losses.len() - 1]))
}
