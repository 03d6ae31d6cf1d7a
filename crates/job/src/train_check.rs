//! Checks the settings of a training: texts become values, and what contradicts each other is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use algo::{Families, Needs};
use data::InputPurpose;
use matrix::{Consistency, Prefetch};
use rpc::WireType;
use rpc::message::Durability;

use crate::check::Checker;
use crate::checkpoints::CheckpointSettings;
use crate::error::Error;
use crate::holdout::TimeLimit;
use crate::input::{cluster_size, input_for, run_options};
use crate::keys::{self, JobCommand};
use crate::local_data;
use crate::raw::RawJob;
use crate::training::{SlowWorkerPolicy, TrainJob, WrittenPaths, consistency_name, parse_consistency};

/// Default maximum wait of one task for another.
const WAIT_LIMIT_DEFAULT: Duration = Duration::from_mins(10);
const SEED_DEFAULT: u64 = 1;
/// Default number of times that a job is run again: more than a cluster usually loses members during a job, and few
/// enough that a job which kills its workers ends.
const RESTARTS_DEFAULT: u32 = 10;

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
        raw.modules()?;
        let input = input_for(&checker, InputPurpose::Training)?;
        let set = parameters(&checker)?;
        let parameters = families.configure(algorithm, &set.into_iter().collect())?;
        let needs = parameters.needs();
        let model = checker.required_path("model", "a directory for the model")?;
        let restarts = checker.count("restarts")?.map(|count| count as u32);
        let validate = checker.list("validate");
        let from = checker.path("from")?;
        let written = WrittenPaths::of(raw, &input.data, &validate, from.as_deref());
        let mut job = Self {
            given: raw.clone(),
            algorithm: parameters.algorithm().to_owned(),
            params: parameters.settings().given(),
            validation_share: needs.validation_share,
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
            size: cluster_size(&checker)?,
            wire: checker.choice("wire")?.and_then(WireType::from_name).unwrap_or_default(),
            run_options: run_options(&checker)?,
            consistency: checker
                .parsed("consistency", "bsp, asp, or ssp:N with N steps from 0", parse_consistency)?
                .unwrap_or(Consistency::Bsp),
            prefetch: prefetch(&checker)?,
            seed: checker.count("seed")?.unwrap_or(SEED_DEFAULT),
            report: checker.path("report")?,
            memory_limit_bytes: checker.bytes("memory_limit")?,
            scratch: checker.path("scratch")?,
            keep_optimizer: checker.boolean("keep_optimizer")?.unwrap_or(true),
            wait_limit: checker.count("wait_limit")?.map_or(WAIT_LIMIT_DEFAULT, Duration::from_secs),
            is_data_local: false,
        };
        local_data::check(&mut job, restarts)?;
        check_holdout(&job, &needs)?;
        check_consistency(&job, &needs)?;
        check_ids(&job, &needs)?;
        Ok(job)
    }
}

/// Refuses a consistency that the algorithm would ignore.
fn check_consistency(job: &TrainJob, needs: &Needs) -> Result<(), Error> {
    if job.consistency == Consistency::Bsp || !needs.requires_bsp {
        return Ok(());
    }
    let name = consistency_name(job.consistency);
    let what = format!(
        "--consistency {name}: {} with these settings passes over all records in rounds, in which every read sees all \
         earlier pushes",
        job.algorithm
    );
    Err(Error::InvalidRequest { what, advice: "leave --consistency out, for bsp".into() })
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

fn prefetch(checker: &Checker<'_>) -> Result<Prefetch, Error> {
    Ok(match checker.choice("prefetch")? {
        Some("off") => Prefetch::Off,
        _ => Prefetch::Exact,
    })
}

/// Refuses columns of users and items for an algorithm that does not read them.
fn check_ids(job: &TrainJob, needs: &Needs) -> Result<(), Error> {
    if job.input.options.id_columns.is_empty() || !needs.ids.is_empty() {
        return Ok(());
    }
    let what = format!("--user and --item: {} does not learn from users and items", job.algorithm);
    Err(Error::InvalidRequest {
        what,
        advice: "leave them out, or choose als, ials or another recommender".into(),
    })
}

/// Refuses settings of a hold-out that contradict each other.
fn check_holdout(job: &TrainJob, needs: &Needs) -> Result<(), Error> {
    let options = &job.input.options;
    let refused =
        |what: &str, advice: &str| Err(Error::InvalidRequest { what: what.into(), advice: advice.into() });
    match job.validate_from {
        Some(_) if !job.validate.is_empty() => {
            refused("--validate and --validate-from both name validation data", "leave one of them out")
        }
        Some(_) if needs.validation_share > 0.0 => {
            refused("validation_share and --validate-from both hold out records", "leave one of them out")
        }
        None if options.time.is_some() && !needs.uses_times => refused(
            "--time names a column, and nothing uses the times",
            "hold out the latest records with --validate-from TIME, or leave the column out with --skip-columns",
        ),
        _ => Ok(()),
    }
}
