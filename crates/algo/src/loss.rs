//! The losses of the linear models and their slopes. `s` is the score, `y` the label.
//!
//! | loss | value | slope in s |
//! |---|---|---|
//! | logistic, y in {0, 1} | `log(1 + exp(s)) - y s` | `sigmoid(s) - y` |
//! | hinge, t = 2y - 1 | `max(0, 1 - t s)` | `-t` where `t s < 1`, else 0 |
//! | squared hinge | `max(0, 1 - t s)^2` | `-2 t max(0, 1 - t s)` |
//! | squared | `0.5 (s - y)^2` | `s - y` |
//! | Huber, r = s - y, D = `delta` | `0.5 r^2` if `abs(r) <= D`, else `D (abs(r) - D / 2)` | `clamp(r, -D, D)` |
//! | softmax, class c | `log(sum_k exp(s_k)) - s_c` | `softmax(s)_k - [k = c]` |

#![allow(clippy::inline_always, reason = "only inlined in a loop do they become vector instructions")]

use math::elementary::{exp, ln_1p, log_sum_exp, sigmoid, sigmoid_of};
use multiversion::multiversion;
use serde::{Deserialize, Serialize};

/// The loss of a record, whose sum the model minimizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Loss {
    /// Logistic regression.
    Logistic,
    /// Linear SVM (Cortes, Vapnik, 1995).
    Hinge,
    /// Linear SVM with squared slack.
    SquaredHinge,
    /// Least squares.
    Squared,
    /// Huber, "Robust estimation of a location parameter", 1964.
    Huber {
        /// Where the loss changes from squared to absolute, in units of the label.
        delta: f64,
    },
    /// Multinomial logistic regression.
    Softmax,
}

