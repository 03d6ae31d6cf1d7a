//! Adam (Kingma and Ba, ICLR 2015, algorithm 1). Each row has its own step count, so that the bias correction of a
//! rarely pushed row uses its own number of steps.
//!
//! ```text
//! g' = g + l2 w,  t = t + 1
//! m  = beta1 m + (1 - beta1) g',    v = beta2 v + (1 - beta2) g'^2
//! s  = rate_t / (sqrt(v / (1 - beta2^t)) + epsilon)
//! w  = shrink(w - s m / (1 - beta1^t), s l1)
//! ```
//! In `f32` the count stops at 2^24, where both corrections have long been 1.

use crate::element::Float;
use crate::rule::{PreparedRule, Slot, shrink};

/// Slots in the order in which they follow the values.
pub(super) const SLOTS: &[Slot] = &[Slot::new("m"), Slot::new("v"), Slot { name: "steps", per_row: true }];

pub(crate) struct Adam<E> {
    pub(crate) rate: E,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) epsilon: E,
    pub(crate) l1: E,
    pub(crate) l2: E,
}

impl<E: Float> PreparedRule<E> for Adam<E> {
    #[inline]
    fn update_row(&self, row: &mut [E], gradient: &[E]) {
        let columns = gradient.len();
        let (values, slots) = row.split_at_mut(columns);
        let (first, rest) = slots.split_at_mut(columns);
        let (second, count) = rest.split_at_mut(columns);
        let Some(count) = count.first_mut() else { return };
        *count = *count + E::ONE;
        let steps = count.to_f64() as u64;
        let correct1 = E::from_f64(1.0 - power(self.beta1, steps));
        let correct2 = E::from_f64(1.0 - power(self.beta2, steps));
        let (beta1, beta2) = (E::from_f64(self.beta1), E::from_f64(self.beta2));
        for (((w, m), v), &g) in values.iter_mut().zip(first).zip(second).zip(gradient) {
            let g = g + self.l2 * *w;
            *m = beta1 * *m + (E::ONE - beta1) * g;
            *v = beta2 * *v + (E::ONE - beta2) * g * g;
            let step = self.rate / ((*v / correct2).root() + self.epsilon);
            *w = shrink(*w - step * (*m / correct1), step * self.l1);
        }
    }
}

/// `base ^ exponent` by squaring: it gives the same bits on every machine, which the standard library does not
/// guarantee for its power functions.
fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut square, mut product) = (base, 1.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use crate::rule::PushRule;
    use crate::rule::twin::assert_equals_twin;
    use crate::schedule::Schedule;

    #[test]
    fn steps_follow_the_formula() {
        let rule = PushRule::Adam {
            rate: 0.02,
            beta1: 0.9,
            beta2: 0.99,
            epsilon: 1e-8,
            schedule: Schedule::Constant,
            l1: 0.01,
            l2: 0.02,
        };
        let (mut w, mut m, mut v) = (0.0f64, 0.0f64, 0.0f64);
        assert_equals_twin(&rule, |t, g| {
            let g = g + 0.02 * w;
            m = 0.9 * m + 0.1 * g;
            v = 0.99 * v + 0.01 * g * g;
            let mean = m / (1.0 - 0.9f64.powi(t as i32 + 1));
            let square = v / (1.0 - 0.99f64.powi(t as i32 + 1));
            let step = 0.02 / (square.sqrt() + 1e-8);
            w -= step * mean;
            w = w.signum() * (w.abs() - step * 0.01).max(0.0);
            w
        });
    }

    #[test]
    fn powers_are_products() {
        assert_eq!(super::power(0.5, 0), 1.0);
        assert_eq!(super::power(0.5, 11), 0.5f64.powi(11));
        assert_eq!(super::power(0.9, u64::MAX), 0.0);
    }
}
