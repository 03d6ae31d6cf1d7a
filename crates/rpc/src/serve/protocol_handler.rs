//! Connections on the same port that do not carry frames. They are recognized by their first bytes and passed, with
//! their connection slot, to the handler of their protocol.

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

/// Serves one connection to its end.
pub type HandlerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves the connections of another protocol. All of it runs on the accepting thread, so nothing may block.
pub trait ProtocolHandler: Send + Sync + Debug {
    /// The first bytes of a connection of the protocol. They must not begin a frame or `GET `.
    fn preface(&self) -> &'static [u8];
    /// Called once, before the first connection is accepted.
    fn start(&self, lanes: Lanes);
    /// Serves one connection. When the stop is raised ([`ServerContext::stop`]) it should end soon; after
    /// [`Limits::close_time`] it is dropped.
    fn serve(&self, line: HandlerConnection, house: ServerContext) -> HandlerFuture;
}

/// A connection of the protocol, from its first byte on. Its slot is free again when this is dropped.
#[derive(Debug)]
pub struct HandlerConnection {
    socket: Socket,
    /// The bytes that were read to recognize the protocol.
    begun: Vec<u8>,
    /// How many of those bytes were read again.
    reread: usize,
    shared: Shared,
    _place: ConnectionSlot,
}

/// The part of the process that a handler may use.
#[derive(Clone, Debug)]
pub struct ServerContext(Shared);

impl ServerContext {
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Raised when the process ends.
    pub fn stop(&self) -> &Stop {
        &self.0.stop
    }

    /// Whether `token` is the shared secret. The time that this takes does not depend on how much of the token is
    /// right.
    pub fn is_token(&self, token: &[u8]) -> bool {
        token.ct_eq(&self.0.config.token).into()
    }

    /// Counts a connection that was closed because it did not authenticate.
    pub fn count_refused(&self) {
        count(&self.0.counters.refused_hello);
    }

    /// Counts a connection that was closed because it did not read its answers.
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
