//! Losses with their gradients and hessians. `s` is the score, `y` the label, `m = exp(s)`; the losses of counts and positive
//! numbers are half of their deviances, which are 0 for `m = y`.
//!
//! | objective | loss | gradient in `s` | hessian |
//! |---|---|---|---|
//! | logistic, w = `scale_pos_weight` where y = 1 | `w (log(1 + exp(s)) - y s)` | `w (sigmoid(s) - y)` | `w p (1 - p)` |
//! | absolute | `abs(s - y)` | `sign(s - y)` | 1 |
//! | Huber, r = s - y, D = `alpha` | `0.5 r^2` if `abs(r) <= D`, else `D (abs(r) - D / 2)` | `clamp(r, -D, D)` | 1 |
//! | quantile, a = `alpha` | `(1 - a) (s - y)` if `s >= y`, else `a (y - s)` | `1 - a`, or `-a` | 1 |
//! | Poisson, d = `poisson_max_delta_step` | `y log(y / m) - y + m` | `m - y` | `m exp(d)` |
//! | gamma | `y / m - log(y / m) - 1` | `1 - y / m` | `y / m` |
//! | Tweedie, p = `tweedie_variance_power` | see [`loss`] | `m^(2-p) - y m^(1-p)` | `(2 - p) m^(2-p) - (1 - p) y m^(1-p)` |
//!
//! The hessian of Poisson is that of LightGBM: it is too large, so that steps are short where trees overshoot. Metrics leave
//! `scale_pos_weight` out: they judge the data as they are.

use data::Batch;
use math::elementary::{exp, ln, pow, sigmoid};

use super::Objective;
use algo::error::Error;
use algo::labels::class_of;
use algo::loss::{self, Loss};

/// Scores beyond this one have its `exp`, so that gradients are finite.
const LARGEST_SCORE: f64 = 300.0;

/// Gradients and hessians of all records, class by class: `class x records + record`.
#[derive(Debug, Default)]
pub(in super::super) struct Slopes {
    pub(in super::super) gradients: Vec<f64>,
    pub(in super::super) hessians: Vec<f64>,
}

impl Slopes {
    /// How much a record has to say: the sum over classes of the size of gradient times hessian.
    pub(in super::super) fn size(&self, record: usize, record_count: usize) -> f64 {
        let own = (record..self.gradients.len()).step_by(record_count);
        own.map(|i| (self.gradients[i] * self.hessians[i]).abs()).sum()
    }

    /// Multiplies what a record has.
    pub(in super::super) fn scale(&mut self, record: usize, record_count: usize, factor: f64) {
        for i in (record..self.gradients.len()).step_by(record_count) {
            self.gradients[i] *= factor;
            self.hessians[i] *= factor;
        }
    }
}

/// Scores are `record x classes + class`.
///
/// # Panics
/// For `lambdarank`, whose gradients follow from groups.
pub(in super::super) fn slopes(
    objective: Objective,
    classes: &[f32],
    scores: &[f64],
    columns: &Batch,
    out: &mut Slopes,
) -> Result<(), Error> {
    let (count, labels) = (columns.labels.len(), &columns.labels);
    let width = scores.len().checked_div(count).unwrap_or(1);
    out.gradients.resize(width * count, 0.0);
    out.hessians.resize(width * count, 0.0);
    if objective != Objective::Softmax {
        for (r, (&score, &label)) in scores.iter().zip(labels).enumerate() {
            let (weight, (gradient, hessian)) =
                (f64::from(columns.weight(r)), gradient_and_hessian(objective, score, label));
            (out.gradients[r], out.hessians[r]) = (weight * gradient, weight * hessian);
        }
        return Ok(());
    }
    // The factor of Friedman (2001), which makes two classes equal to the logistic loss.
    let factor = width as f64 / (width as f64 - 1.0);
    let mut probabilities = vec![0.0; width];
    for (r, (scores, &label)) in scores.chunks_exact(width).zip(labels).enumerate() {
        let (weight, own) = (f64::from(columns.weight(r)), class_of(classes, label)?);
        probabilities.copy_from_slice(scores);
        loss::probabilities(&mut probabilities);
        for (class, &p) in probabilities.iter().enumerate() {
            out.gradients[class * count + r] = weight * (p - f64::from(u8::from(class == own)));
            out.hessians[class * count + r] = weight * factor * p * (1.0 - p);
        }
    }
    Ok(())
}

/// Of a record with one score.
#[inline]
fn gradient_and_hessian(objective: Objective, score: f64, label: f64) -> (f64, f64) {
    let error = score - label;
    let exp_of = |factor: f64| exp(factor * score.clamp(-LARGEST_SCORE, LARGEST_SCORE));
    match objective {
        Objective::Logistic { positive_weight } => {
            let (p, weight) = (sigmoid(score), if label > 0.0 { positive_weight } else { 1.0 });
            (weight * (p - label), weight * p * (1.0 - p))
        }
        Objective::Squared => (error, 1.0),
        Objective::Absolute => (if error == 0.0 { 0.0 } else { error.signum() }, 1.0),
        Objective::Huber { delta } => (error.clamp(-delta, delta), 1.0),
        Objective::Quantile { alpha } => (if error >= 0.0 { 1.0 - alpha } else { -alpha }, 1.0),
        Objective::Poisson { max_delta_step } => {
            let mean = exp_of(1.0);
            (mean - label, mean * exp(max_delta_step))
        }
        Objective::Gamma => {
            let ratio = label * exp_of(-1.0);
            (1.0 - ratio, ratio)
        }
        Objective::Tweedie { power } => {
            let (first, second) = (label * exp_of(1.0 - power), exp_of(2.0 - power));
            (second - first, (2.0 - power) * second - (1.0 - power) * first)
        }
        Objective::Softmax | Objective::LambdaRank { .. } => {
            unreachable!("the gradients of {} do not follow from one score", objective.name())
        }
    }
}

