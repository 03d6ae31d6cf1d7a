//! The counters of an agent, and their view from other threads while its task runs.

use std::sync::{Arc, Mutex, PoisonError};

use matrix::Clock;
use matrix::stats::STALENESS_BUCKETS;
use rpc::Message;

/// The message kinds that are counted separately, in the order of [`AgentStats::requests`].
pub const REQUEST_KINDS: [&str; 8] =
    ["pull", "push", "tick", "barrier", "pull_function", "push_function", "try_function", "other"];

/// What an agent has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentStats {
    /// Messages sent, by [`REQUEST_KINDS`].
    pub requests: [u64; REQUEST_KINDS.len()],
    /// Approximate bytes of the sent messages: keys, values and 64 for the rest of each.
    pub sent_bytes: u64,
    /// Approximate bytes of the answers.
    pub received_bytes: u64,
    /// Connections opened. More than one a lane means resets.
    pub connection_count: u64,
    /// Messages that were sent again.
    pub resend_count: u64,
    /// Round trips: calls that waited for an answer, each counted once for any number of lanes.
    pub round_trip_count: u64,
    /// Nanoseconds for which the task was blocked in sends.
    pub send_ns: u64,
    /// Nanoseconds for which it was blocked on answers and connections, including waits for other tasks.
    pub wait_ns: u64,
    /// The part of `wait_ns` that is due to other tasks: for each call the longest time for which a lane deferred one
    /// of its requests, at most the time for which the task was blocked. The remainder is the network and the work of
    /// servers.
    pub deferred_ns: u64,
    /// Requests that are not answered at the moment.
    pub in_flight_count: u64,
    /// Bytes of pushes that no lane has acknowledged at the moment.
    pub unacknowledged_bytes: u64,
    /// The clock of the task.
    pub clock: Clock,
    /// Pulls by staleness: the number of clocks by which the slowest task was behind when they were answered. The last
    /// entry counts all larger values.
    pub staleness: [u64; STALENESS_BUCKETS],
    /// The sum of the staleness of all pulls.
    pub staleness_sum: u64,
}

impl AgentStats {
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

/// The stats of an agent for other threads, as of the end of its last call or the begin of its last wait.
#[derive(Clone, Debug, Default)]
pub struct SharedStats(Arc<Mutex<AgentStats>>);

impl SharedStats {
    pub fn get(&self) -> AgentStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, stats: &AgentStats) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = *stats;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_counted_by_their_staleness() {
        let mut stats = AgentStats::default();
        let last = STALENESS_BUCKETS - 1;
        for staleness in [None, Some(0), Some(2), Some(2), Some(last as Clock), Some(1000)] {
            stats.count_staleness(staleness);
        }
        assert_eq!(stats.staleness_sum, 4 + last as Clock + 1000);
        let mut expected = [0; STALENESS_BUCKETS];
        (expected[0], expected[2], expected[last]) = (1, 2, 2);
        assert_eq!(stats.staleness, expected, "the last bucket has all that are larger");
    }
}
