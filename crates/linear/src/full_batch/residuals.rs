//! The residuals of ADMM (Boyd et al. 2011, section 3.3.1), and how rho follows from them (3.4.1).
//!
//! Rho is adapted to relative residuals, which do not depend on the scale of the problem (Wohlberg, "ADMM penalty
//! parameter selection by residual balancing", 2017, section 4). On a9a with four tasks, a rho of 0.003, 0.1 and 1 then
//! gives the same result after 60 iterations; with absolute residuals the first is far behind.

use serde::{Deserialize, Serialize};

/// Rho changes if one relative residual is more than this many times the other (mu of eq. 3.13, there 10).
const IMBALANCE: f64 = 3.0;
/// The factor by which rho then changes (tau).
const CHANGE: f64 = 2.0;

/// Squared norms of one task, or summed over tasks: `|x - z|^2`, the primal residual; `|rho (z - z before)|^2`, the
/// dual residual; `|x|^2`, `|z|^2`, `|rho u|^2`; and the number of values in each vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Residuals(pub(super) [f64; 6]);

impl Residuals {
    /// The residuals of a task. All vectors have the same length.
    pub(super) fn new(x: &[f64], z: &[f64], before: &[f64], u: &[f64], rho: f64) -> Self {
        let square = |a: &[f64]| a.iter().map(|a| a * a).sum::<f64>();
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let scale = rho * rho;
        Self([
            distance(x, z),
            scale * distance(z, before),
            square(x),
            square(z),
            scale * square(u),
            z.len() as f64,
        ])
    }

    /// The largest primal and dual residuals at convergence. Absolute and relative tolerance are the square root of
    /// `tolerance`, because the error of the objective is about the square of the error of the point.
    fn limits(&self, tolerance: f64) -> (f64, f64) {
        let [_, _, x, z, u, count] = self.0;
        let (root, count) = (tolerance.sqrt(), count.sqrt());
        (root * (count + x.max(z).sqrt()), root * (count + u.sqrt()))
    }

    /// Whether both residuals have converged. This is false as long as there are no values.
    pub(super) fn are_below(&self, tolerance: f64) -> bool {
        let (primal, dual) = self.limits(tolerance);
        self.0[5] > 0.0 && self.0[0].sqrt() <= primal && self.0[1].sqrt() <= dual
    }

    /// The factor by which rho is to be multiplied.
    pub(super) fn factor(&self) -> f64 {
        // Each residual is multiplied by the norm that the other is divided by.
        let [primal, dual, x, z, u, _] = self.0.map(f64::sqrt);
        let (primal, dual) = (primal * u, dual * x.max(z));
        if primal > IMBALANCE * dual {
            CHANGE
        } else if dual > IMBALANCE * primal {
            1.0 / CHANGE
        } else {
            1.0
        }
    }

    /// A message for the user if `max_iterations` ended training.
    pub(super) fn notice(&self, tolerance: f64, rho: f64) -> String {
        let (primal, dual) = self.limits(tolerance);
        format!(
            "stopped after max_iterations before convergence to tolerance={tolerance}: primal residual {:.3e}, limit \
             {primal:.3e}; dual residual {:.3e}, limit {dual:.3e}; rho is {rho}. Raise max_iterations",
            self.0[0].sqrt(),
            self.0[1].sqrt()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_are_those_of_the_paper() {
        let (x, z, before, u) = ([1.0, 5.0], [1.0, 2.0], [-1.0, 2.0], [0.5, -0.5]);
        let found = Residuals::new(&x, &z, &before, &u, 4.0);
        assert_eq!(found, Residuals([9.0, 64.0, 26.0, 5.0, 8.0, 2.0]));
        // The limits are sqrt(2) + sqrt(26) and sqrt(2) + sqrt(8), both times the square root of the tolerance.
        assert!(!found.are_below(3.5) && found.are_below(3.6), "8 is below 1.9 x 4.24");
        assert!(!Residuals::default().are_below(1.0), "of nothing nothing is known");
    }

    #[test]
    fn rho_goes_towards_the_larger_share() {
        let of = |primal: f64, dual: f64| Residuals([primal, dual, 100.0, 90.0, 4.0, 1.0]).factor();
        // Relative residuals: primal / 10, dual / 2.
        assert_eq!(of(1.0, 0.01), 1.0, "0.1 and 0.05: less than 3 times");
        assert_eq!(of(1.0, 0.0025), 2.0, "0.1 and 0.025");
        assert_eq!(of(1.0, 0.64), 0.5, "0.1 and 0.4");
    }
}
