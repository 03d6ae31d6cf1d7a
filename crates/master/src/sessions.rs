//! Sessions of the parameter service: jobs without tasks whose matrices come and go on the word of a foreign host. What is
//! asked is decided here and carried out by the runner of the session, which says what came of it.
//!
//! Invariant: a session is here exactly as long as its job runs.

use std::time::Duration;

use control::Order;
use matrix::MatrixSpec;
use rpc::message::{Done, Fault, FaultKind, JobId, Mark, Message, OpenSession};
use rpc::service::{ConnectionId, Effect};
use serde_json::Value;

use crate::session::{Asker, Call, No, Session, What, Wish, check_name, lanes_of};
use crate::start::is_server;
use crate::state::MasterState;

/// Shortest and longest lease that may be asked for.
const LEASES: [Duration; 2] = [Duration::from_secs(1), Duration::from_hours(24)];
/// When one who was sent away may come again.
const BUSY_PAUSE_MS: u32 = 1000;

impl MasterState {
    pub(crate) fn on_open_session(
        &mut self,
        now: Duration,
        from: ConnectionId,
        open: &OpenSession,
        out: &mut Vec<Effect>,
    ) {
        let asker = (from, open.request);
        if let Err(no) = self.open_session(now, asker, open) {
            self.say_no(asker, no, out);
        }
    }

    fn open_session(&mut self, now: Duration, asker: Asker, open: &OpenSession) -> Result<(), No> {
        check_name("the session", &open.name)?;
        let lease = match open.lease_ms {
            0 => self.settings.session_lease,
            ms => Duration::from_millis(ms),
        };
        if lease < LEASES[0] || lease > LEASES[1] {
            let [least, most] = LEASES.map(|lease| lease.as_millis());
            let text = format!("lease_ms is {}, expected 0 or {least} to {most}", open.lease_ms);
            return Err(No(FaultKind::Invalid, text));
        }
        if self.sessions.len() >= self.settings.session_limit {
            let text = format!("{} sessions are open, the limit (session_limit)", self.sessions.len());
            return Err(No(FaultKind::Busy, text));
        }
        let wanted = if open.servers == 0 { self.connected_servers().max(1) } else { open.servers };
        let servers = self
            .idlest(is_server, wanted)
            .map_err(|found| No(FaultKind::Busy, format!("{found} of {wanted} servers are there")))?;
        let lanes = lanes_of(&servers);
        let title = format!("session {}", open.name);
        let order = Order { title, spec: Value::Null, servers: wanted, workers: 0 };
        let id = self.jobs.add_session(order);
        self.sessions.insert(id, Session::new(now, lease, lanes, asker));
        self.start(id, servers, Vec::new());
        Ok(())
    }

    /// A session that can be asked something, which keeps it alive.
    fn session(&mut self, now: Duration, id: JobId) -> Result<&mut Session, No> {
        let ended = match self.jobs.all.get(&id) {
            None => No(FaultKind::NoSuchJob, format!("no session {id} is known here: open one")),
            Some(job) if !job.is_session() => {
                No(FaultKind::Invalid, format!("job {id} is no session: it was submitted"))
            }
            Some(job) => {
                let why = job.status.error.as_deref().unwrap_or("it was closed");
                No(FaultKind::Stopped, format!("session {id} has ended: {why}"))
            }
        };
        let session = self.sessions.get_mut(&id).ok_or(ended)?;
        if session.is_ending {
            return Err(No(FaultKind::Stopped, format!("session {id} is being closed")));
        }
        session.heard(now);
        Ok(session)
    }

    pub(crate) fn on_create_matrix(
        &mut self,
        now: Duration,
        job: JobId,
        asker: Asker,
        spec: MatrixSpec,
        out: &mut Vec<Effect>,
    ) {
        let created = self.session(now, job).and_then(|session| session.create(spec, asker));
        match created {
            Ok(Wish::Asks(event)) => self.tell_runner(job, event),
            Ok(Wish::Waits) => {}
            Ok(Wish::IsSo) => self.send_map(job, asker, out),
            Err(no) => self.say_no(asker, no, out),
        }
    }

    pub(crate) fn on_drop_matrix(
        &mut self,
        now: Duration,
        job: JobId,
        asker: Asker,
        matrix: u32,
        out: &mut Vec<Effect>,
    ) {
        let dropped = self.session(now, job).and_then(|session| session.drop_matrix(matrix, asker));
        match dropped {
            Ok(Wish::Asks(event)) => self.tell_runner(job, event),
            Ok(Wish::Waits) => {}
            Ok(Wish::IsSo) => say_done(asker, out),
            Err(no) => self.say_no(asker, no, out),
        }
    }

