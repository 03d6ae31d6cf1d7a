//! What people see of a job under way: where its tasks are, who waits for whom, how large its matrices are. A thread with
//! connections of its own asks the lanes now and then, so that a server that hangs does not hold up the driver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::Epochs;
use rpc::message::{StatsReply, TaskState, TaskStats};
use rpc::stop::Stop;
use serde_json::{Map, Value, json};
use worker::JobLayout;

use super::servers::{Servers, tasks_of};
use crate::report::EpochLine;

/// How often the lanes are asked.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Tasks that are shown: those that are furthest behind, then those that wait longest.
const SHOWN_TASKS: usize = 64;

/// Asks until it is dropped.
pub(super) struct StatsPoller {
    latest: Arc<Mutex<Value>>,
    stop: Stop,
}

impl StatsPoller {
    /// Of a job whose task `i` runs on the worker `workers[i]`.
    pub(super) fn start(layout: &JobLayout, token: &[u8], workers: Vec<String>) -> Self {
        let (seen, stop) = (Arc::new(Mutex::new(Value::Null)), Stop::new());
        let watch = Self { latest: Arc::clone(&seen), stop: stop.clone() };
        let (layout, token) = (layout.clone(), token.to_vec());
        std::thread::spawn(move || {
            // A server that is gone ends the job elsewhere.
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

    /// What was seen last, as the progress of a job shows it.
    pub(super) fn latest(&self) -> Value {
        lock(&self.latest).clone()
    }
}

/// How far a job has come, in few words.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobProgress {
    start: Instant,
    /// Known at the latest when the first epoch has ended.
    epoch_count: Option<u64>,
    /// Of all epochs.
    records: u64,
    /// Of the epoch under way.
    epoch_records: u64,
    loss_sum: f64,
}

impl JobProgress {
    pub(super) fn new(start: Instant, epochs: Epochs) -> Self {
        let epoch_count = if let Epochs::Fixed(count) = epochs { Some(count) } else { None };
        Self { start, epoch_count, records: 0, epoch_records: 0, loss_sum: 0.0 }
    }

    /// Some steps were made.
    pub(super) fn record_steps(&mut self, records: u64, loss_sum: f64) {
        self.records += records;
        self.epoch_records += records;
        self.loss_sum += loss_sum;
    }

    /// All tasks have ended an epoch, of so many.
    pub(super) fn epoch_done(&mut self, epoch_count: u64) {
        self.epoch_count = Some(epoch_count);
        (self.epoch_records, self.loss_sum) = (0, 0.0);
    }

    /// What people see; `last_epoch` is the last whole epoch.
    pub(super) fn to_json(&self, last: Option<&EpochLine>) -> Map<String, Value> {
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
