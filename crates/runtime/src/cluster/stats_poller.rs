//! The statistics that `status` shows of a running job: the clocks of its tasks, which task waits for which, the sizes
//! of its matrices. A thread with its own connections polls the lanes, so that a server that hangs does not block the
//! driver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc::layout::JobLayout;
use rpc::message::{Role, StatsReply, TaskStats, TaskStatus};
use rpc::stop::Stop;
use serde_json::{Value, json};
use worker::RetryPolicy;

use crate::cluster::servers::{Servers, tasks_of};

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
    pub(super) fn start(
        layout: &JobLayout,
        token: &[u8],
        workers: Vec<String>,
        is_server_lost: impl Fn(&str) -> bool + Send + 'static,
    ) -> Self {
        let (seen, stop) = (Arc::new(Mutex::new(Value::Null)), Stop::new());
        let watch = Self { latest: Arc::clone(&seen), stop: stop.clone() };
        let (layout, token) = (layout.clone(), token.to_vec());
        std::thread::spawn(move || {
            // A lost server ends the job elsewhere.
            let is_over = stop.clone();
            let policy = RetryPolicy::until(move || is_over.is_raised(), is_server_lost);
            let role = Role::JobTool { job: layout.job };
            let Ok(mut servers) = Servers::connect_as(role, &layout, &token, policy) else { return };
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
        (stats.state == TaskStatus::Left, stats.clock, std::cmp::Reverse(waited), *task)
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
