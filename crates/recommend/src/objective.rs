//! What a factorization by alternating least squares minimizes, and how it follows from the data.

use math::elementary::{exp, ln};
use serde::{Deserialize, Serialize};

/// What is minimized, as it was set. What is `None` follows from the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveSettings {
    /// [`Objective::Ratings`].
    Ratings { lambda: f64 },
    /// [`Objective::Choices`].
    Choices { unobserved: Option<f64>, lambda: Option<f64>, nu: f64 },
    /// [`Objective::Confidence`].
    Confidence { alpha: f64, lambda: Option<f64> },
}

impl ObjectiveSettings {
    pub(super) fn are_ratings(self) -> bool {
        matches!(self, Self::Ratings { .. })
    }

    /// The objective for data with so many pairs of users and items. The rules fit published settings for `MovieLens`, Million
    /// Songs and gowalla (Rendle et al., 2021): the weight of what was not chosen is the root of the share of pairs that were, and
    /// lambda a 25th of the third root.
    pub fn resolve(self, pairs: u64, users: u64, items: u64) -> Objective {
        let share = pairs as f64 / (users as f64 * items as f64);
        let penalty = exp(ln(share) / 3.0) / 25.0;
        match self {
            Self::Ratings { lambda } => Objective::Ratings { lambda },
            Self::Choices { unobserved, lambda, nu } => {
                let (unobserved, lambda) = (unobserved.unwrap_or(share.sqrt()), lambda.unwrap_or(penalty));
                Objective::Choices { unobserved, lambda, nu }
            }
            Self::Confidence { alpha, lambda } => {
                // The loss is alpha times that of choices with the weight 1 / alpha for all pairs; here for a mean user.
                let count = pairs as f64 / users as f64 * alpha + items as f64;
                Objective::Confidence { alpha, lambda: lambda.unwrap_or(penalty * count) }
            }
        }
    }

    /// What was chosen for the data, for people.
    pub(super) fn notice(self, objective: Objective) -> Option<String> {
        let mut chosen = Vec::new();
        match (self, objective) {
            (
                Self::Choices { unobserved: set, lambda, .. },
                Objective::Choices { unobserved, lambda: penalty, .. },
            ) => {
                if set.is_none() {
                    chosen.push(format!("unobserved={unobserved:.3}"));
                }
                if lambda.is_none() {
                    chosen.push(format!("lambda={penalty:.4}"));
                }
            }
            (Self::Confidence { lambda: None, .. }, Objective::Confidence { lambda, .. }) => {
                chosen.push(format!("lambda={lambda:.3}"));
            }
            _ => {}
        }
        (!chosen.is_empty())
            .then(|| format!("{}: from the share of pairs that were chosen", chosen.join(" ")))
    }
}

/// What is minimized; x is the row of a user or an item, n the number of its pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// `sum (rating - mean - b_u - b_i - p . q)^2 + lambda n (|x|^2 + b^2)`.
    Ratings { lambda: f64 },
    /// `sum strength (1 - p . q)^2 + unobserved sum over all pairs (p . q)^2 + lambda (n + unobserved others)^nu |x|^2`.
    Choices { unobserved: f64, lambda: f64, nu: f64 },
    /// `sum (1 + alpha strength) (1 - p . q)^2 + sum over other pairs (p . q)^2 + lambda |x|^2`.
    Confidence { alpha: f64, lambda: f64 },
}

impl Objective {
    pub(super) fn are_ratings(self) -> bool {
        matches!(self, Self::Ratings { .. })
    }

    /// The factor of the Gramian of the other side.
    pub(super) fn gramian_factor(self) -> f64 {
        match self {
            Self::Ratings { .. } => 0.0,
            Self::Choices { unobserved, .. } => unobserved,
            Self::Confidence { .. } => 1.0,
        }
    }

    /// The ridge of a row with `pairs` pairs, where the other side has `others` rows.
    pub(super) fn ridge(self, pairs: usize, others: u64) -> f32 {
        let ridge = match self {
            Self::Ratings { lambda } => lambda * pairs as f64,
            Self::Choices { unobserved, lambda, nu } => {
                let count = pairs as f64 + unobserved * others as f64;
                lambda * if nu == 1.0 { count } else { exp(nu * ln(count)) }
            }
            Self::Confidence { lambda, .. } => lambda,
        };
        ridge as f32
    }

    /// The weights and the targets of pairs of choices with these strengths; none: all are 1.
    pub(super) fn weights(self, strengths: &[f32]) -> (Option<Vec<f32>>, Option<Vec<f32>>) {
        match self {
            Self::Ratings { .. } => (None, None),
            Self::Choices { .. } if strengths.iter().all(|&strength| strength == 1.0) => (None, None),
            Self::Choices { .. } => (Some(strengths.to_vec()), Some(strengths.to_vec())),
            Self::Confidence { alpha, .. } => {
                let weights: Vec<f32> = strengths.iter().map(|strength| alpha as f32 * strength).collect();
                let targets = weights.iter().map(|weight| 1.0 + weight).collect();
                (Some(weights), Some(targets))
            }
        }
    }
}
