//! A checked `train` job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use algo::AlgorithmRow;
use data::CacheMode;
use matrix::{Consistency, Prefetch};
use rpc::WireType;
use rpc::message::Durability;

use crate::checkpoints::CheckpointSettings;
use crate::error::Error;
use crate::holdout::{Holdout, TimeLimit};
use crate::input::{ClusterSize, Input, RunOptions};
use crate::modules::Modules;
use crate::raw::RawJob;

/// A checked `train` job.
#[derive(Clone, Debug)]
pub struct TrainJob {
    /// The row of the table of algorithms.
    pub algorithm: &'static AlgorithmRow,
    /// The algorithm with its parameters, as far as they are known.
    pub parameters: Arc<dyn algo::Job>,
    /// Training data.
    pub input: Input,
    /// Validation data; empty if there are none.
    pub validate: Vec<String>,
    /// Paths as they were written, for the record of the training: a job that is resumed has absolute ones.
    pub written: WrittenPaths,
    /// The time from which on training records are held out for validation.
    pub validate_from: Option<TimeLimit>,
    /// The model directory to write.
    pub model: PathBuf,
    /// The model from which training continues.
    pub from: Option<PathBuf>,
    /// Whether an existing model is replaced.
    pub overwrite: bool,
    /// The given parameters as texts.
    pub set: BTreeMap<String, String>,
    /// WebAssembly modules with PS functions.
    pub modules: Modules,
    /// Numbers of servers and workers; none: the job runs in one process.
    pub size: Option<ClusterSize>,
    /// Encoding of values between servers and workers.
    pub wire: WireType,
    pub run_options: RunOptions,
    pub consistency: Consistency,
    /// How tasks prefetch parameters.
    pub prefetch: Prefetch,
    /// Maximum size of the rows that a task caches; 0: none.
    pub cache_bytes: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Path of the report.
    pub report: Option<PathBuf>,
    /// Where parsed records are kept between epochs.
    pub keep: CacheMode,
    /// Maximum memory of parsed records, for all tasks together; none: a quarter of the machine's.
    pub memory_limit_bytes: Option<u64>,
    /// Folder of parsed records on disk; none: the system's temporary folder.
    pub scratch: Option<PathBuf>,
    /// Whether the optimizer state is saved.
    pub keep_optimizer: bool,
    /// Maximum wait of one task for another.
    pub wait_limit: Duration,
    pub checkpoints: CheckpointSettings,
    /// How often the job is run again after the loss of a member.
    pub restarts: u32,
    pub slow_worker: SlowWorkerPolicy,
    pub durability: Durability,
    /// Whether each worker has data of its own.
    pub is_data_local: bool,
}

/// What happens when a worker is much slower than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowWorkerPolicy {
    /// Nothing.
    Off,
    /// The user is told.
    Warn,
    /// Its tasks go to other workers.
    Move,
}

/// Paths as they were written.
#[derive(Clone, Debug)]
pub struct WrittenPaths {
    pub data: Vec<String>,
    pub validate: Vec<String>,
    pub from: Option<String>,
}

impl WrittenPaths {
    /// Those of a raw job, whose paths are now these.
    pub(crate) fn of(raw: &RawJob, data: &[String], validate: &[String], from: Option<&Path>) -> Self {
        let written = |name: &str, now: &[String]| raw.written(name).unwrap_or(now).to_vec();
        let from: Vec<String> = from.iter().map(|path| path.display().to_string()).collect();
        Self {
            data: written("data", data),
            validate: written("validate", validate),
            from: written("from", &from).pop(),
        }
    }
}

impl TrainJob {
    /// Which training records are held out for validation.
    pub fn holdout(&self) -> Holdout<'_> {
        let share = self.parameters.needs().validation_share;
        match &self.validate_from {
            _ if !self.validate.is_empty() => Holdout::None,
            Some(time) => Holdout::From(time),
            None if share > 0.0 => Holdout::Share(share),
            None => Holdout::None,
        }
    }

    /// Replaces the parameters of the algorithm.
    pub fn apply_settings(&mut self, set: BTreeMap<String, String>) -> Result<(), Error> {
        self.parameters = (self.algorithm.configure)(&set)?;
        self.set = set;
        Ok(())
    }
}

/// Parses `bsp`, `asp` or `ssp:4`.
pub fn parse_consistency(text: &str) -> Option<Consistency> {
    match text {
        "bsp" => Some(Consistency::Bsp),
        "asp" => Some(Consistency::Asp),
        text => Some(Consistency::Ssp { staleness: text.strip_prefix("ssp:")?.parse().ok()? }),
    }
}

/// Returns the text that [`parse_consistency`] parses.
pub fn consistency_name(consistency: Consistency) -> String {
    match consistency {
        Consistency::Bsp => "bsp".into(),
        Consistency::Asp => "asp".into(),
        Consistency::Ssp { staleness } => format!("ssp:{staleness}"),
    }
}
