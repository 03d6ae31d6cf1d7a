//! A master whose connections are numbers and whose time is set by hand.

use std::time::Duration;

use control::{ClientId, ClientRequest, ClientResponse, JobState, JobStatus, JobSubmission, SubmissionId};
use rpc::Message;
use rpc::message::control::MemberKind;
use rpc::message::{Base64Bytes, Control, ControlBody, Fault, FaultKind};
use rpc::service::{ConnectionId, Effect, Service};
use serde_json::{Value, json};

use crate::runner::{JobEvent, JobStart, RunnerCommand, RunnerReport};
use crate::{MasterState, Settings};

pub(crate) const LEASE: Duration = Duration::from_secs(5);
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(500);

/// The master, the time, and the messages that the test has not read yet.
pub(crate) struct TestMaster {
    pub(crate) master: MasterState,
    pub(crate) now: Duration,
    pub(crate) effects: Vec<Effect>,
    /// Answers to clients that the test has not read yet.
    answers: Vec<(ClientId, control::CallResult)>,
    submission_count: u8,
}

/// The contents of a message between a runner and a worker.
pub(crate) fn bytes(text: &str) -> Base64Bytes {
    Base64Bytes(text.as_bytes().to_vec())
}

/// A job with its submission id.
pub(crate) fn submission(title: &str, servers: u32, workers: u32) -> JobSubmission {
    JobSubmission {
        title: title.into(),
        spec: json!({ "what": title }),
        servers,
        workers,
        worker_group: String::new(),
    }
}

pub(crate) fn server() -> MemberKind {
    MemberKind::Server { addresses: vec!["tcp:127.0.0.1:1".into()], lanes: 2, memory_limit_bytes: 1 << 30 }
}

pub(crate) fn worker() -> MemberKind {
    worker_of("")
}

pub(crate) fn worker_of(group: &str) -> MemberKind {
    MemberKind::Worker { slots: 2, group: group.into() }
}

