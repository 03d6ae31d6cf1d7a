//! The state of a lane in an agent: its connection, its retransmit queue and its pending requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use matrix::Clock;
use rpc::Message;
use rpc::message::{RequestId, Welcome};

use crate::cached_key_lists::{CachedKeyLists, OutgoingRequest};
use crate::lane_client::Backoff;
use crate::retransmit_queue::RetransmitQueue;
use crate::state::AgentEffect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// Not connected. The next attempt is at `retry_at`.
    Closed { retry_at: Duration },
    /// The agent has asked for a connection.
    Opening,
    /// The lane has sent its welcome.
    Open,
    /// The task has left. The agent does not connect again.
    Ended,
}

/// What a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
    /// The lane keys of a pull with this index.
    Pull {
        pull_id: u64,
        reply_index: usize,
    },
    /// A pull function, or the try of push functions.
    Function,
    Barrier,
    Leave,
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) owner: RequestOwner,
    pub(crate) outgoing: OutgoingRequest,
    /// Bytes of the request and its answer.
    pub(crate) bytes: u64,
    /// Whether it was sent over the current connection.
    pub(crate) is_sent: bool,
    /// Earliest time at which to send it again after the lane was busy.
    pub(crate) retry_at: Option<Duration>,
    /// The time at which the task stops waiting. It is set when the request is first sent.
    pub(crate) deadline: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) link: LinkState,
    pub(crate) incarnation: Option<u64>,
    /// The clock of the task in the first welcome of the lane.
    pub(crate) first_clock: Option<Clock>,
    pub(crate) backoff: Backoff,
    /// The time since which there is no connection, and the reason.
    pub(crate) outage: Option<(Duration, String)>,
    pub(crate) window: u64,
    pub(crate) retransmit_queue: RetransmitQueue,
    /// In the order in which they were made.
    pub(crate) requests: BTreeMap<RequestId, PendingRequest>,
    pub(crate) key_lists: CachedKeyLists,
    /// Index of the next push under the current clock.
    pub(crate) next_index: u32,
    /// Longest time for which a task waits for an answer.
    wait_limit: Duration,
    /// Messages that were sent again.
    pub(crate) resend_count: u64,
}

impl Lane {
    pub(crate) fn new(now: Duration, window: u64, wait_limit: Duration) -> Self {
        Self {
            link: LinkState::Opening,
            incarnation: None,
            first_clock: None,
            backoff: Backoff::default(),
            outage: Some((now, "it has not answered yet".into())),
            window,
            retransmit_queue: RetransmitQueue::default(),
            requests: BTreeMap::new(),
            key_lists: CachedKeyLists::default(),
            next_index: 0,
            wait_limit,
            resend_count: 0,
        }
    }

    /// Handles a new connection: pushes that are not acknowledged and requests are sent again, after the last push that
    /// the lane has applied.
    pub(crate) fn on_connected(&mut self, welcome: &Welcome) {
        self.link = LinkState::Open;
        self.incarnation = Some(welcome.incarnation);
        self.first_clock.get_or_insert(welcome.clock);
        self.outage = None;
        self.window = self.window.min(welcome.window_bytes.max(1));
        self.mark_unsent();
        self.retransmit_queue.acknowledge(welcome.applied);
    }

    /// Handles the loss of a connection, and sets the time of the next attempt: not before the pause which the lane has
    /// requested.
    pub(crate) fn on_closed(&mut self, now: Duration, reason: String, requested: Duration) {
        self.link = LinkState::Closed { retry_at: now + self.backoff.next(requested) };
        match &mut self.outage {
            Some((_, last)) => *last = reason,
            None => self.outage = Some((now, reason)),
        }
        self.mark_unsent();
    }

    fn mark_unsent(&mut self) {
        self.key_lists.clear();
        let again = self.requests.values().filter(|request| request.is_sent).count()
            + self.retransmit_queue.sent_count();
        self.resend_count += again as u64;
        self.retransmit_queue.rewind();
        self.requests.values_mut().for_each(|request| request.is_sent = false);
    }

    /// Connects when it is time, and sends entries of the retransmit queue as far as the window allows.
    pub(crate) fn send_queue(
        &mut self,
        now: Duration,
        at: u16,
        ids: &mut RequestId,
        out: &mut Vec<AgentEffect>,
    ) {
        if matches!(self.link, LinkState::Closed { retry_at } if retry_at <= now) {
            self.link = LinkState::Opening;
            out.push(AgentEffect::Connect { lane: at });
        }
        if self.link != LinkState::Open {
            return;
        }
        while let Some(message) = self.retransmit_queue.next(self.window, &mut self.key_lists, ids) {
            out.push(AgentEffect::Send { lane: at, message });
        }
    }

    /// Sends pending requests in their order, as far as the window allows. They are sent after the retransmit queue,
    /// because they must see the pushes before them. `open` is the pull that the task waits for.
    pub(crate) fn send_requests(
        &mut self,
        now: Duration,
        at: u16,
        open: Option<u64>,
        out: &mut Vec<AgentEffect>,
    ) {
        if self.link != LinkState::Open {
            return;
        }
        for request in self.requests.values_mut() {
            request.retry_at = request.retry_at.filter(|time| *time > now);
        }
        // Prefetches may wait for other tasks. They have a window of their own, so that the open call does not wait
        // behind them.
        let is_prefetch = |r: &PendingRequest| matches!(r.owner, RequestOwner::Pull { pull_id, .. } if Some(pull_id) != open);
        let mut under_way = [0; 2];
        for request in self.requests.values().filter(|request| request.is_sent) {
            under_way[usize::from(is_prefetch(request))] += request.bytes;
        }
        for request in self.requests.values_mut().filter(|request| !request.is_sent) {
            let under_way = &mut under_way[usize::from(is_prefetch(request))];
            if *under_way > self.window || request.retry_at.is_some_and(|time| time > now) {
                continue;
            }
            *under_way += request.bytes;
            request.retry_at = None;
            request.is_sent = true;
            match request.deadline {
                None => request.deadline = Some(now + self.wait_limit),
                Some(due) => request.outgoing.set_wait(due.saturating_sub(now)),
            }
            let message: Arc<Message> = request.outgoing.send(&mut self.key_lists);
            out.push(AgentEffect::Send { lane: at, message });
        }
    }

    /// The time at which [`Self::send_queue`] or [`Self::send_requests`] has to run even without a message.
    pub(crate) fn next_time(&self) -> Option<Duration> {
        match self.link {
            LinkState::Closed { retry_at } => Some(retry_at),
            LinkState::Opening | LinkState::Ended => None,
            LinkState::Open => self.requests.values().filter_map(|request| request.retry_at).min(),
        }
    }
}
