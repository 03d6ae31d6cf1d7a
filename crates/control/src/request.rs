//! What clients and the master say to each other, as plain values. Each request stands beside its answer.

use std::hash::{BuildHasher as _, RandomState};
use std::time::SystemTime;

use rpc::message::{JobId, Member};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// 16 random bytes that a client makes once for each job: by them a repeat is told from another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubmissionId(pub [u8; 16]);

impl SubmissionId {
    /// Another one each time, here and on every other machine: hash maps get their keys from the randomness of the system,
    /// and so does this. It names, it decides nothing: a model does not depend on it.
    pub fn random() -> Self {
        let half = || RandomState::new().hash_one((std::process::id(), SystemTime::now()));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half().to_le_bytes());
        bytes[8..].copy_from_slice(&half().to_le_bytes());
        Self(bytes)
    }
}

/// A job as a client asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSubmission {
    /// In one line, for people.
    pub title: String,
    /// The job, as its runner knows it.
    pub spec: Value,
    /// Servers that must be there before it starts.
    pub servers: u32,
    /// Workers that must be there before it starts.
    pub workers: u32,
}

/// State of a job, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for members, or for another job to end.
    Queued,
    /// Is being worked on.
    Running,
    /// Ended well.
    Done,
    /// Ended with an error.
    Failed,
    /// Was cancelled.
    Cancelled,
}

impl JobState {
    /// Whether nothing more will happen to the job.
    pub fn is_over(self) -> bool {
        match self {
            JobState::Queued | JobState::Running => false,
            JobState::Done | JobState::Failed | JobState::Cancelled => true,
        }
    }
}

/// A job, as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its number.
    pub id: JobId,
    /// What is asked for, in one line.
    pub title: String,
    /// Where it stands.
    pub state: JobState,
    /// What its runner last said: progress, metrics.
    pub progress: Value,
    /// The error, when it failed.
    pub error: Option<String>,
}

/// What a client says. A word that was lost with its connection may be said again: `Submit` with the same id gives the same
/// job, the others change nothing the second time.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientRequest {
    /// Runs a job. Answered by `Submitted`.
    Submit {
        /// The same for each repeat.
        id: SubmissionId,
        /// What is to run.
        submission: JobSubmission,
    },
    /// Answered by `Status`.
    Status,
    /// Ends a job at its next step. Answered by `Cancelled`.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// Wants to hear of a job until it ends. Answered by `News` now and at every change.
    Watch {
        /// The job.
        job: JobId,
    },
    /// Does not want to hear more. Not answered.
    Unwatch,
}

/// What the master answers, unless it refuses with a fault.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientResponse {
    /// The job will run.
    Submitted {
        /// Its number.
        job: JobId,
    },
    /// All that is known.
    Status(Status),
    /// The job was told to end.
    Cancelled {
        /// Whether it was still under way.
        was_live: bool,
    },
    /// The job as it is now.
    Job(JobStatus),
}

/// Members and jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The living, each with what it last said of itself.
    pub members: Vec<(Member, Value)>,
    /// Jobs, the latest last.
    pub jobs: Vec<JobStatus>,
}
