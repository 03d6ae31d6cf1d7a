//! What a lane counts, and how it is shown.

use std::fmt::Write as _;
use std::time::Duration;

use matrix::clock::Clock;
use matrix::stats::STALENESS_BUCKETS;
use rpc::Message;
use rpc::message::{FaultKind, Stats, StatsReply, TaskState, TaskStats, TaskWait, WaitingCall};

use crate::connection::message_bytes;
use crate::job::{HeldWhat, Job};
use crate::key_lists::KeyLists;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// Counts of a job.
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
}

impl JobStats {
    /// A pull of a task at `clock` was answered when the slowest was at `minimum`.
    pub(crate) fn pulled(&mut self, clock: Clock, minimum: Option<Clock>) {
        self.pull_count += 1;
        let staleness = clock.saturating_sub(minimum.unwrap_or(clock));
        self.staleness[staleness.min(STALENESS_BUCKETS as u64 - 1) as usize] += 1;
    }

    /// A request that was held is held no more.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.wait_count += 1;
        self.wait_time += time;
    }
}

/// The kinds of requests that are counted one by one.
const KINDS: [&str; 12] = [
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

/// Counts of a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneStats {
    requests: [u64; KINDS.len()],
    request_bytes: u64,
    pub(crate) value_bytes_out: u64,
    pub(crate) pause_count: u64,
    refused: Vec<(FaultKind, u64)>,
}

impl LaneStats {
    pub(crate) fn received(&mut self, message: &Message) {
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
        self.request_bytes += message_bytes(message);
    }

    pub(crate) fn refused(&mut self, kind: FaultKind) {
        match self.refused.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.refused.push((kind, 1)),
        }
    }
}

impl LaneState {
    pub(crate) fn report(&mut self, now: Duration, at: ConnectionId, stats: Stats, out: &mut Vec<Effect>) {
        match self.job(stats.job) {
            Ok(job) => {
                let message = Message::StatsReply(job.stats_reply(now, stats.request));
                out.push(Effect::Send { connection: at, message });
            }
            Err(refusal) => self.refuse(at, stats.request, refusal, out),
        }
    }

    /// Prometheus text.
    pub(crate) fn write_metrics(&self, out: &mut String) {
        let lane = self.config.lane;
        let mut line = |name: &str, labels: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "seraphim_{name}{{lane=\"{lane}\"{labels}}} {value}");
        };
        for (kind, count) in KINDS.iter().zip(self.stats.requests) {
            line("requests_total", &format!(",kind=\"{kind}\""), count as f64);
        }
        line("request_bytes_total", "", self.stats.request_bytes as f64);
        line("value_bytes_out_total", "", self.stats.value_bytes_out as f64);
        line("pauses_total", "", self.stats.pause_count as f64);
        line("connections", "", self.connections.len() as f64);
        line("held_bytes", "", self.held_bytes as f64);
        line("memory_bytes", "", self.memory_bytes as f64);
        line("staged_bytes", "", self.staged_bytes() as f64);
        let lists = self.connections.values().map(|connection| &connection.lists);
        line("key_list_bytes", "", lists.map(KeyLists::bytes).sum::<u64>() as f64);
        let queued = self.connections.values().map(|connection| connection.queue.len()).sum::<usize>();
        line("queued_requests", "", queued as f64);
        for (kind, count) in &self.stats.refused {
            let kind = serde_json::to_string(kind).unwrap_or_default();
            line("refusals_total", &format!(",kind={kind}"), *count as f64);
        }
        for (id, job) in &self.jobs {
            job.write_metrics(*id, &mut line);
        }
    }
}

impl Job {
    fn stats_reply(&self, now: Duration, request: u64) -> StatsReply {
        let stats = &self.stats;
        StatsReply {
            request,
            matrices: self.matrices.iter().map(|matrix| (matrix.row_count(), matrix.bytes())).collect(),
            clocks: (0..self.table.task_count()).map(|task| self.table.clock(task).ok()).collect(),
            pull_count: stats.pull_count,
            push_count: stats.push_count,
            pull_function_count: stats.pull_function_count,
            push_function_count: stats.push_function_count,
            duplicate_count: stats.duplicate_count,
            held_count: self.held.len() as u64 + self.barriers.waiting_count(),
            waits: (stats.wait_count, stats.wait_time.as_nanos() as u64),
            tasks: (0..self.table.task_count()).map(|task| self.task_stats(now, task)).collect(),
            staleness: stats.staleness.to_vec(),
        }
    }

    fn task_stats(&self, now: Duration, task: u32) -> TaskStats {
        let state = match self.table.clock(task) {
            Err(_) => TaskState::Left,
            Ok(_) if self.table.is_at_barrier(task) => TaskState::AtBarrier,
            Ok(_) => TaskState::Live,
        };
        let held = self.held.values().filter(|held| held.task == task).min_by_key(|held| held.since);
        let held = held.map(|held| match held.what {
            HeldWhat::Pull(_) | HeldWhat::PullFunction(_) => (WaitingCall::Pull, held.since),
            HeldWhat::TryFunction(_) | HeldWhat::Push => (WaitingCall::Push, held.since),
        });
        let wait = held.or_else(|| Some((WaitingCall::Barrier, self.barriers.waits_since(task)?)));
        TaskStats {
            clock: self.table.last_clock(task).unwrap_or(0),
            state,
            connected: self.connections.get(task as usize).is_some_and(Option::is_some),
            wait: wait.map(|(call, since)| TaskWait {
                call,
                waited_ms: now.saturating_sub(since).as_millis() as u64,
                waits_for: self.table.who_holds_back().map(|(task, _)| task),
            }),
        }
    }

    fn write_metrics(&self, id: u32, line: &mut impl FnMut(&str, &str, f64)) {
        let stats = &self.stats;
        let job = format!(",job=\"{id}\"");
        line("pulls_total", &job, stats.pull_count as f64);
        line("pushes_total", &job, stats.push_count as f64);
        line("pull_functions_total", &job, stats.pull_function_count as f64);
        line("push_functions_total", &job, stats.push_function_count as f64);
        line("duplicates_total", &job, stats.duplicate_count as f64);
        let staged = self.staged.counts;
        line("staged_tokens", &job, self.staged.token_count() as f64);
        line("commits_total", &job, staged.commits as f64);
        line("late_commits_total", &job, staged.late_commits as f64);
        line("dropped_chunks_total", &job, staged.dropped_chunks as f64);
        line("held_requests", &job, (self.held.len() as u64 + self.barriers.waiting_count()) as f64);
        line("waits_total", &job, stats.wait_count as f64);
        line("wait_seconds_total", &job, stats.wait_time.as_secs_f64());
        for task in 0..self.table.task_count() {
            if let Ok(clock) = self.table.clock(task) {
                line("task_clock", &format!("{job},task=\"{task}\""), clock as f64);
            }
        }
        let mut sum = 0;
        for (bound, count) in stats.staleness.iter().enumerate() {
            sum += count;
            let bound = if bound + 1 == STALENESS_BUCKETS { "+Inf".into() } else { bound.to_string() };
            line("pull_staleness_bucket", &format!("{job},le=\"{bound}\""), sum as f64);
        }
        line("pull_staleness_count", &job, sum as f64);
    }
}
