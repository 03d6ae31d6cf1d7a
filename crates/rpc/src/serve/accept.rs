//! Takes connections, hears what they want, and hands them on.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::counters::{ConnectionSlot, count};
use super::handshake::handshake;
use super::lanes::Lanes;
use super::listener::{AsyncListener, Listener};
use super::protocol_handler::HandlerFuture;
use super::socket::{DetachedSocket, Socket};
use super::{Shared, runtime};
use crate::codec::put_frame;
use crate::error::Error;
use crate::limits::FrameLimits;
use crate::message::{Fault, FaultKind, Message};
use crate::reader::FrameReader;

/// How long nothing is accepted after the system refused, as it does when files are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// When one who was refused because all places are taken may come again.
const FULL_RETRY_MS: u32 = 1000;

/// What a lane is told.
pub(super) enum LaneCommand {
    /// A connection that said hello.
    Connection(Box<AuthenticatedConnection>),
    /// Its metrics are wanted.
    Metrics(oneshot::Sender<crate::metrics::Metrics>),
    /// Something has come past its connections.
    Wake,
}

/// A connection that said hello.
pub(super) struct AuthenticatedConnection {
    pub(super) socket: DetachedSocket,
    pub(super) reader: FrameReader,
    pub(super) hello: Message,
    /// The number of its first branch.
    pub(super) stream: u16,
    /// Whether bodies of that carry a checksum.
    pub(super) checksum: bool,
    pub(super) slot: ConnectionSlot,
}

/// The accepting thread.
pub(super) struct Acceptor {
    pub(super) lanes: Lanes,
    pub(super) shared: Shared,
    /// Guests that are there.
    handler_count: Cell<usize>,
    handler_ended: Notify,
}

impl Acceptor {
    pub(super) fn new(lanes: Lanes, shared: Shared) -> Self {
        Self { lanes, shared, handler_count: Cell::new(0), handler_ended: Notify::new() }
    }

    /// Until the stop is raised.
    pub(super) fn run(self, listeners: &[Listener]) -> Result<(), Error> {
        let runtime = runtime()?;
        let tasks = LocalSet::new();
        let acceptor = Rc::new(self);
        for listener in listeners {
            let _entered = runtime.enter();
            let accepting = listener.to_async().map_err(|source| Error::Io {
                what: format!("take connections at {}", listener.address()),
                source,
            })?;
            tasks.spawn_local(Rc::clone(&acceptor).accept(accepting));
        }
        let stop = acceptor.shared.stop.clone();
        tasks.block_on(&runtime, async {
            stop.raised().await;
            // What was said last is still written.
            let _ = timeout(acceptor.shared.config.limits.close_time, acceptor.handlers_ended()).await;
        });
        Ok(())
    }

    /// Speaks with a guest until it has left.
    pub(super) async fn run_handler(&self, visit: HandlerFuture) {
        self.handler_count.set(self.handler_count.get() + 1);
        visit.await;
        self.handler_count.set(self.handler_count.get() - 1);
        self.handler_ended.notify_one();
    }

    async fn handlers_ended(&self) {
        while self.handler_count.get() > 0 {
            self.handler_ended.notified().await;
        }
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

    /// Without waiting for anything: whoever comes too much must not cost much.
    fn refuse_full(&self, socket: &Socket, limit: usize) {
        count(&self.shared.counters.refused_full);
        let _ = socket.try_write(&fault_bytes(connections_full(0, limit)));
    }
}

/// What is said when all places are taken.
pub(super) fn connections_full(request: u64, limit: usize) -> Fault {
    let text = format!("all {limit} connections are taken: close some, or come again later");
    Fault { request, kind: FaultKind::Busy, text, retry_after_ms: FULL_RETRY_MS }
}

/// The frame of a fault.
pub(super) fn fault_bytes(fault: Fault) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A fault is short; were it not, closing says enough.
    let _ = put_frame(&Message::Fault(fault), true, &FrameLimits::default(), &mut bytes);
    bytes
}

/// What is said of bytes that could not be understood.
pub(super) fn fault_of(request: u64, error: &Error) -> Fault {
    let kind = match error {
        Error::Version { .. } => FaultKind::BadVersion,
        Error::TooLong { .. } => FaultKind::TooLarge,
        _ => FaultKind::BadFrame,
    };
    Fault { request, kind, text: error.to_string(), retry_after_ms: 0 }
}
