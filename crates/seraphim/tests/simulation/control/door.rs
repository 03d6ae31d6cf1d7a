//! How clients call the master, and what people see of it: all that this simulation knows of the conversation between a
//! client and the master is in this file.

use std::time::Duration;

use master::runner::{RunnerOrder, RunnerWord};
use master::{MasterState, Settings};
use rpc::Message;
use rpc::message::{Control, ControlBody, JobId, JobState, JobStatus, Member};
use rpc::service::{ConnectionId, Effect, Service};
use serde_json::Value;

/// The connection of the client, beyond those of members.
const CLIENT: ConnectionId = u64::MAX;

/// The master.
#[derive(Debug)]
pub(crate) struct Door {
    state: MasterState,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) servers: u32,
    pub(crate) workers: u32,
}

impl Door {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { state: MasterState::new(settings, 1) }
    }

    /// The number of the job, or `None` when the master refuses it.
    pub(crate) fn submit(&mut self, now: Duration, wish: Wish, out: &mut Vec<Effect>) -> Option<JobId> {
        let Wish { servers, workers } = wish;
        let body = ControlBody::Submit { title: "a job".into(), job: Value::Null, servers, workers };
        match self.ask(now, body, out)? {
            ControlBody::Submitted { job } => Some(job),
            _ => None,
        }
    }

    /// Whether the job was still under way; `None` when the master does not know it.
    pub(crate) fn cancel(&mut self, now: Duration, job: JobId, out: &mut Vec<Effect>) -> Option<bool> {
        match self.ask(now, ControlBody::Cancel { job }, out)? {
            ControlBody::Cancelled { was_live } => Some(was_live),
            _ => None,
        }
    }

    /// Who lives, and the jobs that are remembered.
    pub(crate) fn status(&mut self, now: Duration) -> (Vec<Member>, Vec<JobStatus>) {
        match self.ask(now, ControlBody::AskStatus, &mut Vec::new()) {
            Some(ControlBody::Status { members, jobs }) => {
                (members.into_iter().map(|(member, _)| member).collect(), jobs)
            }
            other => panic!("asking for the status is answered with it, not with {other:?}"),
        }
    }

    /// What the master says to the client, if it is no fault; everything else that it does is left in `out`.
    fn ask(&mut self, now: Duration, body: ControlBody, out: &mut Vec<Effect>) -> Option<ControlBody> {
        let mut effects = Vec::new();
        self.state.on_message(now, CLIENT, Message::Control(Control { request: 1, body }), &mut effects);
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Send { connection: CLIENT, message: Message::Control(control) } => {
                    answer = answer.or(Some(control.body));
                }
                Effect::Send { connection: CLIENT, .. } => {}
                other => out.push(other),
            }
        }
        answer
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

    pub(crate) fn runner_says(&mut self, job: JobId, word: RunnerWord, out: &mut Vec<Effect>) {
        self.state.on_runner(job, word, out);
    }

    pub(crate) fn orders(&mut self) -> Vec<RunnerOrder> {
        self.state.take_orders()
    }

    /// What is left when nobody is there any more: jobs that are remembered, and a text if it still knows a connection.
    pub(crate) fn rest(&mut self, now: Duration) -> (usize, Option<String>) {
        let count = self.status(now).1.len();
        let text = format!("{:?}", self.state);
        let is_empty = text.contains("living: {}") && text.contains("by_connection: {}");
        (count, (!is_empty).then(|| text.chars().take(2_000).collect()))
    }
}

/// Whether a job is over.
pub(crate) fn is_over(state: JobState) -> bool {
    matches!(state, JobState::Done | JobState::Failed | JobState::Cancelled)
}
