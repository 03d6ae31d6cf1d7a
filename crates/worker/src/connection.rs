//! A blocking connection to a lane: made by the first address that can be reached, small messages gathered.

use std::sync::Arc;
use std::time::Duration;

use rpc::Message;
use rpc::message::{Hello, Push, PushFunction, Welcome};
use rpc::{Address, Receiver, Sender};

use crate::layout::LaneAddress;

/// Pushes that nobody waits for are gathered up to so many bytes, and go out in one write: with whatever is sent next to
/// their lane, at the latest the tick.
const GATHERED_BYTES: u64 = 32 << 10;
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Small messages that wait for company.
    pub(crate) gathered: Vec<Arc<Message>>,
    pub(crate) gathered_bytes: u64,
    /// When it last said something, or was looked at.
    pub(crate) heard_at: Duration,
}

impl Connection {
    pub(crate) fn send(&mut self, message: &Arc<Message>, gathers: bool) -> Result<(), rpc::Error> {
        let is_silent = matches!(
            **message,
            Message::Push(Push { request: 0, .. }) | Message::PushFunction(PushFunction { request: 0, .. })
        );
        let waits = gathers || is_silent;
        self.gathered.push(Arc::clone(message));
        self.gathered_bytes += message.frame_bytes();
        if waits && self.gathered_bytes < GATHERED_BYTES { Ok(()) } else { self.flush(None) }
    }

    /// Sends what was gathered. `step`: it ends this step, and nobody can answer it before all tasks have ended theirs.
    pub(crate) fn flush(&mut self, step: Option<u64>) -> Result<(), rpc::Error> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let sent = match step {
            Some(step) => self.sender.send_step(&self.gathered, step),
            None => self.sender.send_all(&self.gathered),
        };
        self.gathered.clear();
        self.gathered_bytes = 0;
        sent
    }
}

/// Connects to a lane by the first address that takes it.
pub(crate) fn open_any(
    place: &LaneAddress,
    limit: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), rpc::Error> {
    first_of(place, |address| rpc::open(address, limit, hello))
}

/// What `open` makes of the first address of a lane that takes it: sockets of this machine first.
pub(crate) fn first_of<T>(
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
