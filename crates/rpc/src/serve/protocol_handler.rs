//! Guests: connections on the same port that do not speak in frames. They are told apart by their first bytes and handed to
//! whoever knows their language, with the place that they hold.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Shared;
use super::counters::{ConnectionSlot, add, count};
use super::lanes::Lanes;
use super::socket::Socket;
use crate::limits::Limits;
use crate::stop::Stop;

/// A conversation with a guest, until it ends.
pub type HandlerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Speaks with guests. All of it runs on the accepting thread: nothing may block.
pub trait ProtocolHandler: Send + Sync + Debug {
    /// How their connections begin, so that it is no frame and no `GET `.
    fn preface(&self) -> &'static [u8];
    /// Called once, before the first connection is taken.
    fn start(&self, lanes: Lanes);
    /// Speaks with one. When the stop is raised ([`ServerContext::stop`]) it should end soon; after [`Limits::close_time`] it is
    /// ended.
    fn serve(&self, line: HandlerConnection, house: ServerContext) -> HandlerFuture;
}

/// The stream of a guest, from its first byte on. Its place is free again when this is dropped.
#[derive(Debug)]
pub struct HandlerConnection {
    socket: Socket,
    /// What was read to tell it apart.
    begun: Vec<u8>,
    /// How much of that was read again.
    reread: usize,
    shared: Shared,
    _place: ConnectionSlot,
}

/// What a guest needs to know of the process.
#[derive(Clone, Debug)]
pub struct ServerContext(Shared);

impl ServerContext {
    /// Limits of connections.
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Raised when the process ends.
    pub fn stop(&self) -> &Stop {
        &self.0.stop
    }

    /// Whether this is the shared secret; how long that takes does not tell how much of it is right.
    pub fn is_token(&self, token: &[u8]) -> bool {
        token.ct_eq(&self.0.config.token).into()
    }

    /// Counts a connection that was closed because it never showed the right to be here.
    pub fn count_refused(&self) {
        count(&self.0.counters.refused_hello);
    }

    /// Counts a connection that was closed because it did not read what it had asked for.
    pub fn count_unread(&self) {
        count(&self.0.counters.closed_outbound);
    }
}

impl HandlerConnection {
    pub(super) fn new(
        socket: Socket,
        begun: Vec<u8>,
        shared: Shared,
        place: ConnectionSlot,
    ) -> (Self, ServerContext) {
        let house = ServerContext(shared.clone());
        (Self { socket, begun, reread: 0, shared, _place: place }, house)
    }
}

impl AsyncRead for HandlerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        if self.reread < self.begun.len() {
            let rest = &self.begun[self.reread..];
            let taken = rest.len().min(into.remaining());
            into.put_slice(&rest[..taken]);
            self.reread += taken;
        } else {
            std::task::ready!(Pin::new(&mut self.socket).poll_read(context, into))?;
        }
        add(&self.shared.counters.bytes_in, into.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HandlerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = std::task::ready!(Pin::new(&mut self.socket).poll_write(context, bytes))?;
        add(&self.shared.counters.bytes_out, written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
