//! A checked `train` job.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use algo::Families;
use algo::param::ParamValues;
use matrix::{Consistency, Prefetch};
use rpc::WireType;
use rpc::message::Durability;
use serde::{Deserialize, Serialize};

use crate::checkpoints::CheckpointSettings;
use crate::error::Error;
use crate::holdout::{Holdout, TimeLimit};
use crate::input::{ClusterSize, Input, RunOptions};
use crate::modules::Modules;
use crate::raw::RawJob;

/// A checked `train` job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrainJob {
    /// The job as it was given, for records and checkpoints. Its texts are not read again.
    pub given: RawJob,
    /// The name of the algorithm.
    pub algorithm: String,
    /// The parameters of the algorithm: those that were given, and those that were chosen since.
    pub params: ParamValues,
    /// Share of the training records that is held out for validation, a parameter of the algorithm.
    pub validation_share: f64,
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
    /// Numbers of servers and workers; none: the job runs in one process.
    pub size: Option<ClusterSize>,
    /// Encoding of values between servers and workers.
    pub wire: WireType,
    pub run_options: RunOptions,
    pub consistency: Consistency,
    /// How tasks prefetch parameters.
    pub prefetch: Prefetch,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Path of the report.
    pub report: Option<PathBuf>,
    /// Maximum memory of parsed records between epochs, for all tasks together; the rest is kept on disk. None: a quarter of the machine's.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlowWorkerPolicy {
    /// Nothing.
    Off,
    /// The user is told.
    Warn,
    /// Its tasks go to other workers.
    Move,
}

/// Paths as they were written.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// WebAssembly modules with PS functions.
    pub fn modules(&self) -> &Modules {
        self.given.brought_modules()
    }

    /// Which training records are held out for validation.
    pub fn holdout(&self) -> Holdout<'_> {
        let share = self.validation_share;
        match &self.validate_from {
            _ if !self.validate.is_empty() => Holdout::None,
            Some(time) => Holdout::From(time),
            None if share > 0.0 => Holdout::Share(share),
            None => Holdout::None,
        }
    }

    /// The algorithm with the parameters of this job.
    ///
    /// # Errors
    /// If this program does not know the algorithm, or refuses a combination of the values.
    pub fn algorithm_job(&self, families: &Families) -> Result<Arc<dyn algo::Job>, Error> {
        Ok(families.configure(&self.algorithm, &self.params)?)
    }

    /// Replaces the parameters by those of an algorithm that was made from others.
    pub fn set_params(&mut self, algorithm: &dyn algo::Job) {
        self.params = algorithm.settings().given();
        self.validation_share = algorithm.needs().validation_share;
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
