//! Registration: new members, members that reconnect, and refusals.

use std::time::Duration;

use control::limits::WORKER_GROUP_BYTES;
use control::text::{is_printable, is_worker_group};
use rpc::message::{ControlBody, FaultKind, Member, MemberKind, RequestId};
use rpc::reliable_queue::ReliableQueue;
use rpc::service::{ConnectionId, Effect};
use serde_json::Value;

use crate::injected_fault::InjectedFault;
use crate::members::AliveMember;
use crate::runner::JobEvent;
use crate::state::{MasterState, control_effect};

/// Most bytes of the name of a member.
const NAME_LIMIT_BYTES: usize = 200;

/// Most bytes of the host and of each address of a member, and most addresses: `status` shows them.
const TEXT_LIMIT_BYTES: usize = 300;
const ADDRESS_LIMIT: usize = 16;

/// The registration of a member.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) host: String,
    pub(crate) kind: MemberKind,
    /// Whether the process was started again with the state of the one before.
    pub(crate) restored: bool,
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
        // A registration that is refused for these reasons takes no name from a member.
        let problem = registration_problem(&registration).or_else(|| self.connection_conflict(from, known));
        let (known, replaced) = match problem {
            None => self.take_name(known, registration.incarnation, out),
            Some(_) => (known, Vec::new()),
        };
        let refusal = problem.or_else(|| self.name_conflict(known, &registration));
        if let Some(text) = refusal {
            self.refuse(from, request, FaultKind::Invalid, text, out);
            out.push(Effect::Close { connection: from });
            return;
        }
        let id = match known {
            Some(id) => self.reconnect_member(now, id, from, registration, out),
            None => self.add_member(now, from, registration, replaced),
        };
        // Jobs that begin because of this registration are not among them.
        let runs = self.jobs.runs_of(id);
        let registered = ControlBody::Registered {
            id,
            lease_ms: self.settings.lease.as_millis() as u64,
            heartbeat_ms: self.settings.heartbeat.as_millis() as u64,
            incarnation: self.incarnation,
            runs,
        };
        out.push(control_effect(from, request, registered));
        if let Some(alive) = self.members.alive.get_mut(&id) {
            alive.queue.reset_acknowledgement();
            out.extend(alive.queue.take_acknowledgement().map(|body| control_effect(from, 0, body)));
            if !self.settings.injects(InjectedFault::NoRetransmission) {
                out.extend(
                    alive.queue.unacknowledged().map(|c| control_effect(from, c.request, c.body.clone())),
                );
            }
        }
        self.start_ready_jobs();
    }

    fn connection_conflict(&self, from: ConnectionId, known: Option<u32>) -> Option<String> {
        let other = self.members.id_of(from).filter(|id| Some(*id) != known)?;
        let name = &self.members.get(other)?.member.name;
        Some(format!("this connection belongs to member \"{name}\": a connection has one member"))
    }

    /// The member that has the name of a registration. One whose connection has ended loses it to a new process, which was
    /// started in its place; then the result is none, with the incarnations that have had the name. A process that has
    /// lost its name so does not get it back while the other one lives.
    fn take_name(
        &mut self,
        known: Option<u32>,
        incarnation: u64,
        out: &mut Vec<Effect>,
    ) -> (Option<u32>, Vec<u64>) {
        let Some(first) = known.and_then(|id| self.members.get(id)) else { return (known, Vec::new()) };
        let is_connected =
            first.connection.is_some() && !self.settings.injects(InjectedFault::ConnectedMembersLoseNames);
        if first.member.incarnation == incarnation || is_connected || first.replaced.contains(&incarnation) {
            return (known, Vec::new());
        }
        let id = first.member.id;
        let replaced = first.replaced.iter().copied().chain([first.member.incarnation]).collect();
        self.remove_member(id, "its connection has ended, and a new process has its name", out);
        (None, replaced)
    }

    fn name_conflict(&self, known: Option<u32>, registration: &Registration) -> Option<String> {
        let Some(id) = known else {
            let limit = self.settings.member_limit;
            return (self.members.alive.len() >= limit)
                .then(|| format!("{limit} members are registered, the limit (member_limit)"));
        };
        let first = self.members.get(id)?;
        if first.member.incarnation == registration.incarnation {
            return None;
        }
        let what = if first.replaced.contains(&registration.incarnation) {
            "was started in place of this one"
        } else {
            "is connected"
        };
        Some(format!(
            "two members have the name \"{}\": the other, on {}, {what}: give one of them another name",
            registration.name, first.member.host
        ))
    }

    fn reconnect_member(
        &mut self,
        now: Duration,
        id: u32,
        from: ConnectionId,
        registration: Registration,
        out: &mut Vec<Effect>,
    ) -> u32 {
        let Some(alive) = self.members.alive.get_mut(&id) else { return id };
        alive.renew_lease(now);
        alive.member.host = registration.host;
        alive.member.kind = registration.kind;
        if registration.restored {
            alive.queue = ReliableQueue::default();
        }
        let before = alive.connection.replace(from);
        let member = alive.member.clone();
        self.members.by_connection.insert(from, id);
        if before == Some(from) {
            return id;
        }
        if let Some(before) = before {
            self.members.by_connection.remove(&before);
            out.push(Effect::Close { connection: before });
        }
        self.counts.reconnected += 1;
        for job in self.jobs.running_with(id) {
            let event =
                JobEvent::MemberReconnected { member: member.clone(), is_restored: registration.restored };
            self.send_to_runner(job, event);
        }
        id
    }

    /// `replaced`: the incarnations that have lost the name to this process.
    fn add_member(
        &mut self,
        now: Duration,
        from: ConnectionId,
        registration: Registration,
        replaced: Vec<u64>,
    ) -> u32 {
        self.members.last_id += 1;
        let id = self.members.last_id;
        let Registration { name, incarnation, host, kind, restored: _ } = registration;
        let member = Member { id, name, incarnation, kind, host };
        let alive = AliveMember {
            member,
            connection: Some(from),
            report: Value::Null,
            received_at: now,
            disconnected_at: None,
            suspected_at: None,
            is_unresponsive: false,
            queue: ReliableQueue::default(),
            replaced,
        };
        self.members.alive.insert(id, alive);
        self.members.by_connection.insert(from, id);
        id
    }
}

