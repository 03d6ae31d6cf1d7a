//! Who lives: registration, leases, and what travels between members and runners.

use std::collections::BTreeMap;
use std::time::Duration;

use rpc::kept::{Arrival, Kept};
use rpc::message::control::{Member, MemberKind};
use rpc::message::{ControlBody, FaultKind, JobId, RequestId};
use rpc::service::{ConnectionId, Effect};
use serde_json::Value;

use crate::runner::Event;
use crate::state::{MasterState, say};

/// Most bytes of a name.
const NAME_LIMIT_BYTES: usize = 200;

/// What a member says of itself.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) host: String,
    pub(crate) kind: MemberKind,
}

/// A member that lives.
#[derive(Debug)]
pub(crate) struct Living {
    pub(crate) member: Member,
    /// `None` while it may still come back.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) report: Value,
    heard_at: Duration,
    /// It does not confirm what it is told; its lease is over.
    deaf: bool,
    kept: Kept,
}

impl Living {
    fn end(&self, lease: Duration) -> Duration {
        if self.deaf { Duration::ZERO } else { self.heard_at + lease }
    }
}

/// The living, by number.
#[derive(Debug, Default)]
pub(crate) struct Members {
    last_id: u32,
    living: BTreeMap<u32, Living>,
    by_connection: BTreeMap<ConnectionId, u32>,
}

impl Members {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Living> {
        self.living.values()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Living> {
        self.living.get(&id)
    }

    pub(crate) fn id_of(&self, connection: ConnectionId) -> Option<u32> {
        self.by_connection.get(&connection).copied()
    }

    /// Whoever says something lives.
    pub(crate) fn renew(&mut self, connection: ConnectionId, now: Duration) {
        if let Some(living) = self.of_connection(connection) {
            living.heard_at = living.heard_at.max(now);
        }
    }

    pub(crate) fn renew_all(&mut self, heard_at: Duration) {
        for living in self.living.values_mut() {
            living.heard_at = living.heard_at.max(heard_at);
        }
    }

    /// When the first lease is over.
    pub(crate) fn first_end(&self, lease: Duration) -> Option<Duration> {
        self.living.values().map(|living| living.end(lease)).min()
    }

    /// It may come back until its lease is over.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId) {
        if let Some(living) = self.of_connection(connection) {
            living.connection = None;
        }
        self.by_connection.remove(&connection);
    }

    fn of_connection(&mut self, connection: ConnectionId) -> Option<&mut Living> {
        self.living.get_mut(self.by_connection.get(&connection)?)
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.living.values().find(|living| living.member.name == name).map(|living| living.member.id)
    }

    fn remove(&mut self, id: u32) -> Option<Living> {
        let living = self.living.remove(&id)?;
        if let Some(connection) = living.connection {
            self.by_connection.remove(&connection);
        }
        Some(living)
    }
}

impl MasterState {
    pub(crate) fn on_register(
        &mut self,
        now: Duration,
        from: ConnectionId,
        request: RequestId,
        registration: Registration,
        out: &mut Vec<Effect>,
    ) {
        let known = self.members.find(&registration.name);
        let refusal = self
            .why_not(&registration)
            .or_else(|| self.why_not_here(from, known))
            .or_else(|| self.why_not_this_name(now, known, &registration));
        if let Some(text) = refusal {
            self.refuse(from, request, FaultKind::Invalid, text, out);
            out.push(Effect::Close { connection: from });
            return;
        }
        let id = match known {
            Some(id) => self.come_back(now, id, from, registration, out),
            None => self.come_new(now, from, registration),
        };
        let registered = ControlBody::Registered {
            id,
            lease_ms: self.settings.lease.as_millis() as u64,
            heartbeat_ms: self.settings.heartbeat.as_millis() as u64,
            incarnation: self.incarnation,
        };
        out.push(say(from, request, registered));
        if let Some(living) = self.members.living.get_mut(&id) {
            living.kept.forget_confirmation();
            out.extend(living.kept.confirmation().map(|body| say(from, 0, body)));
            out.extend(living.kept.unconfirmed().map(|c| say(from, c.request, c.body.clone())));
        }
        self.start_what_can(out);
    }

