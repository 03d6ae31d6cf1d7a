//! What member and master say to each other about a job, kept until it is known to have arrived. A connection is reliable
//! until it is reset; then a suffix is lost. Both sides say again what was not confirmed, and drop what they have
//! heard before, so each of these messages arrives once and in order.

use std::collections::VecDeque;

use crate::message::{Control, ControlBody};

/// Messages that are heard before the other side is told at once and not with the next heartbeat.
const CONFIRM_AFTER: u64 = 64;

/// What a number says about the message that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Not heard before.
    New,
    /// Heard before: nothing is done.
    Repeat,
    /// Something before it is missing, which no network does: the connection is given up.
    Gap,
}

/// One side of the talk between a member and the master.
#[derive(Debug, Default)]
pub struct Kept {
    said_count: u64,
    unconfirmed: VecDeque<Control>,
    heard_count: u64,
    confirmed_count: u64,
}

impl Kept {
    /// Numbers and keeps `body`; the returned frame is to be sent if there is a connection.
    pub fn say(&mut self, body: ControlBody) -> Control {
        self.said_count += 1;
        let control = Control { request: self.said_count, body };
        self.unconfirmed.push_back(control.clone());
        control
    }

    /// What has to be said again on a new connection.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &Control> {
        self.unconfirmed.iter()
    }

    /// Number of messages that are kept.
    pub fn unconfirmed_count(&self) -> usize {
        self.unconfirmed.len()
    }

    /// The other side has heard the first `count`.
    pub fn confirm(&mut self, count: u64) {
        while self.unconfirmed.front().is_some_and(|control| control.request <= count) {
            self.unconfirmed.pop_front();
        }
    }

    /// Takes note of the number of a message that came. 0 is not numbered, and always new.
    pub fn hear(&mut self, number: u64) -> Arrival {
        if number == 0 {
            return Arrival::New;
        }
        if number <= self.heard_count {
            return Arrival::Repeat;
        }
        if number > self.heard_count + 1 {
            return Arrival::Gap;
        }
        self.heard_count = number;
        Arrival::New
    }

    /// What to tell the other side, if it does not know it yet.
    pub fn confirmation(&mut self) -> Option<ControlBody> {
        if self.confirmed_count == self.heard_count {
            return None;
        }
        self.confirmed_count = self.heard_count;
        Some(ControlBody::Heard { count: self.heard_count })
    }

    /// Whether the other side should be told before the next heartbeat, so that it need not keep much.
    pub fn owes_confirmation(&self) -> bool {
        self.heard_count - self.confirmed_count >= CONFIRM_AFTER
    }

    /// The connection is new: what was confirmed on the last one may be lost.
    pub fn forget_confirmation(&mut self) {
        self.confirmed_count = 0;
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
        let (mut here, mut there) = (Kept::default(), Kept::default());
        let first = here.say(body(1));
        here.say(body(2));
        here.say(body(3));
        assert_eq!(there.hear(first.request), Arrival::New, "then the connection breaks");
        let again: Vec<u64> = here.unconfirmed().map(|control| control.request).collect();
        assert_eq!(again, [1, 2, 3]);
        let arrivals: Vec<Arrival> = again.iter().map(|number| there.hear(*number)).collect();
        assert_eq!(arrivals, [Arrival::Repeat, Arrival::New, Arrival::New]);
        assert_eq!(there.confirmation(), Some(ControlBody::Heard { count: 3 }));
        assert_eq!(there.confirmation(), None, "it is told once");
        here.confirm(3);
        assert_eq!(here.unconfirmed_count(), 0);
    }

    #[test]
    fn a_lost_confirmation_is_told_again_on_the_next_connection() {
        let mut kept = Kept::default();
        assert_eq!(kept.hear(1), Arrival::New);
        assert!(kept.confirmation().is_some());
        kept.forget_confirmation();
        assert_eq!(kept.confirmation(), Some(ControlBody::Heard { count: 1 }));
    }

    #[test]
    fn a_gap_is_seen_and_a_message_without_a_number_is_always_new() {
        let mut kept = Kept::default();
        assert_eq!(kept.hear(2), Arrival::Gap);
        assert_eq!(kept.hear(0), Arrival::New);
        assert_eq!(kept.hear(0), Arrival::New);
        assert_eq!(kept.hear(1), Arrival::New);
    }

    proptest! {
        /// Connections that each carry a prefix of what is said on them, whatever is confirmed when.
        #[test]
        fn all_is_heard_once_and_in_order(
            connections in prop::collection::vec((0..5_usize, 0..10_usize, any::<bool>()), 1..20)
        ) {
            let (mut here, mut there, mut said, mut heard) = (Kept::default(), Kept::default(), 0, Vec::new());
            let whole = (0, usize::MAX, true);
            for (new_count, carried_count, confirms) in connections.into_iter().chain([whole]) {
                for _ in 0..new_count {
                    said += 1;
                    here.say(body(said));
                }
                let carried: Vec<Control> = here.unconfirmed().take(carried_count).cloned().collect();
                for control in carried {
                    if there.hear(control.request) == Arrival::New {
                        heard.push(control.body);
                    }
                }
                if confirms && let Some(ControlBody::Heard { count }) = there.confirmation() {
                    here.confirm(count);
                }
                there.forget_confirmation();
            }
            prop_assert_eq!(heard, (1..=said).map(body).collect::<Vec<_>>());
            prop_assert_eq!(here.unconfirmed_count(), 0);
        }
    }
}
