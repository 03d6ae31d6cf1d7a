//! Stochastic gradient descent (Robbins and Monro, Annals of Mathematical Statistics 22, 1951), with the proximal step
//! of L1 (Duchi and Singer, "Efficient online and batch learning using forward backward splitting", JMLR 2009).
//!
//! ```text
//! g' = g + l2 w
//! w  = shrink(w - rate_t g', rate_t l1)
//! ```

use crate::element::Float;
use crate::rule::{PreparedRule, shrink};

pub(crate) struct Sgd<E> {
    pub(crate) rate: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for Sgd<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        for (w, &g) in row.iter_mut().zip(gradient) {
            let g = g + self.l2 * *w;
            *w = shrink(*w - self.rate * g, self.rate * self.l1);
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
        let rule = PushRule::Sgd {
            rate: 0.1,
            schedule: Schedule::InverseTime { decay: 0.1, start: 0 },
            l1: 0.01,
            l2: 0.02,
        };
        let mut w = 0.0f64;
        assert_equals_twin(&rule, |t, g| {
            let step = 0.1 / (1.0 + 0.1 * t as f64);
            w -= step * (g + 0.02 * w);
            w = w.signum() * (w.abs() - step * 0.01).max(0.0);
            w
        });
    }
}
