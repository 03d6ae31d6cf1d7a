//! A job on a lane: opened before its tasks start, closed when it is over. Both may be repeated: opening a job that is
//! open with the same contents, or closing one that is not there, is done already.

use matrix::MatrixSpec;
use serde::{Deserialize, Serialize};

use super::{Base64Bytes, JobId, RequestId};

/// Makes the matrices of a job. Answered by `TaskTimes`, or a fault: a spec that cannot be, more bytes than the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenJob {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// Tasks of the job, all live at clock 0.
    pub task_count: u32,
    /// Longest wait of a pull, a push or a barrier for other tasks.
    pub wait_limit_ms: u64,
    /// By matrix id.
    pub matrices: Vec<MatrixSpec>,
    /// For each matrix, the partitions that this lane holds, ascending.
    pub held: Vec<Vec<u32>>,
    /// Whether sums of an all-reduce are made here: one lane of a job does it.
    pub home: bool,
    /// Modules with functions of the job, encoded as its build of the program does; left out when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Base64Bytes>,
}

/// Forgets a job: whoever waits gets a fault, and its memory is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseJob {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// What the waiting tasks are told.
    pub reason: String,
}
