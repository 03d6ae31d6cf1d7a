//! The rule by which a lost connection is opened again: which errors are final, how long a lane is tried, with which pauses.

use std::time::{Duration, Instant};

use rpc::Error;

/// Longest time for which a server that is full is tried: connections that do not send their hello in time are closed.
pub(super) const FULL_LIMIT: Duration = Duration::from_secs(10);
/// Longest time for which an address where nobody listens is tried: a server that was killed has so long to come back.
pub(super) const AWAY_LIMIT: Duration = Duration::from_secs(2);
/// Time between two checks of a policy while waiting.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before the second attempt. Each further pause is twice as long.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// What the owner of a client knows of other processes.
pub struct RetryPolicy {
    /// Whether the answers are not needed any more.
    pub is_cancelled: Box<dyn Fn() -> bool + Send>,
    /// Whether a lane that cannot be reached is lost for good. Until then a connection that has ended is opened again, and the
    /// request without an answer is repeated, as long as there is time for the answer: a server with a write-ahead log comes
    /// back as it was. All requests must be such that may be repeated. `None`: no request is repeated.
    pub is_lost: Option<Box<dyn Fn() -> bool + Send>>,
    /// Whether the server of this name is lost, so that its standby has its lanes: a machine that is frozen or cut off does
    /// not close its connections.
    pub is_server_lost: Box<dyn Fn(&str) -> bool + Send>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { is_cancelled: Box::new(|| false), is_lost: None, is_server_lost: Box::new(|_| false) }
    }
}

impl RetryPolicy {
    /// The policy of an owner which repeats requests, and waits for answers, until `is_over` returns true.
    pub fn until(
        is_over: impl Fn() -> bool + Clone + Send + 'static,
        is_server_lost: impl Fn(&str) -> bool + Send + 'static,
    ) -> Self {
        let is_cancelled = Box::new(is_over.clone());
        Self { is_cancelled, is_lost: Some(Box::new(is_over)), is_server_lost: Box::new(is_server_lost) }
    }

    /// Whether a lane is not tried any more.
    pub(super) fn is_over(&self) -> bool {
        (self.is_cancelled)() || self.is_lost.as_ref().is_some_and(|is_lost| is_lost())
    }

    /// Waits for this time, at most until the lane is not tried any more.
    pub(super) fn wait_until(&self, time: Instant) {
        while !self.is_over() && Instant::now() < time {
            std::thread::sleep(time.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
        }
    }
}

/// The pauses between attempts to connect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    /// The pause before the next attempt, at least that which the other end has requested.
    pub(crate) fn next(&mut self, requested: Duration) -> Duration {
        let pause = self.0.max(MIN_PAUSE);
        self.0 = (pause * 2).min(MAX_PAUSE);
        pause.max(requested)
    }
}

/// Whether another attempt to connect may succeed. A full server may also reset a connection, which destroys its refusal.
pub(crate) fn may_come_back(error: &Error) -> bool {
    match error {
        Error::Refused(fault) => fault.kind.retry_may_help(),
        Error::Version { .. } | Error::Address { .. } | Error::Http | Error::Magic { .. } => false,
        _ => true,
    }
}
