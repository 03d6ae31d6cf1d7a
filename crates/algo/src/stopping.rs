//! Early stopping, as a pure rule over the validation losses of epochs.

use serde::{Deserialize, Serialize};

/// What the loss of an epoch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The best so far: keep these weights.
    pub improved: bool,
    /// Enough epochs without one better: put the best weights back.
    pub stop: bool,
}

/// Stops after `patience` epochs in a row that were not better than the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlyStopping {
    patience: u64,
    best: Option<(u64, f64)>,
}

impl EarlyStopping {
    /// With a patience of at least 1 epoch.
    pub fn new(patience: u64) -> Self {
        Self { patience: patience.max(1), best: None }
    }

    /// Judges the mean validation loss (`"loss"` of the merged metrics) of `epoch`. A loss that is no number is no
    /// improvement.
    pub fn observe(&mut self, epoch: u64, loss: f64) -> Judgement {
        let improved = loss.is_finite() && self.best.is_none_or(|(_, best)| loss < best);
        if improved {
            self.best = Some((epoch, loss));
        }
        let waited = epoch - self.best.map_or(0, |(best, _)| best);
        Judgement { improved, stop: !improved && waited >= self.patience }
    }

    /// Epoch and loss of the best.
    pub fn best(&self) -> Option<(u64, f64)> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_after_patience_epochs_without_improvement() {
        let mut rule = EarlyStopping::new(2);
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
    fn a_loss_that_is_no_number_never_wins() {
        let mut rule = EarlyStopping::new(1);
        assert!(!rule.observe(0, f64::NAN).improved);
        assert!(rule.observe(1, f64::NAN).stop);
    }
}