impl Loss {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::Hinge => "hinge",
            Self::SquaredHinge => "squared_hinge",
            Self::Squared => "squared",
            Self::Huber { .. } => "huber",
            Self::Softmax => "softmax",
        }
    }

    /// Whether labels are 0 and 1.
    pub fn is_binary(self) -> bool {
        match self {
            Self::Logistic | Self::Hinge | Self::SquaredHinge => true,
            Self::Squared | Self::Huber { .. } | Self::Softmax => false,
        }
    }

    /// Whether labels are real numbers.
    pub fn is_real(self) -> bool {
        match self {
            Self::Squared | Self::Huber { .. } => true,
            Self::Logistic | Self::Hinge | Self::SquaredHinge | Self::Softmax => false,
        }
    }

    /// Loss and slope of one record with one score.
    ///
    /// # Panics
    /// For softmax, which has one score per class: see [`softmax`].
    #[inline(always)]
    pub fn value_and_slope(self, score: f64, label: f64) -> (f64, f64) {
        match self {
            Self::Logistic => logistic(score, label),
            Self::Hinge => {
                let sign = 2.0 * label - 1.0;
                let slack = positive_part(1.0 - sign * score);
                (slack, if slack > 0.0 { -sign } else { 0.0 })
            }
            Self::SquaredHinge => {
                let sign = 2.0 * label - 1.0;
                let slack = positive_part(1.0 - sign * score);
                (slack * slack, -2.0 * sign * slack)
            }
            Self::Squared => {
                let error = score - label;
                (0.5 * error * error, error)
            }
            Self::Huber { delta } => {
                let error = score - label;
                let slope = error.clamp(-delta, delta);
                // Inside, slope = error and this is error^2 / 2; outside, delta (|error| - delta / 2).
                (slope * (error - 0.5 * slope), slope)
            }
            Self::Softmax => panic!("softmax has a score a class"),
        }
    }

    /// [`Self::value_and_slope`] of each record.
    ///
    /// # Panics
    /// For softmax, and if the four do not have one number per record each.
    pub fn values_and_slopes(self, scores: &[f64], labels: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        let lens = [labels.len(), values.len(), slopes.len()];
        assert_eq!(lens, [scores.len(); 3], "one number per record");
        match self {
            Self::Logistic => logistic_all(scores, labels, values, slopes),
            _ => {
                for (r, (&score, &label)) in scores.iter().zip(labels).enumerate() {
                    (values[r], slopes[r]) = self.value_and_slope(score, label);
                }
            }
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn logistic_all(scores: &[f64], labels: &[f64], values: &mut [f64], slopes: &mut [f64]) {
    let records = scores.iter().zip(labels).zip(values).zip(slopes);
    for (((&score, &label), value), slope) in records {
        (*value, *slope) = logistic(score, label);
    }
}

/// Turns scores into probabilities of label 1.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
pub fn sigmoid_all(scores: &mut [f64]) {
    for score in scores {
        *score = sigmoid(*score);
    }
}

/// The value if it is above 0, else 0. NaN stays NaN: `f64::max` would turn the loss of a model without meaning into 0.
#[inline]
fn positive_part(value: f64) -> f64 {
    if value < 0.0 { 0.0 } else { value }
}

/// Loss and slope from one exponential: `e = exp(-|s|)`.
#[inline(always)]
fn logistic(score: f64, label: f64) -> (f64, f64) {
    let e = exp(-score.abs());
    let positive = if score < 0.0 { 0.0 } else { score };
    (positive + ln_1p(e) - label * score, sigmoid_of(score, e) - label)
}

/// Turns the scores of a record (one per class) into slopes, and returns the loss for its `class`.
///
/// # Panics
/// If `class` is not below the number of scores.
pub fn softmax(scores: &mut [f64], class: usize) -> f64 {
    let loss = log_sum_exp(scores) - scores[class];
    probabilities(scores);
    scores[class] -= 1.0;
    loss
}

/// Turns scores into probabilities with the sum 1.
pub fn probabilities(scores: &mut [f64]) {
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = exp(*score - max);
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central differences with step 1e-6 in f64: truncation about 1e-12, cancellation about 1e-10 for losses near 10.
    const STEP: f64 = 1e-6;
    const TOLERANCE: f64 = 1e-7;

    #[test]
    fn slopes_are_the_derivatives() {
        let losses =
            [Loss::Logistic, Loss::Hinge, Loss::SquaredHinge, Loss::Squared, Loss::Huber { delta: 1.5 }];
        for loss in losses {
            for score in [-4.2, -1.3, -0.4, 0.0, 0.3, 0.9, 2.7, 5.1] {
                for label in [0.0, 1.0] {
                    let value = |s: f64| loss.value_and_slope(s, label).0;
                    let expected = (value(score + STEP) - value(score - STEP)) / (2.0 * STEP);
                    let slope = loss.value_and_slope(score, label).1;
                    assert!(
                        (slope - expected).abs() < TOLERANCE,
                        "{loss:?} at {score}, {label}: {slope} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn softmax_slopes_are_the_derivatives() {
        let scores = [0.3, -1.2, 2.0, 0.0];
        for class in 0..scores.len() {
            let mut slopes = scores;
            softmax(&mut slopes, class);
            for k in 0..scores.len() {
                let value = |step: f64| {
                    let mut moved = scores;
                    moved[k] += step;
                    softmax(&mut moved, class)
                };
                let expected = (value(STEP) - value(-STEP)) / (2.0 * STEP);
                assert!((slopes[k] - expected).abs() < TOLERANCE);
            }
        }
    }

    #[test]
    fn losses_of_large_scores_are_finite() {
        assert_eq!(Loss::Logistic.value_and_slope(1e4, 0.0), (1e4, 1.0));
        assert_eq!(Loss::Logistic.value_and_slope(-1e4, 1.0), (1e4, -1.0));
        assert!(softmax(&mut [1e4, -1e4], 1).is_finite());
    }

    #[test]
    fn the_loss_of_a_score_that_is_no_number_is_none() {
        let losses =
            [Loss::Logistic, Loss::Hinge, Loss::SquaredHinge, Loss::Squared, Loss::Huber { delta: 1.5 }];
        for loss in losses {
            for label in [0.0, 1.0] {
                assert!(loss.value_and_slope(f64::NAN, label).0.is_nan(), "{loss:?}");
            }
        }
        for class in [0, 1, 2] {
            assert!(softmax(&mut [1.0, f64::NAN, 2.0], class).is_nan(), "class {class}");
        }
    }
}
