//! Exact metrics: each is an accumulator that adds records and merges with another one; no metric is a mean of means
//! per task.
//!
//! | file | metrics |
//! |---|---|
//! | [`loss`] | mean loss of the training objective; it is also `log_loss` if predictions are probabilities |
//! | [`auc`] | area under the ROC curve, with ties by midranks, with weights |
//! | [`gauc`] | AUC within groups |
//! | [`classification`] | accuracy, precision, recall, F1 of two or more classes, confusion matrix |
//! | [`calibration`] | mean prediction / mean label, in total and in bins |
//! | [`regression`] | RMSE, MAE, R2 |
//! | [`ndcg`] | NDCG of groups |
//! | [`named`] | sums and means that a family names itself |

pub mod auc;
pub mod calibration;
pub mod classification;
pub mod gauc;
pub mod loss;
pub mod named;
pub mod ndcg;
pub mod regression;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use auc::AucAccumulator;
use calibration::{CalibrationAccumulator, CalibrationRow};
pub use classification::argmax;
use classification::{BinaryCounts, ClassCounts, Confusion};
use data::Batch;
use gauc::GaucAccumulator;
use loss::LossAccumulator;
use math::elementary::{ln, sigmoid};
use named::NamedAccumulator;
use ndcg::RankingAccumulator;
use regression::RegressionAccumulator;

use crate::error::Error;
use crate::labels::class_of;
use crate::loss::{Loss, softmax};
use crate::output::Output;

/// Names of metrics and their values. A metric that is not defined for the data (AUC of one class) is absent.
pub type Metrics = BTreeMap<Cow<'static, str>, f64>;

/// A metric that early stopping may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppingMetric {
    /// The name, as in [`Metrics`].
    pub name: &'static str,
    pub higher_is_better: bool,
    /// What the data must have for the metric to be defined; `None` if it is the model that may leave it undefined.
    pub requirement: Option<&'static str>,
}

const fn stopping_metric(name: &'static str, higher: bool, needs: Option<&'static str>) -> StoppingMetric {
    StoppingMetric { name, higher_is_better: higher, requirement: needs }
}

/// What NDCG requires.
const GROUPS: &str = "groups (--group), and no more records than auc_record_limit";

/// Every metric that early stopping may use. The kind of model decides which of them it has.
pub const STOPPING_METRICS: &[StoppingMetric] = &[
    stopping_metric("loss", false, Some("records with a weight above 0")),
    stopping_metric("log_loss", false, Some("records with a weight above 0")),
    stopping_metric("auc", true, Some("records of both classes, and no more of them than auc_record_limit")),
    stopping_metric("gauc", true, Some("groups (--group) with records of both classes")),
    stopping_metric("accuracy", true, Some("records with a weight above 0")),
    stopping_metric("precision", true, None),
    stopping_metric("recall", true, Some("records of the positive class")),
    stopping_metric("f1", true, Some("records of the positive class")),
    stopping_metric("macro_f1", true, Some("records with a weight above 0")),
    stopping_metric("rmse", false, Some("records with a weight above 0")),
    stopping_metric("mae", false, Some("records with a weight above 0")),
    stopping_metric("r2", true, Some("labels that differ")),
    stopping_metric("ndcg@1", true, Some(GROUPS)),
    stopping_metric("ndcg@3", true, Some(GROUPS)),
    stopping_metric("ndcg@5", true, Some(GROUPS)),
    stopping_metric("ndcg@10", true, Some(GROUPS)),
];

/// The metrics of a set of records, for one kind of model. Merging is exact: the accumulators of tasks 0, 1, 2...
/// merged in that order give the same bytes however the tasks ran.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum MetricAccumulator {
    /// Two classes.
    Binary(Box<BinaryAccumulator>),
    /// Many classes.
    Classes(Box<ClassAccumulator>),
    /// Real numbers.
    Real(RealAccumulator),
    /// Ranked records of groups.
    Ranking(RankingAccumulator),
    /// The metrics of a family that predicts no labels.
    Named(NamedAccumulator),
}

/// Two classes.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BinaryAccumulator {
    /// Loss of the objective; for `lr` it equals log loss.
    pub loss: LossAccumulator,
    /// Whether scores are log odds, so that log loss and calibration are defined.
    pub probabilities: bool,
    /// Mean prediction and mean label.
    pub calibration: CalibrationAccumulator,
    /// A record is predicted 1 if its probability or margin is above this value; `None` is 0.5 or 0.
    pub threshold: Option<f64>,
    /// Counts of predictions at the threshold.
    pub counts: BinaryCounts,
    pub auc: AucAccumulator,
    /// AUC within groups; empty without a group column.
    pub gauc: GaucAccumulator,
}

