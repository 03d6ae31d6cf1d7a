//! Faults that the simulation injects, one at a time, to prove that its checker notices.

/// A rule that does not hold.
#[cfg_attr(not(feature = "fault-injection"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// A request is sent before the pushes in front of it.
    RequestsOvertakeLog,
    /// A tick ends before it is sent to all lanes.
    TicksAreNotAwaited,
    /// Another attempt of a task begins at the highest clock of all lanes.
    AttemptsBeginAtTheHighestClock,
    /// A prefetched answer is used after a barrier.
    PrefetchesSurviveBarriers,
}
