//! What a state machine of a process is to whoever drives it.

use std::time::Duration;

use rpc::Message;

/// Names a connection; never used twice.
pub type ConnectionId = u64;

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message.
    Send {
        /// Where.
        connection: ConnectionId,
        /// What.
        message: Message,
    },
    /// Close a connection after what was sent on it.
    Close {
        /// Which.
        connection: ConnectionId,
    },
    /// Stop reading frames of a connection.
    Pause {
        /// Which.
        connection: ConnectionId,
    },
    /// Read on.
    Resume {
        /// Which.
        connection: ConnectionId,
    },
}

/// A pure machine: time is the duration since the start of the process.
pub trait Service: Send {
    /// The first message of a connection is its hello.
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    );
    /// The connection is gone.
    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>);
    /// The time of [`Self::next_time`] has come.
    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>);
    /// When [`Self::on_time`] is wanted.
    fn next_time(&self) -> Option<Duration>;
    /// Prometheus text.
    fn metrics(&self, out: &mut String);
}
