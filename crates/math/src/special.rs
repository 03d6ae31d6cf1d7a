//! The logistic function and its relatives, in forms that neither overflow nor cancel.

/// `1 / (1 + exp(-x))` for any finite `x`.
#[inline]
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `log(sum(exp(x)))` without overflow; minus infinity for an empty slice.
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + x.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice the spacing of f64 at 1: one rounding in each of two operations.
    const ROUNDING: f64 = 4.0 * f64::EPSILON;

    #[test]
    fn sigmoid_is_symmetric_and_does_not_overflow() {
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(800.0), 1.0);
        assert_eq!(sigmoid(-800.0), 0.0);
        for x in [0.1, 1.0, 5.0, 30.0] {
            assert!((sigmoid(x) + sigmoid(-x) - 1.0).abs() < ROUNDING);
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
