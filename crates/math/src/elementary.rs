//! Elementary functions with the same bits on every machine. Those of the platform's library differ from one release of
//! it to the next, and with them the bytes of a model.
//!
//! Each function here is straight-line code of additions, multiplications, divisions and operations on bits, without
//! fused operations and without branches: the results do not depend on the instructions that a machine has, and a loop
//! over a slice becomes vector instructions. The polynomials are minimax in the relative error (Remez's exchange, 300
//! bits), after the reductions of Cody and Waite ("Software Manual for the Elementary Functions", 1980) and, for the
//! logarithm, the form in `s = f / (2 + f)` of Ng (FDLIBM, 1993). The tests compare them with exact values:
//!
//! | function | error, units in the last place |
//! |---|---|
//! | [`exp`], [`ln`], [`ln_1p`] | below 1 |
//! | [`exp_m1`], [`sigmoid`] | below 2 |
//! | [`ln_gamma`], [`digamma`] | below 4, or below 1e-15 in all |
//!
//! Powers, cosines and the logarithm of the gamma function, which no inner loop needs, are those of the crate `libm`,
//! which is portable code too.

#![allow(clippy::inline_always, reason = "only inlined in a loop do they become vector instructions")]

pub use libm::{cos, lgamma as ln_gamma, pow};

/// A double with the last digit 1: what is added to it is rounded to a whole number, which is in its last bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 x 2^52
/// The upper 33 bits of log 2: multiples of it up to 2^20 are exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// log 2 - [`LN_2_HIGH`].
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `(exp(r) - 1 - r) / r^2` for `|r| <= log(2) / 2`; its error is 2^-64 of `exp(r)`.
const EXP: [f64; 11] = [
    0.5,
    0.16666666666666682,
    0.041666666666666095,
    0.008333333333317034,
    0.0013888888889115668,
    0.0001984126989638535,
    2.4801586926559774e-05,
    2.7557234860519807e-06,
    2.755758190624906e-07,
    2.5112037290469702e-08,
    2.082661040031384e-09,
];

/// `(log((1 + s) / (1 - s)) - 2 s) / s^3` in `s^2`, for `|s| <= 3 - sqrt(8)`; its error is 2^-66 of the logarithm.
const LN: [f64; 8] = [
    0.6666666666666666,
    0.4000000000000625,
    0.2857142856908594,
    0.2222222264678702,
    0.18181775666388303,
    0.1538709071549865,
    0.13250119149831258,
    0.13251319325618796,
];

/// Horner's rule.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum * x + coefficients[i];
    }
    sum
}

/// Returns `(k, r, exp(r) - 1)` with `x = k log(2) + r`, `|r| <= log(2) / 2` and `k` as a wrapping integer.
#[inline(always)]
fn reduced_exp(x: f64) -> (u64, f64) {
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let k = shifted - ROUNDER;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    (shifted.to_bits().wrapping_sub(ROUNDER.to_bits()), r + r * r * polynomial(&EXP, r))
}

/// 2^(exponent - 1023), for exponents from 1 to 2046.
#[inline(always)]
fn power_of_two(exponent: u64) -> f64 {
    f64::from_bits(exponent << 52)
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let (k, p) = reduced_exp(x.clamp(-746.0, 710.0));
    // In two factors, so that the smallest and the largest results are right.
    let sum = k.wrapping_add(2046);
    let half = sum >> 1;
    (1.0 + p) * power_of_two(half) * power_of_two(sum.wrapping_sub(half))
}

/// `e^x - 1`, without cancellation near 0.
#[inline(always)]
pub fn exp_m1(x: f64) -> f64 {
    let (k, p) = reduced_exp(x.clamp(-50.0, 710.0));
    let half_scale = power_of_two(k.wrapping_add(1022));
    (half_scale * p + (half_scale - 0.5)) * 2.0
}

