//! The key lists that a lane has from the current connection, so that their digests can stand for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rpc::Message;
use rpc::message::{KeyList, Pull, Push};

/// Shortest list that is cached: the digest of a shorter one saves little.
pub(crate) const SHORTEST_LIST: usize = 16;
/// Most lists of a connection.
const LIST_LIMIT: usize = 192;
/// Most bytes of the requests that are kept for their lists.
const BYTES_LIMIT: u64 = 16 << 20;

/// Lists by digest, the one used last at the end. Each is stored as the message that listed it, because it may have to
/// be sent again in full.
#[derive(Debug, Default)]
pub(crate) struct CachedKeyLists {
    lists: VecDeque<(u128, u64, Arc<Message>)>,
    bytes: u64,
}

impl CachedKeyLists {
    /// The message that listed the keys with this digest.
    pub(crate) fn find(&mut self, digest: u128) -> Option<Arc<Message>> {
        let at = self.lists.iter().rposition(|list| list.0 == digest)?;
        if at + 1 < self.lists.len() {
            let list = self.lists.remove(at)?;
            self.lists.push_back(list);
        }
        self.lists.back().map(|list| Arc::clone(&list.2))
    }

    pub(crate) fn insert(&mut self, digest: u128, bytes: u64, message: &Arc<Message>) {
        if bytes > BYTES_LIMIT || self.find(digest).is_some() {
            return;
        }
        self.bytes += bytes;
        self.lists.push_back((digest, bytes, Arc::clone(message)));
        while self.lists.len() > LIST_LIMIT || self.bytes > BYTES_LIMIT {
            let Some((_, bytes, _)) = self.lists.pop_front() else { break };
            self.bytes -= bytes;
        }
    }

    fn remove(&mut self, digest: u128) {
        if let Some(at) = self.lists.iter().position(|list| list.0 == digest)
            && let Some((_, bytes, _)) = self.lists.remove(at)
        {
            self.bytes -= bytes;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A message for a lane, with what is needed to send it again on another connection.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingRequest {
    pub(crate) message: Arc<Message>,
    /// The digest of its keys, if a digest may replace them.
    digest: Option<u128>,
    /// The message that listed the keys, if this one has their digest only.
    key_source: Option<Arc<Message>>,
    pub(crate) bytes: u64,
}

impl OutgoingRequest {
    pub(crate) fn new(message: Message, digest: Option<u128>, source: Option<Arc<Message>>) -> Self {
        let bytes = message.frame_bytes();
        Self { message: Arc::new(message), digest, key_source: source, bytes }
    }

    /// The message as it is sent now. `known` is the lists that were sent over the current connection.
    pub(crate) fn send(&mut self, known: &mut CachedKeyLists) -> Arc<Message> {
        if let Some(digest) = self.digest {
            match (known.find(digest), &self.key_source) {
                (Some(source), None) => self.replace_keys_by_digest(digest, source),
                (Some(_), Some(_)) => {}
                (None, Some(_)) => {
                    self.restore_keys();
                    known.insert(digest, self.bytes, &self.message);
                }
                (None, None) => known.insert(digest, self.bytes, &self.message),
            }
        }
        Arc::clone(&self.message)
    }

    /// Replaces the keys by their digest: `source` has listed them over this connection.
    fn replace_keys_by_digest(&mut self, digest: u128, source: Arc<Message>) {
        let message = Arc::make_mut(&mut self.message);
        let (Message::Pull(Pull { keys, .. }) | Message::Push(Push { keys, .. })) = message else { return };
        *keys = KeyList::Cached { digest, count: keys.len() as u32 };
        self.key_source = Some(source);
        self.bytes = message.frame_bytes();
    }

    /// Sets the time for which the task still waits. It is set when the request is sent again.
    pub(crate) fn set_wait(&mut self, rest: Duration) {
        let ms = u32::try_from(rest.as_millis()).unwrap_or(u32::MAX).max(1);
        match Arc::make_mut(&mut self.message) {
            Message::Pull(pull) => pull.wait_ms = ms,
            Message::PullFunction(pull) => pull.wait_ms = ms,
            Message::TryFunction(attempt) => attempt.wait_ms = ms,
            Message::Barrier(barrier) => barrier.wait_ms = ms,
            _ => {}
        }
    }

    /// Handles the answer that the lane has not cached the keys: they are listed when this is sent again.
    pub(crate) fn on_unknown_keys(&mut self, known: &mut CachedKeyLists) {
        if let Some(digest) = self.digest {
            known.remove(digest);
        }
    }

    fn restore_keys(&mut self) {
        let listed = match self.key_source.take().as_deref() {
            Some(Message::Pull(Pull { keys, .. }) | Message::Push(Push { keys, .. })) => keys.clone(),
            _ => return,
        };
        let message = Arc::make_mut(&mut self.message);
        let (Message::Pull(Pull { keys, .. }) | Message::Push(Push { keys, .. })) = message else { return };
        *keys = listed;
        self.bytes = message.frame_bytes();
    }
}

#[cfg(test)]
mod tests {
    use rpc::message::Tick;

    use super::*;

    #[test]
    fn the_oldest_lists_are_dropped_so_that_the_bytes_stay_below_the_limit() {
        let mut lists = CachedKeyLists::default();
        let message = |clock| Arc::new(Message::Tick(Tick { request: 0, job: 1, task: 0, clock }));
        let large = BYTES_LIMIT / 5 * 3;
        // At each moment there is room for one of them.
        for digest in 1..=6 {
            lists.insert(digest, large, &message(digest as u64));
            assert_eq!(lists.find(digest), Some(message(digest as u64)));
            assert_eq!(lists.find(digest - 1), None, "it makes room for list {digest}");
            assert_eq!(lists.bytes, large);
        }
        lists.insert(7, BYTES_LIMIT + 1, &message(7));
        assert_eq!((lists.find(7), lists.bytes), (None, large), "one that is too long drops no other");
        lists.remove(6);
        assert_eq!((lists.find(6), lists.bytes), (None, 0));
        // Small ones are limited by their number; the one that was used last stays longest.
        for digest in 0..LIST_LIMIT as u128 {
            lists.insert(digest + 10, 1, &message(0));
        }
        assert!(lists.find(10).is_some());
        lists.insert(1000, 1, &message(0));
        assert!(lists.find(10).is_some() && lists.find(11).is_none());
        assert_eq!(lists.bytes, LIST_LIMIT as u64);
    }
}
