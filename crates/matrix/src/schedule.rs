//! How the step size of a push rule changes with the clock of the push.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;

/// A factor on the step size as a function of `t`, the clock of the push.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Schedule {
    /// 1.
    Constant,
    /// `1 / (1 + decay * t)`.
    InverseTime {
        /// Decay a step.
        decay: f64,
    },
    /// `decay ^ (t / every)`, continuous.
    Exponential {
        /// Factor, in `(0, 1]`.
        decay: f64,
        /// Steps for one factor.
        every: f64,
    },
    /// Cosine from 1 to `floor` over a period, then again, each period `stretch` times the last (SGDR, Loshchilov and
    /// Hutter, ICLR 2017, eq. 5).
    WarmRestarts {
        /// Steps of the first period.
        period: f64,
        /// Growth of the period, at least 1.
        stretch: f64,
        /// Smallest factor, in `[0, 1]`.
        floor: f64,
    },
}

impl Schedule {
    /// The factor at clock `t`.
    pub fn factor(&self, t: Clock) -> f64 {
        let t = t as f64;
        match *self {
            Schedule::Constant => 1.0,
            Schedule::InverseTime { decay } => 1.0 / (1.0 + decay * t),
            Schedule::Exponential { decay, every } => decay.powf(t / every),
            Schedule::WarmRestarts { period, stretch, floor } => {
                let (passed, length) = place_in_period(t, period, stretch);
                floor + 0.5 * (1.0 - floor) * (1.0 + (PI * passed / length).cos()) // Eq. 5
            }
        }
    }

    /// What is wrong with the settings: field, value, what is expected.
    pub(crate) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        match *self {
            Schedule::Constant => None,
            Schedule::InverseTime { decay } => {
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

/// Steps since the last restart, and the length of the period that they are in.
fn place_in_period(t: f64, period: f64, stretch: f64) -> (f64, f64) {
    if stretch == 1.0 {
        return (t % period, period);
    }
    let (mut passed, mut length) = (t, period);
    // Periods grow, so that this ends after the logarithm of t; a growth of almost 1 is as good as none.
    let mut turns = 0;
    while passed >= length && turns < MOST_RESTARTS {
        passed -= length;
        length *= stretch;
        turns += 1;
    }
    (passed % length, length)
}

/// Restarts that are counted one by one; after them the period stays as it is.
const MOST_RESTARTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A few roundings of a double.
    const ROUNDING: f64 = 1e-15;

    #[test]
    fn factors_follow_their_formulas() {
        assert_eq!(Schedule::Constant.factor(99), 1.0);
        assert_eq!(Schedule::InverseTime { decay: 0.5 }.factor(2), 0.5);
        let exponential = Schedule::Exponential { decay: 0.25, every: 10.0 };
        assert_eq!(exponential.factor(10), 0.25);
        assert!((exponential.factor(5) - 0.5).abs() < ROUNDING);
    }

    #[test]
    fn warm_restarts_fall_to_the_floor_and_start_again_stretched() {
        let schedule = Schedule::WarmRestarts { period: 10.0, stretch: 2.0, floor: 0.2 };
        assert_eq!(schedule.factor(0), 1.0);
        assert!((schedule.factor(5) - 0.6).abs() < ROUNDING, "half way between 1 and the floor");
        assert!(schedule.factor(9) < 0.25);
        assert_eq!(schedule.factor(10), 1.0, "first restart");
        assert!((schedule.factor(20) - 0.6).abs() < ROUNDING, "the second period has 20 steps");
        assert_eq!(schedule.factor(30), 1.0, "second restart");
        let even = Schedule::WarmRestarts { period: 4.0, stretch: 1.0, floor: 0.0 };
        assert_eq!(even.factor(3), even.factor(4_000_003));
    }

    #[test]
    fn settings_out_of_range_are_named() {
        assert_eq!(Schedule::Constant.fault(), None);
        let bad = Schedule::Exponential { decay: 1.5, every: 1.0 };
        assert_eq!(bad.fault().map(|fault| fault.0), Some("schedule.decay"));
        let bad = Schedule::WarmRestarts { period: 5.0, stretch: f64::NAN, floor: 0.0 };
        assert_eq!(bad.fault().map(|fault| fault.0), Some("schedule.stretch"));
    }
}
