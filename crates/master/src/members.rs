//! The alive members and their leases.
//!
//! The lease of a member without a connection ends earlier: it has the reconnect limit to come back. A lease ends in two
//! checks of the time. The first check, one heartbeat before the end, marks the member as suspected. The second one
//! removes it if no message of it was read in between. So a master that was suspended itself
//! only marks its members when it wakes, and reads the messages that they sent meanwhile before it removes any of them.

use std::collections::BTreeMap;
use std::time::Duration;

use rpc::message::Member;
use rpc::reliable_queue::ReliableQueue;
use rpc::service::ConnectionId;
use serde_json::Value;

use crate::injected_fault::InjectedFault;
use crate::settings::Settings;

/// A member whose lease has not ended.
#[derive(Debug)]
pub(crate) struct AliveMember {
    pub(crate) member: Member,
    /// `None` while the member may still reconnect.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) report: Value,
    pub(crate) received_at: Duration,
    /// When its connection ended; `None` while it is connected.
    pub(crate) disconnected_at: Option<Duration>,
    /// When the member became suspected: its lease ends within one heartbeat.
    pub(crate) suspected_at: Option<Duration>,
    /// The member does not acknowledge messages; its lease is over.
    pub(crate) is_unresponsive: bool,
    pub(crate) queue: ReliableQueue,
    /// The incarnations that have lost the name to this process.
    pub(crate) replaced: Vec<u64>,
}

impl AliveMember {
    /// When the lease is over, if no message of the member arrives and it does not reconnect.
    fn lease_end(&self, settings: &Settings) -> Duration {
        let end = self.received_at + settings.lease;
        let lost_at = self.disconnected_at.map(|time| time + settings.reconnect_limit);
        lost_at
            .filter(|_| !settings.injects(InjectedFault::DisconnectedMembersStay))
            .map_or(end, |time| end.min(time))
    }

    /// When the member becomes suspected, or expires, if no message of it arrives.
    pub(crate) fn next_check(&self, settings: &Settings) -> Duration {
        let Settings { heartbeat, .. } = *settings;
        let end = self.lease_end(settings);
        match self.suspected_at {
            _ if self.is_unresponsive => Duration::ZERO,
            _ if settings.injects(InjectedFault::OwnPauseCounted) => end,
            None => end.saturating_sub(heartbeat),
            Some(suspected_at) => end.max(suspected_at + heartbeat),
        }
    }

    /// Called when the check is due. Returns whether the member has expired; otherwise it is suspected from now on.
    pub(crate) fn check_lease(&mut self, now: Duration, settings: &Settings) -> bool {
        let is_missed = self.suspected_at.replace(self.suspected_at.unwrap_or(now)).is_some();
        is_missed || self.is_unresponsive || settings.injects(InjectedFault::OwnPauseCounted)
    }

    /// Why the member is removed, for users.
    pub(crate) fn reason_of_end(&self, settings: &Settings) -> String {
        let Settings { lease, reconnect_limit, unconfirmed_limit, .. } = settings;
        if self.is_unresponsive {
            format!("it has not acknowledged {unconfirmed_limit} messages, the limit (unconfirmed_limit)")
        } else if self.disconnected_at.is_some() && self.lease_end(settings) < self.received_at + *lease {
            format!(
                "its connection ended, and it did not reconnect within {} ms (reconnect_limit)",
                reconnect_limit.as_millis()
            )
        } else {
            format!("its lease of {} ms expired without a message", lease.as_millis())
        }
    }

    pub(crate) fn renew_lease(&mut self, now: Duration) {
        self.received_at = self.received_at.max(now);
        self.disconnected_at = None;
        self.suspected_at = None;
    }
}

/// The alive members, by number.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) last_id: u32,
    pub(crate) alive: BTreeMap<u32, AliveMember>,
    pub(crate) by_connection: BTreeMap<ConnectionId, u32>,
}

impl Members {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AliveMember> {
        self.alive.values()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&AliveMember> {
        self.alive.get(&id)
    }

    pub(crate) fn id_of(&self, connection: ConnectionId) -> Option<u32> {
        self.by_connection.get(&connection).copied()
    }

    /// Any message of a member renews its lease.
    pub(crate) fn renew(&mut self, connection: ConnectionId, now: Duration) {
        if let Some(alive) = self.get_by_connection(connection) {
            alive.renew_lease(now);
        }
    }

    /// When the first member becomes suspected or expires.
    pub(crate) fn next_check(&self, settings: &Settings) -> Option<Duration> {
        self.alive.values().map(|alive| alive.next_check(settings)).min()
    }

    /// Removes the connection. The member may reconnect until its lease is over.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId, now: Duration) {
        if let Some(alive) = self.get_by_connection(connection) {
            alive.connection = None;
            alive.disconnected_at = Some(now);
        }
        self.by_connection.remove(&connection);
    }

    pub(crate) fn get_by_connection(&mut self, connection: ConnectionId) -> Option<&mut AliveMember> {
        self.alive.get_mut(self.by_connection.get(&connection)?)
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.alive.values().find(|alive| alive.member.name == name).map(|alive| alive.member.id)
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<AliveMember> {
        let alive = self.alive.remove(&id)?;
        if let Some(connection) = alive.connection {
            self.by_connection.remove(&connection);
        }
        Some(alive)
    }
}
