//! The master as a pure state machine. Its inputs are messages of members, requests of clients, reports of runners, and
//! the time; its outputs are frames, answers to clients and commands to runners. Each message is one call into the file
//! of its topic.
//!
//! Invariants: names are unique among the alive members; a connection belongs to at most one member and a member has at
//! most one connection; a job that runs has exactly one runner, from `StartJob` until the runner's `Ended`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use control::request::Status;
use control::{CallResult, ClientId, ClientRequest, ClientResponse};
use matrix::FunctionTable;
use rpc::message::{
    Control, ControlBody, Fault, FaultKind, Hello, JobId, PushPosition, RequestId, Role, Welcome,
};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::{Message, Metrics};

use crate::broken::Broken;
use crate::jobs::Jobs;
use crate::members::Members;
use crate::record::{RecordChange, Records};
use crate::register::Registration;
use crate::runner::{JobEvent, RunnerCommand};
use crate::session::Session;
use crate::settings::Settings;
use crate::status::Counts;

/// Bytes of requests that one connection may have under way: control messages are small.
const WINDOW_BYTES: u64 = 16 << 20;

/// Alive members, queued and running jobs, and watchers.
#[derive(Debug)]
pub struct MasterState {
    pub(crate) settings: Settings,
    /// Their partitioners are those that specs of sessions may name.
    pub(crate) functions: Arc<FunctionTable>,
    pub(crate) incarnation: u64,
    pub(crate) members: Members,
    pub(crate) jobs: Jobs,
    pub(crate) sessions: BTreeMap<JobId, Session>,
    pub(crate) commands: Vec<RunnerCommand>,
    pub(crate) responses: Vec<(ClientId, CallResult)>,
    pub(crate) counts: Counts,
    pub(crate) changes: Vec<RecordChange>,
    /// The runs of an earlier master whose jobs go on with other runs.
    continued_runs: Vec<JobId>,
}

impl MasterState {
    /// `incarnation` must differ from that of every earlier process at this address.
    ///
    /// # Panics
    /// If `settings` were not checked.
    pub fn new(settings: Settings, incarnation: u64) -> Self {
        assert_eq!(settings.check(), Ok(()), "settings are checked by the process");
        Self {
            settings,
            functions: Arc::new(FunctionTable::builtin()),
            incarnation,
            members: Members::default(),
            jobs: Jobs::default(),
            sessions: BTreeMap::new(),
            commands: Vec::new(),
            responses: Vec::new(),
            counts: Counts::default(),
            changes: Vec::new(),
            continued_runs: Vec::new(),
        }
    }

    /// Replaces the functions.
    #[must_use]
    pub fn with_functions(self, functions: FunctionTable) -> Self {
        Self { functions: Arc::new(functions), ..self }
    }

    /// Takes over the jobs of an earlier master, before the first message. Those that ran wait for members again.
    pub fn restore(&mut self, records: Records) {
        self.continued_runs = self.jobs.restore(records);
        self.take_changes();
    }

    /// The changes since the last call that a new master must know, in order.
    pub fn take_changes(&mut self) -> Vec<RecordChange> {
        let id = self.jobs.take_last_id().map(|id| RecordChange::LastId { id });
        id.into_iter().chain(std::mem::take(&mut self.changes)).collect()
    }

    /// The commands to runners since the last call, in order.
    pub fn take_commands(&mut self) -> Vec<RunnerCommand> {
        std::mem::take(&mut self.commands)
    }

    /// The answers to clients since the last call, in order.
    pub fn take_responses(&mut self) -> Vec<(ClientId, CallResult)> {
        std::mem::take(&mut self.responses)
    }

    /// Handles a request of a client. Each call of a client has a number of its own; its answers are returned by
    /// [`Self::take_responses`].
    pub fn on_client(&mut self, client: ClientId, request: ClientRequest) {
        self.counts.messages += 1;
        match request {
            ClientRequest::Submit { id, submission: order } => self.on_submit(client, id, order),
            ClientRequest::Status => {
                let status = Status { members: self.member_reports(), jobs: self.job_statuses() };
                self.answer(client, ClientResponse::Status(status));
            }
            ClientRequest::Cancel { job } => self.on_cancel(client, job),
            ClientRequest::Checkpoint { job } => self.on_checkpoint(client, job),
            ClientRequest::Watch { job } => self.on_watch(client, job),
            ClientRequest::Unwatch => self.jobs.unwatch(client),
        }
    }

    pub(crate) fn answer(&mut self, client: ClientId, answer: ClientResponse) {
        self.responses.push((client, Ok(answer)));
    }

    /// Answers a client with a fault.
    pub(crate) fn refuse_client(&mut self, client: ClientId, kind: FaultKind, text: String) {
        self.counts.refused += 1;
        self.responses.push((client, Err(Fault { request: 0, kind, text, retry_after_ms: 0 })));
    }

    fn on_hello(&mut self, connection: ConnectionId, hello: &Hello, out: &mut Vec<Effect>) {
        let refused = match hello.role {
            Role::Member | Role::Tool => None,
            Role::Task { job, task } => Some(format!("task {task} of job {job}")),
            Role::JobTool { job } => Some(format!("a tool of job {job}")),
            Role::Primary { job, .. } => Some(format!("a lane with job {job}")),
            Role::Session { job } => Some(format!("a host of the session of job {job}")),
        };
        if let Some(who) = refused {
            let text = format!("{who} connected to a master, which has no parameters: connect to a server");
            self.refuse(connection, hello.request, FaultKind::Invalid, text, out);
            out.push(Effect::Close { connection });
            return;
        }
        let welcome = Welcome {
            request: hello.request,
            incarnation: self.incarnation,
            lanes: 1,
            window_bytes: WINDOW_BYTES,
            applied: PushPosition::default(),
            clock: 0,
            minimum: u64::MAX,
        };
        out.push(Effect::Send { connection, message: Message::Welcome(welcome) });
    }

