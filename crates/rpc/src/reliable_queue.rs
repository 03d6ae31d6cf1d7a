//! What member and master say to each other about a job, kept until it is known to have arrived. A connection is reliable
//! until it is reset; then a suffix is lost. Both sides say again what was not confirmed, and drop what they have
//! heard before, so each of these messages arrives once and in order.

use std::collections::VecDeque;

use crate::message::{Control, ControlBody};

/// Messages that are heard before the other side is told at once and not with the next heartbeat.
const ACKNOWLEDGE_AFTER: u64 = 64;

/// What a number says about the message that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceCheck {
    /// Not heard before.
    New,
    /// Heard before: nothing is done.
    Duplicate,
    /// Something before it is missing, which no network does: the connection is given up.
    Gap,
}

/// One side of the talk between a member and the master.
#[derive(Debug, Default)]
pub struct ReliableQueue {
    sent_count: u64,
    unacknowledged: VecDeque<Control>,
    received_count: u64,
    acknowledged_count: u64,
}

impl ReliableQueue {
    /// Numbers and keeps `body`; the returned frame is to be sent if there is a connection.
    pub fn enqueue(&mut self, body: ControlBody) -> Control {
        self.sent_count += 1;
        let control = Control { request: self.sent_count, body };
        self.unacknowledged.push_back(control.clone());
        control
    }

    /// What has to be said again on a new connection.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Control> {
        self.unacknowledged.iter()
    }

    /// Number of messages that are kept.
    pub fn unacknowledged_count(&self) -> usize {
        self.unacknowledged.len()
    }

    /// The other side has heard the first `count`.
    pub fn acknowledge_up_to(&mut self, count: u64) {
        while self.unacknowledged.front().is_some_and(|control| control.request <= count) {
            self.unacknowledged.pop_front();
        }
    }

    /// Takes note of the number of a message that came. 0 is not numbered, and always new.
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

    /// What to tell the other side, if it does not know it yet.
    pub fn take_acknowledgement(&mut self) -> Option<ControlBody> {
        if self.acknowledged_count == self.received_count {
            return None;
        }
        self.acknowledged_count = self.received_count;
        Some(ControlBody::Heard { count: self.received_count })
    }

    /// Whether the other side should be told before the next heartbeat, so that it need not keep much.
    pub fn is_acknowledgement_due(&self) -> bool {
        self.received_count - self.acknowledged_count >= ACKNOWLEDGE_AFTER
    }

    /// The connection is new: what was confirmed on the last one may be lost.
    pub fn reset_acknowledgement(&mut self) {
        self.acknowledged_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(job: u32) -> ControlBody {
        ControlBody::ToTask { job, body: serde_json::Value::Null }
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
        assert_eq!(there.take_acknowledgement(), None, "it is told once");
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
        /// Connections that each carry a prefix of what is said on them, whatever is confirmed when.
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
