//! What an agent counts, and how others see it while its task works.

use std::sync::{Arc, Mutex, PoisonError};

use matrix::Clock;
use matrix::stats::STALENESS_BUCKETS;
use rpc::Message;

/// The kinds of messages that are counted one by one, in the order of [`AgentStats::requests`].
pub const REQUEST_KINDS: [&str; 8] =
    ["pull", "push", "tick", "barrier", "pull_function", "push_function", "try_function", "other"];

/// What an agent has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentStats {
    /// Messages sent, by [`REQUEST_KINDS`].
    pub requests: [u64; REQUEST_KINDS.len()],
    /// Bytes of them, about: keys, values and 64 for all else.
    pub sent_bytes: u64,
    /// Bytes of the answers, about.
    pub received_bytes: u64,
    /// Connections made; more than one a lane were resets.
    pub connection_count: u64,
    /// Messages that were sent once more.
    pub resend_count: u64,
    /// Calls that stood still for an answer, each counted once however many lanes were asked: round trips.
    pub round_trip_count: u64,
    /// Nanoseconds that the task stood still for sending.
    pub send_ns: u64,
    /// Nanoseconds that it stood still for answers and connections, waits for other tasks included.
    pub wait_ns: u64,
    /// The part of them for other tasks: of each call the longest time that a lane says it held a request of it, and at
    /// most as long as the task stood still. The rest is the network and the work of servers.
    pub deferred_ns: u64,
    /// Requests made and not answered at the moment.
    pub in_flight_count: u64,
    /// Bytes of pushes that no lane has confirmed at the moment.
    pub unacknowledged_bytes: u64,
    /// The clock of the task.
    pub clock: Clock,
    /// Pulls by how many clocks the slowest task was behind when they were answered; the last counts all above.
    pub staleness: [u64; STALENESS_BUCKETS],
    /// The sum of them over all pulls.
    pub staleness_sum: u64,
}

impl AgentStats {
    /// Messages sent.
    pub fn request_count(&self) -> u64 {
        self.requests.iter().sum()
    }

    pub(crate) fn count_sent(&mut self, message: &Message) {
        let kind = match message {
            Message::Pull(_) => 0,
            Message::Push(_) => 1,
            Message::Tick(_) => 2,
            Message::Barrier(_) => 3,
            Message::PullFunction(_) => 4,
            Message::PushFunction(_) => 5,
            Message::TryFunction(_) => 6,
            _ => 7,
        };
        self.requests[kind] += 1;
        self.sent_bytes += message.frame_bytes();
    }

    pub(crate) fn count_staleness(&mut self, staleness: Option<Clock>) {
        if let Some(staleness) = staleness {
            let last = STALENESS_BUCKETS - 1;
            self.staleness_sum += staleness;
            self.staleness[usize::try_from(staleness).map_or(last, |at| at.min(last))] += 1;
        }
    }
}

/// The stats of an agent for other threads: as they were when its last call ended, or when it last began to wait.
#[derive(Clone, Debug, Default)]
pub struct SharedStats(Arc<Mutex<AgentStats>>);

impl SharedStats {
    /// The stats.
    pub fn get(&self) -> AgentStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, stats: &AgentStats) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = *stats;
    }
}
