//! The report of a training run as one JSON file (`--report`).

use std::collections::BTreeMap;

use algo::metric::calibration::CalibrationRow;
use serde::{Deserialize, Serialize};

/// The report of one `train` run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub program_version: String,
    pub algorithm: String,
    /// Value of every parameter of the algorithm.
    pub settings: BTreeMap<String, String>,
    /// Values that the program chose where a setting was `auto`, with the reasons.
    #[serde(default)]
    pub choices: Vec<String>,
    pub seed: u64,
    /// Consistency as the command line spells it.
    pub consistency: String,
    pub tasks: u32,
    /// Number of tasks that can compute at once.
    pub threads: usize,
    /// Training data as given.
    pub data: Vec<String>,
    /// Validation data as given.
    pub validate: Vec<String>,
    /// Format of the training data.
    pub format: String,
    pub input: InputReport,
    pub epochs: Vec<EpochLine>,
    /// `finished`, `early_stopping` or `interrupted`.
    pub ended_by: String,
    /// The epoch whose weights were saved, when early stopping chose one.
    pub best_epoch: Option<u64>,
    /// Duration of each phase of the run.
    pub timings: Timings,
    /// Training records of all epochs per second of training.
    pub records_per_second: f64,
    /// Peak resident memory in bytes; none where the system does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// Counters of the parameter store.
    pub store: serde_json::Value,
    /// Notices for the user.
    pub notices: Vec<String>,
    pub model: ModelReport,
}

/// What the run read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputReport {
    /// Number of training records, including those held out for validation.
    pub records: u64,
    /// Size of the training files on disk in bytes; none for standard input.
    pub size_bytes: Option<u64>,
    /// Description of the labels, for people.
    pub labels: String,
    /// Number of bad lines that were skipped.
    pub bad_lines: u64,
    /// The first bad lines, with file and line.
    pub first_bad_lines: Vec<String>,
    /// Bytes of records that are kept for later epochs.
    #[serde(rename = "kept")]
    pub cached: serde_json::Value,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EpochLine {
    /// Number of the epoch, from 0.
    pub epoch: u64,
    /// The clock at the end of the epoch: the largest number of steps of one task, over all epochs so far.
    #[serde(default)]
    pub clock: u64,
    /// Number of training records.
    pub records: u64,
    /// Duration of the epoch in seconds, including validation.
    pub seconds: f64,
    /// Metrics of the training data; each record is scored before the update of its batch.
    pub training: BTreeMap<String, f64>,
    /// Metrics of the validation data after the epoch.
    pub validation: Option<BTreeMap<String, f64>>,
    /// Predicted probabilities and observed frequencies on the validation data after the epoch, in bins.
    #[serde(default)]
    pub calibration_table: Vec<CalibrationRow>,
}

/// Durations in wall-clock seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Finding files, formats and columns.
    pub open_s: f64,
    /// Reading all data before the first epoch, if the algorithm needs it.
    pub scan_s: f64,
    /// All epochs, including validation.
    pub train_s: f64,
    /// Validation in all epochs, of the task that took longest.
    pub validate_s: f64,
    /// Exporting and writing the model.
    pub save_s: f64,
    /// Waiting for the disk while the model is saved (part of `save_s`), summed over files that are written in
    /// parallel.
    pub sync_s: f64,
    /// Writing of checkpoints, from the moment when the first task has saved (part of `train_s`).
    #[serde(default)]
    pub checkpoint_s: f64,
    /// Waiting of the tasks for checkpoints (part of `checkpoint_s`): they go on while one is written.
    #[serde(default)]
    pub checkpoint_wait_s: f64,
    /// Reading the checkpoint from which training continued, and sending its rows to the matrices.
    #[serde(default)]
    pub restore_s: f64,
    /// The whole run.
    pub total_s: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ModelReport {
    /// Path of the model directory.
    pub path: String,
    /// Size of all its files in bytes.
    pub size_bytes: u64,
    /// Number of stored rows by matrix.
    pub stored_rows: BTreeMap<String, u64>,
}

impl Report {
    /// Returns the epoch whose weights were saved.
    pub fn saved_epoch(&self) -> Option<&EpochLine> {
        match self.best_epoch {
            Some(best) => self.epochs.iter().find(|line| line.epoch == best),
            None => self.epochs.last(),
        }
    }
}
