//! The mean of the objective over records, with their weights.

/// Weighted sum of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LossAccumulator {
    pub record_count: u64,
    /// Sum of weights.
    pub weight_sum: f64,
    /// Sum of weight x loss.
    pub loss_sum: f64,
}

impl LossAccumulator {
    /// Adds a record.
    #[inline]
    pub fn add(&mut self, loss: f64, weight: f64) {
        self.record_count += 1;
        self.weight_sum += weight;
        self.loss_sum += weight * loss;
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        self.record_count += other.record_count;
        self.weight_sum += other.weight_sum;
        self.loss_sum += other.loss_sum;
    }

    /// The weighted mean; `None` without weight.
    pub fn mean(&self) -> Option<f64> {
        (self.weight_sum > 0.0).then(|| self.loss_sum / self.weight_sum)
    }
}
