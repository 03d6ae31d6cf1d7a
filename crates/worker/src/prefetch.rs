//! Prefetches: pulls that are sent before the task needs them.
//!
//! A prefetch has a clock. Sent for the current clock, after the tick that began it, it gets the answer that a pull at
//! that clock would get, and a lane defers it as long as it would defer the pull. Sent for the next clock, a lane may
//! answer it before the pushes of the open step; it still waits for the other tasks as a pull at that clock would.
//!
//! An answer is used if a pull at that time might have got it: it is fresh enough for the clock of the task; the task
//! has not pushed to the matrix since (unless the layout allows it, for one step); and no later read was returned
//! before, because reads of a task never go back. Under BSP an answer serves its own clock only.

use std::time::Duration;

use matrix::{Clock, Consistency, Error, MatrixId, Selection};

use crate::lane::RequestOwner;
use crate::layout::Prefetch;
use crate::pending_pull::{PendingPull, PrefetchKind};
use crate::state::AgentState;

/// Most prefetches at once. One more drops the oldest.
pub(crate) const AHEAD_LIMIT: usize = 8;

/// Counts of prefetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AheadCounts {
    /// Prefetches that were sent.
    pub asked: u64,
    /// Prefetches that a pull has used.
    pub used: u64,
    /// Prefetches that were dropped: no pull came for them, or a pull might have returned something else by then.
    pub unused: u64,
}

impl AgentState {
    /// Prefetches a pull at the current clock. It is not a call itself, and may be used only between two calls.
    pub fn prefetch(&mut self, now: Duration, id: MatrixId, part: Selection<'_>) -> Result<(), Error> {
        self.ask_counted(now, id, part, self.clock)
    }

    /// Prefetches a pull at the next clock, before the pushes and the tick of the open step. Nothing is sent under BSP,
    /// or unless the layout says [`Prefetch::Stale`]. Returns whether it was sent.
    pub fn prefetch_next(&mut self, now: Duration, id: MatrixId, part: Selection<'_>) -> Result<bool, Error> {
        let matrix = self.matrix_index(id)?;
        let consistency = self.layout.matrices[matrix].consistency;
        if self.layout.prefetch != Prefetch::Stale || consistency == Consistency::Bsp {
            return Ok(false);
        }
        self.ask_counted(now, id, part, self.clock + 1).map(|()| true)
    }

    /// Counts of prefetches so far.
    pub fn ahead_counts(&self) -> AheadCounts {
        self.ahead_counts
    }

    /// Sends a prefetch and counts it, unless the layout turns prefetches off.
    fn ask_counted(
        &mut self,
        now: Duration,
        id: MatrixId,
        part: Selection<'_>,
        clock: Clock,
    ) -> Result<(), Error> {
        if self.layout.prefetch == Prefetch::Off {
            return self.matrix_index(id).map(drop);
        }
        if !self.ask_ahead(now, id, part, clock, PrefetchKind::NextStep)? {
            return Ok(());
        }
        self.ahead_counts.asked += 1;
        if self.prefetches.len() > AHEAD_LIMIT {
            self.drop_ahead(0);
        }
        Ok(())
    }

    /// Sends a prefetch. Returns whether it was sent.
    pub(crate) fn ask_ahead(
        &mut self,
        now: Duration,
        id: MatrixId,
        part: Selection<'_>,
        clock: Clock,
        ahead: PrefetchKind,
    ) -> Result<bool, Error> {
        let matrix = self.matrix_index(id)?;
        if self.failure.is_some() || self.has_left {
            return Ok(false);
        }
        let mut route = self.matrices[matrix].acquire_route();
        let set = route.set(&self.layout.matrices[matrix], &self.matrices[matrix].placement, part);
        if set.is_err() || route.key_count() == 0 {
            self.matrices[matrix].route = route;
            return set.map(|()| false);
        }
        let mut ask = self.request_uncached(matrix, route, clock)?;
        ask.prefetch = Some(ahead);
        self.prefetches.push(ask);
        self.send_ready(now);
        Ok(true)
    }

    /// Takes the prefetch of exactly this part, if it may still be used.
    pub(crate) fn take_ahead(&mut self, id: MatrixId, part: Selection<'_>) -> Option<PendingPull> {
        let matrix = id.0 as usize;
        let is_it = |ask: &PendingPull| {
            ask.matrix == matrix && ask.clock <= self.clock && ask.full_route().matches(part)
        };
        let at = self.prefetches.iter().rposition(is_it)?;
        self.take_ahead_at(at)
    }

    /// Takes the prefetch with index `at`, if it may still be used. Otherwise it is dropped.
    pub(crate) fn take_ahead_at(&mut self, at: usize) -> Option<PendingPull> {
        if self.is_current(&self.prefetches[at]) {
            return Some(self.prefetches.remove(at));
        }
        self.drop_ahead(at);
        None
    }

    /// Whether a pull may be used: neither a push of this task nor a later read makes it invalid.
    pub(crate) fn is_current(&self, ask: &PendingPull) -> bool {
        let state = &self.matrices[ask.matrix];
        if self.layout.matrices[ask.matrix].consistency == Consistency::Bsp {
            return ask.clock == self.clock;
        }
        let may_miss = self.layout.prefetch == Prefetch::Stale && ask.clock == self.clock;
        let has_own = state.push_count == ask.push_count || may_miss;
        has_own && state.last_read_send <= ask.first_send && state.read_clock <= ask.clock
    }

    /// Drops a prefetch and its requests. Its answers are ignored.
    pub(crate) fn drop_ahead(&mut self, at: usize) {
        let dropped = self.prefetches.remove(at);
        self.ahead_counts.unused += u64::from(dropped.prefetch == Some(PrefetchKind::NextStep));
        let dropped = dropped.id;
        for lane in &mut self.lanes {
            lane.requests.retain(
                |_, request| !matches!(request.owner, RequestOwner::Pull { pull_id, .. } if pull_id == dropped),
            );
        }
    }

    pub(crate) fn drop_all_ahead(&mut self) {
        while !self.prefetches.is_empty() {
            self.drop_ahead(0);
        }
    }
}
