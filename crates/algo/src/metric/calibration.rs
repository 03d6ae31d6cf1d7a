//! Calibration: the mean prediction over the mean label, in total and in bins of the prediction. 1 is perfect; above 1
//! the model predicts too much.

/// Number of bins of equal width over `[0, 1]`. Bin `i` holds the predictions in `(i / 10, (i + 1) / 10]`, and the
/// first bin also 0. This equals `calibration_curve` of scikit-learn with `n_bins=10, strategy="uniform"`.
pub const BIN_COUNT: usize = 10;

/// Weighted sums of predictions and labels per bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CalibrationAccumulator {
    bins: [Bin; BIN_COUNT],
}

/// The sums over the records of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Bin {
    record_count: u64,
    weight_sum: f64,
    /// Sum of weight x prediction.
    prediction_sum: f64,
    /// Sum of weight x label.
    label_sum: f64,
}

/// A row of the calibration table.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CalibrationRow {
    /// Predictions in this row are above this value; in the first row they may equal it.
    pub low: f64,
    /// Predictions in this row are at most this value.
    pub high: f64,
    pub records: u64,
    /// Weighted mean of the predictions in this row.
    pub mean_predicted: f64,
    /// Weighted share of label 1 in this row.
    pub observed_share: f64,
}

impl CalibrationAccumulator {
    /// Adds a record with a prediction in `[0, 1]` and the label 0 or 1.
    #[inline]
    pub fn add(&mut self, prediction: f64, label: f64, weight: f64) {
        // The number of bins that end below the prediction.
        let place = prediction * BIN_COUNT as f64;
        let below = place as usize;
        let below = below.saturating_sub(usize::from(below as f64 == place));
        let bin = &mut self.bins[below.min(BIN_COUNT - 1)];
        bin.record_count += 1;
        bin.weight_sum += weight;
        bin.prediction_sum += weight * prediction;
        bin.label_sum += weight * label;
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            mine.record_count += theirs.record_count;
            mine.weight_sum += theirs.weight_sum;
            mine.prediction_sum += theirs.prediction_sum;
            mine.label_sum += theirs.label_sum;
        }
    }

    /// Mean prediction / mean label; `None` without a record of label 1.
    pub fn ratio(&self) -> Option<f64> {
        let label_sum: f64 = self.bins.iter().map(|bin| bin.label_sum).sum();
        let prediction_sum: f64 = self.bins.iter().map(|bin| bin.prediction_sum).sum();
        (label_sum > 0.0).then(|| prediction_sum / label_sum)
    }

    /// The bins that have weight, ascending.
    pub fn table(&self) -> Vec<CalibrationRow> {
        let edge = |i: usize| i as f64 / BIN_COUNT as f64;
        let rows = self.bins.iter().enumerate().filter(|(_, bin)| bin.weight_sum > 0.0);
        rows.map(|(i, bin)| CalibrationRow {
            low: edge(i),
            high: edge(i + 1),
            records: bin.record_count,
            mean_predicted: bin.prediction_sum / bin.weight_sum,
            observed_share: bin.label_sum / bin.weight_sum,
        })
        .collect()
    }
}
