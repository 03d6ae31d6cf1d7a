//! Coefficients: the weights of a model that is linear in the values of its records, for these values as they are in the
//! data. Weights belong to standardized columns and, in a regression, to scaled labels.

use crate::labels::LabelScale;
use crate::scaling::{IDENTITY_SCALE, ScalingRule};

/// How weights become coefficients: `score = intercept + sum over features of coefficient x value`. With centred columns this
/// holds for records without missing values.
#[derive(Clone, Copy, Debug)]
pub struct CoefficientRule {
    pub(crate) scaling: Option<ScalingRule>,
    pub(crate) label_scale: Option<LabelScale>,
}

impl CoefficientRule {
    /// The names of the matrices: weights, intercept (if the model has one) and moments (if columns are standardized).
    pub const MATRICES: [&'static str; 3] = ["weights", "intercept", "moments"];

    /// The coefficient of the feature `key` with this weight and these moments (`None`: it has none), and what the intercept loses
    /// by it.
    pub fn coefficient(&self, key: u64, weight: f64, moments: Option<&[f64; 3]>) -> (f64, f64) {
        let scale = self.scaling.zip(moments).map(|(scaling, moments)| scaling.scale(key, moments));
        let (shift, factor) = scale.unwrap_or(IDENTITY_SCALE);
        let coefficient = weight * factor * self.label_scale.map_or(1.0, |scale| scale.deviation);
        (coefficient, coefficient * shift)
    }

    /// The intercept for values as they are in the data; `lost` is the sum of what the coefficients take from it.
    pub fn intercept(&self, intercept: f64, lost: f64) -> f64 {
        let scaled = self.label_scale.map_or(intercept, |scale| scale.mean + scale.deviation * intercept);
        scaled - lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::{ScaledColumns, Standardize};

    /// A column with mean 3 and deviation 2, labels with mean 10 and deviation 5: the score of the value 7 is that of the
    /// standardized value 2.
    #[test]
    fn coefficients_score_values_as_they_are_in_the_data() {
        let rule = CoefficientRule {
            scaling: Some(ScalingRule { mode: Standardize::Center, columns: ScaledColumns::All }),
            label_scale: Some(LabelScale { mean: 10.0, deviation: 5.0 }),
        };
        let (coefficient, lost) = rule.coefficient(0, 0.6, Some(&[1.0, 3.0, 13.0]));
        assert_eq!((coefficient, lost), (1.5, 4.5));
        let intercept = rule.intercept(0.2, lost);
        assert_eq!(intercept, 6.5);
        assert_eq!(intercept + coefficient * 7.0, 10.0 + 5.0 * (0.2 + 0.6 * (7.0 - 3.0) / 2.0));
        // Without standardized columns and scaled labels the weights are the coefficients.
        let plain = CoefficientRule { scaling: None, label_scale: None };
        assert_eq!(plain.coefficient(0, -0.6, Some(&[1.0, 3.0, 13.0])), (-0.6, 0.0));
        assert_eq!(plain.intercept(0.2, 0.0), 0.2);
    }
}
