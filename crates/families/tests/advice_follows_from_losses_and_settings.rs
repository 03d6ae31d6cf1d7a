//! What is said of the losses of a training, and which settings of its algorithm may help.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use algo::advice::notice_of_evaluation;
use algo::{EpochMetrics, Remedies, TrainingReport};

/// The metrics of a training, one map for each epoch.
struct Told {
    training: Vec<BTreeMap<String, f64>>,
    validation: Vec<BTreeMap<String, f64>>,
    constant: Option<f64>,
}

impl Told {
    fn losses(training: &[f64], validation: &[f64]) -> Self {
        let maps =
            |losses: &[f64]| losses.iter().map(|loss| BTreeMap::from([("loss".to_owned(), *loss)])).collect();
        Self { training: maps(training), validation: maps(validation), constant: Some(0.55) }
    }

    /// What is said of an algorithm with these settings.
    fn of(&self, algorithm: &str, settings: &str) -> String {
        let pairs = settings.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        let given = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let job = families::all().configure(algorithm, &given).unwrap();
        job.advice(&self.report()).join("\n")
    }

    fn report(&self) -> TrainingReport<'_> {
        let epochs = self.training.iter().enumerate().map(|(epoch, training)| EpochMetrics {
            epoch: epoch as u64,
            training,
            validation: self.validation.get(epoch),
        });
        let constant_losses = (self.constant, self.validation.first().and(self.constant));
        TrainingReport { epochs: epochs.collect(), best_epoch: None, constant_losses }
    }
}

#[test]
fn a_model_that_has_learned_nothing_is_told_with_what_may_help() {
    let far = Told::losses(&[70.2], &[]);
    let text = far.of("lr", "optimizer=ftrl learning_rate=5 standardize=false");
    assert!(text.contains("70.2") && text.contains("0.55") && text.contains("standardize=true"), "{text}");
    let scaled = "optimizer=ftrl learning_rate=5 standardize=true";
    let text = far.of("lr", scaled);
    assert!(text.contains("learned nothing. A lower learning_rate (now 5)"), "{text}");
    assert!(far.of("fm", "standardize=true learning_rate=5").contains("A lower learning_rate (now 5)"));
    assert_eq!(far.of("kmeans", ""), "", "it has no labels");
    assert_eq!(Told::losses(&[0.3], &[]).of("lr", scaled), "");
    assert_eq!(Told::losses(&[0.6], &[]).of("lr", "optimizer=lbfgs class_weights=balanced"), "");
    let text = Told::losses(&[0.2], &[0.6]).of("lr", "optimizer=lbfgs standardize=false l2=1");
    assert!(text.contains("larger l2 (now 1)") && !text.contains("learned nothing"), "{text}");
    let text = Told::losses(&[0.5499], &[]).of("lr", "optimizer=lbfgs standardize=false l2=1e9");
    assert!(text.contains("as good") && text.contains("smaller l2 (now 1e9)"), "{text}");
    let slow = "optimizer=ftrl learning_rate=1e-9 standardize=true";
    assert_eq!(Told::losses(&[0.55], &[]).of("lr", slow), "", "its records are learned after the scores");
    let text = Told::losses(&[0.55, 0.55], &[]).of("lr", slow);
    assert!(text.contains("larger learning_rate (now 1e-9)"), "{text}");
}

#[test]
fn a_model_that_ranks_well_has_learned_something() {
    let mut told = Told::losses(&[0.2], &[0.6]);
    told.validation[0].insert("auc".into(), 0.94);
    let text = told.of("lr", "optimizer=lbfgs standardize=true l2=1");
    assert!(text.contains("ranks these records well") && text.contains("or a larger l2 helps"), "{text}");
    assert!(!text.contains("learned nothing"), "{text}");
}

#[test]
fn an_r2_below_0_or_of_0_is_told() {
    let mut told = Told::losses(&[0.5], &[]);
    told.constant = None;
    for (r2, expected) in [(-0.3, "would be better"), (0.0, "as good"), (0.2, "")] {
        told.training[0].insert("r2".into(), r2);
        let text = told.of("linear", "optimizer=lbfgs standardize=true l2=1e9");
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{r2}: {text}");
        assert_eq!(notice_of_evaluation(&told.training[0]).is_some(), r2 < 0.0);
    }
}

#[test]
fn losses_that_rise_are_told() {
    let sgd = "optimizer=sgd learning_rate=5 standardize=true";
    let text = Told::losses(&[0.4, 0.3, 0.5], &[]).of("lr", sgd);
    assert!(text.contains("epoch 2") && text.contains("learning_rate"), "{text}");
    assert_eq!(Told::losses(&[0.4, 1e-9, 2e-9], &[]).of("lr", sgd), "", "at the minimum");
    let rising = Told::losses(&[0.4, 0.3, 0.2], &[0.4, 0.45, 0.5]);
    let text = rising.of("lr", sgd);
    assert!(text.contains("after epoch 1") && text.contains("early_stopping=3 keeps"), "{text}");
    let text = Remedies::default().notices(&rising.report()).join("\n");
    assert!(text.ends_with("after the last"), "an algorithm that knows no remedy: {text}");
    let worse = Told::losses(&[0.2, 0.1], &[0.7, 0.6]);
    let text = Remedies::default().notices(&worse.report()).join("\n");
    assert!(
        text.ends_with("which would be better. The model fits the training records and not these"),
        "{text}"
    );
}
