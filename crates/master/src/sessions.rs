//! Sessions of the parameter service: jobs without tasks, whose matrices a foreign host creates and drops. The master
//! decides on each request, and the runner of the session carries it out and reports the result.
//!
//! Invariant: a session exists exactly as long as its job runs.

use std::sync::Arc;
use std::time::Duration;

use control::JobSubmission;
use matrix::MatrixSpec;
use rpc::layout::standbys_of;
use rpc::message::{
    CheckpointSession, Done, Durability, Fault, FaultKind, JobId, Message, OpenSession, PushPosition,
};
use rpc::service::{ConnectionId, Effect};
use serde_json::json;

use crate::session::{
    CallStatus, Refusal, Requester, Session, SessionCall, SessionCallKind, check_checkpoint_name, check_name,
    lanes_of,
};
use crate::start::is_server;
use crate::state::MasterState;

/// Shortest and longest lease that a host may request.
const LEASE_RANGE: [Duration; 2] = [Duration::from_secs(1), Duration::from_hours(24)];
/// Milliseconds after which a refused host may retry.
const BUSY_PAUSE_MS: u32 = 1000;

impl MasterState {
    pub(crate) fn on_open_session(
        &mut self,
        now: Duration,
        from: ConnectionId,
        open: &OpenSession,
        out: &mut Vec<Effect>,
    ) {
        let requester = (from, open.request);
        if let Err(no) = self.open_session(now, requester, open) {
            self.refuse_request(requester, no, out);
        }
    }

    fn open_session(
        &mut self,
        now: Duration,
        requester: Requester,
        open: &OpenSession,
    ) -> Result<(), Refusal> {
        check_name("the session", &open.name)?;
        if !open.checkpoint.is_empty() {
            check_checkpoint_name(&open.checkpoint)?;
        }
        let lease = match open.lease_ms {
            0 => self.settings.session_lease,
            ms => Duration::from_millis(ms),
        };
        if lease < LEASE_RANGE[0] || lease > LEASE_RANGE[1] {
            let [least, most] = LEASE_RANGE.map(|lease| lease.as_millis());
            let text = format!("lease_ms is {}, expected 0 or {least} to {most}", open.lease_ms);
            return Err(Refusal(FaultKind::Invalid, text));
        }
        if self.sessions.len() >= self.settings.session_limit {
            let text = format!("{} sessions are open, the limit (session_limit)", self.sessions.len());
            return Err(Refusal(FaultKind::Busy, text));
        }
        let wanted = if open.servers == 0 { self.connected_servers().max(1) } else { open.servers };
        let servers = self.least_loaded(is_server, wanted).map_err(|found| {
            Refusal(FaultKind::Busy, format!("{found} of {wanted} servers are connected"))
        })?;
        let lanes = lanes_of(&servers);
        let standbys = match open.durability {
            Durability::Replica => standbys_of(&servers).map_err(|text| Refusal(FaultKind::Invalid, text))?,
            _ => Vec::new(),
        };
        let title = format!("session {}", open.name);
        let spec = json!({ "durability": open.durability, "checkpoint": open.checkpoint });
        let submission =
            JobSubmission { title, spec, servers: wanted, workers: 0, worker_group: String::new() };
        let id = self.jobs.add_session(submission);
        self.sessions.insert(id, Session::new(now, lease, lanes, requester).with_standbys(standbys));
        self.start(id, servers, Vec::new());
        Ok(())
    }

    /// A session that accepts requests. The access renews its lease.
    fn session(&mut self, now: Duration, id: JobId) -> Result<&mut Session, Refusal> {
        let ended = match self.jobs.all.get(&id) {
            None => Refusal(FaultKind::NoSuchJob, format!("no session {id}: open one")),
            Some(job) if !job.is_session() => {
                Refusal(FaultKind::Invalid, format!("job {id} is not a session: it was submitted as a job"))
            }
            Some(job) => {
                let why = job.status.error.as_deref().unwrap_or("it was closed");
                Refusal(FaultKind::Stopped, format!("session {id} has ended: {why}"))
            }
        };
        let session = self.sessions.get_mut(&id).ok_or(ended)?;
        if session.is_ending {
            return Err(Refusal(FaultKind::Stopped, format!("session {id} is being closed")));
        }
        session.renew_lease(now);
        Ok(session)
    }

    pub(crate) fn on_create_matrix(
        &mut self,
        now: Duration,
        job: JobId,
        requester: Requester,
        spec: MatrixSpec,
        out: &mut Vec<Effect>,
    ) {
        let functions = Arc::clone(&self.functions);
        let created = self.session(now, job).and_then(|session| session.create(spec, requester, &functions));
        match created {
            Ok(CallStatus::Started(event)) => self.send_to_runner(job, event),
            Ok(CallStatus::Joined) => {}
            Ok(CallStatus::AlreadyDone) => self.send_map(job, requester, out),
            Err(no) => self.refuse_request(requester, no, out),
        }
    }

    pub(crate) fn on_drop_matrix(
        &mut self,
        now: Duration,
        job: JobId,
        requester: Requester,
        matrix: u32,
        out: &mut Vec<Effect>,
    ) {
        let dropped = self.session(now, job).and_then(|session| session.drop_matrix(matrix, requester));
        match dropped {
            Ok(CallStatus::Started(event)) => self.send_to_runner(job, event),
            Ok(CallStatus::Joined) => {}
            Ok(CallStatus::AlreadyDone) => send_done(requester, out),
            Err(no) => self.refuse_request(requester, no, out),
        }
    }

