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
    /// Pushes dropped because they had been applied before.
    pub duplicate_count: u64,
    /// Requests that are held now.
    pub held_count: u64,
    /// Requests that were held, and nanoseconds that they were.
    pub waits: (u64, u64),
    /// How many pulls were answered with staleness (clock of the asker minus m) 0, 1, 2 ...; the last counts all above.
    pub staleness: Vec<u64>,
}
