//! A job of a linear model, with its checked settings.

use std::sync::Arc;

use algo::error::Error;
use algo::job::{DataFacts, Job};
use algo::labels::LabelScale;
use algo::loss::Loss;
use algo::param::{CheckedParams, ParamValues};

use super::params::{self, ClassWeights, Params};

/// Largest number of classes of softmax: a row of weights has one f32 per class.
pub const CLASS_LIMIT: usize = 4096;

/// A class whose records count this many times is the most likely cause of a divergence.
const LARGE_CLASS_WEIGHT: f64 = 1e6;

/// A job of a linear model.
#[derive(Clone, Debug)]
pub struct Linear {
    /// The settings as the user gave them.
    pub(super) table: &'static [algo::ParamSpec],
    pub(super) checked_params: CheckedParams,
    pub(super) loss: Loss,
    pub(super) params: Params,
}

impl Linear {
    /// Unknown names and values out of range are errors.
    pub(super) fn configure(
        algorithm: &'static str,
        table: &'static [algo::ParamSpec],
        given: &ParamValues,
        loss: fn(&CheckedParams) -> Loss,
    ) -> Result<Arc<dyn Job>, Error> {
        let checked = CheckedParams::new(algorithm, table, given)?;
        let loss = loss(&checked);
        let params = params::params(&checked, loss)?;
        Ok(Arc::new(Self { table, checked_params: checked, loss, params }))
    }

    /// The largest weight of a class, with its label, if it most likely makes training diverge.
    pub(super) fn large_class_weight(&self) -> Option<&(String, f64)> {
        let ClassWeights::Given(weights) = &self.params.class_weights else { return None };
        weights.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, weight)| *weight > LARGE_CLASS_WEIGHT)
    }

    /// Whether the labels of all records must be known, to count them or to look up those that the user names.
    pub(super) fn needs_label_scan(&self) -> bool {
        self.params.class_weights != ClassWeights::None || self.params.positive_label.is_some()
    }

    pub(super) fn classes(&self, facts: &DataFacts) -> Result<Vec<f32>, Error> {
        match self.loss {
            Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => Ok(vec![0.0, 1.0]),
            Loss::Squared | Loss::Huber { .. } => Ok(Vec::new()),
            Loss::Softmax => match facts.classes.as_slice() {
                [] => Err(Error::NoRecords),
                [label] => Err(Error::OneClass { record_count: facts.record_count, label: *label }),
                classes if classes.len() > CLASS_LIMIT => {
                    Err(Error::ClassCount { actual: classes.len(), limit: CLASS_LIMIT })
                }
                classes => Ok(classes.to_vec()),
            },
        }
    }

    /// Push rules learn labels scaled to mean 0 and deviation 1, so that their steps do not grow with the labels.
    /// Full-batch optimizers find the scale by themselves, and with an intercept learn centred labels: the intercept, in
    /// single precision, then has the digits in which labels differ.
    pub(super) fn label_scale(&self, facts: &DataFacts) -> Option<LabelScale> {
        let (mean, deviation) = (facts.label_mean, facts.label_deviation);
        match self.params.training.descent() {
            _ if !self.loss.is_real() => None,
            Some(_) => self.params.intercept.then_some(LabelScale { mean, deviation: 1.0 }),
            None => (deviation > 0.0).then_some(LabelScale { mean, deviation }),
        }
    }
}
