//! What may help a training by gradients, in the words of the settings that linear models and factorization machines have.

use super::{CheckedParams, ParamSpec};
use crate::advice::Remedies;

/// Penalties from this size keep almost all weights near zero.
const LARGE_PENALTY: f64 = 100.0;
/// Learning rates up to this size hardly change a weight.
const SMALL_RATE: f64 = 1e-4;

/// The settings, in the table of an algorithm.
pub struct GradientSettings {
    pub l1: &'static ParamSpec,
    pub l2: &'static ParamSpec,
    pub learning_rate: &'static ParamSpec,
    pub standardize: &'static ParamSpec,
    pub normalize: &'static ParamSpec,
}

impl GradientSettings {
    /// What may help a training with these values. An optimizer whose steps see all records has no learning rate.
    pub fn remedies(&self, checked: &CheckedParams, steps_see_all: bool) -> Remedies {
        let (rate, l2) = (checked.text(self.learning_rate), checked.text(self.l2));
        let fewer = if steps_see_all { "optimizer=ftrl epochs=1" } else { "fewer epochs" };
        Remedies {
            steps_see_all,
            is_reweighted: false,
            for_underfitting: Some(self.for_underfitting(checked, steps_see_all)),
            for_overfitting: Some(format!("a larger l2 (now {l2}) most likely helps, or {fewer}")),
            for_calibration: Some("a larger l2 helps".to_owned()),
            for_rising_loss: Some(format!("A lower learning_rate (now {rate}) most likely helps")),
            for_rising_validation: Some(
                "early_stopping=3 keeps the best weights; a larger l2 may do better".to_owned(),
            ),
        }
    }

    fn for_underfitting(&self, checked: &CheckedParams, steps_see_all: bool) -> String {
        let number = |spec: &ParamSpec| checked.text(spec).parse::<f64>().ok();
        let is_large = |spec: &&'static ParamSpec| number(spec).is_some_and(|value| value >= LARGE_PENALTY);
        if let Some(penalty) = [self.l2, self.l1].into_iter().find(is_large) {
            return format!("A smaller {} (now {}) most likely helps", penalty.name, checked.text(penalty));
        }
        let rate = checked.text(self.learning_rate);
        if !steps_see_all && number(self.learning_rate).is_some_and(|rate| rate <= SMALL_RATE) {
            return format!("A larger learning_rate (now {rate}) most likely helps");
        }
        let scales_records = checked.text(self.normalize) == "l2";
        match (checked.text(self.standardize) == "false", steps_see_all) {
            (true, _) if scales_records => {
                "Scaling the columns instead of the records may help: standardize=true normalize=none"
                    .to_owned()
            }
            // At the minimum, columns of different scales cost less than they do in the steps of push rules.
            (true, true) => {
                "Scaling the columns may help, if they are related to the label: standardize=true".to_owned()
            }
            (true, false) => "Scaling the columns most likely helps: standardize=true".to_owned(),
            (false, true) => "The columns may be unrelated to the label".to_owned(),
            (false, false) => format!("A lower learning_rate (now {rate}) most likely helps"),
        }
    }
}
