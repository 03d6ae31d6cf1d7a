//! FTRL-Proximal (`McMahan` et al., "Ad click prediction: a view from the trenches", KDD 2013, algorithm 1).
//!
//! ```text
//! sigma = (sqrt(n + g^2) - sqrt(n)) / alpha
//! z     = z + g - sigma w
//! n     = n + g^2
//! w     = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
//! ```

use crate::element::Float;
use crate::rule::{PreparedRule, Slot};

/// Slots in the order in which they follow the values.
pub(super) const SLOTS: &[Slot] = &[Slot::new("z"), Slot::new("n")];

pub(crate) struct Ftrl<E> {
    pub(crate) alpha: E,
    pub(crate) beta: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for Ftrl<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        let columns = gradient.len();
        let (values, slots) = row.split_at_mut(columns);
        let (sums, squares) = slots.split_at_mut(columns);
        for (((w, z), n), &g) in values.iter_mut().zip(sums).zip(squares).zip(gradient) {
            let square = *n + g * g;
            let root = square.root();
            let sigma = (root - n.root()) / self.alpha;
            *z = *z + (g - sigma * *w);
            *n = square;
            *w = self.closed_form(*z, root);
        }
    }
}

impl<E: Float> Ftrl<E> {
    #[inline]
    fn closed_form(&self, z: E, root: E) -> E {
        if z.magnitude() <= self.l1 {
            return E::ZERO;
        }
        let shrunk = if z > E::ZERO { z - self.l1 } else { z + self.l1 };
        -shrunk / ((self.beta + root) / self.alpha + self.l2)
    }

    /// Sets n = 0 and z so that the closed form gives back the weights. Training can then continue from weights alone.
    pub(super) fn init_slots(&self, values: &[E], slots: &mut [E]) {
        let (sums, squares) = slots.split_at_mut(values.len());
        squares.fill(E::ZERO);
        for (&w, z) in values.iter().zip(sums) {
            let unpenalized = -w * (self.beta / self.alpha + self.l2);
            *z = if w > E::ZERO {
                unpenalized - self.l1
            } else if w < E::ZERO {
                unpenalized + self.l1
            } else {
                E::ZERO
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::PushRule;
    use crate::rule::twin::assert_equals_twin;

    #[test]
    fn steps_follow_the_formula() {
        let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.3, l2: 0.5 };
        let (mut w, mut z, mut n) = (0.0f64, 0.0f64, 0.0f64);
        assert_equals_twin(&rule, |t, g| {
            assert!(t < 1_000, "there is no schedule");
            let sigma = ((n + g * g).sqrt() - n.sqrt()) / 0.1;
            z += g - sigma * w;
            n += g * g;
            w = if z.abs() <= 0.3 { 0.0 } else { -(z - z.signum() * 0.3) / ((1.0 + n.sqrt()) / 0.1 + 0.5) };
            w
        });
    }

    /// One division and one product, each with an error of half a unit in the last place.
    const ROUNDING: f64 = 4.0 * f64::EPSILON;

    #[test]
    fn a_seated_row_gives_its_weight_back_at_the_next_step() {
        let ftrl = Ftrl { alpha: 0.1, beta: 1.0, l1: 0.3, l2: 0.5 };
        for weight in [0.0f64, 0.7, -1e-3] {
            let mut row = [weight, 9.0, 9.0];
            let (values, slots) = row.split_at_mut(1);
            ftrl.init_slots(values, slots);
            ftrl.update_row(&mut row, &[0.0]);
            assert!((row[0] - weight).abs() <= ROUNDING * weight.abs(), "{row:?}");
        }
    }
}
