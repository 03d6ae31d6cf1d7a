//! The only file that decides freshness: the clocks of tasks and the three consistency modes.

use serde::{Deserialize, Serialize};

/// Number of ticks that a task has made.
pub type Clock = u64;

/// What a read may miss. A push made before its task's `(k + 1)`-th tick is stamped `k`; `m` is the smallest clock of
/// the live tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// A pull at clock `c` answers when `m >= c` and sees exactly the pushes stamped below `c`.
    Bsp,
    /// Pulls and pushes of a task at clock `c` wait until `m >= c - staleness`; pushes apply on arrival.
    Ssp {
        /// How many clocks a task may run ahead of the slowest.
        staleness: u64,
    },
    /// Nothing waits.
    Asp,
}
