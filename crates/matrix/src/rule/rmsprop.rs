//! RMSProp (Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning", Coursera 2012).
//!
//! ```text
//! g' = g + l2 w
//! n  = decay n + (1 - decay) g'^2
//! s  = rate_t / (sqrt(n) + epsilon)
//! w  = shrink(w - s g', s l1)
//! ```

use crate::element::Float;
use crate::rule::{PreparedRule, Slot, shrink};

/// Slots in the order in which they follow the values.
pub(super) const SLOTS: &[Slot] = &[Slot::new("n")];

pub(crate) struct RmsProp<E> {
    pub(crate) rate: E,
    pub(crate) decay: E,
    pub(crate) epsilon: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for RmsProp<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        let (values, squares) = row.split_at_mut(gradient.len());
        for ((w, n), &g) in values.iter_mut().zip(squares).zip(gradient) {
            let g = g + self.l2 * *w;
            *n = self.decay * *n + (E::ONE - self.decay) * g * g;
            let step = self.rate / (n.root() + self.epsilon);
            *w = shrink(*w - step * g, step * self.l1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rule::PushRule;
    use crate::rule::twin::assert_equals_twin;
    use crate::schedule::Schedule;

    #[test]
    fn steps_follow_the_formula() {
        let rule = PushRule::RmsProp {
            rate: 0.01,
            decay: 0.9,
            epsilon: 1e-6,
            schedule: Schedule::Constant,
            l1: 0.01,
            l2: 0.02,
        };
        let (mut w, mut n) = (0.0f64, 0.0f64);
        assert_equals_twin(&rule, |t, g| {
            assert!(t < 1_000, "the schedule is constant");
            let g = g + 0.02 * w;
            n = 0.9 * n + 0.1 * g * g;
            let step = 0.01 / (n.sqrt() + 1e-6);
            w -= step * g;
            w = w.signum() * (w.abs() - step * 0.01).max(0.0);
            w
        });
    }
}
