//! The metrics of a worker: counters of its tasks and of their agents, at `/metrics` on its own port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control::{HttpConfig, HttpThread, serve_http};
use driver::Error;
use rpc::message::JobId;
use rpc::metrics::{Label, Metrics};
use rpc::serve::Ports;
use rpc::{Address, Limits, Stop};
use worker::stats::{AgentStats, REQUEST_KINDS, SharedStats};

/// The metrics of the tasks of a worker by job and task number; shared by task threads and the metrics endpoint.
#[derive(Clone, Debug, Default)]
pub struct WorkerMetrics(Arc<Mutex<BTreeMap<(JobId, u32), TaskMetrics>>>);

#[derive(Clone, Debug, Default)]
struct TaskMetrics {
    meter: SharedStats,
    /// Number of lanes. Connections beyond this number were made after resets.
    lane_count: u64,
    steps: u64,
    records: u64,
}

impl WorkerMetrics {
    /// Adds a task that starts.
    pub fn add_task(&self, job: JobId, task: u32, meter: SharedStats, lane_count: usize) {
        let gauge = TaskMetrics { meter, lane_count: lane_count as u64, ..TaskMetrics::default() };
        self.lock().insert((job, task), gauge);
    }

    /// Counts a step of a task.
    pub fn record_step(&self, job: JobId, task: u32, records: u64) {
        if let Some(gauge) = self.lock().get_mut(&(job, task)) {
            gauge.steps += 1;
            gauge.records += records;
        }
    }

    /// Removes a job that has ended on this worker.
    pub fn remove_job(&self, job: JobId) {
        self.lock().retain(|(of, _), _| *of != job);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(JobId, u32), TaskMetrics>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_metrics(&self, out: &mut Metrics) {
        let tasks = self.lock().clone();
        let mut jobs: Vec<JobId> = tasks.keys().map(|(job, _)| *job).collect();
        jobs.dedup();
        out.gauge("seraphim_worker_jobs", "Jobs with tasks on this worker", &[], jobs.len() as u64);
        for ((job, task), gauge) in &tasks {
            write_task_metrics(out, [("job", &job.to_string()), ("task", &task.to_string())], gauge);
        }
    }
}

fn write_task_metrics(out: &mut Metrics, labels: [Label<'_>; 2], gauge: &TaskMetrics) {
    let stats: AgentStats = gauge.meter.get();
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let [job, task] = labels;
    for (kind, count) in REQUEST_KINDS.iter().zip(stats.requests) {
        out.counter("seraphim_worker_requests_total", "Messages sent", &[job, task, ("kind", kind)], count);
    }
    let help = "Time the task waited for replies";
    for (whom, ns) in
        [("network", stats.wait_ns.saturating_sub(stats.deferred_ns)), ("tasks", stats.deferred_ns)]
    {
        out.counter("seraphim_worker_wait_seconds_total", help, &[job, task, ("for", whom)], seconds(ns));
    }
    let help = "Time the task was blocked on sending";
    out.counter("seraphim_worker_send_seconds_total", help, &labels, seconds(stats.send_ns));
    let reconnects = stats.connection_count.saturating_sub(gauge.lane_count);
    for (name, help, value) in [
        ("sent_bytes", "Approximate bytes of messages sent", stats.sent_bytes),
        ("received_bytes", "Approximate bytes of replies received", stats.received_bytes),
        ("reconnects", "Reconnections", reconnects),
        ("resends", "Messages sent again", stats.resend_count),
        ("steps", "Steps made", gauge.steps),
        ("records", "Training records of the steps", gauge.records),
    ] {
        out.counter(&format!("seraphim_worker_{name}_total"), help, &labels, value);
    }
    for (name, help, value) in [
        ("requests_in_flight", "Requests sent and not yet answered", stats.in_flight_count),
        ("unconfirmed_bytes", "Bytes of pushes not yet acknowledged", stats.unacknowledged_bytes),
        ("task_clock", "Clock of the task", stats.clock),
    ] {
        out.gauge(&format!("seraphim_worker_{name}"), help, &labels, value);
    }
    let help = "Clocks the slowest task was behind, from replies to pulls";
    let name = "seraphim_worker_pull_staleness";
    out.histogram(name, help, &labels, &stats.staleness, stats.staleness_sum);
}

/// The metrics endpoint of a worker, until this value is dropped.
pub struct MetricsEndpoint {
    pub addresses: Vec<String>,
    stop: Stop,
    /// Dropped after the stop was raised.
    _thread: HttpThread,
}

impl MetricsEndpoint {
    pub fn start(http: &[Address], token: &[u8], metrics: WorkerMetrics) -> Result<Self, Error> {
        let listeners = Ports::bind_http(http).map_err(Error::process)?;
        let addresses = listeners.iter().map(|listener| listener.address().to_string()).collect();
        let config = HttpConfig {
            token: token.to_vec(),
            limits: Limits::default(),
            master: None,
            metrics: Arc::new(move || {
                let mut out = Metrics::default();
                metrics.write_metrics(&mut out);
                Box::pin(std::future::ready(Ok(out)))
            }),
        };
        let stop = Stop::new();
        let thread = serve_http(listeners, config, stop.clone()).map_err(Error::process)?;
        Ok(Self { addresses, stop, _thread: thread })
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        self.stop.raise();
    }
}