    pub(crate) fn on_checkpoint_session(
        &mut self,
        now: Duration,
        from: ConnectionId,
        message: CheckpointSession,
        out: &mut Vec<Effect>,
    ) {
        let CheckpointSession { request, job, name } = message;
        let requester = (from, request);
        match self.session(now, job).and_then(|session| session.checkpoint(name, requester)) {
            Ok(event) => self.send_to_runner(job, event),
            Err(no) => self.refuse_request(requester, no, out),
        }
    }

    /// Records the matrices that the runner has made from a checkpoint.
    pub(crate) fn on_session_restored(&mut self, id: JobId, specs: Vec<MatrixSpec>) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.set_restored(specs);
        }
    }

    pub(crate) fn on_get_session_map(
        &mut self,
        now: Duration,
        job: JobId,
        requester: Requester,
        out: &mut Vec<Effect>,
    ) {
        match self.session(now, job) {
            Ok(_) => self.send_map(job, requester, out),
            Err(no) => self.refuse_request(requester, no, out),
        }
    }

    pub(crate) fn on_renew_session(
        &mut self,
        now: Duration,
        job: JobId,
        requester: Requester,
        out: &mut Vec<Effect>,
    ) {
        match self.session(now, job) {
            Ok(_) => send_done(requester, out),
            Err(no) => self.refuse_request(requester, no, out),
        }
    }

    pub(crate) fn on_close_session(
        &mut self,
        now: Duration,
        job: JobId,
        requester: Requester,
        out: &mut Vec<Effect>,
    ) {
        if let Some(session) = self.sessions.get_mut(&job) {
            session.close_requesters.push(requester);
            return self.end_session(job, None);
        }
        match self.session(now, job) {
            // The session was closed before: this repeats a request whose answer was lost.
            Err(Refusal(FaultKind::Stopped, _)) => send_done(requester, out),
            Err(no) => self.refuse_request(requester, no, out),
            Ok(_) => {}
        }
    }

    /// Tells the runner to end, once.
    fn end_session(&mut self, id: JobId, reason: Option<String>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if !session.is_ending {
            let event = session.close(reason);
            self.send_to_runner(id, event);
        }
    }

    /// Handles the answer of the runner to a call.
    pub(crate) fn on_session_answer(
        &mut self,
        id: JobId,
        call: u64,
        result: &Result<(), Fault>,
        out: &mut Vec<Effect>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(SessionCall { kind: what, requesters }) = session.on_reply(call, result.is_ok()) else {
            return;
        };
        for requester in requesters {
            match (result, what) {
                (Ok(()), SessionCallKind::Open | SessionCallKind::Create(_)) => {
                    self.send_map(id, requester, out);
                }
                (Ok(()), SessionCallKind::Drop(_) | SessionCallKind::Checkpoint) => send_done(requester, out),
                (Err(fault), _) => {
                    self.refuse_request(requester, Refusal(fault.kind, fault.text.clone()), out);
                }
            }
        }
    }

    /// Handles the end of the job of a session: answers all requests that still wait.
    pub(crate) fn session_ended(&mut self, id: JobId, out: &mut Vec<Effect>) {
        let Some(session) = self.sessions.remove(&id) else { return };
        let error = self.jobs.all.get(&id).and_then(|job| job.status.error.clone());
        let why = error.unwrap_or_else(|| "it was closed".into());
        let (requesters, closers) = session.into_requesters();
        for requester in requesters {
            self.refuse_request(
                requester,
                Refusal(FaultKind::Stopped, format!("session {id} has ended: {why}")),
                out,
            );
        }
        for requester in closers {
            send_done(requester, out);
        }
    }

    /// Ends the sessions whose lease is over.
    pub(crate) fn expire_sessions(&mut self, now: Duration) {
        let heartbeat = self.settings.heartbeat;
        let due = self
            .sessions
            .iter_mut()
            .filter(|(_, session)| session.next_check(heartbeat).is_some_and(|due| due <= now));
        let over = due.filter_map(|(id, session)| session.check_lease(now).then_some((*id, session.lease)));
        for (id, lease) in over.collect::<Vec<(JobId, Duration)>>() {
            let reason =
                format!("its lease of {} ms expired without a request of its host", lease.as_millis());
            self.end_session(id, Some(reason));
        }
    }

    pub(crate) fn first_session_due(&self) -> Option<Duration> {
        self.sessions.values().filter_map(|session| session.next_check(self.settings.heartbeat)).min()
    }

    fn send_map(&mut self, id: JobId, requester: Requester, out: &mut Vec<Effect>) {
        if let Some(session) = self.sessions.get(&id) {
            out.push(Effect::Send { connection: requester.0, message: session.map(id, requester.1) });
        }
    }

    fn refuse_request(
        &mut self,
        (connection, request): Requester,
        Refusal(kind, text): Refusal,
        out: &mut Vec<Effect>,
    ) {
        self.counts.refused += 1;
        let retry_after_ms = if kind == FaultKind::Busy { BUSY_PAUSE_MS } else { 0 };
        let fault = Fault { request, kind, text, retry_after_ms };
        out.push(Effect::Send { connection, message: Message::Fault(fault) });
    }

    fn connected_servers(&self) -> u32 {
        let connected = |alive: &&crate::members::AliveMember| alive.connection.is_some() && is_server(alive);
        self.members.iter().filter(connected).count() as u32
    }
}

fn send_done((connection, request): Requester, out: &mut Vec<Effect>) {
    if request != 0 {
        let done = Done { request, minimum: u64::MAX, applied: PushPosition::default() };
        out.push(Effect::Send { connection, message: Message::Done(done) });
    }
}
