//! What runs a job. The state machine gives orders ([`RunnerCommand`]) and hears words ([`RunnerReport`]); between them stands one
//! thread a job, which sees its members through a [`JobLink`].

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use control::JobSubmission;
use matrix::MatrixSpec;
use rpc::message::control::Member;
use rpc::message::{Fault, JobId};
use rpc::stop::Stop;
use serde_json::Value;

use crate::input::InputSender;

/// What runs jobs: the process calls it once a job, each on a thread of its own. A panic is a failed job.
pub trait Runner: Send + Sync {
    /// From the start of a job to its end. The error is shown to people.
    fn run(&self, link: JobLink) -> Result<JobResult, String>;

    /// The same for a session of the parameter service: opens it on all its lanes, says so as the answer to call 0, and does
    /// what it is asked by [`JobEvent::MemberThread`] until it is told to close.
    fn serve_session(&self, link: JobLink) -> Result<JobResult, String> {
        Err(format!("{}: this master has no parameter service", link.title))
    }

    /// Whether a job can be what it says, before it is taken; the error is told to whoever submits it.
    fn check(&self, _order: &JobSubmission) -> Result<(), String> {
        Ok(())
    }
}

/// How a job ended that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// Everything of it. Watchers are given it as the last progress; `status` shows what was last said to be the progress.
    pub report: Value,
    /// Whether all its work was done. A job that was cancelled before ends as cancelled.
    pub is_complete: bool,
}

impl From<Value> for JobResult {
    fn from(report: Value) -> Self {
        Self { report, is_complete: true }
    }
}

/// A running job, seen by its runner.
#[derive(Debug)]
pub struct JobLink {
    /// The number of the job.
    pub job: JobId,
    /// What is asked for, in one line.
    pub title: String,
    /// The job as it was submitted.
    pub spec: Value,
    /// As many as were asked for, by number.
    pub servers: Vec<Member>,
    /// As many as were asked for, by name.
    pub workers: Vec<Member>,
    /// Raised with the first [`JobEvent::MemberLost`], for a runner that waits for something else.
    pub member_lost: Stop,
    pub(crate) is_session: bool,
    pub(crate) events: Receiver<JobEvent>,
    pub(crate) input_sender: InputSender,
}

impl JobLink {
    /// Says something to a worker of the job. It arrives once, in order, unless the worker is gone, which is an event.
    pub fn send(&self, worker: u32, body: Value) {
        self.input_sender.report(self.job, RunnerReport::ToTask { worker, body });
    }

    /// What comes next, or [`JobEvent::Timeout`] after `timeout`. When the master has ended: [`JobEvent::Cancelled`], for ever.
    pub fn receive(&self, timeout: Duration) -> JobEvent {
        match self.events.recv_timeout(timeout) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => JobEvent::Timeout,
            Err(RecvTimeoutError::Disconnected) => JobEvent::Cancelled,
        }
    }

    /// Says what came of a call of a session.
    pub fn answer_session(&self, call: u64, result: Result<(), Fault>) {
        self.input_sender.report(self.job, RunnerReport::SessionReply { call, result });
    }

    /// Says what people want to see.
    pub fn progress(&self, value: Value) {
        self.input_sender.report(self.job, RunnerReport::Progress(value));
    }
}

/// An order of the state machine to the process around it.
#[derive(Clone, Debug, PartialEq)]
pub enum RunnerCommand {
    /// A runner is to be started. It ends with [`RunnerReport::Ended`], whatever happens.
    StartJob(JobStart),
    /// The runner of a job is told something.
    ToRunner {
        /// The job, started before.
        job: JobId,
        /// What.
        event: JobEvent,
    },
}

/// What a runner starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct JobStart {
    /// The number of the job.
    pub job: JobId,
    /// What is asked for, in one line.
    pub title: String,
    /// The job as it was submitted.
    pub spec: Value,
    /// As many as were asked for, by number.
    pub servers: Vec<Member>,
    /// As many as were asked for, by number.
    pub workers: Vec<Member>,
    /// It is a session of the parameter service.
    pub is_session: bool,
}

/// What a runner is told.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEvent {
    /// A worker of the job says something.
    FromTask {
        /// Its number.
        worker: u32,
        /// The contents.
        body: Value,
    },
    /// A member of the job is gone and does not come back under this number.
    MemberLost {
        /// Who.
        member: Member,
        /// Why it is taken for dead.
        reason: String,
    },
    /// A member of the job was away, and has come back with the same incarnation: nothing was lost of what the two ends said
    /// to each other through the master.
    MemberReconnected {
        /// Who.
        member: Member,
    },
    /// Something to be done for a session.
    Session {
        /// To be named in the answer.
        call: u64,
        /// What.
        command: SessionCommand,
    },
    /// The job is cancelled: the runner should end soon, with an error that says what was kept.
    Cancelled,
    /// Nothing came in time.
    Timeout,
}

/// What is to be done for a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionCommand {
    /// A matrix is to be made on all lanes, or on none.
    Add {
        /// Its number.
        matrix: u32,
        /// Its structure.
        spec: Box<MatrixSpec>,
        /// By partition: the lane, by its place among [`crate::lanes_of`] the servers.
        owners: Vec<u16>,
    },
    /// A matrix is to be freed.
    Drop {
        /// Its number.
        matrix: u32,
    },
    /// All is to be freed, and the runner ends: well, or with this error.
    Close {
        /// Why, unless its host wants it so.
        reason: Option<String>,
    },
}

/// What a runner says.
#[derive(Clone, Debug, PartialEq)]
pub enum RunnerReport {
    /// Something for a task of a worker.
    ToTask {
        /// The number of a member of the job.
        worker: u32,
        /// The contents.
        body: Value,
    },
    /// What came of a call of a session.
    SessionReply {
        /// Which.
        call: u64,
        /// Done, or why not.
        result: Result<(), Fault>,
    },
    /// What people want to see.
    Progress(Value),
    /// The last word: how it ended, or why it failed.
    Ended(Result<JobResult, String>),
}
