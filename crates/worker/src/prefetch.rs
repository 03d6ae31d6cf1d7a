//! Prefetches: pulls whose requests are sent before the task waits for their values.
//!
//! A prefetch waits in a queue until the task is at the clock of its pull: it is sent at once, or behind the tick that
//! begins its step. A lane defers its request as long as it would defer the pull.
//! [`matrix::Consistency::may_use_prefetch`] decides whether the answer may be used. A barrier drops all prefetches,
//! because a task must see all pushes after it. A ticket whose prefetch was dropped is pulled anew.
//!
//! The interface is keys, not batches, so it serves algorithms whose keys are their own, as factors of sampled rows. An algorithm may
//! ask several steps ahead and need not know `--prefetch`. Tickets carry their keys, so the agent may forget a request at any time
//! without harm: at a barrier, after a fault of a lane, when the task leaves, and when there are more than `PREFETCH_LIMIT`. What is wrong
//! with the selection is an error of the wait. In one process a ticket is pulled at its wait.

use std::time::Duration;

use matrix::clock::PrefetchedAnswer;
use matrix::{Clock, Error, MatrixId, Prefetch, PullTicket, Selection};

use crate::lane::RequestOwner;
use crate::pending_pull::{PendingPull, PrefetchPurpose};
use crate::state::AgentState;

/// Most prefetches in the queue, and most that are sent. One more drops the oldest, for which the task may never wait.
const PREFETCH_LIMIT: usize = 32;

/// Counts of prefetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetchCounts {
    /// Prefetches that were sent.
    pub sent: u64,
    /// Prefetches whose answers were used.
    pub used: u64,
    /// Prefetches that were sent and dropped: the task did not wait for them, or a pull might have returned something
    /// else by then.
    pub dropped: u64,
}

/// The prefetches of an agent.
#[derive(Debug, Default)]
pub(crate) struct Prefetches {
    /// Those that may not be sent yet, the oldest first.
    queued: Vec<PullTicket>,
    /// Those that are sent, the oldest first.
    sent: Vec<PendingPull>,
    counts: PrefetchCounts,
}

impl Prefetches {
    /// Those that are sent.
    pub(crate) fn sent_mut(&mut self) -> std::slice::IterMut<'_, PendingPull> {
        self.sent.iter_mut()
    }

    /// The index of the oldest one that is sent and for which this is true.
    pub(crate) fn position(&self, is_meant: impl FnMut(&PendingPull) -> bool) -> Option<usize> {
        self.sent.iter().position(is_meant)
    }

    /// Counts a prefetch whose answer a pull returns. Parts of a long pull are not counted.
    pub(crate) fn count_used(&mut self, pull: &PendingPull) {
        self.counts.used += u64::from(pull.has_ticket());
    }

    pub(crate) fn count_dropped(&mut self, pull: &PendingPull) {
        self.counts.dropped += u64::from(pull.has_ticket());
    }
}

impl AgentState {
    /// Prefetches a pull at `clock`. It is not a call itself, and may be used only between two calls. What is wrong with
    /// the selection is an error of the wait.
    pub fn prefetch(
        &mut self,
        now: Duration,
        matrix: MatrixId,
        selection: Selection<'_>,
        clock: Clock,
    ) -> PullTicket {
        let ticket = PullTicket::new(matrix, selection, clock);
        if self.layout.prefetch == Prefetch::Off {
            return ticket;
        }
        if self.prefetches.queued.len() == PREFETCH_LIMIT {
            drop(self.prefetches.queued.remove(0));
        }
        self.prefetches.queued.push(ticket.clone());
        self.request_due_prefetches();
        self.send_ready(now);
        ticket
    }

    /// Begins the pull of a ticket: with the answer of its prefetch, or anew.
    pub fn wait(&mut self, now: Duration, ticket: &PullTicket) {
        if !self.begin(now, "pull") {
            return;
        }
        self.prefetches.queued.retain(|queued| queued != ticket);
        let at = self.prefetches.position(|pull| pull.is_of_ticket(ticket));
        let prefetched = at.and_then(|at| self.take_prefetch(at));
        self.open_pull(now, ticket.matrix(), ticket.selection(), prefetched);
    }

