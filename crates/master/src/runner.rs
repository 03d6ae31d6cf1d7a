//! What the state machine and a runner say to each other: commands ([`RunnerCommand`]) with events of a job
//! ([`JobEvent`]), and reports ([`RunnerReport`]).

use matrix::MatrixSpec;
use rpc::message::control::Member;
use rpc::message::{Base64Bytes, Fault, JobId};
use serde_json::Value;

/// The result of a job that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// The whole report. Watchers get it as the last progress; `status` shows the last progress before it.
    pub report: Value,
    /// Whether all its work was done. If not, and the job was cancelled, it ends as cancelled.
    pub is_complete: bool,
}

impl From<Value> for JobResult {
    fn from(report: Value) -> Self {
        Self { report, is_complete: true }
    }
}

/// A command of the state machine to the process around it.
#[derive(Clone, Debug, PartialEq)]
pub enum RunnerCommand {
    /// Starts a runner. It ends with [`RunnerReport::Ended`] in every case.
    StartJob(JobStart),
    /// Sends an event to the runner of a job.
    ToRunner {
        /// A job that was started before.
        job: JobId,
        event: JobEvent,
    },
}

/// The input of a runner.
#[derive(Clone, Debug, PartialEq)]
pub struct JobStart {
    pub job: JobId,
    /// The number by which its members know it.
    pub run: JobId,
    /// One line, for people.
    pub title: String,
    /// The job as it was submitted.
    pub spec: Value,
    /// As many as were requested, by number.
    pub servers: Vec<Member>,
    /// As many as were requested, by number.
    pub workers: Vec<Member>,
    /// What its runner has recorded under an earlier master.
    pub recorded: Value,
    /// Whether it is a session of the parameter service.
    pub is_session: bool,
}

/// An event that a runner receives.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEvent {
    /// A message of a worker of the job.
    FromTask { worker: u32, body: Base64Bytes },
    /// A member of the job is lost and does not return under this number.
    MemberLost {
        member: Member,
        /// Why the member was removed.
        reason: String,
    },
    /// A server of the job is lost, and another one has its partitions.
    ServerTakesOver {
        lost: Member,
        /// Why it was removed.
        reason: String,
        /// The name of the server that has the partitions.
        by: String,
    },
    /// The connection of a member of the job has ended. The member may reconnect, or be lost.
    MemberDisconnected { member: Member },
    /// The members with which the job goes on after [`RunnerReport::ReplaceMembers`].
    Members {
        /// The number by which they know the job.
        run: JobId,
        servers: Vec<Member>,
        workers: Vec<Member>,
    },
    /// A member of the job was disconnected and has reconnected with the same incarnation. No message between the
    /// runner and the member was lost.
    MemberReconnected {
        member: Member,
        /// Whether it is another process, with the state of the one before.
        is_restored: bool,
    },
    /// A command for a session.
    Session {
        /// Names the call in the answer.
        call: u64,
        command: SessionCommand,
    },
    /// The job is cancelled. The runner should end soon, with an error that says what was saved.
    Cancelled,
    /// A user wants a checkpoint of the job soon.
    CheckpointRequested,
    /// No event arrived in time.
    Timeout,
}

/// A command for a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionCommand {
    /// Creates a matrix on all lanes, or on none.
    Add {
        matrix: u32,
        spec: Box<MatrixSpec>,
        /// By partition: the position of its lane in [`crate::lanes_of`] the servers.
        owners: Vec<u16>,
    },
    /// Frees a matrix.
    Drop { matrix: u32 },
    /// Writes a checkpoint of all matrices under a name.
    Checkpoint { name: String },
    /// Frees everything and ends the runner, with the given error or without.
    Close {
        /// The error; `None` when the host closes the session.
        reason: Option<String>,
    },
}

/// A report of a runner.
#[derive(Clone, Debug, PartialEq)]
pub enum RunnerReport {
    /// A message for a task of a worker.
    ToTask {
        /// The number of a member of the job.
        worker: u32,
        body: Base64Bytes,
    },
    /// The matrices that a session has from a checkpoint.
    SessionRestored(Vec<MatrixSpec>),
    /// The result of a call of a session.
    SessionReply { call: u64, result: Result<(), Fault> },
    /// The progress that users see.
    Progress(Value),
    /// What the runner wants to find again under another master.
    Record(Value),
    /// The job has lost a member: it gives its members back and waits for others.
    ReplaceMembers,
    /// The last report: the result of the job, or the error.
    Ended(Result<JobResult, String>),
}
