//! Heavy ball (Polyak, "Some methods of speeding up the convergence of iteration methods", 1964, eq. 9).
//!
//! `v` is the last step including its step size, so a change of the step size does not change earlier contributions.
//! ```text
//! g' = g + l2 w
//! v  = factor v + rate_t g'
//! w  = shrink(w - v, rate_t l1)
//! ```

use crate::element::Float;
use crate::rule::{PreparedRule, Slot, shrink};

/// Slots in the order in which they follow the values.
pub(super) const SLOTS: &[Slot] = &[Slot::new("v")];

pub(crate) struct Momentum<E> {
    pub(crate) rate: E,
    /// The share of the last step that goes on.
    pub(crate) factor: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for Momentum<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        let (values, velocities) = row.split_at_mut(gradient.len());
        for ((w, v), &g) in values.iter_mut().zip(velocities).zip(gradient) {
            let g = g + self.l2 * *w;
            *v = self.factor * *v + self.rate * g;
            *w = shrink(*w - *v, self.rate * self.l1);
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
        let rule = PushRule::Momentum {
            rate: 0.05,
            momentum: 0.9,
            schedule: Schedule::Exponential { decay: 0.5, every: 50.0, start: 0 },
            l1: 0.01,
            l2: 0.02,
        };
        let (mut w, mut v) = (0.0f64, 0.0f64);
        assert_equals_twin(&rule, |t, g| {
            let step = 0.05 * 0.5f64.powf(t as f64 / 50.0);
            v = 0.9 * v + step * (g + 0.02 * w);
            w -= v;
            w = w.signum() * (w.abs() - step * 0.01).max(0.0);
            w
        });
    }
}