    /// Whether the request of a ticket was sent and is not dropped.
    pub(crate) fn is_prefetched(&self, ticket: &PullTicket) -> bool {
        self.prefetches.sent.iter().any(|pull| pull.is_of_ticket(ticket))
    }

    /// Whether prefetches wait for a later clock.
    pub(crate) fn has_queued_prefetches(&self) -> bool {
        !self.prefetches.queued.is_empty()
    }

    /// Counts of prefetches so far.
    pub fn prefetch_counts(&self) -> PrefetchCounts {
        self.prefetches.counts
    }

    /// Makes the requests of the prefetches that may be sent at the current clock.
    pub(crate) fn request_due_prefetches(&mut self) {
        for ticket in std::mem::take(&mut self.prefetches.queued) {
            // Sent earlier, it would lack the pushes that the task makes in between.
            if ticket.clock() > self.clock {
                self.prefetches.queued.push(ticket);
                continue;
            }
            let purpose = PrefetchPurpose::Ticket(ticket.clone());
            // What is wrong with the selection is an error of the wait.
            let requested = self.request_prefetch(ticket.matrix(), ticket.selection(), purpose);
            self.prefetches.counts.sent += u64::from(requested == Ok(true));
            if self.prefetches.sent.len() > PREFETCH_LIMIT {
                self.drop_prefetch(0);
            }
        }
    }

    /// Makes the requests of a prefetch. Returns whether it needs any.
    pub(crate) fn request_prefetch(
        &mut self,
        id: MatrixId,
        selection: Selection<'_>,
        purpose: PrefetchPurpose,
    ) -> Result<bool, Error> {
        let matrix = self.matrix_index(id)?;
        if self.failure.is_some() || self.has_left {
            return Ok(false);
        }
        let mut key_runs = self.matrices[matrix].acquire_key_runs();
        let set = key_runs.set(&self.layout.matrices[matrix], &self.matrices[matrix].placement, selection);
        if set.is_err() || key_runs.key_count() == 0 {
            self.matrices[matrix].key_runs = key_runs;
            return set.map(|()| false);
        }
        let mut pull = self.request_key_runs(matrix, key_runs);
        pull.prefetch = Some(purpose);
        self.prefetches.sent.push(pull);
        Ok(true)
    }

    /// Takes the prefetch with index `at`, if it may still be used. Otherwise it is dropped.
    pub(crate) fn take_prefetch(&mut self, at: usize) -> Option<PendingPull> {
        if self.may_use(&self.prefetches.sent[at]) {
            return Some(self.prefetches.sent.remove(at));
        }
        self.drop_prefetch(at);
        None
    }

    /// Whether a pull at the current clock may return the answer of this prefetch.
    pub(crate) fn may_use(&self, pull: &PendingPull) -> bool {
        let state = &self.matrices[pull.matrix];
        let answer = PrefetchedAnswer {
            clock: pull.clock,
            minimum: pull.minimum,
            lacks_own_push: state.push_count != pull.push_count,
            is_overtaken: state.last_read_send > pull.first_send,
        };
        let consistency = self.layout.matrices[pull.matrix].consistency;
        consistency.may_use_prefetch(answer, self.clock)
    }

    /// Drops a prefetch and its requests. Its answers are ignored.
    pub(crate) fn drop_prefetch(&mut self, at: usize) {
        let dropped = self.prefetches.sent.remove(at);
        self.prefetches.count_dropped(&dropped);
        for lane in &mut self.lanes {
            lane.requests.retain(
                |_, request| !matches!(request.owner, RequestOwner::Pull { pull_id, .. } if pull_id == dropped.id),
            );
        }
    }

    pub(crate) fn drop_all_prefetches(&mut self) {
        self.prefetches.queued.clear();
        while !self.prefetches.sent.is_empty() {
            self.drop_prefetch(0);
        }
    }
}
