//! The rows of matrices that a task reads and pushes.

use matrix::{Agent, Keys, MatrixId, PullTicket, Selection};

/// The row of a matrix with one row.
pub const ONE_ROW: Selection<'static> = Selection::Rows(Keys::Range(0, 1));

/// The rows of ascending keys.
pub fn rows_of(keys: &[u64]) -> Selection<'_> {
    Selection::Rows(Keys::Sorted(keys))
}

/// Requests what the next step reads. There is a ticket for each of `pulls` that is not `None`.
pub fn prefetch<const N: usize>(
    agent: &mut dyn Agent,
    pulls: [Option<(MatrixId, Selection<'_>)>; N],
) -> [Option<PullTicket>; N] {
    let clock = agent.clock() + 1;
    pulls.map(|pull| pull.map(|(matrix, selection)| agent.prefetch(matrix, selection, clock)))
}
