//! The objectives: which labels they take, what a prediction is, and the best first scores.

use data::{LabelRange, LabelRule};
use math::elementary::{exp, ln, sigmoid};
use serde::{Deserialize, Serialize};

use algo::error::Error;
use algo::job::Output;
use algo::loss::{Loss, probabilities};

/// A share of a class is clamped to at least this value, and to at most 1 minus it.
const LEAST_SHARE: f64 = 1e-12;

/// What is minimized, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Objective {
    /// Two classes.
    Logistic {
        /// Weight of the records of label 1.
        positive_weight: f64,
    },
    /// Several classes.
    Softmax,
    /// Half the squared error.
    Squared,
    /// The absolute error.
    Absolute,
    /// Huber, "Robust estimation of a location parameter", 1964.
    Huber {
        /// Where the loss changes from squared to absolute, in units of the label.
        delta: f64,
    },
    /// Koenker and Bassett, "Regression quantiles", 1978.
    Quantile {
        /// The share of the labels below the prediction, between 0 and 1.
        alpha: f64,
    },
    /// Counts.
    Poisson {
        /// The hessian is `exp` of this times too large, so that steps are shorter.
        max_delta_step: f64,
    },
    /// Positive numbers whose deviation is proportional to their mean.
    Gamma,
    /// Positive numbers and zeros: sums of gamma distributed numbers as many as Poisson says.
    Tweedie {
        /// The variance is proportional to the mean to this power, between 1 and 2.
        power: f64,
    },
    /// Burges, "From `RankNet` to `LambdaRank` to `LambdaMART`", 2010.
    #[serde(rename = "lambdarank")]
    LambdaRank {
        /// Pairs count whose better ranked record is among the first so many.
        truncation: u64,
    },
}

impl Objective {
    /// The name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logistic { .. } => "logistic",
            Self::Softmax => "softmax",
            Self::Squared => "squared",
            Self::Absolute => "absolute",
            Self::Huber { .. } => "huber",
            Self::Quantile { .. } => "quantile",
            Self::Poisson { .. } => "poisson",
            Self::Gamma => "gamma",
            Self::Tweedie { .. } => "tweedie",
            Self::LambdaRank { .. } => "lambdarank",
        }
    }

    /// The loss of the linear models that is the same function; the metrics of the two are then the same too.
    pub(in super::super) fn shared_loss(self) -> Option<Loss> {
        match self {
            Self::Logistic { .. } => Some(Loss::Logistic),
            Self::Softmax => Some(Loss::Softmax),
            Self::Squared => Some(Loss::Squared),
            Self::Huber { delta } => Some(Loss::Huber { delta }),
            Self::Absolute
            | Self::Quantile { .. }
            | Self::Poisson { .. }
            | Self::Gamma
            | Self::Tweedie { .. }
            | Self::LambdaRank { .. } => None,
        }
    }

    /// The metrics that early stopping may use.
    pub(in super::super) fn stopping_metrics(self) -> &'static [&'static str] {
        match self {
            Self::Logistic { .. } => {
                &["loss", "log_loss", "auc", "gauc", "accuracy", "precision", "recall", "f1"]
            }
            Self::Softmax => &["loss", "log_loss", "accuracy", "macro_f1"],
            Self::LambdaRank { .. } => &["loss", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10"],
            Self::Squared
            | Self::Absolute
            | Self::Huber { .. }
            | Self::Quantile { .. }
            | Self::Poisson { .. }
            | Self::Gamma
            | Self::Tweedie { .. } => &["loss", "rmse", "mae", "r2"],
        }
    }

    /// Which labels are allowed. `positive` is the label that counts as 1.
    pub(in super::super) fn label_rule(self, positive: Option<f32>) -> LabelRule {
        let range = |range| LabelRule::Range { range, objective: self.name() };
        match self {
            Self::Logistic { .. } => LabelRule::Binary { positive },
            Self::Softmax => LabelRule::Class,
            Self::Squared | Self::Absolute | Self::Huber { .. } | Self::Quantile { .. } => LabelRule::Real,
            Self::Poisson { .. } | Self::Tweedie { .. } => range(LabelRange::NotNegative),
            Self::Gamma => range(LabelRange::Positive),
            Self::LambdaRank { .. } => range(LabelRange::Grades),
        }
    }

    /// Makes labels 0 and 1, if they were read before the objective was chosen.
    pub(in super::super) fn read_labels(self, labels: &mut [f64]) -> Result<(), Error> {
        if matches!(self, Self::Logistic { .. }) {
            for label in labels {
                *label = match *label {
                    1.0 => 1.0,
                    0.0 | -1.0 => 0.0,
                    label => {
                        return Err(Error::UnknownClass { label, class_count: 2, first: 0.0, last: 1.0 });
                    }
                };
            }
        }
        Ok(())
    }

    /// What the numbers of a prediction are.
    pub(in super::super) fn output(self, classes: &[f32]) -> Output {
        match self {
            Self::Logistic { .. } => Output::Probability,
            Self::Softmax => Output::Classes(classes.to_vec()),
            _ => Output::Value,
        }
    }

    /// The percentile of the residuals that the value of a leaf is; `None`: it is a Newton step.
    pub(in super::super) fn percentile(self) -> Option<f64> {
        match self {
            Self::Absolute => Some(0.5),
            Self::Quantile { alpha } => Some(alpha),
            _ => None,
        }
    }

    /// Turns scores (records x `width`) into predictions.
    pub(in super::super) fn predict(self, width: usize, scores: &mut [f64]) {
        match self {
            Self::Softmax => scores.chunks_exact_mut(width).for_each(probabilities),
            _ => scores.iter_mut().for_each(|score| *score = self.prediction(*score)),
        }
    }

    /// The prediction of a single score.
    pub(super) fn prediction(self, score: f64) -> f64 {
        match self {
            Self::Logistic { .. } => sigmoid(score),
            Self::Poisson { .. } | Self::Gamma | Self::Tweedie { .. } => exp(score),
            _ => score,
        }
    }

    /// The best constant scores, except for percentiles. `means`: the mean label, or the share of each class.
    pub(in super::super) fn base_scores(self, means: &[f64]) -> Result<Vec<f64>, Error> {
        let share = |mean: &f64| mean.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        Ok(match self {
            Self::Softmax => means.iter().map(|mean| ln(share(mean))).collect(),
            Self::Logistic { positive_weight } => {
                means.iter().map(|mean| ln(positive_weight * share(mean) / (1.0 - share(mean)))).collect()
            }
            Self::Poisson { .. } | Self::Gamma | Self::Tweedie { .. } => {
                if means[0] <= 0.0 {
                    return Err(Error::UnsuitableData {
                        reason: format!(
                            "all labels are 0, and objective={} predicts numbers above 0: check the label column",
                            self.name()
                        ),
                    });
                }
                vec![ln(means[0])]
            }
            Self::LambdaRank { .. } => vec![0.0],
            Self::Squared | Self::Absolute | Self::Huber { .. } | Self::Quantile { .. } => means.to_vec(),
        })
    }
}