    fn why_not(&self, registration: &Registration) -> Option<String> {
        let name = &registration.name;
        if name.is_empty() || name.len() > NAME_LIMIT_BYTES {
            return Some(format!(
                "a member's name has 1 to {NAME_LIMIT_BYTES} bytes, and this one has {}",
                name.len()
            ));
        }
        match &registration.kind {
            MemberKind::Server { addresses, lanes, .. } if addresses.is_empty() || *lanes == 0 => {
                Some(format!(
                    "server \"{name}\" has {} addresses and {lanes} lanes: at least one of each",
                    addresses.len()
                ))
            }
            MemberKind::Worker { slots: 0 } => Some(format!("worker \"{name}\" has 0 slots: at least one")),
            MemberKind::Server { .. } | MemberKind::Worker { .. } => None,
        }
    }

    fn why_not_here(&self, from: ConnectionId, known: Option<u32>) -> Option<String> {
        let other = self.members.id_of(from).filter(|id| Some(*id) != known)?;
        let name = &self.members.get(other)?.member.name;
        Some(format!("this connection is that of \"{name}\": a connection has one member"))
    }

    fn why_not_this_name(
        &self,
        now: Duration,
        known: Option<u32>,
        registration: &Registration,
    ) -> Option<String> {
        let Some(id) = known else {
            let limit = self.settings.member_limit;
            return (self.members.living.len() >= limit)
                .then(|| format!("{limit} members are here, the limit (member_limit)"));
        };
        let first = self.members.get(id)?;
        if first.member.incarnation == registration.incarnation {
            return None;
        }
        let left_ms = (first.heard_at + self.settings.lease).saturating_sub(now).as_millis();
        let name = &registration.name;
        let what_to_do = if first.connection.is_some() {
            "is connected: give one of them another name".to_string()
        } else {
            format!("may still come back for {left_ms} ms: if it has ended, start this one after that")
        };
        Some(format!(
            "two members with one name \"{name}\": the first, on {}, {what_to_do}",
            first.member.host
        ))
    }

    fn come_back(
        &mut self,
        now: Duration,
        id: u32,
        from: ConnectionId,
        registration: Registration,
        out: &mut Vec<Effect>,
    ) -> u32 {
        let Some(living) = self.members.living.get_mut(&id) else { return id };
        living.heard_at = now;
        living.member.host = registration.host;
        living.member.kind = registration.kind;
        let before = living.connection.replace(from);
        let member = living.member.clone();
        self.members.by_connection.insert(from, id);
        if before == Some(from) {
            return id;
        }
        if let Some(before) = before {
            self.members.by_connection.remove(&before);
            out.push(Effect::Close { connection: before });
        }
        self.counts.came_back += 1;
        for job in self.jobs.running_with(id) {
            self.tell_runner(job, Event::Back { member: member.clone() });
        }
        id
    }

    fn come_new(&mut self, now: Duration, from: ConnectionId, registration: Registration) -> u32 {
        self.members.last_id += 1;
        let id = self.members.last_id;
        let Registration { name, incarnation, host, kind } = registration;
        let member = Member { id, name, incarnation, kind, host };
        let (report, kept) = (Value::Null, Kept::default());
        let living = Living { member, connection: Some(from), report, heard_at: now, deaf: false, kept };
        self.members.living.insert(id, living);
        self.members.by_connection.insert(from, id);
        id
    }

    pub(crate) fn on_heartbeat(
        &mut self,
        from: ConnectionId,
        request: RequestId,
        id: u32,
        report: Value,
        out: &mut Vec<Effect>,
    ) {
        self.counts.heartbeats += 1;
        if self.members.id_of(from) != Some(id) {
            let text = format!("no member {id} is on this connection: register first");
            return self.refuse(from, request, FaultKind::NotFound, text, out);
        }
        out.push(say(from, request, ControlBody::Alive));
        if let Some(living) = self.members.living.get_mut(&id) {
            living.report = report;
            out.extend(living.kept.confirmation().map(|body| say(from, 0, body)));
        }
    }

