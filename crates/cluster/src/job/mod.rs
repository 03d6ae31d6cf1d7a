//! Jobs: checked settings of a run. One table of keys ([`keys::KEYS`]) serves flags and job file; flags override the
//! file.

pub mod check;
pub mod checkpoints;
pub mod holdout;
pub mod keys;
pub mod local_data;
pub mod raw;
pub mod scoring;
pub mod submission;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use algo::{AlgorithmRow, Families};
use data::{BadLinePolicy, CacheMode, FormatOptions, InputPurpose, SourceConfig};
use matrix::{Consistency, Prefetch};
use rpc::WireType;
use rpc::message::Durability;

pub(crate) use self::holdout::Holdout;
pub use self::scoring::{EvaluateJob, PredictJob, ScoringJob};

use self::holdout::TimeLimit;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::modules::Modules;
use crate::outputs::{self, Outputs};
use check::Checker;
use checkpoints::CheckpointSettings;
use keys::JobCommand;
use raw::RawJob;

/// Default maximum wait of one task for another.
const WAIT_LIMIT_DEFAULT: Duration = Duration::from_mins(10);
const SEED_DEFAULT: u64 = 1;
/// Default number of times that a job is run again: more than a cluster usually loses members during a job, and few
/// enough that a job which kills its workers ends.
const RESTARTS_DEFAULT: u32 = 10;

/// The data to read, and how to read them.
#[derive(Clone, Debug)]
pub struct Input {
    /// Files, folders or patterns.
    pub data: Vec<String>,
    /// Name of the format; none: the format is detected.
    pub format: Option<String>,
    /// How columns are interpreted.
    pub options: FormatOptions,
    pub bad_lines: BadLinePolicy,
}

impl Input {
    /// Returns the settings in the form of the data crate.
    pub fn source_config(&self, interrupt: &Interrupt) -> SourceConfig {
        self.source_config_of(&self.data, interrupt)
    }

    /// Returns the same settings for other files.
    pub fn source_config_of(&self, inputs: &[String], interrupt: &Interrupt) -> SourceConfig {
        SourceConfig {
            inputs: inputs.to_vec(),
            format: self.format.clone(),
            options: self.options.clone(),
            bad_lines: self.bad_lines,
            stop: interrupt.stop_reading(),
        }
    }
}

/// Settings of computation and output.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Number of tasks; none: `auto`.
    pub tasks: Option<u64>,
    /// Maximum number of tasks that compute at once.
    pub threads: usize,
    /// Print the result as JSON.
    pub json: bool,
    /// Print no progress.
    pub quiet: bool,
}

/// Numbers of processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSize {
    pub servers: u32,
    pub workers: u32,
}

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
    pub manner: RunOptions,
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
    /// Maximum memory of parsed records, for all tasks together.
    pub memory_limit_bytes: u64,
    /// Folder of parsed records on disk.
    pub scratch: PathBuf,
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
    fn of(raw: &RawJob, data: &[String], validate: &[String], from: Option<&Path>) -> Self {
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
    /// Checks the settings of a raw job.
    pub fn check(raw: &RawJob, families: &Families) -> Result<Self, Error> {
        if !raw.command.is_train() {
            let what = format!("the job has command = {:?}, which is no training", raw.command.name());
            return Err(Error::InvalidRequest {
                what,
                advice: "submit it to a cluster with `seraphim submit`".into(),
            });
        }
        let checker = Checker::new(raw, JobCommand::Train);
        let Some(algorithm) = &raw.algorithm else {
            let flag = "its name, as in `seraphim train lr`, or a job file with algorithm = \"lr\"".into();
            return Err(Error::MissingKey { command: "train", what: "an algorithm", flag });
        };
        let input = input_for(&checker, InputPurpose::Training)?;
        let set = parameters(&checker)?;
        let algorithm = families.algorithm(algorithm)?;
        let model = checker.required_path("model", "a directory for the model")?;
        let restarts = checker.count("restarts")?.map(|count| count as u32);
        let validate = checker.list("validate");
        let from = checker.path("from")?;
        let written = WrittenPaths::of(raw, &input.data, &validate, from.as_deref());
        let mut job = Self {
            algorithm,
            parameters: (algorithm.configure)(&set)?,
            input,
            validate,
            written,
            validate_from: checker.parsed(
                "validate_from",
                "a number, or a date as in 2026-01-31 or 2026-01-31 08:15:00",
                TimeLimit::parse,
            )?,
            restarts: restarts.unwrap_or(RESTARTS_DEFAULT),
            slow_worker: match checker.choice("slow_worker")? {
                Some("off") => SlowWorkerPolicy::Off,
                Some("move") => SlowWorkerPolicy::Move,
                _ => SlowWorkerPolicy::Warn,
            },
            durability: checker.choice("durability")?.and_then(Durability::named).unwrap_or_default(),
            checkpoints: CheckpointSettings::of(&checker, &model)?,
            model,
            from,
            overwrite: checker.switch("overwrite")?,
            set,
            modules: raw.modules()?.clone(),
            size: cluster_size(&checker)?,
            wire: checker.choice("wire")?.and_then(WireType::from_name).unwrap_or_default(),
            manner: manner(&checker)?,
            consistency: checker
                .parsed("consistency", "bsp, asp, or ssp:N with N steps from 0", parse_consistency)?
                .unwrap_or(Consistency::Bsp),
            prefetch: prefetch(&checker)?,
            cache_bytes: checker.bytes("cache")?.unwrap_or(0),
            seed: checker.count("seed")?.unwrap_or(SEED_DEFAULT),
            report: checker.path("report")?,
            keep: keep(&checker)?,
            memory_limit_bytes: checker.bytes("memory_limit")?.unwrap_or_else(crate::machine::memory_share),
            scratch: checker.path("scratch")?.unwrap_or_else(std::env::temp_dir),
            keep_optimizer: checker.boolean("keep_optimizer")?.unwrap_or(true),
            wait_limit: checker.count("wait_limit")?.map_or(WAIT_LIMIT_DEFAULT, Duration::from_secs),
            is_data_local: false,
        };
        local_data::check(&mut job, restarts)?;
        holdout::check(&job)?;
        job.check_consistency()?;
        check_ids(&job)?;
        Ok(job)
    }
}

