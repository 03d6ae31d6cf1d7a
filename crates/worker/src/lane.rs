//! What an agent knows of a lane: the connection, what it has not confirmed, what it was asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use matrix::Clock;
use rpc::Message;
use rpc::message::{RequestId, Welcome};

use crate::known::{Known, Parcel};
use crate::log::Log;
use crate::state::AgentEffect;

/// Pause before the first attempt to connect again; each next one is twice as long.
pub(crate) const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not connected, until then.
    Closed { retry_at: Duration },
    /// Asked to connect.
    Opening,
    /// Welcomed.
    Open,
    /// The task has left: never again.
    Ended,
}

/// For whom a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A piece of a pull.
    Ask {
        ask: u64,
        piece: usize,
    },
    /// A pull function, or the try of push functions.
    Function,
    Barrier,
    Leave,
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) owner: Owner,
    pub(crate) parcel: Parcel,
    /// Of the request and its answer.
    pub(crate) bytes: u64,
    /// Over the connection that stands.
    pub(crate) sent: bool,
    /// When the lane was busy: not before.
    pub(crate) not_before: Option<Duration>,
    /// When the task no longer waits for the answer; known from the first sending on.
    pub(crate) due: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) link: Link,
    pub(crate) incarnation: Option<u64>,
    /// The clock of the task there, as it was welcomed first.
    pub(crate) first_clock: Option<Clock>,
    pub(crate) pause: Duration,
    /// Since when there is no connection, and why.
    pub(crate) lost: Option<(Duration, String)>,
    pub(crate) window: u64,
    pub(crate) log: Log,
    /// In the order in which they were made.
    pub(crate) requests: BTreeMap<RequestId, Request>,
    pub(crate) known: Known,
    /// Index of the next push under the clock that is.
    pub(crate) next_index: u32,
    /// How long a task waits for an answer.
    wait_limit: Duration,
    /// Messages sent once more.
    pub(crate) resend_count: u64,
}

impl Lane {
    pub(crate) fn new(now: Duration, window: u64, wait_limit: Duration) -> Self {
        Self {
            link: Link::Opening,
            incarnation: None,
            first_clock: None,
            pause: SHORTEST_PAUSE,
            lost: Some((now, "it has not answered yet".into())),
            window,
            log: Log::default(),
            requests: BTreeMap::new(),
            known: Known::default(),
            next_index: 0,
            wait_limit,
            resend_count: 0,
        }
    }

    /// The connection stands: everything that is not confirmed goes out again, behind what the lane says it has.
    pub(crate) fn connected(&mut self, welcome: &Welcome) {
        self.link = Link::Open;
        self.incarnation = Some(welcome.incarnation);
        self.first_clock.get_or_insert(welcome.clock);
        self.lost = None;
        self.window = self.window.min(welcome.window_bytes.max(1));
        self.forget_sent();
        self.log.confirm(welcome.applied);
    }

    /// There is no connection, for now.
    pub(crate) fn closed(&mut self, now: Duration, reason: String) {
        self.link = Link::Closed { retry_at: now + self.pause };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        match &mut self.lost {
            Some((_, last)) => *last = reason,
            None => self.lost = Some((now, reason)),
        }
        self.forget_sent();
    }

    fn forget_sent(&mut self) {
        self.known.forget();
        let again = self.requests.values().filter(|request| request.sent).count() + self.log.sent_count();
        self.resend_count += again as u64;
        self.log.rewind();
        self.requests.values_mut().for_each(|request| request.sent = false);
    }

    /// Connects when it is time, and sends what may be sent of the log.
    pub(crate) fn pump(&mut self, now: Duration, at: u16, ids: &mut RequestId, out: &mut Vec<AgentEffect>) {
        if matches!(self.link, Link::Closed { retry_at } if retry_at <= now) {
            self.link = Link::Opening;
            out.push(AgentEffect::Connect { lane: at });
        }
        if self.link != Link::Open {
            return;
        }
        while let Some(message) = self.log.next(self.window, &mut self.known, ids) {
            out.push(AgentEffect::Send { lane: at, message });
        }
    }

    /// Sends the requests that may be sent, in their order. They wait for the log, for they must see the pushes before
    /// them. `open` is the pull that the task waits for.
    pub(crate) fn ask(&mut self, now: Duration, at: u16, open: Option<u64>, out: &mut Vec<AgentEffect>) {
        if self.link != Link::Open {
            return;
        }
        for request in self.requests.values_mut() {
            request.not_before = request.not_before.filter(|time| *time > now);
        }
        // Pulls asked ahead may wait for others; the open call does not wait behind them.
        let is_ahead = |r: &Request| matches!(r.owner, Owner::Ask { ask, .. } if Some(ask) != open);
        let mut under_way = [0; 2];
        for request in self.requests.values().filter(|request| request.sent) {
            under_way[usize::from(is_ahead(request))] += request.bytes;
        }
        for request in self.requests.values_mut().filter(|request| !request.sent) {
            let under_way = &mut under_way[usize::from(is_ahead(request))];
            if *under_way > self.window || request.not_before.is_some_and(|time| time > now) {
                continue;
            }
            *under_way += request.bytes;
            request.not_before = None;
            request.sent = true;
            match request.due {
                None => request.due = Some(now + self.wait_limit),
                Some(due) => request.parcel.set_wait(due.saturating_sub(now)),
            }
            let message: Arc<Message> = request.parcel.send(&mut self.known);
            out.push(AgentEffect::Send { lane: at, message });
        }
    }

    /// When [`Self::pump`] has something to do without any message.
    pub(crate) fn next_time(&self) -> Option<Duration> {
        match self.link {
            Link::Closed { retry_at } => Some(retry_at),
            Link::Opening | Link::Ended => None,
            Link::Open => self.requests.values().filter_map(|request| request.not_before).min(),
        }
    }
}
