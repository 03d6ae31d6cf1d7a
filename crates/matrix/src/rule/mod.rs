//! Push rules: how a push merges into the rows of its keys. Each rule has one file.
//!
//! A row of `columns` values is stored as `[values | slot 1 | slot 2 ..]`, and each slot is as long as the values. The
//! slots of a rule are stored beside the values that they serve, so that an update reads one or two cache lines. A row
//! of Adam ends with one more element, its number of steps.

mod adadelta;
mod adagrad;
mod adam;
mod add;
mod assign;
mod ftrl;
mod max;
mod min;
mod momentum;
mod rmsprop;
mod setting_range;
mod sgd;
#[cfg(test)]
mod twin;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::element::{Element, Float};
use crate::function::BlockElement;
use crate::schedule::Schedule;
use setting_range::SettingRange;

/// A push rule with its settings. The optimizers take gradients; their slots are hidden columns beside the values.
///
/// The rule adds `l1` and `l2` to the objective: L2 through the gradient (`g + l2 * w`), L1 by a proximal step with the
/// step size of the update. FTRL-Proximal has both in its closed form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum PushRule {
    Add,
    /// The last push wins.
    Assign,
    Min,
    Max,
    /// `w -= rate * g`.
    Sgd {
        /// Step size.
        rate: f64,
        /// Factor on the step size as a function of the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Heavy ball (Polyak, 1964).
    Momentum {
        /// Step size.
        rate: f64,
        /// Decay rate of the last step, in `[0, 1)`.
        momentum: f64,
        /// Factor on the step size as a function of the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Duchi, Hazan, Singer, JMLR 2011.
    AdaGrad {
        /// Step size.
        rate: f64,
        /// Added to the root of the sum of squares for numerical stability.
        epsilon: f64,
        /// Factor on the step size as a function of the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Tieleman, Hinton, Coursera lecture 6.5, 2012.
    RmsProp {
        /// Step size.
        rate: f64,
        /// Decay rate of the running mean of squared gradients, in `[0, 1)`.
        decay: f64,
        /// Added to the root of the mean square for numerical stability.
        epsilon: f64,
        /// Factor on the step size as a function of the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Kingma, Ba, ICLR 2015, with a step count for each row.
    Adam {
        /// Step size.
        rate: f64,
        /// Decay rate of the first moment, in `[0, 1)`.
        beta1: f64,
        /// Decay rate of the second moment, in `[0, 1)`.
        beta2: f64,
        /// Added to the root of the second moment for numerical stability.
        epsilon: f64,
        /// Factor on the step size as a function of the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Zeiler, arXiv 1212.5701, 2012.
    AdaDelta {
        /// Decay rate of the running means of squares, in `[0, 1)`.
        decay: f64,
        /// Added inside both roots for numerical stability.
        epsilon: f64,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// `McMahan` et al., KDD 2013, algorithm 1.
    FtrlProximal {
        /// Step size of a coordinate.
        alpha: f64,
        /// Added to the root of the sum of squares: dampens the first steps.
        beta: f64,
        /// Weight of `|w|_1`, on the sum of losses.
        l1: f64,
        /// Weight of `0.5 * |w|^2`, on the sum of losses.
        l2: f64,
    },
}

/// A hidden field of each row that a rule needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Name in the paper and in exports.
    pub name: &'static str,
    /// Whether the slot has one element for each row instead of one for each column.
    pub per_row: bool,
}

impl Slot {
    const fn new(name: &'static str) -> Self {
        Self { name, per_row: false }
    }

    /// Number of elements of the slot in a row of `columns` values.
    pub fn width(&self, columns: usize) -> usize {
        if self.per_row { 1 } else { columns }
    }
}

/// How pushes of one clock are merged into one change before the rule applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeOp {
    Sum,
    Last,
    Smallest,
    Largest,
}

impl MergeOp {
    /// Merges `next` into `into`, which came first.
    #[inline]
    pub(crate) fn merge<E: Element>(self, into: &mut E, next: E) {
        match self {
            MergeOp::Sum => *into = into.plus(next),
            MergeOp::Last => *into = next,
            MergeOp::Smallest if next < *into => *into = next,
            MergeOp::Largest if next > *into => *into = next,
            MergeOp::Smallest | MergeOp::Largest => {}
        }
    }
}

impl PushRule {
    /// The name in settings and messages.
    pub fn name(&self) -> &'static str {
        match self {
            PushRule::Add => "add",
            PushRule::Assign => "assign",
            PushRule::Min => "min",
            PushRule::Max => "max",
            PushRule::Sgd { .. } => "sgd",
            PushRule::Momentum { .. } => "momentum",
            PushRule::AdaGrad { .. } => "ada_grad",
            PushRule::RmsProp { .. } => "rms_prop",
            PushRule::Adam { .. } => "adam",
            PushRule::AdaDelta { .. } => "ada_delta",
            PushRule::FtrlProximal { .. } => "ftrl_proximal",
        }
    }

    /// The slots of a row, in the order in which they follow the values.
    pub fn slots(&self) -> &'static [Slot] {
        match self {
            PushRule::Add | PushRule::Assign | PushRule::Min | PushRule::Max | PushRule::Sgd { .. } => &[],
            PushRule::Momentum { .. } => momentum::SLOTS,
            PushRule::AdaGrad { .. } => adagrad::SLOTS,
            PushRule::RmsProp { .. } => rmsprop::SLOTS,
            PushRule::Adam { .. } => adam::SLOTS,
            PushRule::AdaDelta { .. } => adadelta::SLOTS,
            PushRule::FtrlProximal { .. } => ftrl::SLOTS,
        }
    }

    /// Number of elements of a row of `columns` values with all slots.
    pub fn row_width(&self, columns: usize) -> usize {
        columns + self.slots().iter().map(|slot| slot.width(columns)).sum::<usize>()
    }

    /// Returns the same rule, `clock` clocks after the beginning of its schedule.
    #[must_use]
    pub fn after(mut self, clock: Clock) -> Self {
        if let Some(schedule) = self.schedule_mut() {
            *schedule = schedule.after(clock);
        }
        self
    }

    /// The factor on the step size as a function of the clock.
    pub fn schedule(mut self) -> Schedule {
        self.schedule_mut().map_or(Schedule::Constant, |schedule| *schedule)
    }

    fn schedule_mut(&mut self) -> Option<&mut Schedule> {
        match self {
            PushRule::Sgd { schedule, .. }
            | PushRule::Momentum { schedule, .. }
            | PushRule::AdaGrad { schedule, .. }
            | PushRule::RmsProp { schedule, .. }
            | PushRule::Adam { schedule, .. } => Some(schedule),
            PushRule::Add
            | PushRule::Assign
            | PushRule::Min
            | PushRule::Max
            | PushRule::AdaDelta { .. }
            | PushRule::FtrlProximal { .. } => None,
        }
    }

    /// Whether pushes are gradients.
    pub fn is_optimizer(&self) -> bool {
        !matches!(self, PushRule::Add | PushRule::Assign | PushRule::Min | PushRule::Max)
    }

    /// Whether two pushes are equivalent to a push of their sum, so that a part of one push may be moved to another.
    pub fn is_additive(&self) -> bool {
        matches!(self.merge(), MergeOp::Sum)
    }

    pub(crate) fn merge(&self) -> MergeOp {
        match self {
            PushRule::Assign => MergeOp::Last,
            PushRule::Min => MergeOp::Smallest,
            PushRule::Max => MergeOp::Largest,
            PushRule::Add
            | PushRule::Sgd { .. }
            | PushRule::Momentum { .. }
            | PushRule::AdaGrad { .. }
            | PushRule::RmsProp { .. }
            | PushRule::Adam { .. }
            | PushRule::AdaDelta { .. }
            | PushRule::FtrlProximal { .. } => MergeOp::Sum,
        }
    }

    /// Returns what is wrong with the settings: field, actual value, expected value.
    pub(crate) fn fault(&self) -> Option<(&'static str, String, &'static str)> {
        let mut faults =
            self.checked_settings().into_iter().filter(|(_, value, range)| !range.contains(*value));
        if let Some((field, value, range)) = faults.next() {
            return Some((field, value.to_string(), range.text()));
        }
        self.schedule().fault().map(|(field, value, expected)| (field, value.to_string(), expected))
    }

    fn checked_settings(&self) -> Vec<(&'static str, f64, SettingRange)> {
        use SettingRange::{NonNegative, Positive, UnitInterval};
        let penalties = |l1, l2| [("rule.l1", l1, NonNegative), ("rule.l2", l2, NonNegative)];
        let (own, penalties) = match *self {
            PushRule::Add | PushRule::Assign | PushRule::Min | PushRule::Max => return Vec::new(),
            PushRule::Sgd { rate, l1, l2, .. } => (vec![("rule.rate", rate, Positive)], penalties(l1, l2)),
            PushRule::Momentum { rate, momentum, l1, l2, .. } => (
                vec![("rule.rate", rate, Positive), ("rule.momentum", momentum, UnitInterval)],
                penalties(l1, l2),
            ),
            PushRule::AdaGrad { rate, epsilon, l1, l2, .. } => {
                (vec![("rule.rate", rate, Positive), ("rule.epsilon", epsilon, Positive)], penalties(l1, l2))
            }
            PushRule::RmsProp { rate, decay, epsilon, l1, l2, .. } => {
                let own = [("rule.rate", rate, Positive), ("rule.epsilon", epsilon, Positive)];
                ([&own[..], &[("rule.decay", decay, UnitInterval)]].concat(), penalties(l1, l2))
            }
            PushRule::Adam { rate, beta1, beta2, epsilon, l1, l2, .. } => {
                let own = [("rule.rate", rate, Positive), ("rule.epsilon", epsilon, Positive)];
                let betas = [("rule.beta1", beta1, UnitInterval), ("rule.beta2", beta2, UnitInterval)];
                ([own, betas].concat(), penalties(l1, l2))
            }
            PushRule::AdaDelta { decay, epsilon, l1, l2 } => (
                vec![("rule.decay", decay, UnitInterval), ("rule.epsilon", epsilon, Positive)],
                penalties(l1, l2),
            ),
            PushRule::FtrlProximal { alpha, beta, l1, l2 } => {
                (vec![("rule.alpha", alpha, Positive), ("rule.beta", beta, NonNegative)], penalties(l1, l2))
            }
        };
        own.into_iter().chain(penalties).collect()
    }
}

/// A push rule prepared for one push: constants are converted, the schedule is evaluated.
pub(crate) trait PreparedRule<E> {
    /// Merges `change`, one element for each column, into `row`, which has the width of the rule.
    fn update_row(&self, row: &mut [E], change: &[E]);
}

/// Code that is generic over the prepared rule. The loop over keys is compiled once for each rule.
pub(crate) trait RuleVisitor<E> {
    type Out;
    fn visit<S: PreparedRule<E>>(self, step: &S) -> Self::Out;
}

/// An element type that push rules work on.
pub(crate) trait RuleElement: Element + BlockElement {
    /// Prepares `rule` for a push stamped `clock` and passes it to `visit`.
    fn with_prepared_rule<V: RuleVisitor<Self>>(rule: &PushRule, clock: Clock, visit: V) -> V::Out;
    /// Initializes the slots of `row` from its values.
    fn init_slots(rule: &PushRule, columns: usize, row: &mut [Self]);
}

impl RuleElement for f32 {
    fn with_prepared_rule<V: RuleVisitor<Self>>(rule: &PushRule, clock: Clock, visit: V) -> V::Out {
        with_prepared_float_rule(rule, clock, visit)
    }

    fn init_slots(rule: &PushRule, columns: usize, row: &mut [Self]) {
        init_float_slots(rule, columns, row);
    }
}

impl RuleElement for f64 {
    fn with_prepared_rule<V: RuleVisitor<Self>>(rule: &PushRule, clock: Clock, visit: V) -> V::Out {
        with_prepared_float_rule(rule, clock, visit)
    }

    fn init_slots(rule: &PushRule, columns: usize, row: &mut [Self]) {
        init_float_slots(rule, columns, row);
    }
}

/// Integers have the rules that are no optimizers.
macro_rules! integer_rules {
    ($($type:ident)*) => {
        $(impl RuleElement for $type {
            fn with_prepared_rule<V: RuleVisitor<Self>>(rule: &PushRule, _clock: Clock, visit: V) -> V::Out {
                match rule {
                    PushRule::Add => visit.visit(&add::Add),
                    PushRule::Assign => visit.visit(&assign::Assign),
                    PushRule::Min => visit.visit(&min::Min),
                    PushRule::Max => visit.visit(&max::Max),
                    PushRule::Sgd { .. }
                    | PushRule::Momentum { .. }
                    | PushRule::AdaGrad { .. }
                    | PushRule::RmsProp { .. }
                    | PushRule::Adam { .. }
                    | PushRule::AdaDelta { .. }
                    | PushRule::FtrlProximal { .. } => {
                        unreachable!("MatrixSpec::check refuses optimizers on integers")
                    }
                }
            }

            fn init_slots(_rule: &PushRule, _columns: usize, _row: &mut [Self]) {}
        })*
    };
}

integer_rules! { i64 i32 u32 }

fn with_prepared_float_rule<E: Float, V: RuleVisitor<E>>(rule: &PushRule, clock: Clock, visit: V) -> V::Out {
    let e = E::from_f64;
    let at = |rate: f64, schedule: &Schedule| e(rate * schedule.factor(clock));
    match rule {
        PushRule::Add => visit.visit(&add::Add),
        PushRule::Assign => visit.visit(&assign::Assign),
        PushRule::Min => visit.visit(&min::Min),
        PushRule::Max => visit.visit(&max::Max),
        PushRule::Sgd { rate, schedule, l1, l2 } => {
            visit.visit(&sgd::Sgd { rate: at(*rate, schedule), l1: e(*l1), l2: e(*l2) })
        }
        PushRule::Momentum { rate, momentum, schedule, l1, l2 } => visit.visit(&momentum::Momentum {
            rate: at(*rate, schedule),
            factor: e(*momentum),
            l1: e(*l1),
            l2: e(*l2),
        }),
        PushRule::AdaGrad { rate, epsilon, schedule, l1, l2 } => visit.visit(&adagrad::AdaGrad {
            rate: at(*rate, schedule),
            epsilon: e(*epsilon),
            l1: e(*l1),
            l2: e(*l2),
        }),
        PushRule::RmsProp { rate, decay, epsilon, schedule, l1, l2 } => visit.visit(&rmsprop::RmsProp {
            rate: at(*rate, schedule),
            decay: e(*decay),
            epsilon: e(*epsilon),
            l1: e(*l1),
            l2: e(*l2),
        }),
        PushRule::Adam { rate, beta1, beta2, epsilon, schedule, l1, l2 } => visit.visit(&adam::Adam {
            rate: at(*rate, schedule),
            beta1: *beta1,
            beta2: *beta2,
            epsilon: e(*epsilon),
            l1: e(*l1),
            l2: e(*l2),
        }),
        PushRule::AdaDelta { decay, epsilon, l1, l2 } => visit.visit(&adadelta::AdaDelta {
            decay: e(*decay),
            epsilon: e(*epsilon),
            l1: e(*l1),
            l2: e(*l2),
        }),
        PushRule::FtrlProximal { alpha, beta, l1, l2 } => {
            visit.visit(&ftrl::Ftrl { alpha: e(*alpha), beta: e(*beta), l1: e(*l1), l2: e(*l2) })
        }
    }
}

fn init_float_slots<E: Float>(rule: &PushRule, columns: usize, row: &mut [E]) {
    let e = E::from_f64;
    let (values, slots) = row.split_at_mut(columns);
    slots.fill(E::ZERO);
    if let PushRule::FtrlProximal { alpha, beta, l1, l2 } = rule {
        ftrl::Ftrl { alpha: e(*alpha), beta: e(*beta), l1: e(*l1), l2: e(*l2) }.init_slots(values, slots);
    }
}

/// The proximal step of `threshold * |w|`: moves w towards 0 by the threshold, but not beyond 0.
#[inline]
fn shrink<E: Float>(w: E, threshold: E) -> E {
    if w > threshold {
        w - threshold
    } else if w < -threshold {
        w + threshold
    } else {
        E::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_wide_as_values_and_slots() {
        assert_eq!(PushRule::Add.row_width(5), 5);
        let ftrl = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 };
        assert_eq!(ftrl.row_width(4), 12);
        let adam = PushRule::Adam {
            rate: 0.1,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            schedule: Schedule::Constant,
            l1: 0.0,
            l2: 0.0,
        };
        assert_eq!(adam.row_width(4), 13, "three of four and one step count");
    }

    #[test]
    fn shrinking_stops_at_zero() {
        assert_eq!(shrink(3.0, 1.0), 2.0);
        assert_eq!(shrink(-3.0, 1.0), -2.0);
        assert_eq!(shrink(-0.5, 1.0), 0.0);
        assert_eq!(shrink(-0.5, 0.0), -0.5);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let sgd = |rate, decay| PushRule::Sgd {
            rate,
            schedule: Schedule::InverseTime { decay, start: 0 },
            l1: 0.0,
            l2: 0.0,
        };
        assert_eq!(sgd(0.1, 0.5).fault(), None);
        assert_eq!(sgd(f64::NAN, 0.5).fault().map(|f| f.0), Some("rule.rate"));
        assert_eq!(sgd(0.1, -1.0).fault().map(|f| f.0), Some("schedule.decay"));
        let adadelta = PushRule::AdaDelta { decay: 1.0, epsilon: 1e-6, l1: 0.0, l2: 0.0 };
        assert_eq!(adadelta.fault().map(|f| f.0), Some("rule.decay"));
    }
}
