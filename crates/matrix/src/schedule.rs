//! How the step size of a push rule changes with the clock of the push.

use std::f64::consts::PI;

use math::elementary::{cos, pow};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

/// A factor on the step size as a function of `t`, the clock of the push plus `start`. `start` is the number of clocks
/// of earlier runs, when training continues from a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Schedule {
    /// The factor is always 1.
    Constant,
    /// `1 / (1 + decay * t)`.
    InverseTime {
        /// Decay for each clock.
        decay: f64,
        /// Number of clocks before the first of this run.
        #[serde(default, skip_serializing_if = "is_zero")]
        start: Clock,
    },
    /// `decay ^ (t / every)`, continuous.
    Exponential {
        /// Factor, in `(0, 1]`.
        decay: f64,
        /// Number of clocks after which the factor has been multiplied by `decay` once.
        every: f64,
        /// Number of clocks before the first of this run.
        #[serde(default, skip_serializing_if = "is_zero")]
        start: Clock,
    },
    /// A cosine from 1 to `floor` over a period, which then restarts; each period is `stretch` times the one before
    /// (SGDR, Loshchilov and Hutter, ICLR 2017, eq. 5).
    WarmRestarts {
        /// Length of the first period, in clocks.
        period: f64,
        /// Growth of the period, at least 1.
        stretch: f64,
        /// Smallest factor, in `[0, 1]`.
        floor: f64,
        /// Number of clocks before the first of this run.
        #[serde(default, skip_serializing_if = "is_zero")]
        start: Clock,
    },
}

impl Schedule {
    /// Returns the factor at clock `t`.
    pub fn factor(&self, t: Clock) -> f64 {
        match *self {
            Schedule::Constant => 1.0,
            Schedule::InverseTime { decay, start } => 1.0 / (1.0 + decay * (start + t) as f64),
            Schedule::Exponential { decay, every, start } => pow(decay, (start + t) as f64 / every),
            Schedule::WarmRestarts { period, stretch, floor, start } => {
                let (passed, length) = position_in_period((start + t) as f64, period, stretch);
                floor + 0.5 * (1.0 - floor) * (1.0 + cos(PI * passed / length)) // Eq. 5
            }
        }
    }

    /// Returns the same schedule, `clock` clocks after its beginning.
    #[must_use]
    pub fn after(mut self, clock: Clock) -> Self {
        match &mut self {
            Schedule::Constant => {}
            Schedule::InverseTime { start, .. }
            | Schedule::Exponential { start, .. }
            | Schedule::WarmRestarts { start, .. } => *start = clock,
        }
        self
    }

