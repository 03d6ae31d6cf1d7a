//! What a lane has counted.

use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Asks. Answered by [`StatsReply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
}

/// The answer to [`Stats`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsReply {
    /// Of the request.
    pub request: RequestId,
    /// By matrix id: rows, bytes.
    pub matrices: Vec<(u64, u64)>,
    /// The clock of each task; `None` when it has left.
    pub clocks: Vec<Option<u64>>,
    /// Pulls answered.
    pub pull_count: u64,
    /// Pushes applied.
    pub push_count: u64,
    /// Of them, pull functions carried out.
    #[serde(default)]
    pub pull_function_count: u64,
    /// Of them, push functions carried out or staged, programs counted once; those that failed included.
    #[serde(default)]
    pub push_function_count: u64,
    /// Pushes dropped because they had been applied before.
    pub duplicate_count: u64,
    /// Requests that are held now.
    pub held_count: u64,
    /// Requests that were held, and nanoseconds that they were.
    pub waits: (u64, u64),
    /// By task: what the lane knows of it.
    pub tasks: Vec<TaskStats>,
    /// How many pulls were answered with staleness (clock of the asker minus m) 0, 1, 2 ...; the last counts all above.
    pub staleness: Vec<u64>,
}

/// Whether a task still takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It holds back those who wait for m.
    Live,
    /// It waits for all others.
    AtBarrier,
    /// It has ended, or was taken out.
    Left,
}

/// A task, as a lane sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStats {
    /// Its clock; the last one when it has left.
    pub clock: u64,
    /// Whether it still takes part.
    pub state: TaskState,
    /// Whether it has a connection to this lane now.
    pub connected: bool,
    /// The request of it that has waited longest here, if one is held.
    pub wait: Option<TaskWait>,
}

/// What a task waits for at a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWait {
    /// What it has asked.
    pub call: WaitKind,
    /// Milliseconds since then.
    pub waited_ms: u64,
    /// The slowest task, for which it waits; none when there is no such.
    pub waits_for: Option<u32>,
}

/// What can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// Reading.
    Pull,
    /// Changing.
    Push,
    /// Meeting all others.
    Barrier,
}
