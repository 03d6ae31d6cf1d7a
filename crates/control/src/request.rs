//! Requests of clients and responses of the master, as plain values. Each request is beside its response.

use std::hash::{BuildHasher as _, RandomState};
use std::time::SystemTime;

use rpc::message::{JobId, Member};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// 16 random bytes that a client creates once for each job. They distinguish a repeat from another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubmissionId(pub [u8; 16]);

impl SubmissionId {
    /// A new random id, different on every call and every machine. It takes the randomness of the system through the
    /// keys of hash maps. It is only a name: no model depends on it.
    pub fn random() -> Self {
        let half = || RandomState::new().hash_one((std::process::id(), SystemTime::now()));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half().to_le_bytes());
        bytes[8..].copy_from_slice(&half().to_le_bytes());
        Self(bytes)
    }
}

/// A job as a client submits it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSubmission {
    /// One line, for people.
    pub title: String,
    /// The job, in the format of its runner.
    pub spec: Value,
    /// Servers that the job needs to start.
    pub servers: u32,
    /// Workers that the job needs to start.
    pub workers: u32,
    /// The group of its workers. Empty: workers without a group.
    pub worker_group: String,
}

/// The state of a job, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for members, or for another job to end.
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl JobState {
    /// Whether the job has ended in any way.
    pub fn is_over(self) -> bool {
        match self {
            JobState::Queued | JobState::Running => false,
            JobState::Done | JobState::Failed | JobState::Cancelled => true,
        }
    }
}

/// A job, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobStatus {
    pub id: JobId,
    /// One line, for people.
    pub title: String,
    pub state: JobState,
    /// The last progress of its runner, with metrics.
    pub progress: Value,
    /// The error, when the job failed.
    pub error: Option<String>,
}

/// A request of a client. It may be repeated when it was lost with its connection: `Submit` with the same id returns
/// the same job, and repeating the others changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientRequest {
    /// Runs a job. Answered by `Submitted`.
    Submit {
        /// The same for each repeat.
        id: SubmissionId,
        submission: JobSubmission,
    },
    /// Answered by `Status`.
    Status,
    /// Ends a job at its next step. Answered by `Cancelled`.
    Cancel { job: JobId },
    /// Writes a checkpoint of a running job soon. Answered by `CheckpointRequested`.
    Checkpoint { job: JobId },
    /// Watches a job until it ends. Answered by `Job` now and at every change.
    Watch { job: JobId },
    /// Stops watching. Not answered.
    Unwatch,
}

/// The response of the master, unless it refuses the request with a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientResponse {
    /// The job is queued or runs.
    Submitted { job: JobId },
    /// All members and jobs.
    Status(Status),
    /// The job will end.
    Cancelled {
        /// Whether the job had not ended yet.
        was_live: bool,
    },
    /// The job will write a checkpoint; its progress tells when it has.
    CheckpointRequested,
    /// The present status of the job.
    Job(JobStatus),
}

/// Members and jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The alive members, each with its last report.
    pub members: Vec<(Member, Value)>,
    /// Jobs, the newest last.
    pub jobs: Vec<JobStatus>,
}
