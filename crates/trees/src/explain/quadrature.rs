//! Gauss-Legendre quadrature on `[0, 1]`: with m points it is exact for polynomials of a degree below 2m.

use std::f64::consts::PI;

/// A point with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Point {
    pub(in super::super) at: f64,
    pub(in super::super) weight: f64,
}

/// The points of the rule, ascending.
pub(in super::super) fn points(count: usize) -> Vec<Point> {
    /// Newton's method doubles the digits of a root in each step; the first guess has at least two.
    const STEPS: usize = 8;
    let mut points = vec![Point { at: 0.5, weight: 1.0 }; count];
    for i in 0..count.div_ceil(2) {
        // Abramowitz and Stegun, 22.16.6: the roots are near these cosines.
        let mut x = cos(PI * (i as f64 + 0.75) / (count as f64 + 0.5));
        let mut slope = 1.0;
        for _ in 0..STEPS {
            let (value, derivative) = legendre(count, x);
            x -= value / derivative;
            slope = derivative;
        }
        let weight = 1.0 / ((1.0 - x * x) * slope * slope);
        points[i] = Point { at: 0.5 * (1.0 - x), weight };
        points[count - 1 - i] = Point { at: 0.5 * (1.0 + x), weight };
    }
    points
}

/// The Legendre polynomial of this degree with its derivative, for -1 < x < 1.
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for n in 1..=degree {
        let n = n as f64;
        (before, value) = (value, ((2.0 * n - 1.0) * x * value - (n - 1.0) * before) / n);
    }
    (value, degree as f64 * (x * value - before) / (x * x - 1.0))
}

/// The cosine of an angle from 0 to pi, to about eight digits: a first guess of a root.
fn cos(angle: f64) -> f64 {
    let square = (angle - PI / 2.0) * (angle - PI / 2.0);
    let mut sine = 1.0;
    for n in (1..=6).rev() {
        sine = 1.0 - square / f64::from(2 * n * (2 * n + 1)) * sine;
    }
    -(angle - PI / 2.0) * sine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monomials_are_integrated_exactly() {
        for count in [1, 2, 3, 5, 8, 16, 40, 101] {
            let points = points(count);
            assert!(points.iter().all(|point| point.at > 0.0 && point.at < 1.0 && point.weight > 0.0));
            assert!(points.is_sorted_by(|a, b| a.at < b.at));
            for degree in 0..2 * count as i32 {
                let sum: f64 = points.iter().map(|point| point.weight * point.at.powi(degree)).sum();
                assert!((sum * f64::from(degree + 1) - 1.0).abs() < 1e-12, "{count} {degree} {sum}");
            }
        }
    }
}
