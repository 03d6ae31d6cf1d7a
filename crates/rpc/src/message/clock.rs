//! Clocks, barriers and sums. A task sends these messages to every lane of the job, whether it uses the lane or not,
//! after the pushes of the step on the same connection. All of them may be repeated: clocks and generations are
//! absolute numbers.

use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Ends a step: the task is now at `clock`. A clock below the current one is a repeat and does nothing; a clock may
/// also be several steps ahead. Answered by `Done` when `request` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// 0: no answer is wanted.
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    /// The new clock of the task.
    pub clock: u64,
}

/// The task has ended, or the master takes it out: no other task waits for it any more. Answered by `Done` when
/// `request` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// 0: no answer is wanted.
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
}

/// A new task, which starts at the smallest clock (m). `task` is the next number, the same at all lanes. The sender
/// asks the home lane first, learns from it how many barriers are over, and passes that number to the other lanes, so
/// that all count the barriers of the task from the same one. A lane where an earlier barrier is still open answers
/// `Busy`. Answered by [`Joined`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    pub request: RequestId,
    pub job: JobId,
    /// The number of the new task.
    pub task: u32,
    /// Barriers that are over at the home lane, as its answer says. The home lane ignores this field.
    pub generation: u32,
}

/// The answer to [`Join`]. The task continues from the largest clock that any lane returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    pub request: RequestId,
    /// The clock of the task at this lane.
    pub clock: u64,
    /// Barriers of the job that were over before the task joined.
    pub generation: u32,
}

/// The task waits for all others, and no other task waits for it meanwhile. The lane defers the answer until all live
/// tasks have reached the barrier, at most until the wait limit of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Barrier {
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    pub clock: u64,
    /// Milliseconds that the task still waits, counted from when it sends the request. 0: as long as the job allows.
    pub wait_ms: u32,
    /// Number of barriers that the task has passed before. A repeat of a barrier that is over is answered at once.
    pub generation: u64,
    /// The contribution of the task to the sum, at the home lane; `None` at other lanes and when nothing is summed.
    pub part: Option<Vec<f64>>,
}

/// The answer to [`Barrier`]. The task continues from the largest clock that any lane returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Released {
    pub request: RequestId,
    /// The clock of all tasks after the barrier, at this lane.
    pub clock: u64,
    /// Nanoseconds that the lane deferred the answer to this task, waiting for other tasks.
    pub deferred_ns: u64,
    /// The sum of all contributions in the order of tasks; empty when there was none.
    pub sum: Vec<f64>,
}
