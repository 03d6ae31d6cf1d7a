//! The retransmit queue of a lane: pushes, push functions and the ticks between them that the lane has not
//! acknowledged, in order. After a reset they are sent again.
//!
//! Any answer that reports the position of applied pushes acknowledges a push. A push function that requests an answer
//! is acknowledged by this answer only: the function may have failed, and its task must get the error.

use std::collections::VecDeque;
use std::sync::Arc;

use rpc::Message;
use rpc::message::{PushPosition, RequestId, Tick};

use crate::cached_key_lists::{CachedKeyLists, OutgoingRequest};

/// Invariants: push ids ascend; no two ticks are adjacent; the first `sent_len` entries were sent over the current
/// connection.
#[derive(Debug, Default)]
pub(crate) struct RetransmitQueue {
    entries: VecDeque<OutgoingRequest>,
    sent_len: usize,
    /// Bytes of all entries.
    bytes: u64,
    /// Bytes of the sent entries.
    sent_bytes: u64,
    /// All pushes below this position are acknowledged.
    applied: PushPosition,
    /// The last push of this connection that requests an answer.
    ack_request: Option<PushPosition>,
}

impl RetransmitQueue {
    /// Bytes of all entries that are not acknowledged.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a push is not acknowledged.
    pub(crate) fn has_pushes(&self) -> bool {
        self.entries.iter().any(|entry| push_id(&entry.message).is_some())
    }

    pub(crate) fn is_all_sent(&self) -> bool {
        self.sent_len == self.entries.len()
    }

    /// Number of entries that were sent over the current connection.
    pub(crate) fn sent_count(&self) -> usize {
        self.sent_len
    }

    pub(crate) fn push(&mut self, outgoing: OutgoingRequest) {
        if push_id(&outgoing.message).is_some_and(|name| name < self.applied) {
            return; // An earlier attempt of this task has made the push.
        }
        self.bytes += outgoing.bytes;
        self.entries.push_back(outgoing);
    }

    /// Adds a tick. It replaces a tick directly before it.
    pub(crate) fn tick(&mut self, tick: Tick) {
        if self.entries.back().is_some_and(|last| matches!(*last.message, Message::Tick(_))) {
            self.pop_back();
        }
        // A tick counts as 0 bytes: it cannot request an answer, so it must not fill the window.
        let mut outgoing = OutgoingRequest::new(Message::Tick(tick), None, None);
        outgoing.bytes = 0;
        self.push(outgoing);
    }

    /// Handles the report that all pushes below `applied` are applied.
    pub(crate) fn acknowledge(&mut self, applied: PushPosition) {
        self.applied = self.applied.max(applied);
        let mut count = 0;
        for (i, entry) in self.entries.iter().enumerate() {
            match push_id(&entry.message) {
                Some(_) if awaits_answer(&entry.message) => break,
                Some(name) if name < self.applied => count = i + 1,
                Some(_) => break,
                None => {}
            }
        }
        for outgoing in self.entries.drain(..count) {
            self.bytes -= outgoing.bytes;
            if self.sent_len > 0 {
                self.sent_len -= 1;
                self.sent_bytes -= outgoing.bytes;
            }
        }
    }

    /// Whether a push function has no answer yet.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.entries.iter().any(|entry| awaits_answer(&entry.message))
    }

    /// Handles the answer to a push function. Returns false when no sent push function has this request id.
    pub(crate) fn acknowledge_function(&mut self, request: RequestId) -> bool {
        let is_it = |entry: &OutgoingRequest| matches!(&*entry.message, Message::PushFunction(push) if push.request == request);
        let Some(at) = self.entries.iter().take(self.sent_len).position(is_it) else { return false };
        if let Some(outgoing) = self.entries.remove(at) {
            self.bytes -= outgoing.bytes;
            self.sent_bytes -= outgoing.bytes;
            self.sent_len -= 1;
        }
        // Pushes behind it may have been acknowledged before.
        self.acknowledge(self.applied);
        true
    }

    /// Marks all entries as not sent, because the connection is closed.
    pub(crate) fn rewind(&mut self) {
        (self.sent_len, self.sent_bytes, self.ack_request) = (0, 0, None);
    }

    /// The next message to send, if the window allows it. A push requests an answer when the window is half full, so
    /// that the answer comes before it is full, and always when it fills the window, so that some answer comes.
    pub(crate) fn next(
        &mut self,
        window: u64,
        known: &mut CachedKeyLists,
        ids: &mut RequestId,
    ) -> Option<Arc<Message>> {
        let entry = self.entries.get_mut(self.sent_len)?;
        if self.sent_bytes > window {
            return None;
        }
        // Sending may list the keys in full, which changes the bytes.
        self.bytes -= entry.bytes;
        if let Some(name) = push_id(&entry.message) {
            let filled = self.sent_bytes + entry.bytes;
            let is_asked = self.ack_request.is_some_and(|asked| asked >= self.applied);
            if awaits_answer(&entry.message) {
                self.ack_request = Some(name);
            } else if filled > window || (filled > window / 2 && !is_asked) {
                self.ack_request = Some(name);
                *ids += 1;
                match Arc::make_mut(&mut entry.message) {
                    Message::Push(push) => push.request = *ids,
                    Message::PushFunction(push) => push.request = *ids,
                    _ => {}
                }
            }
        }
        let message = entry.send(known);
        self.bytes += entry.bytes;
        self.sent_bytes += entry.bytes;
        self.sent_len += 1;
        Some(message)
    }

    /// Whether a push that is not acknowledged has requested an answer under this id.
    pub(crate) fn has_ack_request(&self, request: RequestId) -> bool {
        let sent = self.entries.iter().take(self.sent_len);
        sent.filter_map(|entry| match &*entry.message {
            Message::Push(push) => Some(push.request),
            Message::PushFunction(push) => Some(push.request),
            _ => None,
        })
        .any(|asked| asked == request)
    }

    fn pop_back(&mut self) {
        let Some(outgoing) = self.entries.pop_back() else { return };
        self.bytes -= outgoing.bytes;
        if self.sent_len > self.entries.len() {
            self.sent_len -= 1;
            self.sent_bytes -= outgoing.bytes;
        }
    }
}

/// The position of a push, or `None` for another message.
fn push_id(message: &Message) -> Option<PushPosition> {
    match message {
        Message::Push(push) => Some(PushPosition { clock: push.clock, index: push.index }),
        Message::PushFunction(push) => Some(PushPosition { clock: push.clock, index: push.index }),
        _ => None,
    }
}

/// Whether only its own answer acknowledges the message.
fn awaits_answer(message: &Message) -> bool {
    matches!(message, Message::PushFunction(push) if push.request != 0)
}