/// The loss of a record with one score, without `scale_pos_weight`.
pub(super) fn loss(objective: Objective, score: f64, label: f64) -> f64 {
    let log_ratio = || if label > 0.0 { ln(label) - score } else { 0.0 };
    match objective {
        Objective::Logistic { .. } => Loss::Logistic.value_and_slope(score, label).0,
        Objective::Squared => Loss::Squared.value_and_slope(score, label).0,
        Objective::Huber { delta } => Loss::Huber { delta }.value_and_slope(score, label).0,
        Objective::Absolute => (score - label).abs(),
        Objective::Quantile { alpha } => {
            let error = score - label;
            if error >= 0.0 { (1.0 - alpha) * error } else { -alpha * error }
        }
        Objective::Poisson { .. } | Objective::Tweedie { power: 1.0 } => {
            label * log_ratio() - label + exp(score)
        }
        Objective::Gamma => label * exp(-score) - log_ratio() - 1.0,
        Objective::Tweedie { power } => {
            let (one, two) = (1.0 - power, 2.0 - power);
            let of_label = if label > 0.0 { pow(label, two) / (one * two) } else { 0.0 };
            of_label - label * exp(one * score) / one + exp(two * score) / two
        }
        Objective::Softmax | Objective::LambdaRank { .. } => {
            unreachable!("the loss of {} does not follow from one score", objective.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central differences with this step: truncation below 1e-9 for third derivatives up to 1e3, cancellation about 1e-9.
    const STEP: f64 = 1e-6;
    const TOLERANCE: f64 = 1e-6;

    const OBJECTIVES: [Objective; 8] = [
        Objective::Logistic { positive_weight: 1.0 },
        Objective::Squared,
        Objective::Absolute,
        Objective::Huber { delta: 0.9 },
        Objective::Quantile { alpha: 0.8 },
        Objective::Poisson { max_delta_step: 0.7 },
        Objective::Gamma,
        Objective::Tweedie { power: 1.3 },
    ];

    #[test]
    fn gradients_are_the_derivatives_of_losses() {
        for objective in OBJECTIVES {
            for score in [-2.2, -1.3, -0.4, 0.3, 0.85, 2.7] {
                for label in [0.0, 1.0, 2.0, 7.0] {
                    if matches!(objective, Objective::Logistic { .. }) && label > 1.0
                        || objective == Objective::Gamma && label == 0.0
                    {
                        continue;
                    }
                    let value = |s: f64| loss(objective, s, label);
                    let expected = (value(score + STEP) - value(score - STEP)) / (2.0 * STEP);
                    let found = gradient_and_hessian(objective, score, label).0;
                    assert!(
                        (found - expected).abs() < TOLERANCE * expected.abs().max(1.0),
                        "{objective:?} at {score}, {label}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn hessians_are_the_derivatives_of_gradients_where_losses_are_smooth() {
        for objective in OBJECTIVES {
            let factor = match objective {
                Objective::Absolute | Objective::Quantile { .. } | Objective::Huber { .. } => continue,
                Objective::Poisson { max_delta_step } => exp(max_delta_step),
                _ => 1.0,
            };
            for (score, label) in [(-1.2, 1.0), (0.4, 1.0), (2.1, 1.0)] {
                let gradient = |s: f64| gradient_and_hessian(objective, s, label).0;
                let expected = factor * (gradient(score + STEP) - gradient(score - STEP)) / (2.0 * STEP);
                let found = gradient_and_hessian(objective, score, label).1;
                assert!((found - expected).abs() < TOLERANCE * expected.abs().max(1.0), "{objective:?}");
            }
        }
    }

    #[test]
    fn the_weight_of_positive_records_multiplies_their_gradients_alone() {
        let plain = Objective::Logistic { positive_weight: 1.0 };
        let heavy = Objective::Logistic { positive_weight: 3.0 };
        let of = |objective, label| gradient_and_hessian(objective, 0.4, label);
        assert_eq!(of(heavy, 0.0), of(plain, 0.0));
        let (gradient, hessian) = of(plain, 1.0);
        assert_eq!(of(heavy, 1.0), (3.0 * gradient, 3.0 * hessian));
    }

    #[test]
    fn losses_of_perfect_predictions_are_zero_and_gradients_of_far_scores_finite() {
        for objective in &OBJECTIVES[5..] {
            assert!(loss(*objective, ln(3.0), 3.0).abs() < 1e-12, "{objective:?}");
            for score in [-1e9, 1e9] {
                let (gradient, hessian) = gradient_and_hessian(*objective, score, 3.0);
                assert!(gradient.is_finite() && hessian.is_finite(), "{objective:?}");
            }
        }
    }
}
