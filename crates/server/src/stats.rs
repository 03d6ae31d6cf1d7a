//! The counters of a lane and of its jobs, as replies and as metrics.

use std::time::Duration;

use matrix::clock::Clock;
use matrix::stats::STALENESS_BUCKETS;
use rpc::Message;
use rpc::message::{FaultKind, Stats, StatsReply, TaskStats, TaskStatus, TaskWait, WaitKind};
use rpc::metrics::{Label, Metrics};

use crate::job::{DeferredCall, Job};
use crate::key_lists::KeyLists;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

#[derive(Clone, Debug, Default)]
pub(crate) struct JobStats {
    pub(crate) pull_count: u64,
    pub(crate) push_count: u64,
    pub(crate) pull_function_count: u64,
    pub(crate) push_function_count: u64,
    pub(crate) duplicate_count: u64,
    wait_count: u64,
    wait_time: Duration,
    staleness: [u64; STALENESS_BUCKETS],
    staleness_sum: u64,
}

impl JobStats {
    /// Counts the answer of a pull of a task at `clock`. `minimum` is the smallest clock at that moment.
    pub(crate) fn count_pull(&mut self, clock: Clock, minimum: Option<Clock>) {
        self.pull_count += 1;
        let staleness = clock.saturating_sub(minimum.unwrap_or(clock));
        self.staleness_sum += staleness;
        self.staleness[staleness.min(STALENESS_BUCKETS as u64 - 1) as usize] += 1;
    }

    /// Counts the end of the wait of a deferred request.
    pub(crate) fn count_wait(&mut self, time: Duration) {
        self.wait_count += 1;
        self.wait_time += time;
    }
}

/// Labels of the request kinds that are counted separately.
const REQUEST_KINDS: [&str; 12] = [
    "pull",
    "push",
    "tick",
    "barrier",
    "hello",
    "staged",
    "commit",
    "batch",
    "pull_function",
    "push_function",
    "try_function",
    "other",
];

#[derive(Clone, Debug, Default)]
pub(crate) struct LaneStats {
    requests: [u64; REQUEST_KINDS.len()],
    request_bytes: u64,
    pub(crate) value_bytes_out: u64,
    pub(crate) pause_count: u64,
    refusals: Vec<(FaultKind, u64)>,
}

impl LaneStats {
    pub(crate) fn count_request(&mut self, message: &Message) {
        let kind = match message {
            Message::Pull(_) => 0,
            Message::Push(_) => 1,
            Message::Tick(_) => 2,
            Message::Barrier(_) => 3,
            Message::Hello(_) => 4,
            Message::PushStaged(_) => 5,
            Message::Commit(_) | Message::CommitFunction(_) => 6,
            Message::Batch(_) => 7,
            Message::PullFunction(_) => 8,
            Message::PushFunction(_) => 9,
            Message::TryFunction(_) => 10,
            _ => 11,
        };
        self.requests[kind] += 1;
        self.request_bytes += message.frame_bytes();
    }

    pub(crate) fn count_refusal(&mut self, kind: FaultKind) {
        match self.refusals.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.refusals.push((kind, 1)),
        }
    }
}

impl LaneState {
    pub(crate) fn reply_stats(
        &mut self,
        now: Duration,
        at: ConnectionId,
        stats: Stats,
        out: &mut Vec<Effect>,
    ) {
        match self.job(stats.job) {
            Ok(job) => {
                let message = Message::StatsReply(job.stats_reply(now, stats.request));
                out.push(Effect::Send { connection: at, message });
            }
            Err(refusal) => self.refuse(at, stats.request, refusal, out),
        }
    }

    pub(crate) fn write_metrics(&self, out: &mut Metrics) {
        let lane = self.config.lane.to_string();
        let of_lane = ("lane", lane.as_str());
        for (kind, count) in REQUEST_KINDS.iter().zip(self.stats.requests) {
            out.counter("seraphim_requests_total", "Requests", &[of_lane, ("kind", kind)], count);
        }
        let stats = &self.stats;
        for (name, help, value) in [
            ("request_bytes", "Bytes of requests", stats.request_bytes),
            ("value_bytes_out", "Bytes of values in answers", stats.value_bytes_out),
            ("pauses", "Times reading a connection was paused behind a deferred push", stats.pause_count),
        ] {
            out.counter(&format!("seraphim_{name}_total"), help, &[of_lane], value);
        }
        let lists = self.connections.values().map(|connection| &connection.key_lists);
        let queued = self.connections.values().map(|connection| connection.queue.len()).sum::<usize>();
        for (name, help, value) in [
            ("connections", "Connections of this lane", self.connections.len() as u64),
            ("held_bytes", "Bytes of requests that wait for other tasks", self.deferred_bytes),
            ("memory_bytes", "Bytes of rows, row copies and job modules", self.memory.bytes()),
            ("staged_bytes", "Bytes that sessions have staged and not committed", self.staged_bytes()),
            ("key_list_bytes", "Bytes of cached key lists", lists.map(KeyLists::bytes).sum()),
            ("queued_requests", "Requests queued behind a deferred push", queued as u64),
        ] {
            out.gauge(&format!("seraphim_{name}"), help, &[of_lane], value);
        }
        for (kind, count) in &self.stats.refusals {
            let kind = serde_json::to_value(kind).unwrap_or_default();
            let labels = [of_lane, ("kind", kind.as_str().unwrap_or("other"))];
            out.counter("seraphim_refusals_total", "Requests refused", &labels, *count);
        }
        for (id, job) in &self.jobs {
            job.write_metrics(of_lane, &id.to_string(), out);
        }
    }
}

