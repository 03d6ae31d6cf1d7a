//! Calibration: the mean prediction over the mean label. 1 is perfect, above 1 the model promises too much.

/// Weighted sums of predictions and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CalibrationParts {
    /// Sum of weight x prediction.
    pub prediction_sum: f64,
    /// Sum of weight x label.
    pub label_sum: f64,
}

impl CalibrationParts {
    /// Adds a record: prediction in `[0, 1]`, label 0 or 1.
    #[inline]
    pub fn add(&mut self, prediction: f64, label: f64, weight: f64) {
        self.prediction_sum += weight * prediction;
        self.label_sum += weight * label;
    }

    /// Adds what another task saw.
    pub fn merge(&mut self, other: &Self) {
        self.prediction_sum += other.prediction_sum;
        self.label_sum += other.label_sum;
    }

    /// Mean prediction / mean label; none without a positive label.
    pub fn ratio(&self) -> Option<f64> {
        (self.label_sum > 0.0).then(|| self.prediction_sum / self.label_sum)
    }
}
