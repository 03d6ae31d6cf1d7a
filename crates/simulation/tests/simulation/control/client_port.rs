//! How clients call the master, and what `status` shows of it. All that this simulation knows of the protocol between a
//! client and the master is in this file.

use std::time::Duration;

use control::{ClientId, ClientRequest, ClientResponse, JobState, JobStatus, JobSubmission, SubmissionId};
use master::runner::{RunnerCommand, RunnerReport};
use master::{MasterState, Settings};
use rpc::Message;
use rpc::message::{JobId, Member};
use rpc::service::{ConnectionId, Effect, Service};
use serde_json::Value;

/// The only client.
const CLIENT: ClientId = 1;

#[derive(Debug)]
pub(crate) struct ClientPort {
    state: MasterState,
    submission_count: u128,
}

/// The job that a client submits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobRequest {
    pub(crate) servers: u32,
    pub(crate) workers: u32,
}

impl ClientPort {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { state: MasterState::new(settings, 1), submission_count: 0 }
    }

    /// Returns the number of the job, or `None` when the master refuses it.
    pub(crate) fn submit(&mut self, wish: JobRequest) -> Option<JobId> {
        let JobRequest { servers, workers } = wish;
        self.submission_count += 1;
        let id = SubmissionId(self.submission_count.to_le_bytes());
        let order = JobSubmission {
            title: "a job".into(),
            spec: Value::Null,
            servers,
            workers,
            worker_group: String::new(),
        };
        match self.ask(ClientRequest::Submit { id, submission: order })? {
            ClientResponse::Submitted { job } => Some(job),
            _ => None,
        }
    }

    /// Returns whether the job had not ended yet; `None` when the master does not know it.
    pub(crate) fn cancel(&mut self, job: JobId) -> Option<bool> {
        match self.ask(ClientRequest::Cancel { job })? {
            ClientResponse::Cancelled { was_live } => Some(was_live),
            _ => None,
        }
    }

    /// Returns the live members and the jobs that the master remembers.
    pub(crate) fn status(&mut self) -> (Vec<Member>, Vec<JobStatus>) {
        match self.ask(ClientRequest::Status) {
            Some(ClientResponse::Status(status)) => {
                (status.members.into_iter().map(|(member, _)| member).collect(), status.jobs)
            }
            other => panic!("asking for the status is answered with it, not with {other:?}"),
        }
    }

    /// Returns the answer of the master, or `None` for a fault.
    fn ask(&mut self, word: ClientRequest) -> Option<ClientResponse> {
        self.state.on_client(CLIENT, word);
        let given = self.state.take_responses().into_iter().find(|(client, _)| *client == CLIENT);
        given.and_then(|(_, given)| given.ok())
    }

    pub(crate) fn hear(
        &mut self,
        now: Duration,
        from: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        self.state.on_message(now, from, message, out);
    }

    pub(crate) fn lose(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>) {
        self.state.on_closed(now, connection, out);
    }

    pub(crate) fn wake(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.state.on_time(now, out);
    }

    pub(crate) fn next_time(&self) -> Option<Duration> {
        self.state.next_time()
    }

    pub(crate) fn runner_says(&mut self, job: JobId, word: RunnerReport, out: &mut Vec<Effect>) {
        self.state.on_runner(job, word, out);
    }

    pub(crate) fn orders(&mut self) -> Vec<RunnerCommand> {
        self.state.take_commands()
    }

    /// Returns what is left without members: the number of remembered jobs, and the state as text if it still has a
    /// member or connection.
    pub(crate) fn rest(&mut self) -> (usize, Option<String>) {
        let count = self.status().1.len();
        let text = format!("{:?}", self.state);
        let is_empty = text.contains("alive: {}") && text.contains("by_connection: {}");
        (count, (!is_empty).then(|| text.chars().take(2_000).collect()))
    }
}

pub(crate) fn is_over(state: JobState) -> bool {
    matches!(state, JobState::Done | JobState::Failed | JobState::Cancelled)
}