impl Job {
    fn stats_reply(&self, now: Duration, request: u64) -> StatsReply {
        let stats = &self.stats;
        StatsReply {
            request,
            matrices: self.matrices.iter().map(|matrix| (matrix.row_count(), matrix.size_bytes())).collect(),
            clocks: (0..self.clock_table.task_count())
                .map(|task| self.clock_table.clock(task).ok())
                .collect(),
            pull_count: stats.pull_count,
            push_count: stats.push_count,
            pull_function_count: stats.pull_function_count,
            push_function_count: stats.push_function_count,
            duplicate_count: stats.duplicate_count,
            held_count: self.deferred_requests.len() as u64 + self.barrier.waiter_count(),
            waits: (stats.wait_count, stats.wait_time.as_nanos() as u64),
            tasks: (0..self.clock_table.task_count()).map(|task| self.task_stats(now, task)).collect(),
            staleness: stats.staleness.to_vec(),
        }
    }

    fn task_stats(&self, now: Duration, task: u32) -> TaskStats {
        let state = match self.clock_table.clock(task) {
            Err(_) => TaskStatus::Left,
            Ok(_) if self.clock_table.is_at_barrier(task) => TaskStatus::AtBarrier,
            Ok(_) => TaskStatus::Live,
        };
        let deferred = self
            .deferred_requests
            .values()
            .filter(|deferred| deferred.task == task)
            .min_by_key(|deferred| deferred.since);
        let deferred = deferred.map(|deferred| match deferred.call {
            DeferredCall::Pull(_) | DeferredCall::PullFunction(_) => (WaitKind::Pull, deferred.since),
            DeferredCall::TryFunction(_) | DeferredCall::Push => (WaitKind::Push, deferred.since),
        });
        let wait = deferred.or_else(|| Some((WaitKind::Barrier, self.barrier.waiting_since(task)?)));
        TaskStats {
            clock: self.clock_table.last_clock(task).unwrap_or(0),
            state,
            connected: self.connections.get(task as usize).is_some_and(Option::is_some),
            wait: wait.map(|(call, since)| TaskWait {
                call,
                waited_ms: now.saturating_sub(since).as_millis() as u64,
                waits_for: self.clock_table.slowest_task().map(|(task, _)| task),
            }),
        }
    }

    fn write_metrics(&self, of_lane: Label<'_>, id: &str, out: &mut Metrics) {
        let (stats, staged) = (&self.stats, self.staged_chunks.counts);
        let labels = [of_lane, ("job", id)];
        for (name, help, value) in [
            ("pulls", "Pulls answered", stats.pull_count),
            ("pushes", "Pushes applied", stats.push_count),
            ("pull_functions", "Pull functions among the pulls", stats.pull_function_count),
            ("push_functions", "Push functions among the pushes", stats.push_function_count),
            ("duplicates", "Duplicate pushes dropped", stats.duplicate_count),
            ("commits", "Commits that counted", staged.commits),
            ("late_commits", "Commits of attempts that did not count", staged.late_commits),
            (
                "dropped_chunks",
                "Chunks dropped: staged before, or of a part that was committed",
                staged.dropped_chunks,
            ),
            ("waits", "Requests that had to wait for other tasks", stats.wait_count),
        ] {
            out.counter(&format!("seraphim_{name}_total"), help, &labels, value);
        }
        let help = "Time that requests waited for other tasks";
        out.counter("seraphim_wait_seconds_total", help, &labels, stats.wait_time.as_secs_f64());
        let deferred = self.deferred_requests.len() as u64 + self.barrier.waiter_count();
        out.gauge("seraphim_deferred_requests", "Requests that wait for other tasks now", &labels, deferred);
        let tokens = self.staged_chunks.token_count() as u64;
        out.gauge("seraphim_staged_tokens", "Open tokens", &labels, tokens);
        for task in 0..self.clock_table.task_count() {
            if let Ok(clock) = self.clock_table.clock(task) {
                let labels = [of_lane, ("job", id), ("task", &task.to_string())];
                out.gauge("seraphim_task_clock", "Clock of a task that has not left", &labels, clock);
            }
        }
        let help = "Staleness of answered pulls: clocks by which the slowest task was behind";
        out.histogram("seraphim_pull_staleness", help, &labels, &stats.staleness, stats.staleness_sum);
    }
}
