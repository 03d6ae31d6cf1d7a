//! Rules that the simulation takes out, one at a time, to prove that its checker notices.

/// A rule that is taken out.
#[cfg_attr(not(feature = "broken"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// What members have heard is kept all the same.
    AcknowledgementsIgnored,
    /// What a member says twice is told twice.
    DuplicatesDelivered,
    /// What was not confirmed is not said again on a new connection.
    NoRetransmission,
    /// Nobody is ever taken for dead.
    LeaseNeverExpires,
    /// A master that slept takes its members for silent.
    OwnPauseCounted,
    /// The last job in line starts first.
    QueueReversed,
}
