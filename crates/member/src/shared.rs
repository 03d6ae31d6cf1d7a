//! The state that the thread of a member and its handles share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc::message::Control;
use rpc::reliable_queue::ReliableQueue;
use rpc::{Message, Sender, Stop};
use serde_json::Value;

/// Longest wait for the master to close the connection of a member that leaves.
pub(crate) const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// The state that the thread and the handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<MemberState>,
    pub(crate) changed: Condvar,
    pub(crate) leave_requested: Stop,
}

#[derive(Debug)]
pub(crate) struct MemberState {
    pub(crate) id: u32,
    pub(crate) report: Value,
    /// `None` while there is no connection.
    pub(crate) sender: Option<Sender>,
    pub(crate) queue: ReliableQueue,
    /// Whether the thread has ended.
    pub(crate) is_closed: bool,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemberState {
    /// Sends if there is a connection. Shuts a broken connection down, which the thread notices.
    pub(crate) fn send(&mut self, control: Control) {
        if let Some(sender) = &mut self.sender
            && sender.send(&Message::Control(control)).is_err()
        {
            sender.shutdown();
            self.sender = None;
        }
    }
}
