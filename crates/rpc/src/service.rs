//! What a server or master process is to the network: a pure state machine.

use std::time::Duration;

use crate::message::Message;
use crate::metrics::Metrics;

/// A connection, unique in the process.
pub type ConnectionId = u64;

/// What a service wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Sends; nothing happens when the connection is gone.
    Send {
        /// To whom.
        connection: ConnectionId,
        /// What.
        message: Message,
    },
    /// Closes, after what was sent before. No more messages of it come; `on_closed` still does.
    Close {
        /// Which.
        connection: ConnectionId,
    },
    /// Stops reading frames.
    Pause {
        /// Of which.
        connection: ConnectionId,
    },
    /// Goes on reading frames.
    Resume {
        /// Of which.
        connection: ConnectionId,
    },
}

/// A pure state machine behind connections. Times are since the start of the process.
pub trait Service: Send {
    /// The first message of a connection is its Hello, whose token and lane are checked; the service answers it.
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    );
    /// A connection is gone. Called once for each that said hello, those that the service closed included.
    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>);
    /// The time of [`Self::next_time`] has come, or the lane was woken before ([`crate::serve::Lanes::wake`]).
    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>);
    /// When it wants to be called next; asked after each call.
    fn next_time(&self) -> Option<Duration>;
    /// Adds what it counts.
    fn metrics(&self, out: &mut Metrics);
}
