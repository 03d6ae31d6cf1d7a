//! Push rules: how a push merges into the rows it names. One file a rule.

use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;

/// A push rule with its settings. The optimizers take gradients; their slots are hidden columns beside the values.
///
/// `l1` and `l2` are added to the objective by the rule: L2 through the gradient (`g + l2 * w`), L1 by a proximal step
/// with the step size just used; FTRL-Proximal has both in its closed form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum PushRule {
    /// Sum.
    Add,
    /// Last one wins.
    Assign,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// `w -= rate * g`.
    Sgd {
        /// Step size.
        rate: f64,
        /// Change of the step size with the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Polyak's heavy ball, 1964.
    Momentum {
        /// Step size.
        rate: f64,
        /// Share of the last step that is kept, in `[0, 1)`.
        momentum: f64,
        /// Change of the step size with the clock.
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
        /// Added to the root of the sum of squares.
        epsilon: f64,
        /// Change of the step size with the clock.
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
        /// Share of the mean square that is kept, in `[0, 1)`.
        decay: f64,
        /// Added to the root of the mean square.
        epsilon: f64,
        /// Change of the step size with the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Kingma, Ba, ICLR 2015, with a step count a row.
    Adam {
        /// Step size.
        rate: f64,
        /// Share of the first moment that is kept, in `[0, 1)`.
        beta1: f64,
        /// Share of the second moment that is kept, in `[0, 1)`.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Change of the step size with the clock.
        schedule: Schedule,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// Zeiler, arXiv 1212.5701, 2012.
    AdaDelta {
        /// Share of the means of squares that is kept, in `[0, 1)`.
        decay: f64,
        /// Inside both roots.
        epsilon: f64,
        /// Weight of `|w|_1`.
        l1: f64,
        /// Weight of `0.5 * |w|^2`.
        l2: f64,
    },
    /// McMahan et al., KDD 2013, algorithm 1.
    FtrlProximal {
        /// Step size of a coordinate.
        alpha: f64,
        /// Smooths the first steps.
        beta: f64,
        /// Weight of `|w|_1`, on the sum of losses.
        l1: f64,
        /// Weight of `0.5 * |w|^2`, on the sum of losses.
        l2: f64,
    },
}
