//! The ticket of a pull that is requested before its values are needed.

use std::sync::Arc;

use crate::agent::{Keys, MatrixId, Selection};
use crate::clock::Clock;

/// Names a pull that [`crate::Agent::prefetch`] has requested, until [`crate::Agent::wait`] returns its values. It
/// carries the whole selection, so an agent may drop the request or its answer at any time: the wait then pulls.
#[derive(Clone, Debug)]
#[must_use = "without a wait the request is in vain"]
pub struct PullTicket(Arc<PrefetchedSelection>);

#[derive(Debug)]
struct PrefetchedSelection {
    matrix: MatrixId,
    /// The row, for a matrix that is partitioned by column.
    row: Option<u32>,
    keys: OwnedKeys,
    clock: Clock,
}

#[derive(Debug)]
enum OwnedKeys {
    Sorted(Vec<u64>),
    Range(u64, u64),
}

impl PullTicket {
    /// The ticket of a pull at clock `clock`. Each call makes a ticket that is different from all others.
    pub fn new(matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> Self {
        let (row, keys) = match selection {
            Selection::Rows(keys) => (None, keys),
            Selection::Columns { row, keys } => (Some(row), keys),
        };
        let keys = match keys {
            Keys::Sorted(keys) => OwnedKeys::Sorted(keys.to_vec()),
            Keys::Range(start, end) => OwnedKeys::Range(start, end),
        };
        Self(Arc::new(PrefetchedSelection { matrix, row, keys, clock }))
    }

    pub fn matrix(&self) -> MatrixId {
        self.0.matrix
    }

    pub fn selection(&self) -> Selection<'_> {
        let keys = match &self.0.keys {
            OwnedKeys::Sorted(keys) => Keys::Sorted(keys),
            OwnedKeys::Range(start, end) => Keys::Range(*start, *end),
        };
        match self.0.row {
            None => Selection::Rows(keys),
            Some(row) => Selection::Columns { row, keys },
        }
    }

    /// The clock at which the task means to wait for it.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }
}

/// Clones of a ticket are equal. Tickets of two requests differ, even if they select the same rows.
impl PartialEq for PullTicket {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PullTicket {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_names_its_pull_and_only_its_own() {
        let selections = [
            Selection::Rows(Keys::Sorted(&[3, 5])),
            Selection::Rows(Keys::Range(1, 4)),
            Selection::Columns { row: 2, keys: Keys::Sorted(&[7]) },
            Selection::Columns { row: 0, keys: Keys::Range(0, 9) },
        ];
        for selection in selections {
            let ticket = PullTicket::new(MatrixId(1), selection, 4);
            assert_eq!((ticket.matrix(), ticket.selection(), ticket.clock()), (MatrixId(1), selection, 4));
            assert!(ticket == ticket.clone() && ticket != PullTicket::new(MatrixId(1), selection, 4));
        }
    }
}
