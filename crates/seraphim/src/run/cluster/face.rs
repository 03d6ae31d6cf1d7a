//! What a worker shows of itself: counts of its tasks and of their agents, at `/metrics` on a port of its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc::message::{Fault, FaultKind, JobId, Message};
use rpc::service::{ConnectionId, Effect, Service};
use worker::meter::{AgentStats, Meter, REQUEST_KINDS};

/// The tasks that run here, by job and number; shared by those who run them and those who look.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauges(Arc<Mutex<BTreeMap<(JobId, u32), TaskGauge>>>);

#[derive(Clone, Debug, Default)]
struct TaskGauge {
    meter: Meter,
    /// Connections that are needed; more were made after resets.
    lane_count: u64,
    steps: u64,
    records: u64,
}

impl Gauges {
    /// A task begins.
    pub(super) fn begin(&self, job: JobId, task: u32, meter: Meter, lane_count: usize) {
        let gauge = TaskGauge { meter, lane_count: lane_count as u64, ..TaskGauge::default() };
        self.lock().insert((job, task), gauge);
    }

    /// A task has made a step.
    pub(super) fn step(&self, job: JobId, task: u32, records: u64) {
        if let Some(gauge) = self.lock().get_mut(&(job, task)) {
            gauge.steps += 1;
            gauge.records += records;
        }
    }

    /// A job is over here.
    pub(super) fn end(&self, job: JobId) {
        self.lock().retain(|(of, _), _| *of != job);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(JobId, u32), TaskGauge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, out: &mut String) {
        let gauges = self.lock().clone();
        let mut jobs: Vec<JobId> = gauges.keys().map(|(job, _)| *job).collect();
        jobs.dedup();
        line(out, "jobs", "", jobs.len() as f64);
        for ((job, task), gauge) in &gauges {
            write_task(out, &format!("job=\"{job}\",task=\"{task}\""), gauge);
        }
    }
}

fn line(out: &mut String, name: &str, labels: &str, value: f64) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    writeln!(out, "seraphim_worker_{name}{labels} {value}").expect("a string takes all that is written");
}

fn write_task(out: &mut String, labels: &str, gauge: &TaskGauge) {
    let stats: AgentStats = gauge.meter.get();
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    for (kind, count) in REQUEST_KINDS.iter().zip(stats.requests) {
        line(out, "requests_total", &format!("{labels},kind=\"{kind}\""), count as f64);
    }
    let for_network_ns = stats.wait_ns.saturating_sub(stats.for_tasks_ns);
    line(out, "wait_seconds_total", &format!("{labels},for=\"network\""), seconds(for_network_ns));
    line(out, "wait_seconds_total", &format!("{labels},for=\"tasks\""), seconds(stats.for_tasks_ns));
    for (name, value) in [
        ("sent_bytes_total", stats.sent_bytes as f64),
        ("received_bytes_total", stats.received_bytes as f64),
        ("send_seconds_total", seconds(stats.send_ns)),
        ("requests_in_flight", stats.in_flight_count as f64),
        ("unconfirmed_bytes", stats.unconfirmed_bytes as f64),
        ("reconnects_total", stats.connection_count.saturating_sub(gauge.lane_count) as f64),
        ("resends_total", stats.resend_count as f64),
        ("steps_total", gauge.steps as f64),
        ("records_total", gauge.records as f64),
        ("task_clock", stats.clock as f64),
    ] {
        line(out, name, labels, value);
    }
    let mut sum = 0;
    for (bound, count) in stats.staleness.iter().enumerate() {
        sum += count;
        let bound = if bound + 1 == stats.staleness.len() { "+Inf".into() } else { bound.to_string() };
        line(out, "pull_staleness_bucket", &format!("{labels},le=\"{bound}\""), sum as f64);
    }
    line(out, "pull_staleness_count", labels, sum as f64);
}

/// Answers nobody but those who ask for metrics.
pub(super) struct Face(pub(super) Gauges);

impl Service for Face {
    fn on_message(&mut self, _: Duration, connection: ConnectionId, _: Message, out: &mut Vec<Effect>) {
        let text =
            "here is a worker, which answers /metrics and /health alone: call the master or a server".into();
        let fault = Fault { request: 0, kind: FaultKind::BadFrame, text, retry_after_ms: 0 };
        out.push(Effect::Send { connection, message: Message::Fault(fault) });
        out.push(Effect::Close { connection });
    }

    fn on_closed(&mut self, _: Duration, _: ConnectionId, _: &mut Vec<Effect>) {}

    fn on_time(&mut self, _: Duration, _: &mut Vec<Effect>) {}

    fn next_time(&self) -> Option<Duration> {
        None
    }

    fn metrics(&self, out: &mut String) {
        self.0.write(out);
    }
}
