//! Clocks, barriers, sums. All of it goes to every lane of the job, touched or not, behind the pushes of the step on the
//! same connection. All may be repeated: clocks and generations are absolute numbers.

use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Ends a step: the task is now at `clock`. An earlier clock than the one known is a repeat and does nothing; a later one
/// than the next is taken as it is. No answer, unless `request` is not 0: then `TaskTimes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Of this request, or 0.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: u32,
    /// Its new clock.
    pub clock: u64,
}

/// The task has ended, or is taken out by the master: it holds nobody back any more. Answered by `TaskTimes`, unless
/// `request` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// Of this request, or 0.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: u32,
}

/// A new task, which starts at m. `task` is the next number, the same at all lanes. The home lane is asked first: it says
/// how many barriers are over, and the others are told, so that all count the barriers of the task from the same one. A
/// lane where an earlier barrier is still open answers `busy`. Answered by [`WholeCluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The number of the new task.
    pub task: u32,
    /// Barriers that are over at the home lane, as its answer says; the home lane itself knows it.
    pub generation: u32,
}

/// The answer to [`Join`]. The task goes on from the largest clock that any lane says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Of the request.
    pub request: RequestId,
    /// The clock of the task at this lane.
    pub clock: u64,
    /// Barriers of the job that were over before the task joined.
    pub generation: u32,
}

/// The task waits for all others, and holds nobody back while it does. Held until all live tasks have come, at most
/// until the wait limit of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Barrier {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: u32,
    /// Its clock.
    pub clock: u64,
    /// Milliseconds for which the task still waits, from the sending on; 0: as long as the job allows.
    pub wait_ms: u32,
    /// Number of barriers that the task has passed before: a repeat of one that is over is answered at once.
    pub generation: u64,
    /// What the task brings to the sum, at the home lane; `None` elsewhere and when nothing is summed.
    pub part: Option<Vec<f64>>,
}

/// The answer to [`Barrier`]. The task goes on from the largest clock that any lane says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Released {
    /// Of the request.
    pub request: RequestId,
    /// The clock of all tasks after the barrier, at this lane.
    pub clock: u64,
    /// Nanoseconds that the lane held the barrier of this task, waiting for other tasks.
    pub held_ns: u64,
    /// The sum of all parts in the order of tasks; empty when there was none.
    pub sum: Vec<f64>,
}
