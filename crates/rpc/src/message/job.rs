//! A job on a lane: it is opened before its tasks start and closed when it is over. Both may be repeated: opening an
//! open job with the same contents, or closing a job that does not exist, does nothing and succeeds.

use matrix::MatrixSpec;
use serde::{Deserialize, Serialize};

use super::{Base64Bytes, JobId, RequestId};

/// Creates the matrices of a job. Answered by `Done`, or by a fault: a spec is invalid, or the matrices take more bytes
/// than the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenJob {
    pub request: RequestId,
    pub job: JobId,
    /// Number of tasks of the job. All are live at clock 0.
    pub task_count: u32,
    /// Longest wait of a pull, a push or a barrier for other tasks, in milliseconds.
    pub wait_limit_ms: u64,
    /// By matrix id.
    pub matrices: Vec<MatrixSpec>,
    /// For each matrix, the partitions that this lane owns, in ascending order; `held` in older write-ahead logs.
    #[serde(alias = "held")]
    pub owned_partitions: Vec<Vec<u32>>,
    /// Whether this lane is the home lane, which computes the sums of all-reduces. A job has one.
    pub home: bool,
    /// Modules with functions of the job, encoded by the program of the job; left out when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Base64Bytes>,
    /// What the lane must have of the job when its process has died; left out for `Checkpoint`.
    #[serde(default, skip_serializing_if = "Durability::is_checkpoint")]
    pub durability: Durability,
    /// Where the replica of this lane is, if the job is replicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<Standby>,
}

/// The lane that has a replica of the partitions of another one, the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standby {
    /// The name of the server of the primary. When the master has lost it, the standby takes its part of the job over.
    pub primary: String,
    /// The name of the server of the standby.
    pub server: String,
    /// Addresses of that server.
    pub addresses: Vec<String>,
    /// Number of the lane at that server.
    pub lane: u16,
}

/// What there is of a job when the process of a lane has died. Of the logs, each has what those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// The last checkpoint.
    #[default]
    Checkpoint,
    /// Every change that was acknowledged, unless the machine has died too.
    Log,
    /// Every change that was acknowledged.
    SyncedLog,
    /// Every change that was acknowledged: another server has the same partitions, and takes over.
    Replica,
}

impl Durability {
    /// All of them, as users name them.
    pub const NAMES: &[&str] = &["checkpoint", "log", "synced-log", "replica"];

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(super) fn is_checkpoint(&self) -> bool {
        *self == Durability::Checkpoint
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether a lane that has this can have a job that asks for `asked`.
    pub fn covers(self, asked: Self) -> bool {
        asked == Durability::Checkpoint
            || asked == self
            || (self, asked) == (Durability::SyncedLog, Durability::Log)
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Durability::Checkpoint, Durability::Log, Durability::SyncedLog, Durability::Replica];
        all.into_iter().find(|durability| durability.name() == name)
    }
}

/// Removes a job: deferred requests get a fault, and the memory of the job is freed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseJob {
    pub request: RequestId,
    pub job: JobId,
    /// The text of the fault that the waiting tasks get.
    pub reason: String,
}
