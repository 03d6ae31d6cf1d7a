//! Pulls asked ahead, while the task computes.
//!
//! An answer is used when a pull at that time might have given it: it is fresh enough for the clock of the task, the task
//! has not pushed to the matrix since (unless the layout allows it), and nothing that was read later has been returned
//! before, for reads of a task never go back.

use std::time::Duration;

use matrix::{Consistency, Error, MatrixId, Part};

use crate::ask::Ask;
use crate::lane::Owner;
use crate::state::AgentState;

/// Most pulls asked ahead; one more drops the oldest.
const AHEAD_LIMIT: usize = 4;

impl AgentState {
    /// Asks for a pull ahead. Under BSP nothing is asked, for the values of the next step do not exist yet. May be
    /// called between two calls only; it is no call itself.
    pub fn prefetch(&mut self, now: Duration, id: MatrixId, part: Part<'_>) -> Result<(), Error> {
        let matrix = self.matrix_index(id)?;
        let spec = &self.layout.matrices[matrix];
        if self.failed.is_some() || self.left || spec.consistency == Consistency::Bsp {
            return Ok(());
        }
        let mut route = crate::route::Route::default();
        route.set(spec, &self.matrices[matrix].placement, part)?;
        if route.key_count() == 0 {
            return Ok(());
        }
        let mut ask = self.ask_route(matrix, route);
        ask.is_ahead = true;
        self.ahead.push(ask);
        if self.ahead.len() > AHEAD_LIMIT {
            self.drop_ahead(0);
        }
        self.pump(now);
        Ok(())
    }

    /// The pull of exactly this part that was asked ahead, if it may still be of use.
    pub(crate) fn take_ahead(&mut self, id: MatrixId, part: Part<'_>) -> Option<Ask> {
        let matrix = id.0 as usize;
        let at = self.ahead.iter().rposition(|ask| ask.matrix == matrix && ask.route.is_of(part))?;
        if self.is_current(&self.ahead[at]) {
            return Some(self.ahead.remove(at));
        }
        self.drop_ahead(at);
        None
    }

    /// Whether neither an own push nor a later read forbids its use.
    pub(crate) fn is_current(&self, ask: &Ask) -> bool {
        let state = &self.matrices[ask.matrix];
        let unchanged = state.push_count == ask.push_count || self.layout.prefetch_ignores_own_pushes;
        unchanged && state.last_read <= ask.first_sent
    }

    /// Throws a pull asked ahead away; its answers mean nothing any more.
    pub(crate) fn drop_ahead(&mut self, at: usize) {
        let dropped = self.ahead.remove(at).id;
        for lane in &mut self.lanes {
            lane.requests
                .retain(|_, request| !matches!(request.owner, Owner::Ask { ask, .. } if ask == dropped));
        }
    }
    pub(crate) fn drop_all_ahead(&mut self) {
        while !self.ahead.is_empty() {
            self.drop_ahead(0);
        }
    }
}
