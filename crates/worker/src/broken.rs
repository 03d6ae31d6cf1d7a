//! Rules that the simulation disables, one at a time, to prove that its checker notices.

/// A rule that is disabled.
#[cfg_attr(not(feature = "broken"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A request is sent before the pushes in front of it.
    RequestsOvertakeLog,
    /// A tick ends before it is sent to all lanes.
    TicksAreNotAwaited,
    /// Another attempt of a task begins at the highest clock of all lanes.
    AttemptsBeginAtTheHighestClock,
    /// A prefetched answer is used after a barrier.
    PrefetchesSurviveBarriers,
    /// Any cached row serves any pull.
    CacheIgnoresFreshness,
}
