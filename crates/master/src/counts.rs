//! The counters of a master.

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) heartbeats: u64,
    pub(crate) refused: u64,
    /// Members whose lease has expired.
    pub(crate) expired: u64,
    pub(crate) reconnected: u64,
    /// Messages that arrived twice.
    pub(crate) repeated: u64,
    /// Messages between a runner and a member when one of the two no longer existed.
    pub(crate) dropped: u64,
}
