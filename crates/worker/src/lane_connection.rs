//! A blocking connection to a lane. It uses the first address that can be reached, and buffers small messages.

use std::sync::Arc;
use std::time::Duration;

use rpc::Message;
use rpc::message::{Hello, Push, PushFunction, Welcome};
use rpc::{Address, Receiver, Sender};

use crate::layout::LaneAddress;

/// Size of the write buffer. Pushes without an answer are collected and sent in one write: with the next other message
/// to their lane, at the latest with the tick.
const WRITE_BUFFER_BYTES: u64 = 32 << 10;
#[derive(Debug)]
pub(crate) struct LaneConnection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Messages that are not written yet.
    pub(crate) write_buffer: Vec<Arc<Message>>,
    pub(crate) write_buffer_bytes: u64,
    /// The time of the last message or poll.
    pub(crate) received_at: Duration,
}

impl LaneConnection {
    pub(crate) fn send(&mut self, message: &Arc<Message>, gathers: bool) -> Result<(), rpc::Error> {
        let is_silent = matches!(
            **message,
            Message::Push(Push { request: 0, .. }) | Message::PushFunction(PushFunction { request: 0, .. })
        );
        let waits = gathers || is_silent;
        self.write_buffer.push(Arc::clone(message));
        self.write_buffer_bytes += message.frame_bytes();
        if waits && self.write_buffer_bytes < WRITE_BUFFER_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the buffered messages. Reads answers meanwhile if the lane does not read.
    pub(crate) fn flush(&mut self) -> Result<(), rpc::Error> {
        if self.write_buffer.is_empty() {
            return Ok(());
        }
        let sent = self.sender.send_all_reading(&self.write_buffer, &mut self.receiver);
        self.write_buffer.clear();
        self.write_buffer_bytes = 0;
        sent
    }
}

/// Connects to a lane by the first address that accepts. Sockets of this machine are tried first.
pub fn connect_lane(
    place: &LaneAddress,
    limit: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), rpc::Error> {
    let mut addresses = Vec::with_capacity(place.addresses.len());
    for text in &place.addresses {
        addresses.push(text.parse::<Address>()?);
    }
    // A socket file that does not exist here belongs to another machine.
    addresses.retain(|address| !matches!(address, Address::Unix(path) if !path.exists()));
    addresses.sort_by_key(|address| !matches!(address, Address::Unix(_)));
    let mut last = rpc::Error::Closed;
    for address in &addresses {
        match rpc::open(address, limit, hello) {
            Err(rpc::Error::Refused(fault)) => return Err(rpc::Error::Refused(fault)),
            Err(error) => last = error,
            opened => return opened,
        }
    }
    Err(last)
}
