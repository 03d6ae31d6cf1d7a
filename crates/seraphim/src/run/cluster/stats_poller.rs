//! The statistics that `status` shows of a running job: the clocks of its tasks, which task waits for which, the sizes
//! of its matrices. A thread with its own connections polls the lanes, so that a server that hangs does not block the
//! driver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::Epochs;
use rpc::message::{StatsReply, TaskState, TaskStats};
use rpc::stop::Stop;
use serde_json::{Map, Value, json};
use worker::JobLayout;

use super::servers::{Servers, tasks_of};
use crate::report::EpochLine;

/// Time between two polls of the lanes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of tasks that are shown: those furthest behind, then those that wait longest.
const SHOWN_TASKS: usize = 64;

/// Polls the lanes until it is dropped.
pub(super) struct StatsPoller {
    latest: Arc<Mutex<Value>>,
    stop: Stop,
}

impl StatsPoller {
    /// Starts polling for a job whose task `i` runs on the worker `workers[i]`.
    pub(super) fn start(layout: &JobLayout, token: &[u8], workers: Vec<String>) -> Self {
        let (seen, stop) = (Arc::new(Mutex::new(Value::Null)), Stop::new());
        let watch = Self { latest: Arc::clone(&seen), stop: stop.clone() };
        let (layout, token) = (layout.clone(), token.to_vec());
        std::thread::spawn(move || {
            // A lost server ends the job elsewhere.
            let Ok(servers) = Servers::connect(&layout, &token) else { return };
            let is_over = stop.clone();
            let mut servers = servers.with_cancellation(move || is_over.is_raised());
            while let Ok(replies) = servers.stats() {
                *lock(&seen) = stats_json(&layout, &replies, &workers);
                if stop.wait(POLL_INTERVAL) {
                    return;
                }
            }
        });
        watch
    }

    /// Returns the latest statistics in the form of a job's progress.
    pub(super) fn latest(&self) -> Value {
        lock(&self.latest).clone()
    }
}

/// Summary of a job's progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobProgress {
    start: Instant,
    /// Number of epochs; known when the first epoch has ended, or earlier.
    epoch_count: Option<u64>,
    /// Number of records in all epochs.
    records: u64,
    /// Number of records in the current epoch.
    epoch_records: u64,
    loss_sum: f64,
}

impl JobProgress {
    pub(super) fn new(start: Instant, epochs: Epochs) -> Self {
        let epoch_count = if let Epochs::Fixed(count) = epochs { Some(count) } else { None };
        Self { start, epoch_count, records: 0, epoch_records: 0, loss_sum: 0.0 }
    }

    /// Adds steps that were made.
    pub(super) fn record_steps(&mut self, records: u64, loss_sum: f64) {
        self.records += records;
        self.epoch_records += records;
        self.loss_sum += loss_sum;
    }

    /// Records that all tasks have ended an epoch, of `epoch_count`.
    pub(super) fn epoch_done(&mut self, epoch_count: u64) {
        self.epoch_count = Some(epoch_count);
        (self.epoch_records, self.loss_sum) = (0, 0.0);
    }

    /// Returns the summary as JSON; `last` is the last complete epoch.
    pub(super) fn to_json(self, last: Option<&EpochLine>) -> Map<String, Value> {
        let mean = (self.epoch_records > 0).then(|| self.loss_sum / self.epoch_records as f64);
        let of_last = last.and_then(|line| line.training.get("loss")).copied();
        let seen = json!({
            "records": self.records,
            "seconds": self.start.elapsed().as_secs_f64(),
            "epochs": last.map_or(0, |line| line.epoch + 1),
            "epoch_count": self.epoch_count,
            "loss": mean.or(of_last),
        });
        if let Value::Object(seen) = seen { seen } else { Map::new() }
    }
}

impl Drop for StatsPoller {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

fn lock(value: &Mutex<Value>) -> MutexGuard<'_, Value> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stats_json(layout: &JobLayout, replies: &[StatsReply], workers: &[String]) -> Value {
    let matrices: Vec<Value> = layout
        .matrices
        .iter()
        .enumerate()
        .map(|(id, spec)| {
            let sizes = replies.iter().filter_map(|reply| reply.matrices.get(id));
            let (rows, bytes) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
            let partitions = spec.partitioner.partition_count();
            json!({"name": spec.name, "rows": rows, "bytes": bytes, "partitions": partitions})
        })
        .collect();
    let mut tasks: Vec<(usize, TaskStats)> = tasks_of(replies).into_iter().enumerate().collect();
    let count = tasks.len();
    tasks.sort_by_key(|(task, stats)| {
        let waited = stats.wait.map_or(0, |wait| wait.waited_ms);
        (stats.state == TaskState::Left, stats.clock, std::cmp::Reverse(waited), *task)
    });
    tasks.truncate(SHOWN_TASKS);
    tasks.sort_by_key(|(task, _)| *task);
    let tasks: Vec<Value> = tasks
        .into_iter()
        .map(|(task, stats)| {
            let worker = workers.get(task).map_or("?", String::as_str);
            json!({"task": task, "worker": worker, "clock": stats.clock, "state": stats.state,
                "connected": stats.connected, "wait": stats.wait})
        })
        .collect();
    json!({"task_count": count, "matrices": matrices, "tasks": tasks})
}
