//! Whether a model has learned anything: what its losses say, and the setting that most likely helps.

use std::collections::BTreeMap;

use super::judge::Outcome;
use crate::report::EpochLine;

/// A loss that is above another by no more than this share of it is no worse.
const MARGIN: f64 = 0.01;
/// The same for validation losses after epochs of push rules, and after the steps of an optimizer of all records, which go to a minimum
/// that is seldom the best for other records.
const VALIDATION_MARGINS: (f64, f64) = (0.05, 0.25);

/// What the user should know of the losses of a run. `settings`: all of the job, none open.
pub(super) fn notices(outcome: &Outcome, settings: &BTreeMap<String, String>) -> Vec<String> {
    let saved = match outcome.best_epoch {
        Some(best) => outcome.epochs.iter().find(|line| line.epoch == best),
        None => outcome.epochs.last(),
    };
    let Some(saved) = saved else { return Vec::new() };
    let is_weighted = settings.get("class_weights").is_some_and(|text| !text.is_empty());
    let mut notices = Vec::new();
    // Weights of classes ask for other probabilities than those of the data.
    if !is_weighted {
        let (name, metrics, constant) = match &saved.validation {
            Some(metrics) => ("validation", metrics, outcome.constant_losses.1),
            None => ("training", &saved.training, outcome.constant_losses.0),
        };
        let has_learned_training = saved.validation.is_some() && {
            let loss = saved.training.get("loss").copied();
            loss.zip(outcome.constant_losses.0).is_some_and(|(loss, constant)| loss < constant)
        };
        let advice = if has_learned_training { advice_for_overfitting(settings) } else { advice(settings) };
        notices.extend(worse_than_constant(name, metrics, constant, &advice));
    }
    notices.extend(rising_training(&outcome.epochs, settings));
    if outcome.best_epoch.is_none() {
        notices.extend(rising_validation(&outcome.epochs, settings));
    }
    notices
}

fn worse_than_constant(
    name: &str,
    metrics: &BTreeMap<String, f64>,
    constant: Option<f64>,
    advice: &str,
) -> Option<String> {
    if let Some(r2) = metrics.get("r2").filter(|r2| **r2 < 0.0) {
        return Some(format!(
            "the {name} r2 is {r2:.3}: to predict the mean for all records would be better. {advice}"
        ));
    }
    let (loss, constant) = (*metrics.get("loss")?, constant?);
    (loss > constant * (1.0 + MARGIN)).then(|| {
        format!(
            "the {name} loss is {loss:.4}, and that of the same prediction for all records is {constant:.4}, which would be \
             better. {advice}"
        )
    })
}

/// What most likely helps a model that fits its training records, and no others.
fn advice_for_overfitting(settings: &BTreeMap<String, String>) -> String {
    let fewer = if descends(settings) { "optimizer=ftrl epochs=1" } else { "fewer epochs" };
    let l2 = settings.get("l2").map_or("", String::as_str);
    format!(
        "The model fits the training records and not these: a larger l2 (now {l2}) most likely helps, or {fewer}, or more data"
    )
}

/// What most likely helps a model that has learned nothing.
fn advice(settings: &BTreeMap<String, String>) -> String {
    let text = |name: &str| settings.get(name).map_or("", String::as_str);
    if text("standardize") == "false" && text("normalize") != "l2" {
        return "The model has learned nothing; scaling the columns most likely helps: standardize=true"
            .into();
    }
    match settings.get("learning_rate") {
        Some(rate) if !descends(settings) => {
            format!(
                "The model has learned nothing; a lower learning_rate (now {rate}) most likely helps, or optimizer=auto"
            )
        }
        _ => format!(
            "The model has learned nothing; a larger l2 (now {}) may help, if the columns say anything of the label",
            text("l2")
        ),
    }
}

fn descends(settings: &BTreeMap<String, String>) -> bool {
    let optimizer = settings.get("optimizer").map_or("", String::as_str);
    matches!(optimizer, "lbfgs" | "owlqn" | "gd" | "svrg" | "admm")
}

/// Losses of later epochs are of records that were learned before, so that they have no reason to rise.
fn rising_training(epochs: &[EpochLine], settings: &BTreeMap<String, String>) -> Option<String> {
    let (best, lowest, last) = course(epochs.iter().map(|line| line.training.get("loss").copied()))?;
    let rate = settings.get("learning_rate").filter(|_| !descends(settings))?;
    (last > lowest * (1.0 + MARGIN)).then(|| {
        format!(
            "the training loss rose from {lowest:.4} in epoch {} to {last:.4} in the last. A lower learning_rate (now {rate}) \
             most likely helps",
            best + 1
        )
    })
}

fn rising_validation(epochs: &[EpochLine], settings: &BTreeMap<String, String>) -> Option<String> {
    let losses = epochs.iter().map(|line| line.validation.as_ref()?.get("loss").copied());
    let (best, lowest, last) = course(losses)?;
    let margin = if descends(settings) { VALIDATION_MARGINS.1 } else { VALIDATION_MARGINS.0 };
    (last > lowest * (1.0 + margin)).then(|| {
        format!(
            "the validation loss was lowest after epoch {}, {lowest:.4}, and is {last:.4} after the last. early_stopping=3 keeps \
             the best weights; a larger l2 may do better",
            best + 1
        )
    })
}

/// The epoch with the lowest loss, from 0, that loss, and the loss of the last; none below two epochs.
fn course(losses: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64, f64)> {
    let losses = losses.collect::<Option<Vec<f64>>>()?;
    let (best, lowest) = losses.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (losses.len() > 1).then(|| (best, lowest, losses[losses.len() - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::judge::End;

    fn outcome(training: &[f64], validation: &[f64], constant: f64) -> Outcome {
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
        Outcome {
            epochs: training.iter().enumerate().map(line).collect(),
            end: End::Finished,
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
    }

    #[test]
    fn losses_that_rise_are_told() {
        let pushes = settings(&[("optimizer", "sgd"), ("learning_rate", "5"), ("standardize", "true")]);
        let text = notices(&outcome(&[0.4, 0.3, 0.5], &[], 0.55), &pushes).join("\n");
        assert!(text.contains("epoch 2") && text.contains("learning_rate"), "{text}");
        let text = notices(&outcome(&[0.4, 0.3, 0.2], &[0.4, 0.45, 0.5], 0.55), &pushes).join("\n");
        assert!(text.contains("after epoch 1") && text.contains("early_stopping"), "{text}");
    }
}
