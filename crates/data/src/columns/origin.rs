//! The origin of a column of numbers: what is subtracted from them before they are rounded to single precision.
//!
//! Points in time of one week, as seconds since 1970, differ in their last six digits of ten, and single precision keeps
//! seven. A model with an intercept is the same for numbers that are counted from another origin.

use crate::rounding::loses_digits;

/// Numbers are close together if their range is below the smallest of them divided by this: then single precision would
/// keep less than 16 bits of what distinguishes them.
const CLOSE: f64 = 256.0;
/// The same for numbers of which single precision does not keep all digits.
const CLOSE_IF_ROUNDED: f64 = 2.0;

/// The first numbers of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberSample {
    first: Option<f64>,
    min: f64,
    max: f64,
    loses_digits: bool,
}

impl NumberSample {
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sample = Self::default();
        numbers.into_iter().filter(|number| number.is_finite()).for_each(|number| sample.add(number));
        sample
    }

    pub(crate) fn add(&mut self, number: f64) {
        if self.first.is_none() {
            *self = Self { first: Some(number), min: number, max: number, loses_digits: false };
        }
        (self.min, self.max) = (self.min.min(number), self.max.max(number));
        self.loses_digits |= loses_digits(number, number as f32);
    }

    /// The origin of the column; 0 if its numbers are not close together and far from 0.
    pub(crate) fn origin(&self) -> f64 {
        let (range, is_positive) = (self.max - self.min, self.min > 0.0);
        let smallest = if is_positive { self.min } else { -self.max };
        let limit = smallest / if self.loses_digits { CLOSE_IF_ROUNDED } else { CLOSE };
        let is_close = (range > 0.0 || self.loses_digits) && range < limit;
        self.first.filter(|_| is_close).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_close_together_and_far_from_0_have_the_first_one_as_origin() {
        let origin = |numbers: &[f64]| NumberSample::of(numbers.iter().copied()).origin();
        assert_eq!(origin(&[1_764_200_009.0, 1_764_200_000.0, f64::NAN]), 1_764_200_009.0);
        assert_eq!(origin(&[-1_764_200_009.0, -1_764_200_000.0]), -1_764_200_009.0);
        assert_eq!(origin(&[1000.25, 1000.0, 1003.0]), 1000.25, "16 bits and less would remain");
        assert_eq!(origin(&[16_777_217.0]), 16_777_217.0, "one number that is not exact");
        for other in [
            &[][..],
            &[0.0, 0.0],
            &[5.0, 5.0],
            &[1990.0, 2020.0],
            &[0.0, 1_764_200_001.0],
            &[-1_764_200_001.0, 1_764_200_001.0],
            &[1_000_000_001.0, 1_764_200_001.0],
        ] {
            assert_eq!(origin(other), 0.0, "{other:?}");
        }
    }
}
