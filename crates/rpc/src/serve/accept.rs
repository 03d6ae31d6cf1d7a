//! Accepts connections, and passes those with a valid `Hello` to their lanes.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;

use super::counters::count;
use super::faults::fault_bytes;
use super::handshake::handshake;
use super::lanes::Lanes;
use super::listener::{AsyncListener, Listener};
use super::runtime::runtime;
use super::shared::Shared;
use super::socket::Socket;
use crate::error::Error;
use crate::message::{Fault, FaultKind};

/// Pause after the system has refused to accept, as it does when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Milliseconds after which a client may retry when the limit of connections is reached.
const FULL_RETRY_MS: u32 = 1000;

/// The accepting thread.
pub(super) struct Acceptor {
    lanes: Lanes,
    shared: Shared,
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
                tokio::task::spawn_local(handshake(self.lanes.clone(), self.shared.clone(), socket, place));
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
