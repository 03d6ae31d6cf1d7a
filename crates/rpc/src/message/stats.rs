//! The counters of a lane.

use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Asks for the counters. Answered by [`StatsReply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub request: RequestId,
    pub job: JobId,
}

/// The answer to [`Stats`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsReply {
    pub request: RequestId,
    /// By matrix id: rows, bytes.
    pub matrices: Vec<(u64, u64)>,
    /// The clock of each task; `None` when the task has left.
    pub clocks: Vec<Option<u64>>,
    /// Pulls that were answered.
    pub pull_count: u64,
    /// Pushes that were applied.
    pub push_count: u64,
    /// Pull functions that ran; `pull_count` includes them.
    #[serde(default)]
    pub pull_function_count: u64,
    /// Push functions that ran or were staged; a program counts once. Functions that failed are included, and
    /// `push_count` includes all of them.
    #[serde(default)]
    pub push_function_count: u64,
    /// Pushes that were dropped because they had been applied before.
    pub duplicate_count: u64,
    /// Requests that are deferred now.
    pub held_count: u64,
    /// Number of requests that were deferred, and the sum of their waits in nanoseconds.
    pub waits: (u64, u64),
    /// By task.
    pub tasks: Vec<TaskStats>,
    /// Number of pulls that were answered with staleness (clock of the task minus m) 0, 1, 2 ...; the last one counts
    /// all larger values.
    pub staleness: Vec<u64>,
}

/// Whether a task still takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Requests that wait for m also wait for this task.
    Live,
    /// The task waits for all others.
    AtBarrier,
    /// The task has ended, or was taken out.
    Left,
}

/// The state of a task at a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStats {
    /// The clock of the task; the last one when it has left.
    pub clock: u64,
    pub state: TaskStatus,
    /// Whether the task has a connection to this lane now.
    pub connected: bool,
    /// The request of the task that has been deferred longest, if there is one.
    pub wait: Option<TaskWait>,
}

/// What a task waits for at a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWait {
    pub call: WaitKind,
    /// Milliseconds since the request arrived.
    pub waited_ms: u64,
    /// The slowest task, for which the request waits; `None` when there is no such task.
    pub waits_for: Option<u32>,
}

/// Requests that a lane can defer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    Pull,
    Push,
    Barrier,
}
