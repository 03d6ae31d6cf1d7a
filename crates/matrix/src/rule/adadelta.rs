//! AdaDelta (Zeiler, "ADADELTA: an adaptive learning rate method", arXiv 1212.5701, 2012, algorithm 1).
//!
//! ```text
//! g' = g + l2 w
//! a  = decay a + (1 - decay) g'^2
//! s  = sqrt(d + epsilon) / sqrt(a + epsilon)
//! d  = decay d + (1 - decay) (s g')^2
//! w  = shrink(w - s g', s l1)
//! ```

use crate::element::Float;
use crate::rule::{PreparedRule, Slot, shrink};

/// Slots in the order in which they follow the values.
pub(super) const SLOTS: &[Slot] = &[Slot::new("gradient_square"), Slot::new("step_square")];

pub(crate) struct AdaDelta<E> {
    pub(crate) decay: E,
    pub(crate) epsilon: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for AdaDelta<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        let columns = gradient.len();
        let (values, slots) = row.split_at_mut(columns);
        let (gradients, steps) = slots.split_at_mut(columns);
        for (((w, a), d), &g) in values.iter_mut().zip(gradients).zip(steps).zip(gradient) {
            let g = g + self.l2 * *w;
            *a = self.decay * *a + (E::ONE - self.decay) * g * g;
            let step = (*d + self.epsilon).root() / (*a + self.epsilon).root();
            let change = step * g;
            *d = self.decay * *d + (E::ONE - self.decay) * change * change;
            *w = shrink(*w - change, step * self.l1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rule::PushRule;
    use crate::rule::twin::assert_equals_twin;

    #[test]
    fn steps_follow_the_formula() {
        let rule = PushRule::AdaDelta { decay: 0.95, epsilon: 1e-6, l1: 0.01, l2: 0.02 };
        let (mut w, mut a, mut d) = (0.0f64, 0.0f64, 0.0f64);
        assert_equals_twin(&rule, |t, g| {
            assert!(t < 1_000, "there is no schedule");
            let g = g + 0.02 * w;
            a = 0.95 * a + 0.05 * g * g;
            let step = (d + 1e-6).sqrt() / (a + 1e-6).sqrt();
            d = 0.95 * d + 0.05 * (step * g).powi(2);
            w -= step * g;
            w = w.signum() * (w.abs() - step * 0.01).max(0.0);
            w
        });
    }
}
