//! Accepts connections, and passes those with a valid `Hello` to their lanes.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::counters::{ConnectionSlot, count};
use super::handshake::handshake;
use super::lanes::Lanes;
use super::listener::{AsyncListener, Listener};
use super::socket::{DetachedSocket, Socket};
use super::{Shared, runtime};
use crate::codec::put_frame;
use crate::error::Error;
use crate::limits::FrameLimits;
use crate::message::{Fault, FaultKind, Message};
use crate::reader::FrameReader;

/// Pause after the system has refused to accept, as it does when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Milliseconds after which a client may retry when the limit of connections is reached.
const FULL_RETRY_MS: u32 = 1000;

/// What the accepting thread sends to a lane.
pub(super) enum LaneCommand {
    /// A connection that has sent a valid `Hello`.
    Connection(Box<AuthenticatedConnection>),
    /// Asks for the metrics of the lane.
    Metrics(oneshot::Sender<crate::metrics::Metrics>),
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

/// The accepting thread.
pub(super) struct Acceptor {
    pub(super) lanes: Lanes,
    pub(super) shared: Shared,
}

impl Acceptor {
    pub(super) fn new(lanes: Lanes, shared: Shared) -> Self {
        Self { lanes, shared }
    }

    /// Runs until the stop is raised.
    pub(super) fn run(self, listeners: &[Listener]) -> Result<(), Error> {
        let runtime = runtime()?;
        let tasks = LocalSet::new();
        let acceptor = Rc::new(self);
        for listener in listeners {
            let _entered = runtime.enter();
            let accepting = listener.to_async().map_err(|source| Error::Io {
                what: format!("accept connections at {}", listener.address()),
                source,
            })?;
            tasks.spawn_local(Rc::clone(&acceptor).accept(accepting));
        }
        let stop = acceptor.shared.stop.clone();
        tasks.block_on(&runtime, stop.raised());
        Ok(())
    }

    async fn accept(self: Rc<Self>, listener: AsyncListener) {
        loop {
            let socket = match listener.accept().await {
                Ok(socket) => socket,
                Err(error) => {
                    count(&self.shared.counters.accept_errors);
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            count(&self.shared.counters.accepted);
            let limit = self.shared.config.limits.connections;
            if let Some(place) = self.shared.counters.reserve_slot(limit) {
                tokio::task::spawn_local(handshake(Rc::clone(&self), socket, place));
            } else {
                self.refuse_full(&socket, limit);
            }
        }
    }

    /// Refuses a connection without waiting for the other end, so that excess connections cost little.
    fn refuse_full(&self, socket: &Socket, limit: usize) {
        count(&self.shared.counters.refused_full);
        let _ = socket.try_write(&fault_bytes(connections_full(0, limit)));
    }
}

/// The fault for a connection above the limit.
fn connections_full(request: u64, limit: usize) -> Fault {
    let text = format!("the limit of {limit} connections is reached: close some, or retry later");
    Fault { request, kind: FaultKind::Busy, text, retry_after_ms: FULL_RETRY_MS }
}

pub(super) fn fault_bytes(fault: Fault) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A fault is short. If it could not be written, closing the connection would be enough.
    let _ = put_frame(&Message::Fault(fault), true, &FrameLimits::default(), &mut bytes);
    bytes
}

/// The fault for bytes that cannot be parsed.
pub(super) fn fault_of(request: u64, error: &Error) -> Fault {
    let kind = match error {
        Error::Version { .. } => FaultKind::BadVersion,
        Error::TooLong { .. } => FaultKind::TooLarge,
        _ => FaultKind::BadFrame,
    };
    Fault { request, kind, text: error.to_string(), retry_after_ms: 0 }
}