/// Why a registration is invalid by itself, without regard to other members.
fn registration_problem(registration: &Registration) -> Option<String> {
    let name = &registration.name;
    if name.is_empty() || name.len() > NAME_LIMIT_BYTES {
        return Some(format!(
            "the name of a member has {} bytes, expected 1 to {NAME_LIMIT_BYTES}",
            name.len()
        ));
    }
    let shown = |text: &String| text.len() <= TEXT_LIMIT_BYTES && text.chars().all(is_printable);
    let addresses = match &registration.kind {
        MemberKind::Server { addresses, .. } => addresses.as_slice(),
        MemberKind::Worker { .. } => &[],
    };
    let mut texts = [name, &registration.host].into_iter().chain(addresses);
    if addresses.len() > ADDRESS_LIMIT || !texts.all(shown) {
        return Some(format!(
            "a member has a name, a host and at most {ADDRESS_LIMIT} addresses, each of at most {TEXT_LIMIT_BYTES} bytes \
             without control characters"
        ));
    }
    match &registration.kind {
        MemberKind::Server { addresses, lanes, .. } if addresses.is_empty() || *lanes == 0 => Some(format!(
            "server \"{name}\" has {} addresses and {lanes} lanes: at least one of each",
            addresses.len()
        )),
        MemberKind::Worker { group, .. } if !is_worker_group(group) => Some(format!(
            "the worker group of worker \"{name}\" has {} bytes, expected at most {WORKER_GROUP_BYTES} without control \
                 characters",
            group.len()
        )),
        MemberKind::Worker { slots: 0, .. } => Some(format!("worker \"{name}\" has 0 slots: at least one")),
        MemberKind::Server { .. } | MemberKind::Worker { .. } => None,
    }
}
