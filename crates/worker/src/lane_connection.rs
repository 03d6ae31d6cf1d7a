//! A blocking connection to a lane. It uses the first address that can be reached, and buffers small messages.

use std::sync::Arc;
use std::time::Duration;

use rpc::Message;
use rpc::message::{FaultKind, Hello, Push, PushFunction, Welcome};
use rpc::{Receiver, Sender};

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

/// Longest wait for one of the two lanes that may have a replicated job.
const REPLICA_LIMIT: Duration = Duration::from_secs(1);

/// Connects to a lane by the first address that accepts. Sockets of this machine are tried first. If it cannot be reached
/// and has a standby, that is tried, unless the role names no job: it refuses unless it has taken the job over. Servers of which `is_lost` returns true
/// are not tried.
pub fn connect_lane(
    place: &LaneAddress,
    limit: Duration,
    hello: &Hello,
    is_lost: impl Fn(&str) -> bool,
) -> Result<(Sender, Receiver, Welcome), rpc::Error> {
    let Some(standby) = &place.standby else { return rpc::open_first(&place.addresses, limit, hello) };
    let limit = limit.min(REPLICA_LIMIT);
    let mut failure = rpc::Error::Closed;
    if !is_lost(&place.server) {
        failure = match rpc::open_first(&place.addresses, limit, hello) {
            // Another process may be at the addresses of the primary, which knows nothing of the job.
            Err(rpc::Error::Refused(fault)) if fault.kind != FaultKind::NoSuchJob => {
                return Err(rpc::Error::Refused(fault));
            }
            Err(error) => error,
            opened => return opened,
        };
    }
    if is_lost(&standby.server) || hello.role.job().is_none() {
        return Err(failure);
    }
    let of_standby = Hello { lane: standby.lane, ..hello.clone() };
    rpc::open_first(&standby.addresses, limit, &of_standby)
}
