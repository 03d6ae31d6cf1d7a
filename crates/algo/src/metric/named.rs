//! Metrics that a family names itself: sums and weighted means over records.

use std::borrow::Cow;

use math::elementary::exp;

use super::loss::LossAccumulator;

/// How a value of all records follows from those of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MergeRule {
    /// The sum over records.
    Sum,
    /// The mean over records, by their weights.
    Mean,
    /// The exponential of that mean, such as a perplexity.
    ExpMean,
}

/// A metric of a set of records.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NamedMetric {
    pub name: Cow<'static, str>,
    pub rule: MergeRule,
    /// Sum of weight x value.
    pub sum: f64,
    pub weight: f64,
}

impl NamedMetric {
    /// A metric of no records.
    pub fn new(name: &'static str, rule: MergeRule) -> Self {
        Self { name: Cow::Borrowed(name), rule, sum: 0.0, weight: 0.0 }
    }

    /// Adds a record.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.sum += weight * value;
        self.weight += weight;
    }

    /// The value; `None` for a mean without weight.
    pub fn value(&self) -> Option<f64> {
        match self.rule {
            MergeRule::Sum => Some(self.sum),
            MergeRule::Mean => (self.weight > 0.0).then(|| self.sum / self.weight),
            MergeRule::ExpMean => (self.weight > 0.0).then(|| exp(self.sum / self.weight)),
        }
    }
}

/// The loss of the objective, and further metrics of a family.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NamedAccumulator {
    pub loss: LossAccumulator,
    pub metrics: Vec<NamedMetric>,
}

impl NamedAccumulator {
    /// Adds the records of another task, whose metrics are the same.
    pub fn merge(&mut self, other: &Self) {
        self.loss.merge(&other.loss);
        for (metric, other) in self.metrics.iter_mut().zip(&other.metrics) {
            metric.sum += other.sum;
            metric.weight += other.weight;
        }
    }

    /// The names and values of the metrics that are defined.
    pub fn values(&self) -> impl Iterator<Item = (Cow<'static, str>, f64)> + '_ {
        self.metrics.iter().filter_map(|metric| Some((metric.name.clone(), metric.value()?)))
    }
}
