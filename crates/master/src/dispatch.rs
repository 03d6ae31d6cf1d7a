//! The inputs of the state machine: each message and each request is one call into the file of its topic.

use std::time::Duration;

use control::request::Status;
use control::{ClientId, ClientRequest, ClientResponse};
use rpc::message::{Control, ControlBody, FaultKind, Hello, PushPosition, Role, Welcome};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::{Message, Metrics};

use crate::injected_fault::InjectedFault;
use crate::register::Registration;
use crate::runner::JobEvent;
use crate::state::{MasterState, control_effect};

/// Bytes of requests that one connection may have under way: control messages are small.
const WINDOW_BYTES: u64 = 16 << 20;

impl MasterState {
    /// Handles a request of a client. Each call of a client has a number of its own; its answers are returned by
    /// [`Self::take_responses`].
    pub fn on_client(&mut self, client: ClientId, request: ClientRequest) {
        self.counts.messages += 1;
        match request {
            ClientRequest::Submit { id, submission } => self.on_submit(client, id, submission),
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
        if let Some(alive) = self.members.get_by_connection(connection) {
            let member = alive.member.clone();
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
        if self.settings.injects(InjectedFault::LeaseNeverExpires) {
            return None;
        }
        self.members.next_check(&self.settings).into_iter().chain(self.first_session_due()).min()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.write_metrics(out);
    }
}
