//! AdaGrad with diagonal matrices (Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR 12, 2011, figure 1;
//! the proximal step is eq. 19 there).
//!
//! ```text
//! g' = g + l2 w
//! n  = n + g'^2
//! s  = rate_t / (sqrt(n) + epsilon)
//! w  = shrink(w - s g', s l1)
//! ```

use crate::element::Float;
use crate::rule::{PreparedRule, Slot, shrink};

/// Slots in the order in which they follow the values.
pub(super) const SLOTS: &[Slot] = &[Slot::new("n")];

pub(crate) struct AdaGrad<E> {
    pub(crate) rate: E,
    pub(crate) epsilon: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for AdaGrad<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        let (values, squares) = row.split_at_mut(gradient.len());
        for ((w, n), &g) in values.iter_mut().zip(squares).zip(gradient) {
            let g = g + self.l2 * *w;
            *n = *n + g * g;
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
        let rule = PushRule::AdaGrad {
            rate: 0.3,
            epsilon: 1e-6,
            schedule: Schedule::WarmRestarts { period: 20.0, stretch: 2.0, floor: 0.1, start: 0 },
            l1: 0.01,
            l2: 0.02,
        };
        let (mut w, mut n) = (0.0f64, 0.0f64);
        assert_equals_twin(&rule, |t, g| {
            let schedule = Schedule::WarmRestarts { period: 20.0, stretch: 2.0, floor: 0.1, start: 0 };
            let g = g + 0.02 * w;
            n += g * g;
            let step = 0.3 * schedule.factor(t) / (n.sqrt() + 1e-6);
            w -= step * g;
            w = w.signum() * (w.abs() - step * 0.01).max(0.0);
            w
        });
    }
}
