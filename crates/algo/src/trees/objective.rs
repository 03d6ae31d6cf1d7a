//! What trees minimize: gradients and hessians of the losses, and the score before the first tree.

use math::elementary::{ln, sigmoid};

use crate::loss::{self, Loss};

/// A share of a class is clamped to at least this value, and to at most 1 minus it.
const LEAST_SHARE: f64 = 1e-12;

/// Gradients and hessians of all records, class by class: `class x records + record`.
#[derive(Debug, Default)]
pub(super) struct Slopes {
    pub(super) gradients: Vec<f64>,
    pub(super) hessians: Vec<f64>,
}

/// Scores are `record x classes + class`; `class_of` is asked for softmax alone.
pub(super) fn slopes(
    loss: Loss,
    width: usize,
    scores: &[f64],
    labels: &[f64],
    weight: impl Fn(usize) -> f64,
    class_of: impl Fn(f64) -> usize,
    out: &mut Slopes,
) {
    let count = labels.len();
    out.gradients.resize(width * count, 0.0);
    out.hessians.resize(width * count, 0.0);
    let mut probabilities = vec![0.0; width];
    for (r, (scores, &label)) in scores.chunks_exact(width).zip(labels).enumerate() {
        let weight = weight(r);
        match loss {
            Loss::Softmax => {
                probabilities.copy_from_slice(scores);
                loss::probabilities(&mut probabilities);
                let own = class_of(label);
                // The factor of Friedman (2001), which makes two classes equal to the logistic loss.
                let factor = width as f64 / (width as f64 - 1.0);
                for (class, &p) in probabilities.iter().enumerate() {
                    out.gradients[class * count + r] = weight * (p - f64::from(u8::from(class == own)));
                    out.hessians[class * count + r] = weight * factor * p * (1.0 - p);
                }
            }
            Loss::Logistic => {
                let p = sigmoid(scores[0]);
                out.gradients[r] = weight * (p - label);
                out.hessians[r] = weight * p * (1.0 - p);
            }
            _ => {
                out.gradients[r] = weight * (scores[0] - label);
                out.hessians[r] = weight;
            }
        }
    }
}

/// The best constant scores. `means`: the mean label, or the share of each class.
pub(super) fn base_scores(loss: Loss, means: &[f64]) -> Vec<f64> {
    let share = |mean: &f64| mean.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
    match loss {
        Loss::Softmax => means.iter().map(|mean| ln(share(mean))).collect(),
        Loss::Logistic => means.iter().map(|mean| ln(share(mean) / (1.0 - share(mean)))).collect(),
        _ => means.to_vec(),
    }
}
