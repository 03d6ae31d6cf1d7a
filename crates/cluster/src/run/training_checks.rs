//! Checks from the losses whether a model has learned anything, and suggests the setting that most likely helps.

use std::collections::BTreeMap;

use super::driver::epoch_monitor::TrainingSummary;
use crate::report::EpochLine;

/// Maximum relative difference at which a loss still counts as no worse than another.
const MARGIN: f64 = 0.01;
/// A model that reduces the loss of the best constant prediction by at most this share has learned nothing.
const MIN_EXPLAINED: f64 = 5e-4;
/// Minimum AUC of a model that has learned something, whatever its losses are.
const MIN_AUC: f64 = 0.6;
/// Losses that rise by at most this share of the first one are near the minimum.
const STATIONARY_SHARE: f64 = 1e-3;
/// Penalties from this size keep almost all weights near zero.
const LARGE_PENALTY: f64 = 100.0;
/// Learning rates up to this size hardly change a weight.
const SMALL_RATE: f64 = 1e-4;
/// Relative rise of validation losses that still counts as no worse: after epochs of push rules, and after the steps of
/// an optimizer over all records. Such an optimizer approaches a minimum that is seldom the best for other records.
const VALIDATION_MARGINS: (f64, f64) = (0.05, 0.25);

/// Returns notices about the losses of a run. `settings` are all settings of the job, with none open.
pub(super) fn notices(outcome: &TrainingSummary, settings: &BTreeMap<String, String>) -> Vec<String> {
    let saved = match outcome.best_epoch {
        Some(best) => outcome.epochs.iter().find(|line| line.epoch == best),
        None => outcome.epochs.last(),
    };
    let Some(saved) = saved else { return Vec::new() };
    let is_weighted = settings.get("class_weights").is_some_and(|text| !text.is_empty());
    let mut notices = Vec::new();
    // With class weights the predicted probabilities differ from the frequencies in the data.
    if !is_weighted {
        // In the first epoch each record is scored before the model has learned from it.
        let is_learned = descends(settings) || outcome.epochs.len() > 1;
        let training =
            MetricsCheck { metrics: &saved.training, constant: outcome.constant_losses.0, is_learned };
        let notice = match &saved.validation {
            Some(metrics) => {
                let constant = outcome.constant_losses.1;
                let validation = MetricsCheck { metrics, constant, is_learned: true };
                let advice = if training.has_learned() {
                    validation.advice_against_overfitting(settings)
                } else {
                    validation.advice(settings)
                };
                validation.problem().map(|fault| format!("the validation {fault}. {advice}"))
            }
            None => {
                training.problem().map(|fault| format!("the training {fault}. {}", training.advice(settings)))
            }
        };
        notices.extend(notice);
    }
    if notices.is_empty() {
        notices.extend(rising_training(&outcome.epochs, settings));
    }
    if outcome.best_epoch.is_none() {
        notices.extend(rising_validation(&outcome.epochs, settings));
    }
    notices
}

/// Returns a notice about the metrics of a model on other records.
pub(super) fn notice_of_evaluation(metrics: &BTreeMap<String, f64>) -> Option<String> {
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

    /// Returns advice for a model that fits its training records but not these.
    fn advice_against_overfitting(&self, settings: &BTreeMap<String, String>) -> String {
        if self.ranks_well() {
            return "The model ranks these records well, but its probabilities do not fit them: their share of \
                    positives may differ from that of the training records, or a larger l2 helps"
                .into();
        }
        let fewer = if descends(settings) { "optimizer=ftrl epochs=1" } else { "fewer epochs" };
        let l2 = settings.get("l2").map_or("", String::as_str);
        format!(
            "The model fits the training records and not these: a larger l2 (now {l2}) most likely helps, or {fewer}, or more \
             data"
        )
    }

    /// Returns advice for a model that does not fit its training records.
    fn advice(&self, settings: &BTreeMap<String, String>) -> String {
        let text = |name: &str| settings.get(name).map_or("", String::as_str);
        let number = |name: &str| text(name).parse::<f64>().ok();
        let begin = if self.ranks_well() { "" } else { "The model has learned nothing. " };
        let large =
            ["l2", "l1"].into_iter().find(|name| number(name).is_some_and(|value| value >= LARGE_PENALTY));
        if let Some(name) = large {
            return format!("{begin}A smaller {name} (now {}) most likely helps", text(name));
        }
        let rate = settings.get("learning_rate").filter(|_| !descends(settings));
        if rate.is_some() && number("learning_rate").is_some_and(|rate| rate <= SMALL_RATE) {
            return format!(
                "{begin}A larger learning_rate (now {}) most likely helps",
                text("learning_rate")
            );
        }
        if text("standardize") == "false" && text("normalize") == "l2" {
            return format!(
                "{begin}Scaling the columns instead of the records may help: standardize=true normalize=none"
            );
        }
        if text("standardize") == "false" {
            // At the minimum, columns of different scales cost less than they do in the steps of push rules.
            let helps = if descends(settings) {
                "may help, if they are related to the label"
            } else {
                "most likely helps"
            };
            return format!("{begin}Scaling the columns {helps}: standardize=true");
        }
        match rate {
            Some(rate) => format!("{begin}A lower learning_rate (now {rate}) most likely helps"),
            None => format!("{begin}The columns may be unrelated to the label"),
        }
    }
}

