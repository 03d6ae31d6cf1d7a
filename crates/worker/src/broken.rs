//! Rules that the simulation takes out, one at a time, to prove that its checker notices.

/// A rule that is taken out.
#[cfg_attr(not(feature = "broken"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A request does not wait until the pushes before it are sent.
    RequestsOvertakeLog,
    /// A tick ends before all lanes are told.
    TicksAreNotAwaited,
    /// Another attempt of a task begins at the highest clock of all lanes.
    AttemptsBeginAtTheHighestClock,
    /// What was asked ahead is used behind a barrier.
    AheadIsKeptAtBarriers,
    /// Any row that is kept serves any pull.
    CacheIgnoresFreshness,
}
