//! Early stopping: a pure rule on a validation metric after each epoch.

use crate::metric::StoppingMetric;

/// What follows from the metric of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppingDecision {
    /// The best epoch so far: keep these weights.
    pub improved: bool,
    /// `patience` epochs have passed without an improvement: restore the best weights.
    pub stop: bool,
}

/// Stops after `patience` epochs in a row that were not better than the best.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStopping {
    patience: u64,
    metric: StoppingMetric,
    best: Option<(u64, f64)>,
}

impl EarlyStopping {
    /// A patience of 0 counts as 1 epoch.
    pub fn new(patience: u64, metric: StoppingMetric) -> Self {
        Self { patience: patience.max(1), metric, best: None }
    }

    /// The same rule after epochs of which this was the best, with its value.
    #[must_use]
    pub fn with_best(self, best: Option<(u64, f64)>) -> Self {
        Self { best, ..self }
    }

    pub fn metric(&self) -> StoppingMetric {
        self.metric
    }

    /// Judges the validation metric of an epoch. A value that is not finite, or equal to the best, is not an
    /// improvement.
    pub fn observe(&mut self, epoch: u64, value: f64) -> StoppingDecision {
        let better = |best: f64| if self.metric.higher_is_better { value > best } else { value < best };
        let improved = value.is_finite() && self.best.is_none_or(|(_, best)| better(best));
        if improved {
            self.best = Some((epoch, value));
        }
        let waited = epoch - self.best.map_or(0, |(best, _)| best);
        StoppingDecision { improved, stop: !improved && waited >= self.patience }
    }

    /// Epoch and value of the best metric.
    pub fn best(&self) -> Option<(u64, f64)> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::STOPPING_METRICS;

    fn watching(name: &str, patience: u64) -> EarlyStopping {
        EarlyStopping::new(patience, *STOPPING_METRICS.iter().find(|metric| metric.name == name).unwrap())
    }

    #[test]
    fn it_follows_the_direction_of_its_metric() {
        for (name, improved) in [("auc", [true, true, false, false]), ("rmse", [true, false, true, false])] {
            let mut rule = watching(name, 9);
            let judged =
                [0.5, 0.6, 0.4, 0.4].iter().zip(0..).map(|(&value, epoch)| rule.observe(epoch, value));
            assert_eq!(judged.map(|judgement| judgement.improved).collect::<Vec<_>>(), improved, "{name}");
        }
    }

    #[test]
    fn it_stops_after_patience_epochs_without_improvement() {
        let mut rule = watching("loss", 2);
        let judged: Vec<_> = [0.5, 0.4, 0.45, 0.41]
            .iter()
            .zip(0..)
            .map(|(&loss, epoch)| rule.observe(epoch, loss))
            .map(|judgement| (judgement.improved, judgement.stop))
            .collect();
        assert_eq!(judged, [(true, false), (true, false), (false, false), (false, true)]);
        assert_eq!(rule.best(), Some((1, 0.4)));
    }

    #[test]
    fn an_equal_value_is_no_better_one() {
        for name in ["loss", "auc"] {
            let mut rule = watching(name, 2);
            assert!(rule.observe(0, 0.5).improved);
            assert!(!rule.observe(1, 0.5).improved);
            assert_eq!(rule.best(), Some((0, 0.5)), "the earliest of equals is kept");
            assert!(rule.observe(2, 0.5).stop);
        }
    }

    #[test]
    fn a_loss_that_is_no_number_never_wins() {
        let mut rule = watching("loss", 1);
        assert!(!rule.observe(0, f64::NAN).improved);
        assert!(rule.observe(1, f64::NAN).stop);
    }
}