/// Many classes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClassAccumulator {
    /// Loss of the objective: minus the log of the probability of the true class.
    pub loss: LossAccumulator,
    /// Counts of predictions, which are the class with the largest score.
    pub counts: ClassCounts,
    /// Counts by class and predicted class, if they were asked for.
    pub confusion: Option<Confusion>,
}

/// Real numbers.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RealAccumulator {
    /// Loss of the objective.
    pub loss: LossAccumulator,
    pub regression: RegressionAccumulator,
}

impl BinaryAccumulator {
    /// Adds a record with the loss and the slope of its score, without its group.
    #[inline]
    fn add(&mut self, score: f64, label: f64, loss: f64, slope: f64, weight: f32) {
        let (is_positive, wide) = (label > 0.0, f64::from(weight));
        self.loss.add(loss, wide);
        if self.probabilities {
            // The slope of the logistic loss is prediction - label.
            self.calibration.add(slope + label, label, wide);
        }
        let said = match self.threshold {
            None => score > 0.0,
            Some(threshold) if self.probabilities => sigmoid(score) > threshold,
            Some(threshold) => score > threshold,
        };
        self.counts.add(said, is_positive, wide);
        self.auc.add(score, is_positive, weight);
    }
}

impl RealAccumulator {
    /// Adds a record; its loss is half the squared error.
    pub fn add(&mut self, prediction: f64, label: f64, weight: f64) {
        self.loss.add(0.5 * (prediction - label).powi(2), weight);
        self.regression.add(prediction, label, weight);
    }
}

impl MetricAccumulator {
    /// An empty accumulator for predictions of this kind.
    pub fn of(output: &Output) -> Self {
        match output {
            Output::Probability => {
                Self::Binary(Box::new(BinaryAccumulator { probabilities: true, ..Default::default() }))
            }
            Output::Margin => Self::Binary(Box::default()),
            Output::Value => Self::Real(RealAccumulator::default()),
            Output::Classes(classes) => Self::Classes(Box::new(ClassAccumulator {
                loss: LossAccumulator::default(),
                counts: ClassCounts::new(classes.len()),
                confusion: None,
            })),
            Output::None | Output::Columns(_) => Self::Named(NamedAccumulator::default()),
        }
    }

    /// Number of records added.
    pub fn record_count(&self) -> u64 {
        self.loss().record_count
    }

    /// The accumulator of the objective.
    pub fn loss(&self) -> &LossAccumulator {
        match self {
            Self::Binary(parts) => &parts.loss,
            Self::Classes(parts) => &parts.loss,
            Self::Real(parts) => &parts.loss,
            Self::Ranking(parts) => &parts.loss,
            Self::Named(parts) => &parts.loss,
        }
    }

    /// The accumulator of the objective, to which a caller adds that needs no other metric.
    pub fn loss_mut(&mut self) -> &mut LossAccumulator {
        match self {
            Self::Binary(parts) => &mut parts.loss,
            Self::Classes(parts) => &mut parts.loss,
            Self::Real(parts) => &mut parts.loss,
            Self::Ranking(parts) => &mut parts.loss,
            Self::Named(parts) => &mut parts.loss,
        }
    }

