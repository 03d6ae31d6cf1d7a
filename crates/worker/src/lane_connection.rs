//! A blocking connection to a lane: made by the first address that can be reached, small messages gathered.

use std::sync::Arc;
use std::time::Duration;

use rpc::Message;
use rpc::message::{Hello, Push, PushFunction, Welcome};
use rpc::{Address, Receiver, Sender};

use crate::layout::LaneAddress;

/// Pushes that nobody waits for are gathered up to so many bytes, and go out in one write: with whatever is sent next to
/// their lane, at the latest the tick.
const WRITE_BUFFER_BYTES: u64 = 32 << 10;
#[derive(Debug)]
pub(crate) struct LaneConnection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Small messages that wait for company.
    pub(crate) write_buffer: Vec<Arc<Message>>,
    pub(crate) write_buffer_bytes: u64,
    /// When it last said something, or was looked at.
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
        if waits && self.write_buffer_bytes < WRITE_BUFFER_BYTES { Ok(()) } else { self.flush(None) }
    }

    /// Sends what was gathered. `step`: it ends this step, and nobody can answer it before all tasks have ended theirs.
    pub(crate) fn flush(&mut self, step: Option<u64>) -> Result<(), rpc::Error> {
        if self.write_buffer.is_empty() {
            return Ok(());
        }
        let sent = match step {
            Some(step) => self.sender.send_step(&self.write_buffer, step),
            None => self.sender.send_all(&self.write_buffer),
        };
        self.write_buffer.clear();
        self.write_buffer_bytes = 0;
        sent
    }
}

/// Connects to a lane by the first address that takes it.
pub(crate) fn connect_lane(
    place: &LaneAddress,
    limit: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), rpc::Error> {
    connect_first(place, |address| rpc::open(address, limit, hello))
}

/// What `open` makes of the first address of a lane that takes it: sockets of this machine first.
pub(crate) fn connect_first<T>(
    place: &LaneAddress,
    open: impl Fn(&Address) -> Result<T, rpc::Error>,
) -> Result<T, rpc::Error> {
    let mut addresses = Vec::with_capacity(place.addresses.len());
    for text in &place.addresses {
        addresses.push(text.parse::<Address>()?);
    }
    // A socket that is not there is one of another machine.
    addresses.retain(|address| !matches!(address, Address::Unix(path) if !path.exists()));
    addresses.sort_by_key(|address| !matches!(address, Address::Unix(_)));
    let mut last = rpc::Error::Closed;
    for address in &addresses {
        match open(address) {
            Err(rpc::Error::Refused(fault)) => return Err(rpc::Error::Refused(fault)),
            Err(error) => last = error,
            opened => return opened,
        }
    }
    Err(last)
}
