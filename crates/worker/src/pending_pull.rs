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

impl PendingPull {
    /// Whether the algorithm has asked for it before it waited.
    pub(crate) fn has_ticket(&self) -> bool {
        matches!(self.prefetch, Some(PrefetchPurpose::Ticket(_)))
    }

    pub(crate) fn is_of_ticket(&self, ticket: &PullTicket) -> bool {
        matches!(&self.prefetch, Some(PrefetchPurpose::Ticket(own)) if own == ticket)
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