fn descends(settings: &BTreeMap<String, String>) -> bool {
    let optimizer = settings.get("optimizer").map_or("", String::as_str);
    matches!(optimizer, "lbfgs" | "owlqn" | "gd" | "svrg" | "admm")
}

/// Checks the training losses: records of later epochs were learned before, so their losses have no reason to rise.
fn rising_training(epochs: &[EpochLine], settings: &BTreeMap<String, String>) -> Option<String> {
    let (best, lowest, last) =
        lowest_and_last_loss(epochs.iter().map(|line| line.training.get("loss").copied()))?;
    let rate = settings.get("learning_rate").filter(|_| !descends(settings))?;
    let first = epochs.first()?.training.get("loss").copied()?;
    (last > lowest * (1.0 + MARGIN) && last - lowest > STATIONARY_SHARE * first).then(|| {
        format!(
            "the training loss rose from {lowest:.4} in epoch {} to {last:.4} in the last. A lower learning_rate (now {rate}) \
             most likely helps",
            best + 1
        )
    })
}

fn rising_validation(epochs: &[EpochLine], settings: &BTreeMap<String, String>) -> Option<String> {
    let losses = epochs.iter().map(|line| line.validation.as_ref()?.get("loss").copied());
    let (best, lowest, last) = lowest_and_last_loss(losses)?;
    let margin = if descends(settings) { VALIDATION_MARGINS.1 } else { VALIDATION_MARGINS.0 };
    // What the algorithm has, of the settings that may help.
    let known = [
        ("early_stopping", "early_stopping=3 keeps the best weights"),
        ("l2", "a larger l2 may do better"),
        ("epochs", "fewer epochs do better"),
    ];
    let has = |name: &str| settings.contains_key(name);
    let advice = known.iter().filter(|(name, _)| has(name) && (*name != "epochs" || !has("early_stopping")));
    let advice: Vec<&str> = advice.map(|(_, advice)| *advice).collect();
    let advice = if advice.is_empty() { String::new() } else { format!(". {}", advice.join("; ")) };
    (last > lowest * (1.0 + margin)).then(|| {
        format!(
            "the validation loss was lowest after epoch {}, {lowest:.4}, and is {last:.4} after the last{advice}",
            best + 1
        )
    })
}

