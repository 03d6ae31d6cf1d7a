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

#[cfg(test)]
mod tests {
    use matrix::OwnedValues;
    use rpc::message::{KeyList, Push, PushFunction};

    use super::*;

    fn at(clock: u64, index: u32) -> PushPosition {
        PushPosition { clock, index }
    }

    fn push_of(PushPosition { clock, index }: PushPosition, keys: KeyList) -> Message {
        let values = OwnedValues::F32(vec![1.0; keys.len() as usize]).into();
        let (request, runs) = (0, Vec::new());
        Message::Push(Push {
            request,
            job: 1,
            task: 0,
            clock,
            index,
            matrix: 0,
            table: 0,
            runs,
            keys,
            values,
        })
    }

    /// A push of one value.
    fn push(clock: u64, index: u32) -> OutgoingRequest {
        OutgoingRequest::new(push_of(at(clock, index), KeyList::Range { start: 0, end: 1 }), None, None)
    }

    fn function(clock: u64, index: u32, request: RequestId) -> OutgoingRequest {
        let (job, task, matrix, calls) = (1, 0, 0, Vec::new());
        let message = Message::PushFunction(PushFunction { request, job, task, clock, index, matrix, calls });
        OutgoingRequest::new(message, None, None)
    }

    fn tick(clock: u64) -> Tick {
        Tick { request: 0, job: 1, task: 0, clock }
    }

    /// A queue and what it needs to send.
    #[derive(Default)]
    struct Line {
        queue: RetransmitQueue,
        known: CachedKeyLists,
        ids: RequestId,
    }

    impl Line {
        fn of(pushes: impl IntoIterator<Item = OutgoingRequest>) -> Self {
            let mut line = Self::default();
            pushes.into_iter().for_each(|push| line.queue.push(push));
            line
        }

        /// Sends what the window allows.
        fn send(&mut self, window: u64) -> Vec<Arc<Message>> {
            let Self { queue, known, ids } = self;
            std::iter::from_fn(|| queue.next(window, known, ids)).collect()
        }

        /// Sends what the window allows; returns the request of each push.
        fn requests(&mut self, window: u64) -> Vec<RequestId> {
            let request = |message: &Arc<Message>| match &**message {
                Message::Push(push) => push.request,
                other => panic!("{other:?}"),
            };
            self.send(window).iter().map(request).collect()
        }

        /// Number of sent entries, and whether these are all.
        fn sent(&self) -> (usize, bool) {
            (self.queue.sent_count(), self.queue.is_all_sent())
        }
    }

    #[test]
    fn an_answer_acknowledges_the_pushes_below_its_position() {
        let size = push(0, 0).bytes;
        let mut line = Line::of([push(0, 0), push(0, 1)]);
        line.queue.tick(tick(1));
        line.queue.push(push(1, 0));
        assert_eq!((line.queue.bytes(), line.sent()), (3 * size, (0, false)), "a tick counts as nothing");
        assert_eq!(line.send(u64::MAX).len(), 4);
        assert_eq!(line.sent(), (4, true));
        line.queue.acknowledge(at(0, 2));
        assert_eq!((line.queue.bytes(), line.sent()), (size, (2, true)), "the tick is not acknowledged");
        line.queue.acknowledge(at(0, 0));
        line.queue.acknowledge(at(1, 0));
        assert_eq!((line.queue.bytes(), line.queue.has_pushes()), (size, true));
        line.queue.acknowledge(at(1, 1));
        assert_eq!((line.queue.bytes(), line.sent(), line.queue.has_pushes()), (0, (0, true), false));
        line.queue.push(push(1, 0));
        assert!(!line.queue.has_pushes(), "an earlier attempt has made it");
        line.queue.push(push(1, 1));
        assert!(line.queue.has_pushes() && !line.queue.is_all_sent());
        line.queue.acknowledge(at(2, 0));
        assert_eq!(
            (line.queue.bytes(), line.sent()),
            (0, (0, true)),
            "acknowledged before it was sent again"
        );
    }

    #[test]
    fn a_push_function_is_acknowledged_by_its_own_answer() {
        let mut line = Line::of([push(0, 0), function(0, 1, 9), push(0, 2)]);
        line.send(u64::MAX);
        assert!(line.queue.awaits_answer());
        line.queue.acknowledge(at(0, 3));
        assert_eq!(line.sent(), (2, true), "and what is behind it waits");
        assert!(!line.queue.acknowledge_function(8));
        assert!(line.queue.acknowledge_function(9));
        assert_eq!((line.sent(), line.queue.bytes(), line.queue.awaits_answer()), ((0, true), 0, false));
        line.queue.push(function(1, 0, 10));
        assert!(!line.queue.acknowledge_function(10), "it was not sent");
        line.queue.push(push(1, 1));
        line.send(u64::MAX);
        assert!(line.queue.acknowledge_function(10));
        assert_eq!(
            (line.sent(), line.queue.bytes()),
            ((1, true), push(1, 1).bytes),
            "the push has no answer yet"
        );
    }