impl TrainJob {
    /// Refuses a consistency that the algorithm would ignore.
    fn check_consistency(&self) -> Result<(), Error> {
        if self.consistency == Consistency::Bsp || !self.parameters.needs().requires_bsp {
            return Ok(());
        }
        let name = consistency_name(self.consistency);
        let what = format!(
            "--consistency {name}: {} with these settings passes over all records in rounds, in which every read sees all \
             earlier pushes",
            self.algorithm.name
        );
        Err(Error::InvalidRequest { what, advice: "leave --consistency out, for bsp".into() })
    }

    /// Which training records are held out for validation.
    pub(crate) fn holdout(&self) -> Holdout<'_> {
        let share = self.parameters.needs().validation_share;
        match &self.validate_from {
            _ if !self.validate.is_empty() => Holdout::None,
            Some(time) => Holdout::From(time),
            None if share > 0.0 => Holdout::Share(share),
            None => Holdout::None,
        }
    }

    /// Replaces the parameters of the algorithm.
    pub(crate) fn apply_settings(&mut self, set: BTreeMap<String, String>) -> Result<(), Error> {
        self.parameters = (self.algorithm.configure)(&set)?;
        self.set = set;
        Ok(())
    }

    /// Checks before any work that the job may write its outputs.
    pub(crate) fn check_outputs(&self) -> Result<(), Error> {
        self.outputs().check_model("--model", &self.model)?;
        self.check_report()
    }

    /// Checks only the report: the model may be written on another machine.
    pub fn check_report(&self) -> Result<(), Error> {
        let Some(report) = &self.report else { return Ok(()) };
        let models = [&self.model].into_iter().chain(&self.from);
        let outputs = models.fold(self.outputs(), |outputs, model| outputs.with_model(model));
        outputs.check_file("--report", report, outputs::OutputKind::Report)?;
        outputs::check_writable(report)
    }

    fn outputs(&self) -> Outputs {
        Outputs::new(self.overwrite).with_inputs(&self.input.data).with_inputs(&self.validate)
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

/// Returns the parameters of `--set`. A key of the job among them is a mistake that deserves its own error.
fn parameters(checker: &Checker<'_>) -> Result<BTreeMap<String, String>, Error> {
    let pairs = checker.pairs("set")?;
    match pairs.iter().find(|(name, _)| keys::find(JobCommand::Train, name).is_some()) {
        None => Ok(pairs),
        Some((name, value)) => Err(Error::InvalidRequest {
            what: format!("{name} is a key of the job, not a parameter of the algorithm"),
            advice: format!(
                "give --{} {value}, or {name} = ... in the job file outside [set]",
                name.replace('_', "-")
            ),
        }),
    }
}

fn manner(checker: &Checker<'_>) -> Result<RunOptions, Error> {
    let cores = crate::machine::core_count();
    Ok(RunOptions {
        tasks: checker.auto_count("tasks")?,
        threads: checker.count("threads")?.map_or(cores, |n| n as usize),
        json: checker.switch("json")?,
        quiet: checker.switch("quiet")?,
    })
}

/// Returns the numbers of servers and workers; if only one number is given, it is used for both.
fn cluster_size(checker: &Checker<'_>) -> Result<Option<ClusterSize>, Error> {
    let (servers, workers) = (checker.count("servers")?, checker.count("workers")?);
    let size = |servers: u64, workers: u64| ClusterSize { servers: servers as u32, workers: workers as u32 };
    Ok(servers.or(workers).map(|either| size(servers.unwrap_or(either), workers.unwrap_or(either))))
}

fn prefetch(checker: &Checker<'_>) -> Result<Prefetch, Error> {
    Ok(match checker.choice("prefetch")? {
        Some("off") => Prefetch::Off,
        Some("stale") => Prefetch::Stale,
        _ => Prefetch::Exact,
    })
}

fn keep(checker: &Checker<'_>) -> Result<CacheMode, Error> {
    Ok(match checker.choice("keep")? {
        Some("memory") => CacheMode::Memory,
        Some("disk") => CacheMode::Disk,
        _ => CacheMode::Both,
    })
}

fn input_for(checker: &Checker<'_>, purpose: InputPurpose) -> Result<Input, Error> {
    let data = checker.list("data");
    if data.is_empty() {
        return Err(checker.missing("data", "data"));
    }
    Ok(Input {
        data,
        format: checker.text("format"),
        options: FormatOptions { purpose, ..options(checker)? },
        bad_lines: bad_lines(checker)?,
    })
}

/// The data of a command that reads them beside a model; `raw` says how.
pub fn scoring_input(raw: &RawJob, data: Vec<String>) -> Result<Input, Error> {
    let checker = Checker::new(raw, JobCommand::Train);
    let (format, bad_lines) = (checker.text("format"), bad_lines(&checker)?);
    let options = FormatOptions { purpose: InputPurpose::Prediction, ..options(&checker)? };
    Ok(Input { data, format, options, bad_lines })
}

fn options(checker: &Checker<'_>) -> Result<FormatOptions, Error> {
    let expected = "one ASCII character, or the word tab";
    Ok(FormatOptions {
        label: label(checker)?,
        id_columns: ids(checker),
        has_label: !checker.switch("no_label")?,
        weight: checker.text("weight"),
        group: checker.text("group"),
        time: checker.text("time"),
        header: checker.boolean("header")?,
        delimiter: checker.parsed("delimiter", expected, parse_delimiter)?,
        text_columns: checker.names("text_columns"),
        token_columns: checker.names("token_columns"),
        tokenizer: checker.parsed(
            "tokenizer",
            &data::Tokenizer::NAMES.join(", "),
            data::Tokenizer::from_name,
        )?,
        skip_columns: checker.names("skip_columns"),
        keep_columns: checker.names("keep_columns"),
        interactions: checker
            .names("interactions")
            .iter()
            .map(|text| data::parse_interaction(text))
            .collect(),
        ..FormatOptions::default()
    })
}

/// Returns the label column, which `rating` names too.
fn label(checker: &Checker<'_>) -> Result<Option<String>, Error> {
    match (checker.text("label"), checker.text("rating")) {
        (Some(label), Some(rating)) if label != rating => Err(Error::InvalidRequest {
            what: format!("--label {label} and --rating {rating} name the same thing"),
            advice: "give one of them".into(),
        }),
        (label, rating) => Ok(label.or(rating)),
    }
}

/// Returns the given columns of users and items; an empty name where only the other one is given.
fn ids(checker: &Checker<'_>) -> Vec<String> {
    let ids = ["user", "item"].map(|name| checker.text(name));
    if ids.iter().all(Option::is_none) { Vec::new() } else { ids.map(Option::unwrap_or_default).to_vec() }
}

/// Refuses columns of users and items for an algorithm that does not read them.
fn check_ids(job: &TrainJob) -> Result<(), Error> {
    if job.input.options.id_columns.is_empty() || !job.parameters.needs().ids.is_empty() {
        return Ok(());
    }
    let what = format!("--user and --item: {} does not learn from users and items", job.algorithm.name);
    Err(Error::InvalidRequest {
        what,
        advice: "leave them out, or choose als, ials or another recommender".into(),
    })
}

fn parse_delimiter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Some(b'\t'),
        [byte] if byte.is_ascii() => Some(*byte),
        _ => None,
    }
}

fn bad_lines(checker: &Checker<'_>) -> Result<BadLinePolicy, Error> {
    let parse = |text: &str| match text {
        "fail" => Some(BadLinePolicy::Fail),
        text => Some(BadLinePolicy::Skip { limit: text.strip_prefix("skip=")?.parse().ok()? }),
    };
    Ok(checker
        .parsed("bad_lines", "fail, or skip=N with N lines at most", parse)?
        .unwrap_or(BadLinePolicy::Fail))
}
