//! Messages between a member and the master about a job, kept until they are acknowledged. A connection is reliable
//! until it is reset; a reset loses the last messages. Both sides send unacknowledged messages again and drop messages
//! that they have received before, so each message arrives once and in order.

use std::collections::VecDeque;

use crate::message::{Control, ControlBody};

/// After this many received messages the acknowledgement is sent at once and not with the next heartbeat.
const ACKNOWLEDGE_AFTER: u64 = 64;

/// What the number of a received message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceCheck {
    /// The message was not received before.
    New,
    /// The message was received before; it is dropped.
    Duplicate,
    /// An earlier message is missing. No network does this; the connection is given up.
    Gap,
}

/// One side of the exchange between a member and the master.
#[derive(Debug, Default)]
pub struct ReliableQueue {
    sent_count: u64,
    unacknowledged: VecDeque<Control>,
    received_count: u64,
    acknowledged_count: u64,
}

impl ReliableQueue {
    /// Numbers and stores `body`. The caller sends the returned frame if there is a connection.
    pub fn enqueue(&mut self, body: ControlBody) -> Control {
        self.sent_count += 1;
        let control = Control { request: self.sent_count, body };
        self.unacknowledged.push_back(control.clone());
        control
    }

    /// The messages to send again on a new connection.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Control> {
        self.unacknowledged.iter()
    }

    /// Number of messages that are not acknowledged.
    pub fn unacknowledged_count(&self) -> usize {
        self.unacknowledged.len()
    }

    /// The other side has received the first `count` messages.
    pub fn acknowledge_up_to(&mut self, count: u64) {
        while self.unacknowledged.front().is_some_and(|control| control.request <= count) {
            self.unacknowledged.pop_front();
        }
    }

    /// Records the number of a message that arrived. A message with number 0 is not numbered and always new.
    pub fn receive(&mut self, number: u64) -> SequenceCheck {
        if number == 0 {
            return SequenceCheck::New;
        }
        if number <= self.received_count {
            return SequenceCheck::Duplicate;
        }
        if number > self.received_count + 1 {
            return SequenceCheck::Gap;
        }
        self.received_count = number;
        SequenceCheck::New
    }

    /// The acknowledgement to send, if the other side does not have it yet.
    pub fn take_acknowledgement(&mut self) -> Option<ControlBody> {
        if self.acknowledged_count == self.received_count {
            return None;
        }
        self.acknowledged_count = self.received_count;
        Some(ControlBody::Heard { count: self.received_count })
    }

    /// Whether the acknowledgement should be sent before the next heartbeat, so that the other side needs not store
    /// many messages.
    pub fn is_acknowledgement_due(&self) -> bool {
        self.received_count - self.acknowledged_count >= ACKNOWLEDGE_AFTER
    }

    /// The connection is new: the last acknowledgement may be lost with the old one.
    pub fn reset_acknowledgement(&mut self) {
        self.acknowledged_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(job: u32) -> ControlBody {
        ControlBody::ToTask { job, body: crate::message::Base64Bytes::default() }
    }

    #[test]
    fn what_is_not_confirmed_is_said_again_and_heard_once() {
        let (mut here, mut there) = (ReliableQueue::default(), ReliableQueue::default());
        let first = here.enqueue(body(1));
        here.enqueue(body(2));
        here.enqueue(body(3));
        assert_eq!(there.receive(first.request), SequenceCheck::New, "then the connection breaks");
        let again: Vec<u64> = here.unacknowledged().map(|control| control.request).collect();
        assert_eq!(again, [1, 2, 3]);
        let arrivals: Vec<SequenceCheck> = again.iter().map(|number| there.receive(*number)).collect();
        assert_eq!(arrivals, [SequenceCheck::Duplicate, SequenceCheck::New, SequenceCheck::New]);
        assert_eq!(there.take_acknowledgement(), Some(ControlBody::Heard { count: 3 }));
        assert_eq!(there.take_acknowledgement(), None, "a count is acknowledged once");
        here.acknowledge_up_to(3);
        assert_eq!(here.unacknowledged_count(), 0);
    }

    #[test]
    fn a_lost_confirmation_is_told_again_on_the_next_connection() {
        let mut kept = ReliableQueue::default();
        assert_eq!(kept.receive(1), SequenceCheck::New);
        assert!(kept.take_acknowledgement().is_some());
        kept.reset_acknowledgement();
        assert_eq!(kept.take_acknowledgement(), Some(ControlBody::Heard { count: 1 }));
    }

    #[test]
    fn a_gap_is_seen_and_a_message_without_a_number_is_always_new() {
        let mut kept = ReliableQueue::default();
        assert_eq!(kept.receive(2), SequenceCheck::Gap);
        assert_eq!(kept.receive(0), SequenceCheck::New);
        assert_eq!(kept.receive(0), SequenceCheck::New);
        assert_eq!(kept.receive(1), SequenceCheck::New);
    }

    proptest! {
        /// Simulates connections that each carry a prefix of what is sent on them, with acknowledgements at any time.
        #[test]
        fn all_is_heard_once_and_in_order(
            connections in prop::collection::vec((0..5_usize, 0..10_usize, any::<bool>()), 1..20)
        ) {
            let (mut here, mut there, mut said, mut heard) = (ReliableQueue::default(), ReliableQueue::default(), 0, Vec::new());
            let whole = (0, usize::MAX, true);
            for (new_count, carried_count, confirms) in connections.into_iter().chain([whole]) {
                for _ in 0..new_count {
                    said += 1;
                    here.enqueue(body(said));
                }
                let carried: Vec<Control> = here.unacknowledged().take(carried_count).cloned().collect();
                for control in carried {
                    if there.receive(control.request) == SequenceCheck::New {
                        heard.push(control.body);
                    }
                }
                if confirms && let Some(ControlBody::Heard { count }) = there.take_acknowledgement() {
                    here.acknowledge_up_to(count);
                }
                there.reset_acknowledgement();
            }
            prop_assert_eq!(heard, (1..=said).map(body).collect::<Vec<_>>());
            prop_assert_eq!(here.unacknowledged_count(), 0);
        }
    }
}