    /// Returns what is wrong with the settings: field, actual value, expected value.
    pub(crate) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        match *self {
            Schedule::Constant => None,
            Schedule::InverseTime { decay, .. } => {
                (!(decay >= 0.0 && decay.is_finite())).then_some(("schedule.decay", decay, "a number >= 0"))
            }
            Schedule::Exponential { decay, .. } if !(decay > 0.0 && decay <= 1.0) => {
                Some(("schedule.decay", decay, "a number in (0, 1]"))
            }
            Schedule::Exponential { every, .. } => {
                (!positive(every)).then_some(("schedule.every", every, "a number of steps > 0"))
            }
            Schedule::WarmRestarts { period, .. } if !(period >= 1.0 && period.is_finite()) => {
                Some(("schedule.period", period, "a number of steps >= 1"))
            }
            Schedule::WarmRestarts { stretch, .. } if !(stretch >= 1.0 && stretch.is_finite()) => {
                Some(("schedule.stretch", stretch, "a number >= 1"))
            }
            Schedule::WarmRestarts { floor, .. } => {
                (!(0.0..=1.0).contains(&floor)).then_some(("schedule.floor", floor, "a number in [0, 1]"))
            }
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(clock: &Clock) -> bool {
    *clock == 0
}

/// Returns the clocks since the last restart and the length of the current period.
fn position_in_period(t: f64, period: f64, stretch: f64) -> (f64, f64) {
    if stretch == 1.0 {
        return (t % period, period);
    }
    let (mut passed, mut length) = (t, period);
    // Periods grow, so the loop has about log(t) iterations. A growth of almost 1 is limited by RESTART_LIMIT.
    let mut turns = 0;
    while passed >= length && turns < RESTART_LIMIT {
        passed -= length;
        length *= stretch;
        turns += 1;
    }
    (passed % length, length)
}

/// Maximum number of restarts that are counted one by one; after them the period keeps its length.
const RESTART_LIMIT: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A few roundings of a double.
    const ROUNDING: f64 = 1e-15;

    #[test]
    fn factors_follow_their_formulas() {
        assert_eq!(Schedule::Constant.factor(99), 1.0);
        assert_eq!(Schedule::InverseTime { decay: 0.5, start: 0 }.factor(2), 0.5);
        let exponential = Schedule::Exponential { decay: 0.25, every: 10.0, start: 0 };
        assert_eq!(exponential.factor(10), 0.25);
        assert!((exponential.factor(5) - 0.5).abs() < ROUNDING);
    }

    #[test]
    fn warm_restarts_fall_to_the_floor_and_start_again_stretched() {
        let schedule = Schedule::WarmRestarts { period: 10.0, stretch: 2.0, floor: 0.2, start: 0 };
        assert_eq!(schedule.factor(0), 1.0);
        assert!((schedule.factor(5) - 0.6).abs() < ROUNDING, "half way between 1 and the floor");
        assert!(schedule.factor(9) < 0.25);
        assert_eq!(schedule.factor(10), 1.0, "first restart");
        assert!((schedule.factor(20) - 0.6).abs() < ROUNDING, "the second period has 20 steps");
        assert_eq!(schedule.factor(30), 1.0, "second restart");
        let even = Schedule::WarmRestarts { period: 4.0, stretch: 1.0, floor: 0.0, start: 0 };
        assert_eq!(even.factor(3), even.factor(4_000_003));
    }

    #[test]
    fn a_schedule_goes_on_where_an_earlier_one_ended() {
        let schedules = [
            Schedule::InverseTime { decay: 0.5, start: 0 },
            Schedule::Exponential { decay: 0.25, every: 10.0, start: 0 },
            Schedule::WarmRestarts { period: 10.0, stretch: 2.0, floor: 0.2, start: 0 },
        ];
        for schedule in schedules {
            for t in 0..50 {
                assert_eq!(schedule.after(17).factor(t), schedule.factor(17 + t));
            }
        }
        assert_eq!(Schedule::Constant.after(17), Schedule::Constant);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        assert_eq!(Schedule::Constant.fault(), None);
        let bad = Schedule::Exponential { decay: 1.5, every: 1.0, start: 0 };
        assert_eq!(bad.fault().map(|fault| fault.0), Some("schedule.decay"));
        let restarts = |period, stretch, floor| {
            let schedule = Schedule::WarmRestarts { period, stretch, floor, start: 0 };
            schedule.fault().map(|fault| fault.0)
        };
        assert_eq!(restarts(1.0, 1.0, 1.0), None);
        for period in [0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(restarts(period, 1.0, 0.0), Some("schedule.period"), "{period}");
        }
        for stretch in [0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(restarts(5.0, stretch, 0.0), Some("schedule.stretch"), "{stretch}");
        }
        assert_eq!(restarts(5.0, 1.0, 1.5), Some("schedule.floor"));
        let decays =
            |decay, every| Schedule::Exponential { decay, every, start: 0 }.fault().map(|fault| fault.0);
        assert_eq!(decays(1.0, 1.0), None);
        assert_eq!([decays(0.0, 1.0), decays(0.5, 0.0)], [Some("schedule.decay"), Some("schedule.every")]);
    }
}