    #[test]
    fn a_function_without_an_answer_is_acknowledged_like_a_push() {
        let mut line = Line::of([function(0, 0, 0), push(0, 1)]);
        assert!(line.queue.has_pushes() && !line.queue.awaits_answer());
        line.send(u64::MAX);
        line.queue.acknowledge(at(0, 1));
        assert_eq!(line.sent(), (1, true));
    }

    #[test]
    fn of_adjacent_ticks_the_last_is_sent() {
        let mut line = Line::default();
        let sent = |line: &mut Line| -> Vec<u64> {
            let clock = |message: &Arc<Message>| match &**message {
                Message::Tick(tick) => tick.clock,
                Message::Push(push) => 100 + push.clock,
                other => panic!("{other:?}"),
            };
            line.send(u64::MAX).iter().map(clock).collect()
        };
        line.queue.tick(tick(1));
        line.queue.tick(tick(2));
        assert_eq!(sent(&mut line), [2]);
        line.queue.tick(tick(3));
        assert_eq!((line.sent(), sent(&mut line)), ((0, false), vec![3]));
        line.queue.push(push(3, 0));
        line.queue.tick(tick(4));
        line.queue.tick(tick(5));
        assert_eq!((sent(&mut line), line.sent()), (vec![103, 5], (3, true)));
        line.queue.rewind();
        assert_eq!((line.sent(), sent(&mut line)), ((0, false), vec![3, 103, 5]));
    }

    #[test]
    fn a_window_asks_for_an_answer_when_it_is_half_full_and_when_it_is_full() {
        let size = push(0, 0).bytes;
        let window = 4 * size;
        let mut line = Line::of((0..12).map(|index| push(0, index)));
        assert_eq!(line.requests(window), [0, 0, 1, 0, 2]);
        assert!(line.queue.has_ack_request(1) && line.queue.has_ack_request(2));
        assert!(!line.queue.has_ack_request(3));
        assert!(line.requests(window).is_empty(), "it is full");
        line.queue.acknowledge(at(0, 3));
        assert_eq!(line.requests(window), [0, 0, 3], "the answer to the fifth is to come");
        line.queue.acknowledge(at(0, 8));
        assert_eq!(line.requests(window), [0, 0, 4, 0]);
        assert_eq!((line.queue.bytes(), line.sent()), (4 * size, (4, true)));
        line.queue.rewind();
        assert!(!line.queue.has_ack_request(4), "it is not sent over this connection");
        assert_eq!(line.requests(window)[..2], [0, 0]);
    }

    #[test]
    fn a_push_that_awaits_its_own_answer_asks_for_all_before_it() {
        let size = push(0, 0).bytes;
        let mut line = Line::of([function(0, 0, 50)]);
        (1..6).for_each(|index| line.queue.push(push(0, index)));
        assert_eq!(line.send(0).len(), 1);
        let requests = line.requests(4 * size + function(0, 0, 50).bytes);
        assert_eq!(requests, [0, 0, 0, 0, 1], "half a window asks nothing more");
    }

    #[test]
    fn bytes_follow_the_keys_that_are_sent() {
        let keys = |start: u64| KeyList::Listed((start..start + 100).collect());
        let mut line = Line::default();
        for index in 0..2 {
            let message = push_of(at(0, index), keys(7));
            line.queue.push(OutgoingRequest::new(message, Some(1), None));
        }
        let full = line.queue.bytes();
        let lists = |messages: &[Arc<Message>]| -> Vec<bool> {
            let is_listed = |message: &Arc<Message>| match &**message {
                Message::Push(push) => matches!(push.keys, KeyList::Listed(_)),
                other => panic!("{other:?}"),
            };
            messages.iter().map(is_listed).collect()
        };
        let sent = line.send(u64::MAX);
        assert_eq!(lists(&sent), [true, false], "the digest stands for the same keys");
        let frames = |sent: &[Arc<Message>]| sent.iter().map(|message| message.frame_bytes()).sum::<u64>();
        assert_eq!(line.queue.bytes(), frames(&sent));
        assert!(line.queue.bytes() < full);
        line.queue.acknowledge(at(0, 1));
        line.queue.rewind();
        line.known.clear();
        let again = line.send(u64::MAX);
        assert_eq!(
            (lists(&again), line.queue.bytes()),
            (vec![true], full / 2),
            "the new connection has no keys"
        );
    }
}