    /// Adds the records of another task. Merge in the order of tasks.
    ///
    /// # Panics
    /// If the two belong to different kinds of model.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Binary(a), Self::Binary(b)) => {
                a.loss.merge(&b.loss);
                a.calibration.merge(&b.calibration);
                a.counts.merge(&b.counts);
                a.auc.merge(&b.auc);
                a.gauc.merge(&b.gauc);
            }
            (Self::Classes(a), Self::Classes(b)) => {
                a.loss.merge(&b.loss);
                a.counts.merge(&b.counts);
                if let (Some(a), Some(b)) = (&mut a.confusion, &b.confusion) {
                    a.merge(b);
                }
            }
            (Self::Real(a), Self::Real(b)) => {
                a.loss.merge(&b.loss);
                a.regression.merge(&b.regression);
            }
            (Self::Ranking(a), Self::Ranking(b)) => a.merge(b),
            (Self::Named(a), Self::Named(b)) => a.merge(b),
            (a, b) => panic!("merge: parts of different models: {a:?} and {b:?}"),
        }
    }

    /// Computes the metrics. `loss`, the mean of the objective without penalties, is present if a record has a weight
    /// above 0.
    pub fn finish(&self) -> Metrics {
        let mut out = Metrics::new();
        put(&mut out, "loss", self.loss().mean());
        match self {
            Self::Binary(parts) => {
                if parts.probabilities {
                    put(&mut out, "log_loss", parts.loss.mean());
                    put(&mut out, "calibration", parts.calibration.ratio());
                }
                put(&mut out, "auc", parts.auc.value());
                put(&mut out, "gauc", parts.gauc.value());
                put(&mut out, "accuracy", parts.counts.accuracy());
                put(&mut out, "precision", parts.counts.precision());
                put(&mut out, "recall", parts.counts.recall());
                put(&mut out, "f1", parts.counts.f1());
            }
            Self::Classes(parts) => {
                put(&mut out, "log_loss", parts.loss.mean());
                put(&mut out, "accuracy", parts.counts.accuracy());
                put(&mut out, "macro_f1", parts.counts.macro_f1());
            }
            Self::Real(parts) => {
                put(&mut out, "rmse", parts.regression.rmse());
                put(&mut out, "mae", parts.regression.mae());
                put(&mut out, "r2", parts.regression.r2());
            }
            Self::Ranking(parts) => {
                out.extend(parts.values().into_iter().map(|(name, value)| (Cow::Borrowed(name), value)));
            }
            Self::Named(parts) => out.extend(parts.values()),
        }
        out
    }

    /// The same accumulator, which also counts the confusion matrix, with predictions at `threshold`.
    #[must_use]
    pub fn with_confusion(mut self, threshold: Option<f64>) -> Self {
        match &mut self {
            Self::Binary(parts) => parts.threshold = threshold,
            Self::Classes(parts) => parts.confusion = Some(Confusion::default()),
            Self::Real(_) | Self::Ranking(_) | Self::Named(_) => {}
        }
        self
    }

    /// The confusion matrix, by numbers of classes; `None` for real numbers, and if it was not counted.
    pub fn confusion(&self) -> Option<Confusion> {
        match self {
            Self::Binary(parts) => Some(parts.counts.confusion()),
            Self::Classes(parts) => parts.confusion.clone(),
            Self::Real(_) | Self::Ranking(_) | Self::Named(_) => None,
        }
    }

    /// The calibration table; empty if predictions are not probabilities of label 1.
    pub fn calibration_table(&self) -> Vec<CalibrationRow> {
        match self {
            Self::Binary(parts) if parts.probabilities => parts.calibration.table(),
            Self::Binary(_) | Self::Classes(_) | Self::Real(_) | Self::Ranking(_) | Self::Named(_) => {
                Vec::new()
            }
        }
    }

    /// The mean loss of the best constant prediction for these records; `None` without records, and for real numbers,
    /// where R2 makes this comparison. For `svm` it is that of the squared hinge, which is no smaller than that of the
    /// plain hinge.
    pub fn constant_loss(&self) -> Option<f64> {
        match self {
            Self::Binary(parts) => {
                let share = parts.counts.positive_share()?;
                Some(if parts.probabilities {
                    entropy(share) + entropy(1.0 - share)
                } else {
                    4.0 * share * (1.0 - share)
                })
            }
            Self::Classes(parts) => Some(parts.counts.shares()?.into_iter().map(entropy).sum()),
            // R2 makes this comparison.
            Self::Real(_) | Self::Ranking(_) | Self::Named(_) => None,
        }
    }

    /// Messages for a reader of the metrics: limits that were exceeded.
    pub fn notices(&self) -> Vec<String> {
        match self {
            Self::Binary(parts) => parts.auc.notice().into_iter().chain(parts.gauc.notice()).collect(),
            Self::Ranking(parts) => parts.notice().into_iter().collect(),
            Self::Classes(_) | Self::Real(_) | Self::Named(_) => Vec::new(),
        }
    }
}

