//! The progress of a job that `status` shows: records, epochs, loss.

use std::time::{Duration, Instant};

use algo::Epochs;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::report::EpochLine;

/// Time between two reports of the progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

/// Most incidents that are shown.
const INCIDENT_LIMIT: usize = 20;

/// What a user should know of a job that goes on: members that were lost, workers that are slow, checkpoints that failed.
/// Each is one line.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Incidents {
    /// Number of all incidents.
    count: u64,
    /// The last ones.
    last: Vec<String>,
}

impl Incidents {
    pub fn add(&mut self, line: &str) {
        self.count += 1;
        self.last.push(line.to_owned());
        if self.last.len() > INCIDENT_LIMIT {
            self.last.remove(0);
        }
    }
}

/// Sums of a job's steps.
#[derive(Clone, Debug)]
pub(crate) struct JobProgress {
    start: Instant,
    reported_at: Instant,
    /// Number of epochs; known when the first epoch has ended, or earlier.
    epoch_count: Option<u64>,
    /// Number of records in all epochs.
    records: u64,
    /// Number of records in the current epoch.
    epoch_records: u64,
    loss_sum: f64,
    /// The number of the last checkpoint and its clock.
    checkpoint: Option<(u64, u64)>,
    /// Why the last checkpoint was not made.
    checkpoint_error: Option<String>,
    pub incidents: Incidents,
}

impl JobProgress {
    pub(crate) fn new(start: Instant, epochs: Epochs, incidents: Incidents) -> Self {
        let epoch_count = if let Epochs::Fixed(count) = epochs { Some(count) } else { None };
        Self {
            start,
            reported_at: start,
            epoch_count,
            records: 0,
            epoch_records: 0,
            loss_sum: 0.0,
            checkpoint: None,
            checkpoint_error: None,
            incidents,
        }
    }

    /// Adds steps that were made.
    pub(crate) fn add_steps(&mut self, records: u64, loss_sum: f64) {
        self.records += records;
        self.epoch_records += records;
        self.loss_sum += loss_sum;
    }

    /// Records that all tasks have ended an epoch, of `epoch_count`.
    pub(crate) fn epoch_done(&mut self, epoch_count: u64) {
        self.epoch_count = Some(epoch_count);
        (self.epoch_records, self.loss_sum) = (0, 0.0);
    }

    /// Records that a checkpoint is complete.
    pub(crate) fn set_checkpoint(&mut self, number: u64, clock: u64) {
        self.checkpoint = Some((number, clock));
        self.checkpoint_error = None;
    }

    /// An error before a request does not answer it.
    pub(crate) fn forget_checkpoint_error(&mut self) {
        self.checkpoint_error = None;
    }

    /// Records that a checkpoint could not be made.
    pub(crate) fn set_checkpoint_error(&mut self, error: &str) {
        self.checkpoint_error = Some(error.to_owned());
    }

    /// Whether it is time for a report; then the next one is due after the interval.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = now.saturating_duration_since(self.reported_at) >= REPORT_INTERVAL;
        if due {
            self.reported_at = now;
        }
        due
    }

    /// Returns the progress as JSON; `last` is the last complete epoch.
    pub(crate) fn to_json(&self, now: Instant, last: Option<&EpochLine>) -> Map<String, Value> {
        let mean = (self.epoch_records > 0).then(|| self.loss_sum / self.epoch_records as f64);
        let of_last = last.and_then(|line| line.training.get("loss")).copied();
        let checkpoint = self.checkpoint.map(|(number, clock)| json!({ "number": number, "clock": clock }));
        let progress = json!({
            "records": self.records,
            "seconds": now.saturating_duration_since(self.start).as_secs_f64(),
            "epochs": last.map_or(0, |line| line.epoch + 1),
            "epoch_count": self.epoch_count,
            "loss": mean.or(of_last),
            "checkpoint": checkpoint,
            "checkpoint_error": self.checkpoint_error,
            "incidents": self.incidents,
        });
        if let Value::Object(progress) = progress { progress } else { Map::new() }
    }
}
