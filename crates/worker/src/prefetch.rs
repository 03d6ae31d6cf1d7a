//! Pulls asked ahead, while the task computes.
//!
//! An ask carries a clock. Asked for the clock that is, behind the tick that began it, its answer is the one that a pull at
//! that clock would get; a lane holds it for as long as it would hold the pull. Asked for the clock after the open step, a
//! lane may answer before this step's pushes; it still waits for the other tasks as a pull at that clock would.
//!
//! An answer is used when a pull at that time might have given it: it is fresh enough for the clock of the task, the task
//! has not pushed to the matrix since (unless the layout allows it, for one step), and nothing that was read later has
//! been returned before, for reads of a task never go back. Under BSP an answer is of its clock and of no other.

use std::time::Duration;

use matrix::{Clock, Consistency, Error, MatrixId, Selection};

use crate::lane::RequestOwner;
use crate::layout::Prefetch;
use crate::pending_pull::{PendingPull, PrefetchKind};
use crate::state::AgentState;

/// Most pulls asked ahead; one more drops the oldest.
pub(crate) const AHEAD_LIMIT: usize = 8;

/// What became of pulls that were asked ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AheadCounts {
    /// Asked.
    pub asked: u64,
    /// Read by a pull.
    pub used: u64,
    /// Thrown away: no pull came for it, or a pull might have given something else by then.
    pub unused: u64,
}

impl AgentState {
    /// Asks ahead for a pull at the clock that is. May be called between two calls only; it is no call itself.
    pub fn prefetch(&mut self, now: Duration, id: MatrixId, part: Selection<'_>) -> Result<(), Error> {
        self.ask_counted(now, id, part, self.clock)
    }

    /// Asks ahead for a pull at the next clock, before the pushes and the tick of the open step. Only where the layout
    /// says [`Prefetch::Stale`], and not under BSP: elsewhere nothing is asked. Whether it was asked.
    pub fn prefetch_next(&mut self, now: Duration, id: MatrixId, part: Selection<'_>) -> Result<bool, Error> {
        let matrix = self.matrix_index(id)?;
        let consistency = self.layout.matrices[matrix].consistency;
        if self.layout.prefetch != Prefetch::Stale || consistency == Consistency::Bsp {
            return Ok(false);
        }
        self.ask_counted(now, id, part, self.clock + 1).map(|()| true)
    }

    /// What became of what was asked ahead so far.
    pub fn ahead_counts(&self) -> AheadCounts {
        self.ahead_counts
    }

    /// Asks, if the layout lets anything be asked ahead.
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

    /// Whether it was asked.
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
        let mut ask = self.request_uncached(matrix, route, part, clock)?;
        ask.prefetch = Some(ahead);
        self.prefetches.push(ask);
        self.send_ready(now);
        Ok(true)
    }

    /// The pull of exactly this part that was asked ahead, if it may still be of use.
    pub(crate) fn take_ahead(&mut self, id: MatrixId, part: Selection<'_>) -> Option<PendingPull> {
        let matrix = id.0 as usize;
        let is_it = |ask: &PendingPull| {
            ask.matrix == matrix && ask.clock <= self.clock && ask.full_route().matches(part)
        };
        let at = self.prefetches.iter().rposition(is_it)?;
        self.take_ahead_at(at)
    }

    /// The pull asked ahead that stands at `at`, if it may still be of use.
    pub(crate) fn take_ahead_at(&mut self, at: usize) -> Option<PendingPull> {
        if self.is_current(&self.prefetches[at]) {
            return Some(self.prefetches.remove(at));
        }
        self.drop_ahead(at);
        None
    }

    /// Whether neither an own push nor a later read forbids its use.
    pub(crate) fn is_current(&self, ask: &PendingPull) -> bool {
        let state = &self.matrices[ask.matrix];
        if self.layout.matrices[ask.matrix].consistency == Consistency::Bsp {
            return ask.clock == self.clock;
        }
        let may_miss = self.layout.prefetch == Prefetch::Stale && ask.clock == self.clock;
        let has_own = state.push_count == ask.push_count || may_miss;
        has_own && state.last_read_send <= ask.first_send && state.read_clock <= ask.clock
    }

    /// Throws a pull asked ahead away; its answers mean nothing any more.
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
