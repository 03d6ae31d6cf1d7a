//! Sums of doubles without rounding: the result is rounded once, so it does not depend on the order of the terms.
//!
//! **Source.** Neal, "Fast exact summation using small and large superaccumulators", arXiv 1505.05571, 2015: the small one.
//! A sum is a whole number of the smallest double, 2^-1074, in digits of 32 bits; each digit has 31 bits for carries.

/// Bits of a digit.
const DIGIT: u32 = 32;
/// Digits: 2,098 bits of the largest double, and room for carries of 2^63 terms.
pub const DIGITS: usize = 68;
/// Terms until the digits must be carried.
const CARRY_INTERVAL: u32 = 1 << 30;
/// Bits of the fraction of a double.
const FRACTION_BITS: u32 = 52;

/// A sum of doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactSum {
    /// The lowest digit first.
    digits: [i64; DIGITS],
    terms_since_carry: u32,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { digits: [0; DIGITS], terms_since_carry: 0 }
    }
}

impl ExactSum {
    /// Adds a number. Returns false, and adds nothing, if it is not finite.
    #[inline]
    pub fn add(&mut self, number: f64) -> bool {
        if !number.is_finite() {
            return false;
        }
        let bits = number.to_bits();
        let exponent = (bits >> FRACTION_BITS) as u32 & 0x7ff;
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        // A subnormal number has no leading 1, and the exponent of the smallest normal one.
        let (mantissa, place) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << FRACTION_BITS, exponent - 1) };
        let (first, shifted) = ((place / DIGIT) as usize, u128::from(mantissa) << (place % DIGIT));
        let sign = if number.is_sign_negative() { -1 } else { 1 };
        for (at, digit) in self.digits[first..first + 3].iter_mut().enumerate() {
            *digit += sign * i64::from((shifted >> (DIGIT * at as u32)) as u32);
        }
        self.terms_since_carry += 1;
        if self.terms_since_carry == CARRY_INTERVAL {
            self.carry();
        }
        true
    }

    /// Carries, so that all digits but the last are from 0 to 2^32 - 1.
    fn carry(&mut self) {
        let mut carry = 0;
        let last = DIGITS - 1;
        for digit in &mut self.digits[..last] {
            let sum = *digit + carry;
            *digit = sum & 0xffff_ffff;
            carry = sum >> DIGIT;
        }
        self.digits[last] += carry;
        self.terms_since_carry = 0;
    }

    /// The digits of the sum: equal for equal sums.
    pub fn into_digits(mut self) -> Vec<i64> {
        self.carry();
        self.digits.to_vec()
    }

    /// Adds a sum by what [`Self::into_digits`] has returned. Returns false, and adds nothing, if these are no digits.
    pub fn add_digits(&mut self, digits: &[i64]) -> bool {
        let is_sum = digits.len() == DIGITS && digits.iter().all(|digit| digit.unsigned_abs() <= 1 << 32);
        if is_sum {
            self.carry();
            self.digits.iter_mut().zip(digits).for_each(|(own, other)| *own += other);
            self.carry();
        }
        is_sum
    }

    /// The double that is nearest to the sum; of two, the even one. Infinite if the sum is too large.
    pub fn value(mut self) -> f64 {
        self.carry();
        let is_negative = self.digits[DIGITS - 1] < 0;
        if is_negative {
            self.digits.iter_mut().for_each(|digit| *digit = -*digit);
            self.carry();
        }
        let Some(top) = self.digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
        // The three highest digits have at least 65 bits, so a rest below them only decides ties.
        let lowest = top.saturating_sub(2);
        let number = self.digits[lowest..=top]
            .iter()
            .rev()
            .fold(0u128, |number, digit| number << DIGIT | u128::from(*digit as u64));
        let has_rest = self.digits[..lowest].iter().any(|digit| *digit != 0);
        let rounded = (number | u128::from(has_rest)) as f64;
        let exponent = DIGIT as i32 * lowest as i32 - 1074;
        let value = rounded * power_of_two(exponent);
        if is_negative { -value } else { value }
    }
}

/// `2^exponent`, from 2^-1074 on.
fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent + 1074)),
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << FRACTION_BITS),
        1024.. => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    fn sum(terms: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        assert!(terms.iter().all(|term| sum.add(*term)));
        sum.value()
    }

    #[test]
    fn a_single_number_is_its_own_sum() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        let extremes = [0.0, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 5e-324, -5e-324, 1.0, -2.5e-310];
        let drawn = (0..20_000).map(|_| f64::from_bits(random.below(u64::MAX)));
        for number in extremes.into_iter().chain(drawn.filter(|number| number.is_finite())) {
            assert_eq!(sum(&[number]).to_bits(), (number + 0.0).to_bits(), "{number:e}");
        }
    }

    #[test]
    fn what_cancels_is_not_lost_and_ties_go_to_the_even_number() {
        assert_eq!(sum(&[1e308, 1.0, -1e308]), 1.0);
        assert_eq!(sum(&[1e300, 5e-324, -1e300]), 5e-324);
        let half = f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, half]), 1.0);
        assert_eq!(sum(&[1.0, half, 5e-324]), 1.0 + f64::EPSILON, "the rest decides");
        assert_eq!(sum(&[1.0 + f64::EPSILON, half]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[-1.0, -half, -5e-324]), -1.0 - f64::EPSILON);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[0.1; 10]), 1.0, "ten times the double next to .1 rounds to 1");
        assert!(!ExactSum::default().add(f64::NAN) && !ExactSum::default().add(f64::INFINITY));
    }

    #[test]
    fn sums_of_parts_are_the_sum_in_any_order() {
        let mut random = stream(2, Purpose::Test, 0, 0);
        let mut terms: Vec<f64> =
            (0..3000).map(|_| (random.uniform() - 0.5) * 10f64.powi(random.below(60) as i32 - 30)).collect();
        let whole = sum(&terms);
        for parts in 1..6 {
            terms.reverse();
            let mut all = ExactSum::default();
            for part in terms.chunks(terms.len().div_ceil(parts)) {
                let mut own = ExactSum::default();
                assert!(part.iter().all(|term| own.add(*term)));
                assert!(all.add_digits(&own.into_digits()));
            }
            assert_eq!(all.value(), whole);
        }
        assert!(!ExactSum::default().add_digits(&[1, 2]), "too few digits");
        assert!(!ExactSum::default().add_digits(&[i64::MAX; DIGITS]), "no digits");
    }
}
