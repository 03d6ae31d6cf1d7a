//! The state that a lane keeps for a connection.

use std::collections::VecDeque;

use rpc::Message;
use rpc::message::Role;

use crate::key_lists::KeyLists;

/// One connection. If `is_blocked`, its first queued request is a deferred push, and all requests behind it wait.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) role: Role,
    pub(crate) is_blocked: bool,
    pub(crate) queue: VecDeque<QueuedRequest>,
    pub(crate) queued_bytes: u64,
    pub(crate) is_paused: bool,
    pub(crate) key_lists: KeyLists,
    /// Number of pushes of this connection in the write-ahead log.
    pub(crate) recorded_count: u64,
}

/// A request that waits for those before it on its connection.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    /// Number of the message among all messages of the lane.
    pub(crate) arrival: u64,
    pub(crate) message: Message,
    pub(crate) bytes: u64,
}

impl Connection {
    pub(crate) fn new(role: Role, key_list_limit_bytes: u64) -> Self {
        Self {
            role,
            is_blocked: false,
            queue: VecDeque::new(),
            queued_bytes: 0,
            is_paused: false,
            key_lists: KeyLists::new(key_list_limit_bytes),
            recorded_count: 0,
        }
    }

    pub(crate) fn push_back(&mut self, queued: QueuedRequest) {
        self.queued_bytes += queued.bytes;
        self.queue.push_back(queued);
    }

    pub(crate) fn push_front(&mut self, queued: QueuedRequest) {
        self.queued_bytes += queued.bytes;
        self.queue.push_front(queued);
    }

    pub(crate) fn pop_front(&mut self) -> Option<QueuedRequest> {
        let queued = self.queue.pop_front()?;
        self.queued_bytes -= queued.bytes;
        Some(queued)
    }
}
