//! How the step size of a push rule changes with the clock of the push.

use serde::{Deserialize, Serialize};

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
