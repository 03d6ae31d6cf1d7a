//! What of the jobs survives the master: a new master that finds the records of an earlier one goes on with its jobs.
//!
//! The state machine reports changes, and the process writes each before anybody learns of it. Jobs of a new master wait for members like those
//! that have lost one, and get runs with new numbers. Members ask a new master which runs it goes on with before they register
//! ([`rpc::message::ControlBody::AskContinuedRuns`]). Nothing of a driver is adopted in the middle of a run: what counts is in the checkpoint.

use control::{JobState, JobSubmission, SubmissionId};
use rpc::message::JobId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A change that a new master must know.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordChange {
    /// A job was submitted. It is recorded before the client learns its number.
    Submitted(Box<SubmittedJob>),
    /// A job has begun a run, or has ended.
    Moved { job: JobId, standing: Standing },
    /// A job is no longer remembered.
    Forgotten { job: JobId },
    /// The last number that was given to a job or a run.
    LastId { id: JobId },
}

/// A job as it was submitted. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmittedJob {
    pub job: JobId,
    pub title: String,
    pub spec: Value,
    pub servers: u32,
    pub workers: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worker_group: String,
    /// By them a repeat of the submission is told from another job.
    pub submission_id: [u8; 16],
    /// In hexadecimal digits.
    pub digest: String,
    pub bytes: u64,
}

impl SubmittedJob {
    pub(crate) fn submission(&self) -> JobSubmission {
        JobSubmission {
            title: self.title.clone(),
            spec: self.spec.clone(),
            servers: self.servers,
            workers: self.workers,
            worker_group: self.worker_group.clone(),
        }
    }

    pub(crate) fn id(&self) -> SubmissionId {
        SubmissionId(self.submission_id)
    }
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub state: JobState,
    /// The number by which its members know it.
    pub run: JobId,
    /// Numbers of its runs under masters before that one: a member that was away may still be part of one.
    #[serde(default)]
    pub earlier_runs: Vec<JobId>,
    /// What its runner wants to find again.
    #[serde(default)]
    pub runner: Value,
    /// Whether a client has cancelled it.
    #[serde(default)]
    pub is_cancelled: bool,
    #[serde(default)]
    pub error: Option<String>,
}

impl Standing {
    /// The standing of a job that was just submitted.
    pub(crate) fn queued(job: JobId) -> Self {
        Self {
            state: JobState::Queued,
            run: job,
            earlier_runs: Vec::new(),
            runner: Value::Null,
            is_cancelled: false,
            error: None,
        }
    }
}

/// Everything that an earlier master has recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    pub last_id: JobId,
    /// By number, ascending.
    pub jobs: Vec<(SubmittedJob, Standing)>,
}
