//! Errors of predicted real numbers: RMSE, MAE, R2.

/// Weighted sums over records.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RegressionAccumulator {
    /// Sum of weights.
    pub weight_sum: f64,
    /// Weighted sum of squared errors.
    pub square_sum: f64,
    /// Weighted sum of absolute errors.
    pub absolute_sum: f64,
    /// Weighted mean of the labels so far.
    pub label_mean: f64,
    /// Weighted sum of the squared distances of labels from their mean.
    pub label_square_sum: f64,
}

impl RegressionAccumulator {
    pub fn add(&mut self, prediction: f64, label: f64, weight: f64) {
        let error = prediction - label;
        self.square_sum += weight * error * error;
        self.absolute_sum += weight * error.abs();
        self.add_labels(label, 0.0, weight);
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        self.square_sum += other.square_sum;
        self.absolute_sum += other.absolute_sum;
        self.add_labels(other.label_mean, other.label_square_sum, other.weight_sum);
    }

    /// Chan, Golub, `LeVeque`, "Updating formulae and a pairwise algorithm for computing sample variances", 1979: this
    /// does not cancel digits when labels are far from 0.
    fn add_labels(&mut self, mean: f64, square_sum: f64, weight: f64) {
        let total = self.weight_sum + weight;
        if weight <= 0.0 {
            return;
        }
        let delta = mean - self.label_mean;
        self.label_square_sum += square_sum + delta * delta * self.weight_sum * weight / total;
        self.label_mean += delta * weight / total;
        self.weight_sum = total;
    }

    /// Root of the mean squared error, in units of the label.
    pub fn rmse(&self) -> Option<f64> {
        (self.weight_sum > 0.0).then(|| (self.square_sum / self.weight_sum).sqrt())
    }

    /// Mean absolute error, in units of the label.
    pub fn mae(&self) -> Option<f64> {
        (self.weight_sum > 0.0).then(|| self.absolute_sum / self.weight_sum)
    }

    /// `1 - squared error / squared distance from the mean`; `None` if all labels are equal.
    pub fn r2(&self) -> Option<f64> {
        (self.label_square_sum > 0.0).then(|| 1.0 - self.square_sum / self.label_square_sum)
    }
}
