//! Faults that the simulation injects, one at a time, to prove that its checker notices.

/// A rule that does not hold.
#[cfg_attr(not(feature = "fault-injection"), allow(unreachable_pub, reason = "shown only to the simulation"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// Messages that members have acknowledged are kept all the same.
    AcknowledgementsIgnored,
    /// A message that a member sends twice is delivered twice.
    DuplicatesDelivered,
    /// Messages without acknowledgement are not sent again on a new connection.
    NoRetransmission,
    /// No lease expires.
    LeaseNeverExpires,
    /// A member whose connection has ended stays until its lease is over.
    DisconnectedMembersStay,
    /// A master that was suspended counts its own pause as silence of its members.
    OwnPauseCounted,
    /// A new process takes the name of a member that is connected.
    ConnectedMembersLoseNames,
    /// The newest queued job starts first.
    QueueReversed,
}