impl TestMaster {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self {
            master: MasterState::new(settings, 77),
            now: Duration::ZERO,
            effects: Vec::new(),
            answers: Vec::new(),
            submission_count: 0,
        }
    }

    /// Sends a request of a client.
    pub(crate) fn call(&mut self, client: ClientId, word: ClientRequest) {
        self.master.on_client(client, word);
    }

    /// The answers to a client since the last call; those to other clients stay.
    pub(crate) fn answers_to(&mut self, to: ClientId) -> Vec<Result<ClientResponse, (FaultKind, String)>> {
        self.answers.extend(self.master.take_responses());
        let mut given = Vec::new();
        self.answers.retain(|(client, answer)| {
            if *client == to {
                given.push(answer.clone().map_err(|fault| (fault.kind, fault.text)));
            }
            *client != to
        });
        given
    }

    /// The only refusal that a client got.
    pub(crate) fn refusal_of(&mut self, client: ClientId) -> (FaultKind, String) {
        match self.answers_to(client).as_slice() {
            [Err(refusal)] => refusal.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn receive(&mut self, from: ConnectionId, request: u64, body: ControlBody) {
        let message = Message::Control(Control { request, body });
        self.master.on_message(self.now, from, message, &mut self.effects);
    }

    /// Advances the time, and calls the master at each time that it asks for.
    pub(crate) fn at(&mut self, now: Duration) {
        while let Some(due) = self.master.next_time().filter(|due| *due <= now) {
            self.now = self.now.max(due);
            self.master.on_time(self.now, &mut self.effects);
        }
        self.now = now;
    }

    /// Advances the time and calls the master only once, as if it was suspended until then.
    pub(crate) fn wake_at(&mut self, now: Duration) {
        self.now = now;
        self.master.on_time(now, &mut self.effects);
    }

    pub(crate) fn close(&mut self, connection: ConnectionId) {
        self.master.on_closed(self.now, connection, &mut self.effects);
    }

    pub(crate) fn runner(&mut self, job: u32, word: RunnerReport) {
        self.master.on_runner(job, word, &mut self.effects);
    }

    /// Registers; returns the number if the registration was granted.
    pub(crate) fn register(
        &mut self,
        from: ConnectionId,
        name: &str,
        incarnation: u64,
        kind: MemberKind,
    ) -> Option<u32> {
        let (name, host) = (name.to_string(), "here:1".to_string());
        self.receive(
            from,
            1,
            ControlBody::Register { name, incarnation, host, member: kind, restored: false },
        );
        let granted = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Send { connection, message: Message::Control(Control { body, .. }) }
                if *connection == from =>
            {
                if let ControlBody::Registered { id, .. } = body {
                    Some(*id)
                } else {
                    None
                }
            }
            _ => None,
        });
        if granted.is_some() {
            self.effects.clear();
        }
        granted
    }

    /// Registers a worker, and leaves the messages to be read.
    pub(crate) fn register_quietly(&mut self, from: ConnectionId, name: &str, incarnation: u64) {
        let (name, host) = (name.to_string(), "here:1".to_string());
        self.receive(
            from,
            1,
            ControlBody::Register { name, incarnation, host, member: worker(), restored: false },
        );
    }

    pub(crate) fn heartbeat(&mut self, from: ConnectionId, id: u32) {
        self.receive(from, 2, ControlBody::Heartbeat { id, report: json!({ "of": id }) });
    }

    pub(crate) fn submit(&mut self, title: &str, servers: u32, workers: u32) -> u32 {
        self.submit_job(submission(title, servers, workers))
    }

    pub(crate) fn submit_job(&mut self, submission: JobSubmission) -> u32 {
        self.submission_count += 1;
        let id = SubmissionId([self.submission_count; 16]);
        self.call(900, ClientRequest::Submit { id, submission });
        match self.answers_to(900).as_slice() {
            [Ok(ClientResponse::Submitted { job })] => *job,
            other => panic!("{other:?}"),
        }
    }

    /// The messages to a connection since the last call; those to other connections stay.
    pub(crate) fn control_to(&mut self, to: ConnectionId) -> Vec<Control> {
        let mut said = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Send { connection, message: Message::Control(control) } if *connection == to => {
                said.push(control.clone());
                false
            }
            _ => true,
        });
        said
    }

    pub(crate) fn bodies_to(&mut self, to: ConnectionId) -> Vec<ControlBody> {
        self.control_to(to).into_iter().map(|control| control.body).collect()
    }

    pub(crate) fn fault_to(&mut self, to: ConnectionId) -> Option<(FaultKind, String)> {
        let found = self.effects.iter().position(
            |effect| matches!(effect, Effect::Send { connection, message: Message::Fault(_) } if *connection == to),
        )?;
        match self.effects.remove(found) {
            Effect::Send { message: Message::Fault(Fault { kind, text, .. }), .. } => Some((kind, text)),
            _ => None,
        }
    }

    pub(crate) fn is_closed(&self, connection: ConnectionId) -> bool {
        self.effects.contains(&Effect::Close { connection })
    }

    pub(crate) fn take_started(&mut self) -> Vec<JobStart> {
        let orders = self.master.take_commands();
        let start = |order| if let RunnerCommand::StartJob(start) = order { Some(start) } else { None };
        orders.into_iter().filter_map(start).collect()
    }

    pub(crate) fn events_of(&mut self, wanted: u32) -> Vec<JobEvent> {
        let orders = self.master.take_commands();
        let event = |order| match order {
            RunnerCommand::ToRunner { job, event } if job == wanted => Some(event),
            _ => None,
        };
        orders.into_iter().filter_map(event).collect()
    }

    pub(crate) fn status(&mut self) -> (Vec<(u32, Value)>, Vec<JobStatus>) {
        self.call(901, ClientRequest::Status);
        match self.answers_to(901).as_slice() {
            [Ok(ClientResponse::Status(status))] => {
                let members = status.members.iter().map(|(member, report)| (member.id, report.clone()));
                (members.collect(), status.jobs.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn job(&mut self, id: u32) -> JobStatus {
        self.status().1.into_iter().find(|job| job.id == id).expect("the job is remembered")
    }

    pub(crate) fn state(&mut self, id: u32) -> JobState {
        self.job(id).state
    }
}