    pub(crate) fn on_heard(&mut self, from: ConnectionId, count: u64) {
        if let Some(living) = self.members.of_connection(from) {
            living.kept.confirm(count);
        }
    }

    pub(crate) fn on_leave(&mut self, from: ConnectionId, out: &mut Vec<Effect>) {
        match self.members.id_of(from) {
            Some(id) => self.bury(id, "it has left", out),
            None => out.push(Effect::Close { connection: from }),
        }
    }

    /// Those whose lease is over.
    pub(crate) fn expire(&mut self, now: Duration, out: &mut Vec<Effect>) {
        let lease = self.settings.lease;
        let limit = self.settings.unconfirmed_limit;
        let over: Vec<(u32, bool)> = self
            .members
            .iter()
            .filter(|living| living.end(lease) <= now)
            .map(|living| (living.member.id, living.deaf))
            .collect();
        for (id, deaf) in over {
            let reason = if deaf {
                format!("it has not confirmed {limit} messages, the limit (unconfirmed_limit)")
            } else {
                format!("it has said nothing for {} ms, its lease", lease.as_millis())
            };
            self.counts.expired += 1;
            self.bury(id, &reason, out);
        }
    }

    /// Takes a member out, and tells all who may care.
    pub(crate) fn bury(&mut self, id: u32, reason: &str, out: &mut Vec<Effect>) {
        let Some(living) = self.members.remove(id) else { return };
        out.extend(living.connection.map(|connection| Effect::Close { connection }));
        let member = living.member;
        for job in self.jobs.running_with(id) {
            self.tell_runner(job, Event::Gone { member: member.clone(), reason: reason.to_string() });
        }
        let others: Vec<u32> = self.members.living.keys().copied().collect();
        for other in others {
            self.tell_member(
                other,
                ControlBody::Gone { member: member.clone(), reason: reason.to_string() },
                out,
            );
        }
        self.start_what_can(out);
    }

    /// Says something that is kept until it is confirmed. Nothing to do when the member is gone: whoever has to know was
    /// told.
    pub(crate) fn tell_member(&mut self, id: u32, body: ControlBody, out: &mut Vec<Effect>) {
        let limit = self.settings.unconfirmed_limit;
        let Some(living) = self.members.living.get_mut(&id) else {
            self.counts.dropped += 1;
            return;
        };
        if living.kept.unconfirmed_count() >= limit {
            // Buried by the next call of `on_time`, which is due at once: not from here, where others may be told of a burial.
            living.deaf = true;
            return;
        }
        let control = living.kept.say(body);
        out.extend(living.connection.map(|to| say(to, control.request, control.body)));
    }

    pub(crate) fn on_from_task(
        &mut self,
        from: ConnectionId,
        request: RequestId,
        job: JobId,
        body: Value,
        out: &mut Vec<Effect>,
    ) {
        let Some(living) = self.members.of_connection(from) else {
            let text = format!("who speaks of a task of job {job} has to register first");
            return self.refuse(from, request, FaultKind::Invalid, text, out);
        };
        let worker = living.member.id;
        let arrival = living.kept.hear(request);
        if living.kept.owes_confirmation() {
            out.extend(living.kept.confirmation().map(|body| say(from, 0, body)));
        }
        match arrival {
            Arrival::New if self.jobs.runs_with(job, worker) => {
                self.tell_runner(job, Event::FromTask { worker, body });
            }
            Arrival::New => self.counts.dropped += 1,
            Arrival::Repeat => self.counts.repeated += 1,
            Arrival::Gap => {
                let text = format!("message {request} came before one that is missing: connect again");
                self.refuse(from, 0, FaultKind::BadFrame, text, out);
                self.members.disconnect(from);
                out.push(Effect::Close { connection: from });
            }
        }
    }
}