/// Returns the epoch with the lowest loss (from 0), that loss, and the last loss; none if there are fewer than two
/// epochs.
fn lowest_and_last_loss(losses: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64, f64)> {
    let losses = losses.collect::<Option<Vec<f64>>>()?;
    let (best, lowest) = losses.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (losses.len() > 1).then(|| (best, lowest, losses[losses.len() - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::driver::epoch_monitor::StopReason;

    fn outcome(training: &[f64], validation: &[f64], constant: f64) -> TrainingSummary {
        let metrics = |loss: &f64| BTreeMap::from([("loss".to_owned(), *loss)]);
        let line = |(epoch, loss): (usize, &f64)| EpochLine {
            epoch: epoch as u64,
            clock: 0,
            records: 1,
            seconds: 1.0,
            training: metrics(loss),
            validation: validation.get(epoch).map(metrics),
            calibration_table: Vec::new(),
        };
        TrainingSummary {
            epochs: training.iter().enumerate().map(line).collect(),
            end: StopReason::Finished,
            best_epoch: None,
            step_count: 1,
            notices: Vec::new(),
            constant_losses: (Some(constant), (!validation.is_empty()).then_some(constant)),
        }
    }

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_model_that_has_learned_nothing_is_told_with_what_may_help() {
        let pushes = settings(&[("optimizer", "ftrl"), ("learning_rate", "5"), ("standardize", "false")]);
        let text = notices(&outcome(&[70.2], &[], 0.55), &pushes).join("\n");
        assert!(
            text.contains("70.2") && text.contains("0.55") && text.contains("standardize=true"),
            "{text}"
        );
        let scaled = settings(&[("optimizer", "ftrl"), ("learning_rate", "5"), ("standardize", "true")]);
        let text = notices(&outcome(&[70.2], &[], 0.55), &scaled).join("\n");
        assert!(text.contains("learning_rate (now 5)"), "{text}");
        assert!(notices(&outcome(&[0.3], &[], 0.55), &scaled).is_empty());
        let weighted = settings(&[("optimizer", "lbfgs"), ("class_weights", "balanced")]);
        assert!(notices(&outcome(&[0.6], &[], 0.55), &weighted).is_empty());
        let minimum = settings(&[("optimizer", "lbfgs"), ("standardize", "false"), ("l2", "1")]);
        let text = notices(&outcome(&[0.2], &[0.6], 0.55), &minimum).join("\n");
        assert!(text.contains("larger l2 (now 1)") && !text.contains("learned nothing"), "{text}");
        let shrunk = settings(&[("optimizer", "lbfgs"), ("standardize", "false"), ("l2", "1e9")]);
        let text = notices(&outcome(&[0.5499], &[], 0.55), &shrunk).join("\n");
        assert!(text.contains("as good") && text.contains("smaller l2 (now 1e9)"), "{text}");
        let slow = settings(&[("optimizer", "ftrl"), ("learning_rate", "1e-9")]);
        assert!(
            notices(&outcome(&[0.55], &[], 0.55), &slow).is_empty(),
            "an epoch before its records are learned"
        );
        let text = notices(&outcome(&[0.55, 0.55], &[], 0.55), &slow).join("\n");
        assert!(text.contains("larger learning_rate (now 1e-9)"), "{text}");
    }

    #[test]
    fn a_model_that_ranks_well_has_learned_something() {
        let minimum = settings(&[("optimizer", "lbfgs"), ("standardize", "true"), ("l2", "1")]);
        let mut outcome = outcome(&[0.2], &[0.6], 0.55);
        let validation = outcome.epochs[0].validation.as_mut().unwrap();
        validation.insert("auc".into(), 0.94);
        let text = notices(&outcome, &minimum).join("\n");
        assert!(text.contains("ranks these records well") && !text.contains("learned nothing"), "{text}");
    }

    #[test]
    fn an_r2_below_0_or_of_0_is_told() {
        let minimum = settings(&[("optimizer", "lbfgs"), ("standardize", "true"), ("l2", "1e9")]);
        let mut outcome = outcome(&[0.5], &[], 0.5);
        outcome.constant_losses = (None, None);
        for (r2, expected) in [(-0.3, "would be better"), (0.0, "as good"), (0.2, "")] {
            outcome.epochs[0].training.insert("r2".into(), r2);
            let text = notices(&outcome, &minimum).join("\n");
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{r2}: {text}");
            let told = notice_of_evaluation(&outcome.epochs[0].training);
            assert_eq!(told.is_some(), r2 < 0.0);
        }
    }

    #[test]
    fn losses_that_rise_are_told() {
        let pushes = settings(&[("optimizer", "sgd"), ("learning_rate", "5"), ("standardize", "true")]);
        let text = notices(&outcome(&[0.4, 0.3, 0.5], &[], 0.55), &pushes).join("\n");
        assert!(text.contains("epoch 2") && text.contains("learning_rate"), "{text}");
        assert!(notices(&outcome(&[0.4, 1e-9, 2e-9], &[], 0.55), &pushes).is_empty(), "at the minimum");
        let told = |names: &[&str]| {
            let pairs: Vec<_> = names.iter().map(|name| (*name, "1")).collect();
            notices(&outcome(&[0.4, 0.3, 0.2], &[0.4, 0.45, 0.5], 0.55), &settings(&pairs)).join("\n")
        };
        let text = told(&["early_stopping", "l2", "epochs"]);
        assert!(text.contains("after epoch 1") && text.contains("early_stopping=3 keeps"), "{text}");
        assert!(told(&["l2", "epochs"]).ends_with("a larger l2 may do better; fewer epochs do better"));
        assert!(told(&["factors"]).ends_with("after the last"), "an algorithm without these settings");
    }
}
