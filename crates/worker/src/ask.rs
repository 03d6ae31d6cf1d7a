//! A pull under way: its pieces and their answers.

use matrix::{Clock, OwnedValues};
use rpc::message::Pulled;

use crate::plan::Piece;
use crate::route::Route;

/// A pull, open or asked ahead.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) matrix: usize,
    pub(crate) route: Route,
    pub(crate) pieces: Vec<(Piece, Option<OwnedValues>)>,
    pub(crate) missing: usize,
    /// The smallest m of all answers.
    pub(crate) minimum: Clock,
    /// What is read was read between these two sendings. They order the reads of a task.
    pub(crate) first_sent: u64,
    pub(crate) last_sent: u64,
    /// The longest that any lane held a piece for other tasks.
    pub(crate) held_ns: u64,
    /// Pushes of this task to the matrix before it was asked.
    pub(crate) push_count: u64,
    /// Asked ahead, and not yet checked.
    pub(crate) is_ahead: bool,
}

impl Ask {
    /// Takes the answer for a piece. False when it does not fit.
    pub(crate) fn take(&mut self, piece: usize, pulled: Pulled, columns: usize, is_element: bool) -> bool {
        let (piece, reply) = &mut self.pieces[piece];
        if !is_element || pulled.values.len() != piece.key_count * columns {
            return false;
        }
        if reply.replace(pulled.values).is_none() {
            self.missing -= 1;
        }
        self.minimum = self.minimum.min(pulled.minimum);
        self.held_ns = self.held_ns.max(pulled.held_ns);
        true
    }
}
