//! A pull that is not completely answered: its lane keys and their answers.

use matrix::{Clock, ElementType, KeyRuns, OwnedValues, PullTicket};
use rpc::message::Pulled;

use crate::lane_keys::LaneKeys;

/// A pull, open or prefetched.
#[derive(Debug)]
pub(crate) struct PendingPull {
    pub(crate) id: u64,
    pub(crate) matrix: usize,
    /// Its stamp: the rows are as fresh as a task at this clock needs them.
    pub(crate) clock: Clock,
    pub(crate) key_runs: KeyRuns,
    pub(crate) replies: Vec<(LaneKeys, Option<OwnedValues>)>,
    pub(crate) missing_count: usize,
    /// The rows of this pull that the cache had, if any.
    pub(crate) cached_rows: Option<CachedRows>,
    /// The smallest clock of all answers.
    pub(crate) minimum: Clock,
    /// The rows are read between these two sendings, by number. They order the reads of a task.
    pub(crate) first_send: u64,
    pub(crate) last_send: u64,
    /// The longest time for which a lane deferred a request of the pull for other tasks, in nanoseconds.
    pub(crate) deferred_ns: u64,
    /// Pushes of this task to the matrix before this pull was sent.
    pub(crate) push_count: u64,
    /// Why it was prefetched, if it was. A prefetched answer is checked before its use.
    pub(crate) prefetch: Option<PrefetchPurpose>,
}

/// Why a pull was prefetched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PrefetchPurpose {
    /// The algorithm has asked for it.
    Ticket(PullTicket),
    /// As a part of a long pull that follows at once. The number is the index of its first key in the list.
    LongPull(usize),
}

/// The rows of a pull that the cache had. Only the missing rows are requested.
#[derive(Debug)]
pub(crate) struct CachedRows {
    /// Values of all keys of the pull, zeros where rows are missing.
    pub(crate) values: OwnedValues,
    /// The smallest clock of the answers that the cached rows came with.
    pub(crate) minimum: Clock,
    /// Indices and keys of the missing rows.
    pub(crate) missing_rows: Vec<u32>,
    pub(crate) missing_keys: Vec<u64>,
    /// The runs of all keys. The pending pull has the runs of the missing ones.
    pub(crate) all_key_runs: KeyRuns,
}

impl PendingPull {
    /// Whether the algorithm has asked for it before it waited.
    pub(crate) fn has_ticket(&self) -> bool {
        matches!(self.prefetch, Some(PrefetchPurpose::Ticket(_)))
    }

    pub(crate) fn is_of_ticket(&self, ticket: &PullTicket) -> bool {
        matches!(&self.prefetch, Some(PrefetchPurpose::Ticket(own)) if own == ticket)
    }

    /// The runs of all keys of the pull.
    pub(crate) fn all_key_runs(&self) -> &KeyRuns {
        self.cached_rows.as_ref().map_or(&self.key_runs, |filled| &filled.all_key_runs)
    }

    /// The runs of all keys. The rest of the pull is dropped.
    pub(crate) fn into_all_key_runs(self) -> KeyRuns {
        self.cached_rows.map_or(self.key_runs, |filled| filled.all_key_runs)
    }

    /// Stores the answer for the lane keys with this index in `replies`. Returns false when it does not fit them.
    pub(crate) fn accept_reply(
        &mut self,
        index: usize,
        pulled: Pulled,
        columns: usize,
        element: ElementType,
    ) -> bool {
        let (keys, reply) = &mut self.replies[index];
        if pulled.values.len() != keys.key_count * columns {
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
        self.deferred_ns = self.deferred_ns.max(pulled.deferred_ns);
        true
    }
}
