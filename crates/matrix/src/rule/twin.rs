//! Compares a push rule with a serial twin, step by step.

use math::random::{Purpose, stream};

use crate::clock::Clock;
use crate::element::{Element, Float};
use crate::rule::{PreparedRule, PushRule, RuleElement, RuleVisitor};

const STEP_COUNT: u64 = 300;
/// The twin adds and multiplies in another order: the tolerance is some hundred roundings of a double, relative to
/// weights near 1.
const F64_TOLERANCE: f64 = 1e-11;
/// The same tolerance in single precision.
const F32_TOLERANCE: f64 = 2e-3;

struct Apply<'a, E> {
    row: &'a mut [E],
    change: &'a [E],
}

impl<E: Element> RuleVisitor<E> for Apply<'_, E> {
    type Out = ();
    fn visit<S: PreparedRule<E>>(self, step: &S) {
        step.update_row(self.row, self.change);
    }
}

/// Runs `rule` on a row of three columns with the gradients `g`, `-g` and 0, in both float types. `twin(t, g)` is the
/// weight of the first column after step `t` of a plain program. The second column must be its mirror image and the
/// third must stay 0.
pub(super) fn assert_equals_twin(rule: &PushRule, mut twin: impl FnMut(Clock, f64) -> f64) {
    assert_eq!(rule.fault(), None);
    let mut random = stream(11, Purpose::Test, 0, 0);
    let mut wide = vec![0f64; rule.row_width(3)];
    let mut narrow = vec![0f32; rule.row_width(3)];
    let mut moved = false;
    for t in 0..STEP_COUNT {
        // The mean of 0.5 moves the weights out of the range that L1 sets to 0.
        let g = f64::from((random.normal() + 0.5) as f32);
        let expected = twin(t, g);
        one_step(rule, t, &mut wide, g, expected, F64_TOLERANCE);
        one_step(rule, t, &mut narrow, g, expected, F32_TOLERANCE);
        moved |= expected != 0.0;
    }
    assert!(moved, "the test moves the weight");
}

fn one_step<E: Float + RuleElement>(
    rule: &PushRule,
    t: Clock,
    row: &mut [E],
    g: f64,
    expected: f64,
    tolerance: f64,
) {
    let change = [E::from_f64(g), E::from_f64(-g), E::ZERO];
    E::with_prepared_rule(rule, t, Apply { row, change: &change });
    let got = row[0].to_f64();
    assert!(
        (got - expected).abs() <= tolerance * expected.abs().max(1.0),
        "step {t}: {got}, twin {expected}"
    );
    assert_eq!(row[1].to_f64(), -got, "step {t}: columns do not touch each other");
    assert_eq!(row[2].to_f64(), 0.0, "step {t}: nothing pushed, nothing moved");
}