    pub(crate) fn on_ask_map(&mut self, now: Duration, job: JobId, asker: Asker, out: &mut Vec<Effect>) {
        match self.session(now, job) {
            Ok(_) => self.send_map(job, asker, out),
            Err(no) => self.say_no(asker, no, out),
        }
    }

    pub(crate) fn on_renew_session(
        &mut self,
        now: Duration,
        job: JobId,
        asker: Asker,
        out: &mut Vec<Effect>,
    ) {
        match self.session(now, job) {
            Ok(_) => say_done(asker, out),
            Err(no) => self.say_no(asker, no, out),
        }
    }

    pub(crate) fn on_close_session(
        &mut self,
        now: Duration,
        job: JobId,
        asker: Asker,
        out: &mut Vec<Effect>,
    ) {
        if let Some(session) = self.sessions.get_mut(&job) {
            session.closers.push(asker);
            return self.end_session(job, None);
        }
        match self.session(now, job) {
            // Closed before: the repeat of one whose answer was lost.
            Err(No(FaultKind::Stopped, _)) => say_done(asker, out),
            Err(no) => self.say_no(asker, no, out),
            Ok(_) => {}
        }
    }

    /// Has the runner end; once.
    fn end_session(&mut self, id: JobId, reason: Option<String>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if !session.is_ending {
            let event = session.close(reason);
            self.tell_runner(id, event);
        }
    }

    /// What the runner has done.
    pub(crate) fn on_session_answer(
        &mut self,
        id: JobId,
        call: u64,
        result: &Result<(), Fault>,
        out: &mut Vec<Effect>,
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(Call { what, askers }) = session.answered(call, result.is_ok()) else { return };
        for asker in askers {
            match (result, what) {
                (Ok(()), What::Open | What::Create(_)) => self.send_map(id, asker, out),
                (Ok(()), What::Drop(_)) => say_done(asker, out),
                (Err(fault), _) => self.say_no(asker, No(fault.kind, fault.text.clone()), out),
            }
        }
    }

    /// Its job has ended: whoever still waits is told.
    pub(crate) fn session_ended(&mut self, id: JobId, out: &mut Vec<Effect>) {
        let Some(session) = self.sessions.remove(&id) else { return };
        let error = self.jobs.all.get(&id).and_then(|job| job.status.error.clone());
        let why = error.unwrap_or_else(|| "it was closed".into());
        let (askers, closers) = session.into_askers();
        for asker in askers {
            self.say_no(asker, No(FaultKind::Stopped, format!("session {id} has ended: {why}")), out);
        }
        for asker in closers {
            say_done(asker, out);
        }
    }

    /// Ends the sessions whose host is silent.
    pub(crate) fn expire_sessions(&mut self, now: Duration) {
        let heartbeat = self.settings.heartbeat;
        let due = self
            .sessions
            .iter_mut()
            .filter(|(_, session)| session.due(heartbeat).is_some_and(|due| due <= now));
        let over = due.filter_map(|(id, session)| session.is_over(now).then_some((*id, session.lease)));
        for (id, lease) in over.collect::<Vec<(JobId, Duration)>>() {
            let reason = format!("its host has said nothing for {} ms, its lease", lease.as_millis());
            self.end_session(id, Some(reason));
        }
    }

    pub(crate) fn first_session_due(&self) -> Option<Duration> {
        self.sessions.values().filter_map(|session| session.due(self.settings.heartbeat)).min()
    }

    fn send_map(&mut self, id: JobId, asker: Asker, out: &mut Vec<Effect>) {
        if let Some(session) = self.sessions.get(&id) {
            out.push(Effect::Send { connection: asker.0, message: session.map(id, asker.1) });
        }
    }

    fn say_no(&mut self, (connection, request): Asker, No(kind, text): No, out: &mut Vec<Effect>) {
        self.counts.refused += 1;
        let retry_after_ms = if kind == FaultKind::Busy { BUSY_PAUSE_MS } else { 0 };
        let fault = Fault { request, kind, text, retry_after_ms };
        out.push(Effect::Send { connection, message: Message::Fault(fault) });
    }

    fn connected_servers(&self) -> u32 {
        let connected = |living: &&crate::members::Living| living.connection.is_some() && is_server(living);
        self.members.iter().filter(connected).count() as u32
    }
}

fn say_done((connection, request): Asker, out: &mut Vec<Effect>) {
    if request != 0 {
        let done = Done { request, minimum: u64::MAX, applied: Mark::default() };
        out.push(Effect::Send { connection, message: Message::Done(done) });
    }
}