/// Adds the records of a batch, with `scores` (records x width), to `parts`. Sets `slopes` (records x width) to the
/// slopes of the losses, not weighted. Returns the sum of weight x loss over the batch.
pub fn add_to_metrics(
    (loss, classes): (Loss, &[f32]),
    batch: &Batch,
    scores: &[f64],
    slopes: &mut Vec<f64>,
    parts: &mut MetricAccumulator,
) -> Result<f64, Error> {
    let MetricAccumulator::Classes(parts) = parts else {
        return Ok(add_scores(loss, batch, scores, slopes, parts));
    };
    let before = parts.loss.loss_sum;
    slopes.clear();
    slopes.extend_from_slice(scores);
    let rows = slopes.chunks_exact_mut(classes.len());
    for (r, (row, &label)) in rows.zip(&batch.labels).enumerate() {
        let (class, weight) = (class_of(classes, label)?, f64::from(batch.weight(r)));
        let said = argmax(row);
        parts.counts.add(said, class, weight);
        parts.confusion.iter_mut().for_each(|cells| cells.add(said, class, weight));
        parts.loss.add(softmax(row, class), weight);
    }
    Ok(parts.loss.loss_sum - before)
}

/// Like [`add_to_metrics`], of the metrics the loss alone.
pub fn add_losses(
    (loss, classes): (Loss, &[f32]),
    batch: &Batch,
    scores: &[f64],
    slopes: &mut Vec<f64>,
    losses: &mut LossAccumulator,
) -> Result<f64, Error> {
    let before = losses.loss_sum;
    if loss == Loss::Softmax {
        slopes.clear();
        slopes.extend_from_slice(scores);
        for (r, row) in slopes.chunks_exact_mut(classes.len()).enumerate() {
            let class = class_of(classes, batch.labels[r])?;
            losses.add(softmax(row, class), f64::from(batch.weight(r)));
        }
    } else {
        for_each_loss(loss, batch, scores, slopes, |r, loss, _| {
            losses.add(loss, f64::from(batch.weight(r)));
        });
    }
    Ok(losses.loss_sum - before)
}

/// Adds records with one score each to the metrics of probabilities, margins or values. Sets `slopes` to the slopes of
/// the losses, without the weights of the records. Returns the sum of weight x loss.
///
/// # Panics
/// If `parts` are the metrics of many classes or of a family, which have no scores.
pub fn add_scores(
    loss: Loss,
    batch: &Batch,
    scores: &[f64],
    slopes: &mut Vec<f64>,
    parts: &mut MetricAccumulator,
) -> f64 {
    let before = parts.loss().loss_sum;
    match parts {
        MetricAccumulator::Binary(parts) => for_each_loss(loss, batch, scores, slopes, |r, loss, slope| {
            let (score, label, weight) = (scores[r], batch.labels[r], batch.weight(r));
            parts.add(score, label, loss, slope, weight);
            if let Some(&group) = batch.groups.get(r) {
                parts.gauc.add(group, score, label > 0.0, weight);
            }
        }),
        MetricAccumulator::Real(parts) => for_each_loss(loss, batch, scores, slopes, |r, loss, _| {
            let weight = f64::from(batch.weight(r));
            parts.loss.add(loss, weight);
            parts.regression.add(scores[r], batch.labels[r], weight);
        }),
        MetricAccumulator::Classes(_) | MetricAccumulator::Ranking(_) | MetricAccumulator::Named(_) => {
            panic!("a model with one score makes metrics of scores")
        }
    }
    parts.loss().loss_sum - before
}

/// Computes the losses and the slopes of records with one score each, and visits each record with both, in order.
pub(crate) fn for_each_loss(
    loss: Loss,
    batch: &Batch,
    scores: &[f64],
    slopes: &mut Vec<f64>,
    mut visit: impl FnMut(usize, f64, f64),
) {
    /// Records whose losses are computed together.
    const CHUNK: usize = 64;
    slopes.clear();
    slopes.resize(scores.len(), 0.0);
    let mut losses = [0.0; CHUNK];
    for (chunk, slopes) in slopes.chunks_mut(CHUNK).enumerate() {
        let records = chunk * CHUNK..chunk * CHUNK + slopes.len();
        let losses = &mut losses[..slopes.len()];
        loss.values_and_slopes(&scores[records.clone()], &batch.labels[records.clone()], losses, slopes);
        for (r, (&loss, &slope)) in records.zip(losses.iter().zip(&*slopes)) {
            visit(r, loss, slope);
        }
    }
}

/// `-share log share`.
fn entropy(share: f64) -> f64 {
    if share > 0.0 { -share * ln(share) } else { 0.0 }
}

fn put(out: &mut Metrics, name: &'static str, value: Option<f64>) {
    if let Some(value) = value {
        out.insert(Cow::Borrowed(name), value);
    }
}