/// `log(u + c)` for a `c` of at most a rounding error of `u`, divided by `u`.
#[inline(always)]
fn ln_sum(u: f64, c: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let is_subnormal = u < f64::MIN_POSITIVE;
    let normal = if is_subnormal { u * 18_014_398_509_481_984.0 } else { u }; // 2^54
    let bits = normal.to_bits();
    // The exponent, with 1024 added so that it is positive.
    let k = bits.wrapping_sub(SQRT_HALF).wrapping_add(1024 << 52) >> 52;
    let f = f64::from_bits(bits.wrapping_sub(k.wrapping_sub(1024) << 52)) - 1.0;
    let k = f64::from_bits(ROUNDER.to_bits().wrapping_add(k))
        - (ROUNDER + if is_subnormal { 1078.0 } else { 1024.0 });
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    let r = z * polynomial(&LN, z);
    k * LN_2_HIGH - ((half_square - (s * (half_square + r) + (k * LN_2_LOW + c))) - f)
}

/// The logarithm; minus infinity at 0, NaN below it.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let value = ln_sum(x, 0.0);
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f64::NAN }
}

/// `log(1 + x)`, without cancellation near 0.
#[inline(always)]
pub fn ln_1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let value = ln_sum(u, (x - (u - 1.0)) / u);
    let value = if x == f64::INFINITY || x == 0.0 { x } else { value };
    let value = if x == -1.0 { f64::NEG_INFINITY } else { value };
    if x >= -1.0 { value } else { f64::NAN }
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    sigmoid_of(x, exp(-x.abs()))
}

/// The sigmoid of `x` from `e = exp(-|x|)`.
#[inline(always)]
pub fn sigmoid_of(x: f64, e: f64) -> f64 {
    (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// `log(sum(exp(x)))` without overflow; minus infinity for an empty slice.
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + ln(x.iter().map(|v| exp(v - max)).sum::<f64>())
}

/// The derivative of [`ln_gamma`], for `x > 0`: the asymptotic series (Abramowitz and Stegun, 6.3.18) at `x >= 10`,
/// reached by the recurrence 6.3.5. NaN for other `x`.
pub fn digamma(x: f64) -> f64 {
    /// Bernoulli numbers B(2n) / (2n).
    const SERIES: [f64; 7] =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    (ln(x) - 0.5 / x - z * polynomial(&SERIES, z)) - sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_the_ends_are_those_of_the_limits() {
        assert_eq!([exp(0.0), exp(-1e9), exp(1e9), exp(f64::NEG_INFINITY)], [1.0, 0.0, f64::INFINITY, 0.0]);
        assert_eq!([exp_m1(0.0), exp_m1(-1e9), exp_m1(1e9)], [0.0, -1.0, f64::INFINITY]);
        assert_eq!([ln(1.0), ln(0.0), ln(f64::INFINITY)], [0.0, f64::NEG_INFINITY, f64::INFINITY]);
        assert_eq!([ln_1p(0.0), ln_1p(-1.0), ln_1p(f64::INFINITY)], [0.0, f64::NEG_INFINITY, f64::INFINITY]);
        assert_eq!([sigmoid(0.0), sigmoid(800.0), sigmoid(-800.0)], [0.5, 1.0, 0.0]);
        for value in [exp(f64::NAN), exp_m1(f64::NAN), ln(f64::NAN), ln(-1.0), ln_1p(f64::NAN), ln_1p(-2.0)] {
            assert!(value.is_nan());
        }
        assert!(sigmoid(f64::NAN).is_nan() && digamma(0.0).is_nan() && digamma(f64::NAN).is_nan());
    }

    #[test]
    fn sigmoid_is_symmetric() {
        for x in [0.1, 1.0, 5.0, 30.0] {
            assert!((sigmoid(x) + sigmoid(-x) - 1.0).abs() <= f64::EPSILON);
        }
    }

    #[test]
    fn log_sum_exp_shifts_with_its_argument() {
        let x = [1.0, 2.0, 3.0];
        let shifted: Vec<f64> = x.iter().map(|v| v + 1000.0).collect();
        assert!((log_sum_exp(&shifted) - 1000.0 - log_sum_exp(&x)).abs() < 1e-12);
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
    }
}
