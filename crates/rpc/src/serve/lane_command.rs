//! What a lane is told from outside of its thread.

use tokio::sync::oneshot;

use super::counters::ConnectionSlot;
use super::socket::DetachedSocket;
use crate::message::Message;
use crate::metrics::Metrics;
use crate::reader::FrameReader;

/// A command to a lane.
pub(super) enum LaneCommand {
    /// A connection that has sent a valid `Hello`.
    Connection(Box<AuthenticatedConnection>),
    /// Asks for the metrics of the lane.
    Metrics(oneshot::Sender<Metrics>),
    /// Calls the service, because it has input that did not come over a connection.
    Wake,
}

/// A connection that has sent a valid `Hello`.
pub(super) struct AuthenticatedConnection {
    pub(super) socket: DetachedSocket,
    pub(super) reader: FrameReader,
    pub(super) hello: Message,
    /// Whether bodies carry a checksum.
    pub(super) checksum: bool,
    pub(super) slot: ConnectionSlot,
}