    fn on_control(&mut self, now: Duration, from: ConnectionId, control: Control, out: &mut Vec<Effect>) {
        let request = control.request;
        self.members.renew(from, now);
        match control.body {
            ControlBody::Register { name, incarnation, host, member, restored } => {
                let registration = Registration { name, incarnation, host, kind: member, restored };
                self.on_register(now, from, request, registration, out);
            }
            ControlBody::Leave => self.on_leave(from, out),
            ControlBody::Heartbeat { id, report } => self.on_heartbeat(from, request, id, report, out),
            ControlBody::Heard { count } => self.on_acknowledged(from, count),
            ControlBody::AskContinuedRuns => {
                let runs = self.continued_runs.clone();
                out.push(control_effect(from, request, ControlBody::ContinuedRuns { runs }));
            }
            ControlBody::FromTask { job, body } => {
                self.on_from_task(now, from, request, job, body, out);
            }
            ControlBody::Registered { .. }
            | ControlBody::Alive
            | ControlBody::ContinuedRuns { .. }
            | ControlBody::ToTask { .. }
            | ControlBody::Gone { .. } => {
                let text = "a master sends this message and does not accept it".to_string();
                self.refuse(from, request, FaultKind::BadFrame, text, out);
            }
        }
    }

    /// Answers a request with a fault.
    pub(crate) fn refuse(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        kind: FaultKind,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        self.counts.refused += 1;
        let fault = Fault { request, kind, text, retry_after_ms: 0 };
        out.push(Effect::Send { connection, message: Message::Fault(fault) });
    }
}

/// The effect that sends a control frame.
pub(crate) fn control_effect(connection: ConnectionId, request: RequestId, body: ControlBody) -> Effect {
    Effect::Send { connection, message: Message::Control(Control { request, body }) }
}

impl Service for MasterState {
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        self.counts.messages += 1;
        match message {
            Message::Hello(hello) => self.on_hello(connection, &hello, out),
            Message::Control(control) => self.on_control(now, connection, control, out),
            Message::OpenSession(open) => self.on_open_session(now, connection, &open, out),
            Message::CreateMatrix(create) => {
                self.on_create_matrix(now, create.job, (connection, create.request), *create.spec, out);
            }
            Message::DropMatrix(drop) => {
                self.on_drop_matrix(now, drop.job, (connection, drop.request), drop.matrix, out);
            }
            Message::AskMap(map) => self.on_get_session_map(now, map.job, (connection, map.request), out),
            Message::RenewSession(renew) => {
                self.on_renew_session(now, renew.job, (connection, renew.request), out);
            }
            Message::CloseSession(close) => {
                self.on_close_session(now, close.job, (connection, close.request), out);
            }
            Message::CheckpointSession(message) => self.on_checkpoint_session(now, connection, message, out),
            // A fault needs no answer: its sender closes the connection if necessary.
            Message::Fault(_) => {}
            Message::Welcome(_)
            | Message::OpenJob(_)
            | Message::CloseJob(_)
            | Message::Pull(_)
            | Message::Pulled(_)
            | Message::Push(_)
            | Message::Tick(_)
            | Message::Leave(_)
            | Message::Join(_)
            | Message::Joined(_)
            | Message::Barrier(_)
            | Message::Released(_)
            | Message::Export(_)
            | Message::ExportPage(_)
            | Message::Import(_)
            | Message::KeepRows(_)
            | Message::RestoreRows(_)
            | Message::DropRows(_)
            | Message::ScanRows(_)
            | Message::Stats(_)
            | Message::StatsReply(_)
            | Message::Done(_)
            | Message::SessionMap(_)
            | Message::AddMatrix(_)
            | Message::PushStaged(_)
            | Message::Commit(_)
            | Message::Committed(_)
            | Message::CloseToken(_)
            | Message::Batch(_)
            | Message::PullFunction(_)
            | Message::PulledFunction(_)
            | Message::PushFunction(_)
            | Message::TryFunction(_)
            | Message::CommitFunction(_) => {
                let text = "a master does not accept this message: send it to a server; the status of the \
                     master lists the servers"
                    .into();
                self.refuse(connection, 0, FaultKind::BadFrame, text, out);
                out.push(Effect::Close { connection });
            }
        }
    }

    fn on_closed(&mut self, now: Duration, connection: ConnectionId, _out: &mut Vec<Effect>) {
        if let Some(living) = self.members.get_by_connection(connection) {
            let member = living.member.clone();
            for job in self.jobs.running_with(member.id) {
                self.send_to_runner(job, JobEvent::MemberDisconnected { member: member.clone() });
            }
        }
        self.members.disconnect(connection, now);
        self.start_ready_jobs();
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.expire_leases(now, out);
        self.expire_sessions(now);
    }

    fn next_time(&self) -> Option<Duration> {
        if self.settings.lacks(Broken::LeaseNeverExpires) {
            return None;
        }
        self.members.next_check(&self.settings).into_iter().chain(self.first_session_due()).min()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.write_metrics(out);
    }
}
