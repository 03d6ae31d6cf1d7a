//! Who lives: heartbeats, leases, and who is told when a member is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use rpc::kept::Kept;
use rpc::message::{ControlBody, FaultKind, Member, RequestId};
use rpc::service::{ConnectionId, Effect};
use serde_json::Value;

use crate::runner::Event;
use crate::state::{MasterState, say};

/// A member that lives.
#[derive(Debug)]
pub(crate) struct Living {
    pub(crate) member: Member,
    /// `None` while it may still come back.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) report: Value,
    pub(crate) heard_at: Duration,
    /// It does not confirm what it is told; its lease is over.
    pub(crate) deaf: bool,
    pub(crate) kept: Kept,
}

impl Living {
    fn end(&self, lease: Duration) -> Duration {
        if self.deaf { Duration::ZERO } else { self.heard_at + lease }
    }
}

/// The living, by number.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) last_id: u32,
    pub(crate) living: BTreeMap<u32, Living>,
    pub(crate) by_connection: BTreeMap<ConnectionId, u32>,
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

    pub(crate) fn of_connection(&mut self, connection: ConnectionId) -> Option<&mut Living> {
        self.living.get_mut(self.by_connection.get(&connection)?)
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
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
        self.start_what_can();
    }
}
