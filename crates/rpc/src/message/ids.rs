//! Names of requests, jobs and pushes.

use serde::{Deserialize, Serialize};

/// Names a request on its connection. 0: no answer is wanted.
pub type RequestId = u64;
/// A job, unique at its master.
pub type JobId = u32;

/// The push watermark of a task at a lane: all its pushes with a name `(clock, index)` below this one are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PushPosition {
    /// The clock of the next push.
    pub clock: u64,
    /// The index of the next push under that clock.
    pub index: u32,
}
