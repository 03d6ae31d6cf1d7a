//! Times and limits of a master.

use std::time::Duration;

use crate::injected_fault::InjectedFault;

/// Settings of the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often a member should send a message. Default 500 ms: ten in a lease.
    pub heartbeat: Duration,
    /// A member without a message for this time is lost. Default 5 s: longer than a pause of a busy machine, shorter
    /// than the patience of a person.
    pub lease: Duration,
    /// A member whose connection has ended and that has not reconnected for this time is lost, before its lease is over.
    /// Default 2 s: a process that was killed is noticed soon, and seven attempts to reconnect fit in it.
    pub reconnect_limit: Duration,
    /// Most jobs that run at once. Default 4.
    pub running_job_limit: usize,
    /// Most jobs that are queued. Default 1000.
    pub queued_job_limit: usize,
    /// Most bytes of all queued jobs, which contain modules of functions. Default 64 MiB.
    pub queued_limit_bytes: u64,
    /// Most ended jobs that are still shown. Default 100.
    pub ended_job_limit: usize,
    /// Most bytes of all reports of ended jobs; the oldest are removed first. Default 64 MiB: thirty jobs of 5000
    /// epochs, or many thousand short ones.
    pub report_limit_bytes: u64,
    /// Most members. Default 4096.
    pub member_limit: usize,
    /// Most unacknowledged messages to one member; with more, the member is lost. Default 4096.
    pub unconfirmed_limit: usize,
    /// Most sessions of the parameter service at once. Default 64.
    pub session_limit: usize,
    /// How long a session lives after the last request of its host, unless the host asks for another lease. Default 60
    /// s: longer than a pause of a large garbage-collected driver.
    pub session_lease: Duration,
    /// Most connections that watch one job. Default 256.
    pub watcher_limit: usize,
    /// The rule that is disabled.
    #[cfg(any(test, feature = "fault-injection"))]
    pub injected_fault: Option<InjectedFault>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(500),
            lease: Duration::from_secs(5),
            reconnect_limit: Duration::from_secs(2),
            running_job_limit: 4,
            queued_job_limit: 1000,
            queued_limit_bytes: 64 << 20,
            ended_job_limit: 100,
            report_limit_bytes: 64 << 20,
            member_limit: 4096,
            unconfirmed_limit: 4096,
            session_limit: 64,
            session_lease: Duration::from_mins(1),
            watcher_limit: 256,
            #[cfg(any(test, feature = "fault-injection"))]
            injected_fault: None,
        }
    }
}

impl Settings {
    /// Whether a fault is injected.
    #[cfg(any(test, feature = "fault-injection"))]
    pub(crate) fn injects(&self, fault: InjectedFault) -> bool {
        self.injected_fault == Some(fault)
    }

    /// Whether a fault is injected: never.
    #[cfg(not(any(test, feature = "fault-injection")))]
    #[allow(clippy::unused_self, reason = "the same call with the feature and without")]
    pub(crate) fn injects(&self, _fault: InjectedFault) -> bool {
        false
    }

    /// Checks the limits and how they relate; the text says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.heartbeat.is_zero() {
            return Err("heartbeat is 0 ms, expected at least 1 ms".into());
        }
        if self.lease < self.heartbeat * 2 {
            return Err(format!(
                "lease {} ms is shorter than two heartbeats of {} ms: one late heartbeat would end a member",
                self.lease.as_millis(),
                self.heartbeat.as_millis()
            ));
        }
        if self.reconnect_limit < self.heartbeat * 2 {
            return Err(format!(
                "reconnect_limit {} ms is shorter than two heartbeats of {} ms: a member would have no time to reconnect",
                self.reconnect_limit.as_millis(),
                self.heartbeat.as_millis()
            ));
        }
        for (name, value) in [
            ("running_job_limit", self.running_job_limit),
            ("queued_job_limit", self.queued_job_limit),
            ("member_limit", self.member_limit),
            ("unconfirmed_limit", self.unconfirmed_limit),
            ("session_limit", self.session_limit),
            ("watcher_limit", self.watcher_limit),
        ] {
            if value == 0 {
                return Err(format!("{name} is 0, expected at least 1"));
            }
        }
        Ok(())
    }
}
