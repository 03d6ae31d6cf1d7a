//! What members do to their leases, and what the loss of a member does to others.

use std::time::Duration;

use control::limits::MEMBER_REPORT_BYTES;
use rpc::message::{ControlBody, FaultKind, RequestId};
use rpc::service::{ConnectionId, Effect};
use serde_json::Value;

use crate::runner::JobEvent;
use crate::state::{MasterState, control_effect};

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
            let text = format!("member {id} is not registered on this connection: register first");
            return self.refuse(from, request, FaultKind::NotFound, text, out);
        }
        out.push(control_effect(from, request, ControlBody::Alive));
        if let Some(alive) = self.members.alive.get_mut(&id) {
            let is_short = report.to_string().len() <= MEMBER_REPORT_BYTES;
            alive.report = if is_short { report } else { Value::Null };
            out.extend(alive.queue.take_acknowledgement().map(|body| control_effect(from, 0, body)));
        }
    }

    pub(crate) fn on_leave(&mut self, from: ConnectionId, out: &mut Vec<Effect>) {
        match self.members.id_of(from) {
            Some(id) => self.remove_member(id, "it has left", out),
            None => out.push(Effect::Close { connection: from }),
        }
    }

    /// Marks members as suspected whose messages are late, and removes those whose lease is over.
    pub(crate) fn expire_leases(&mut self, now: Duration, out: &mut Vec<Effect>) {
        let settings = &self.settings;
        let due = self.members.alive.values_mut().filter(|alive| alive.next_check(settings) <= now);
        let over = due.filter_map(|alive| {
            let is_over = alive.check_lease(now, settings);
            is_over.then(|| (alive.member.id, alive.reason_of_end(settings)))
        });
        let over: Vec<(u32, String)> = over.collect();
        for (id, reason) in over {
            self.counts.expired += 1;
            self.remove_member(id, &reason, out);
        }
    }

    /// Removes a member and notifies the runners of its jobs and all other members.
    pub(crate) fn remove_member(&mut self, id: u32, reason: &str, out: &mut Vec<Effect>) {
        let Some(alive) = self.members.remove(id) else { return };
        out.extend(alive.connection.map(|connection| Effect::Close { connection }));
        let member = alive.member;
        for job in self.jobs.running_with(id) {
            self.send_to_runner(
                job,
                JobEvent::MemberLost { member: member.clone(), reason: reason.to_string() },
            );
        }
        let others: Vec<u32> = self.members.alive.keys().copied().collect();
        for other in others {
            self.send_to_member(
                other,
                ControlBody::Gone { member: member.clone(), reason: reason.to_string() },
                out,
            );
        }
        self.start_ready_jobs();
    }
}
