//! Coefficients: the weights of a model that is linear in the values of its records, for these values as they are in the
//! data. Weights belong to standardized columns and, in a regression, to scaled labels.

use algo::family::DerivedTable;
use algo::labels::LabelScale;
use algo::scaling::{IDENTITY_SCALE, ScalingRule};

/// How weights become coefficients: `score = intercept + sum over features of coefficient x value`. With centred columns this
/// holds for records without missing values.
#[derive(Clone, Debug)]
pub(super) struct Coefficients {
    pub(super) scaling: Option<ScalingRule>,
    pub(super) label_scale: Option<LabelScale>,
    /// What the intercept loses by the coefficients so far, one number for each class.
    pub(super) lost: Vec<f64>,
}

impl DerivedTable for Coefficients {
    fn name(&self) -> &'static str {
        "coefficients"
    }

    fn matrices(&self) -> [&'static str; 3] {
        ["weights", "moments", "intercept"]
    }

    fn make_row(&mut self, key: u64, row: &mut [f64], moments: Option<&[f64]>, origin: f64) {
        let moments = moments.and_then(|moments| moments.first_chunk());
        self.lost.resize(row.len(), 0.0);
        for (class, value) in row.iter_mut().enumerate() {
            let (coefficient, lost) = self.coefficient(key, *value, moments);
            *value = coefficient;
            self.lost[class] += lost + coefficient * origin;
        }
    }

    fn last_name(&self) -> &'static str {
        "(intercept)"
    }

    fn make_last_row(&self, row: &mut [f64]) {
        for (class, value) in row.iter_mut().enumerate() {
            *value = self.intercept(*value, self.lost.get(class).copied().unwrap_or_default());
        }
    }
}

impl Coefficients {
    /// The coefficient of the feature `key` with this weight and these moments (`None`: it has none), and what the intercept loses
    /// by it.
    fn coefficient(&self, key: u64, weight: f64, moments: Option<&[f64; 3]>) -> (f64, f64) {
        let scale = self.scaling.zip(moments).map(|(scaling, moments)| scaling.scale(key, moments));
        let (shift, factor) = scale.unwrap_or(IDENTITY_SCALE);
        let coefficient = weight * factor * self.label_scale.map_or(1.0, |scale| scale.deviation);
        (coefficient, coefficient * shift)
    }

    /// The intercept for values as they are in the data; `lost` is the sum of what the coefficients take from it.
    fn intercept(&self, intercept: f64, lost: f64) -> f64 {
        let scaled = self.label_scale.map_or(intercept, |scale| scale.mean + scale.deviation * intercept);
        scaled - lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use algo::scaling::{ScaledColumns, Standardize};

    /// A column with mean 3 and deviation 2, labels with mean 10 and deviation 5: the score of the value 7 is that of the
    /// standardized value 2.
    #[test]
    fn coefficients_score_values_as_they_are_in_the_data() {
        let rule = Coefficients {
            scaling: Some(ScalingRule { mode: Standardize::Center, columns: ScaledColumns::All }),
            label_scale: Some(LabelScale { mean: 10.0, deviation: 5.0 }),
            lost: Vec::new(),
        };
        let (coefficient, lost) = rule.coefficient(0, 0.6, Some(&[1.0, 3.0, 13.0]));
        assert_eq!((coefficient, lost), (1.5, 4.5));
        let intercept = rule.intercept(0.2, lost);
        assert_eq!(intercept, 6.5);
        assert_eq!(intercept + coefficient * 7.0, 10.0 + 5.0 * (0.2 + 0.6 * (7.0 - 3.0) / 2.0));
        // Without standardized columns and scaled labels the weights are the coefficients.
        let plain = Coefficients { scaling: None, label_scale: None, lost: Vec::new() };
        assert_eq!(plain.coefficient(0, -0.6, Some(&[1.0, 3.0, 13.0])), (-0.6, 0.0));
        assert_eq!(plain.intercept(0.2, 0.0), 0.2);
    }
}
