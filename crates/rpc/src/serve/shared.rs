//! How services are run, and what their threads share.

use std::sync::Arc;
use std::time::Instant;

use super::counters::Counters;
use crate::limits::Limits;
use crate::stop::Stop;
use crate::transport::Address;

/// How services are run.
#[derive(Clone, Debug, Default)]
pub struct ServeConfig {
    /// The shared secret; empty when there is none.
    pub token: Vec<u8>,
    pub limits: Limits,
    /// Where the process serves HTTP. A client that sends HTTP to a port of frames is told these addresses.
    pub http: Vec<Address>,
}

/// The state that all threads of a [`serve`] share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) config: Arc<ServeConfig>,
    pub(super) counters: Arc<Counters>,
    pub(super) stop: Stop,
    /// The time from which all times of services count.
    pub(super) started: Instant,
}
