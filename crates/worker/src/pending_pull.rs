//! A pull under way: its pieces and their answers.

use matrix::{Clock, ElementType, OwnedValues};
use rpc::message::Pulled;

use crate::lane_keys::LaneKeys;
use crate::route::Route;

/// A pull, open or asked ahead.
#[derive(Debug)]
pub(crate) struct PendingPull {
    pub(crate) id: u64,
    pub(crate) matrix: usize,
    /// Its stamp: what is read is what a task at this clock may read.
    pub(crate) clock: Clock,
    pub(crate) route: Route,
    pub(crate) replies: Vec<(LaneKeys, Option<OwnedValues>)>,
    pub(crate) missing_count: usize,
    /// Where the cache had some of it.
    pub(crate) cached_rows: Option<CachedRows>,
    /// The smallest m of all answers.
    pub(crate) minimum: Clock,
    /// What is read was read between these two sendings. They order the reads of a task.
    pub(crate) first_send: u64,
    pub(crate) last_send: u64,
    /// The longest that any lane held a piece for other tasks.
    pub(crate) deferred_ns: u64,
    /// Pushes of this task to the matrix before it was asked.
    pub(crate) push_count: u64,
    /// Why it was asked ahead, if it was; what it answers is not yet checked.
    pub(crate) prefetch: Option<PrefetchKind>,
}

/// Why a pull was asked ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchKind {
    /// For a later step.
    NextStep,
    /// It is a part of a long pull that follows at once: the place of its first key in the list.
    LongPull(usize),
}

/// What the cache had of a pull: only the rest is asked for.
#[derive(Debug)]
pub(crate) struct CachedRows {
    /// Of all keys of the pull, zeros where they are missing.
    pub(crate) values: OwnedValues,
    /// The smallest m of the answers that these came with.
    pub(crate) minimum: Clock,
    /// Places of the missing rows among all, and their keys.
    pub(crate) missing_rows: Vec<u32>,
    pub(crate) missing_keys: Vec<u64>,
    /// The route of all keys; that of the ask is of the missing ones.
    pub(crate) full_route: Route,
}

impl PendingPull {
    /// The route of all its keys.
    pub(crate) fn full_route(&self) -> &Route {
        self.cached_rows.as_ref().map_or(&self.route, |filled| &filled.full_route)
    }

    /// The same, and nothing else of it.
    pub(crate) fn into_full_route(self) -> Route {
        self.cached_rows.map_or(self.route, |filled| filled.full_route)
    }

    /// Takes the answer for a piece. False when it does not fit.
    pub(crate) fn accept_reply(
        &mut self,
        piece: usize,
        pulled: Pulled,
        columns: usize,
        element: ElementType,
    ) -> bool {
        let (piece, reply) = &mut self.replies[piece];
        if pulled.values.len() != piece.key_count * columns {
            return false;
        }
        let values = pulled.values.into_values();
        if values.element_type() != element {
            return false;
        }
        if reply.replace(values).is_none() {
            self.missing_count -= 1;
        }
        self.minimum = self.minimum.min(pulled.minimum);
        self.deferred_ns = self.deferred_ns.max(pulled.held_ns);
        true
    }
}
