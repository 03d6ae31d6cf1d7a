//! The interface between the network and a server or master process: a pure state machine.

use std::time::Duration;

use crate::message::Message;
use crate::metrics::Metrics;

/// A connection, unique in the process.
pub type ConnectionId = u64;

/// What a service asks the network to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Sends a message; does nothing when the connection is closed.
    Send { connection: ConnectionId, message: Message },
    /// Closes the connection after sending earlier messages. No more messages of it follow; `on_closed` still does.
    Close { connection: ConnectionId },
    /// Stops reading frames of the connection.
    Pause { connection: ConnectionId },
    /// Continues to read frames of the connection.
    Resume { connection: ConnectionId },
}

/// A pure state machine behind connections. Times are since the start of the process.
pub trait Service: Send {
    /// Handles a message. The first message of a connection is its `Hello`, whose token and lane were checked; the
    /// service answers it.
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    );
    /// A connection is closed. Called once for each connection that sent `Hello`, including those that the service
    /// closed.
    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>);
    /// The time of [`Self::next_time`] has come, or the lane was woken before it ([`crate::serve::Lanes::wake`]).
    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>);
    /// Makes durable what the effects so far depend on. Called before anything is sent.
    fn persist(&mut self) {}
    /// When [`Self::on_time`] is to be called next. The lane asks after each call.
    fn next_time(&self) -> Option<Duration>;
    /// Adds the counters of the service.
    fn metrics(&self, out: &mut Metrics);
}
