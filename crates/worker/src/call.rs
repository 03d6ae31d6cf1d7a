//! The open call of an agent: what it waits for, since when, and what its answers have reported.

use std::time::Duration;

use matrix::{Clock, Error};

use crate::clocks::PendingBarrier;
use crate::function::{PendingPullFunction, PendingTry};
use crate::pending_pull::PendingPull;

/// A lane answers within the wait limit, if necessary with a fault. A lane without an answer for this much longer is
/// broken.
const GRACE: Duration = Duration::from_secs(5);

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutput {
    /// The values of a pull are ready: see [`crate::AgentState::read_pulled`].
    ValuesReady,
    /// The answer of a pull function.
    FunctionAnswer(Vec<u8>),
    /// A push, a tick or a leave is done. A push may still be on its way.
    Done,
    /// The barrier is passed. The sum is empty when nothing was summed.
    BarrierSum(Vec<f64>),
}

/// A call that has no result yet.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Call {
    Pull(PendingPull),
    PullFunction(PendingPullFunction),
    Push,
    /// Push functions that may fail: every lane tries them. Then they are pushed, or not.
    TryFunction(PendingTry),
    /// Ends when every lane has answered. Has the error of the first lane at which the functions failed.
    PushFunction(Option<(u16, Error)>),
    /// Ends when the tick is sent to every lane, over a connection that is not known to be closed.
    Tick,
    Barrier(PendingBarrier),
    Finish,
}

/// The call of an agent, from its begin until its result is taken. There is at most one.
#[derive(Debug)]
pub(crate) struct CurrentCall {
    open: Option<Call>,
    /// Last progress of the open call: a message or a connection.
    progress_at: Duration,
    /// The time of the last message of any lane.
    received_at: Duration,
    /// The longest time for which a lane deferred a request of the call for other tasks, in nanoseconds.
    deferred_ns: u64,
    /// The staleness of the last pull, until it is taken.
    staleness: Option<Clock>,
    result: Option<Result<CallOutput, Error>>,
    /// The caller reads it before the next call.
    completed_pull: Option<PendingPull>,
}

impl CurrentCall {
    /// No call yet.
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            open: None,
            progress_at: now,
            received_at: now,
            deferred_ns: 0,
            staleness: None,
            result: None,
            completed_pull: None,
        }
    }

    /// Begins a call, which [`Self::open`] or [`Self::end`] has to follow.
    ///
    /// # Panics
    /// When another call is open, or has a result that was not taken.
    pub(crate) fn begin(&mut self, now: Duration, name: &'static str) {
        assert!(self.open.is_none() && self.result.is_none(), "{name} while another call is open");
        self.on_received(now);
        self.deferred_ns = 0;
    }

    pub(crate) fn open(&mut self, call: Call) {
        self.open = Some(call);
    }

    /// Ends the open call.
    pub(crate) fn end(&mut self, result: Result<CallOutput, Error>) {
        self.open = None;
        self.result = Some(result);
    }

    /// The open call.
    pub(crate) fn get(&self) -> Option<&Call> {
        self.open.as_ref()
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut Call> {
        self.open.as_mut()
    }

    /// The pull that is open, if the open call is one.
    pub(crate) fn pull_mut(&mut self) -> Option<&mut PendingPull> {
        match &mut self.open {
            Some(Call::Pull(pending)) => Some(pending),
            _ => None,
        }
    }

    /// Takes the open call, to end it or to go on with another one.
    pub(crate) fn take(&mut self) -> Option<Call> {
        self.open.take()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn take_result(&mut self) -> Option<Result<CallOutput, Error>> {
        self.result.take()
    }

    /// Ends the open pull with its values, which [`Self::take_completed_pull`] returns.
    pub(crate) fn complete_pull(&mut self, pending: PendingPull) {
        self.completed_pull = Some(pending);
        self.end(Ok(CallOutput::ValuesReady));
    }

    pub(crate) fn take_completed_pull(&mut self) -> Option<PendingPull> {
        self.completed_pull.take()
    }

    /// Notes a connection that was opened for the call.
    pub(crate) fn on_progress(&mut self, now: Duration) {
        self.progress_at = now;
    }

    /// Notes a message of a lane.
    pub(crate) fn on_received(&mut self, now: Duration) {
        (self.progress_at, self.received_at) = (now, now);
    }

    /// The time since the last message of any lane.
    pub(crate) fn silence(&self, now: Duration) -> Duration {
        now.saturating_sub(self.received_at)
    }

    /// The time at which the open call fails because lanes do not answer.
    pub(crate) fn deadline(&self, wait_limit: Duration) -> Option<Duration> {
        // New connections prolong a call, but not for ever.
        let late = (self.progress_at + wait_limit + GRACE).min(self.received_at + 2 * wait_limit + GRACE);
        self.is_open().then_some(late)
    }

    /// Notes for how long a lane has deferred a request of the call.
    pub(crate) fn add_deferred(&mut self, nanoseconds: u64) {
        self.deferred_ns = self.deferred_ns.max(nanoseconds);
    }

    pub(crate) fn deferred_ns(&self) -> u64 {
        self.deferred_ns
    }

    /// Notes by how many clocks a read is behind `clock`, if the slowest task is at `minimum`.
    pub(crate) fn set_staleness(&mut self, clock: Clock, minimum: Clock) {
        self.staleness = Some(clock - minimum.min(clock));
    }

    pub(crate) fn take_staleness(&mut self) -> Option<Clock> {
        self.staleness.take()
    }
}
