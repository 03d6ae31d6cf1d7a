//! The report of a training run: everything a later reader wants to know, as one JSON file (`--report`).

use std::collections::BTreeMap;
use std::path::Path;

use algo::metric::calibration::CalibrationRow;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The report of one `train`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of the program.
    pub program_version: String,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Every parameter with its value in force.
    pub settings: BTreeMap<String, String>,
    /// What was chosen where the settings were `auto`, and why.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Seed.
    pub seed: u64,
    /// As spelled on the command line.
    pub consistency: String,
    /// Number of tasks.
    pub tasks: u32,
    /// Tasks that could compute at once.
    pub threads: usize,
    /// Training data as given.
    pub data: Vec<String>,
    /// Validation data as given.
    pub validate: Vec<String>,
    /// Format that was read.
    pub format: String,
    /// What was read.
    pub input: InputReport,
    /// Every epoch.
    pub epochs: Vec<EpochLine>,
    /// `finished`, `early_stopping` or `interrupted`.
    pub ended_by: String,
    /// The epoch whose weights were saved, when early stopping chose one.
    pub best_epoch: Option<u64>,
    /// Seconds of each part of the run.
    pub timings: Timings,
    /// Training records of all epochs for each second of training.
    pub records_per_second: f64,
    /// Most resident memory, in bytes; none where the system does not say.
    pub peak_memory_bytes: Option<u64>,
    /// What the parameter store counted.
    pub store: serde_json::Value,
    /// What the user should know.
    pub notices: Vec<String>,
    /// The model.
    pub model: ModelReport,
}

/// What was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputReport {
    /// Training records, those held out included.
    pub records: u64,
    /// Bytes of the training files, as they lie on disk; none for standard input.
    pub size_bytes: Option<u64>,
    /// What the labels look like.
    pub labels: String,
    /// Bad lines left out.
    pub bad_lines: u64,
    /// The first few of them.
    pub first_bad_lines: Vec<String>,
    /// Bytes of records kept for later epochs.
    pub kept: serde_json::Value,
}

/// One epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EpochLine {
    /// From 0.
    pub epoch: u64,
    /// The clock at its end: steps of the task that makes most of them, of all epochs so far.
    #[serde(default)]
    pub clock: u64,
    /// Training records.
    pub records: u64,
    /// Seconds of training in it, validation included.
    pub seconds: f64,
    /// Of each record before the update of its batch.
    pub training: BTreeMap<String, f64>,
    /// Of the validation data after the epoch.
    pub validation: Option<BTreeMap<String, f64>>,
    /// Of the validation data after the epoch: predicted probabilities against what was seen, in bins.
    #[serde(default)]
    pub calibration_table: Vec<CalibrationRow>,
}

/// Wall-clock seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Finding files, formats, columns.
    pub open_s: f64,
    /// Reading all data before the first epoch, where the algorithm needs it.
    pub scan_s: f64,
    /// All epochs, validation included.
    pub train_s: f64,
    /// The longest task's time in validation, all epochs.
    pub validate_s: f64,
    /// Exporting and writing the model.
    pub save_s: f64,
    /// Waiting until the disk had the model, within `save_s`; files that were written at once are added up.
    pub sync_s: f64,
    /// From the first to the last.
    pub total_s: f64,
}

/// The model that was written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ModelReport {
    /// Its directory.
    pub path: String,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// Rows stored of each matrix.
    pub stored_rows: BTreeMap<String, u64>,
}

impl Report {
    /// Writes the report.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).expect("strings, numbers and lists are always JSON");
        std::fs::write(path, text + "\n").map_err(Error::io("write", path))
    }

    /// The epoch whose weights were saved.
    pub fn saved_epoch(&self) -> Option<&EpochLine> {
        match self.best_epoch {
            Some(best) => self.epochs.iter().find(|line| line.epoch == best),
            None => self.epochs.last(),
        }
    }
}
