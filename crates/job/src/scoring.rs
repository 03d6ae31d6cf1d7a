//! Jobs that score records with a model: `predict` and `evaluate`.

use std::path::{Path, PathBuf};

use algo::Explanation;
use algo::param::nearest;
use data::InputPurpose;
use serde::{Deserialize, Serialize};

use crate::check::Checker;
use crate::error::Error;
use crate::input::{ClusterSize, Input, RunOptions, input_for, run_options};
use crate::keys::{JobCommand, keys_of};
use crate::local_data::is_local;
use crate::raw::RawJob;

/// A checked `predict` job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictJob {
    pub model: PathBuf,
    pub members: ScoringMembers,
    pub input: Input,
    /// Path of the scores.
    pub output: PathBuf,
    /// Whether existing scores are replaced.
    pub overwrite: bool,
    /// Whether the scores are those before they become probabilities.
    pub raw_scores: bool,
    /// What is written instead of scores.
    pub explanation: Option<Explanation>,
    pub run_options: RunOptions,
}

/// A checked `evaluate` job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvaluateJob {
    pub model: PathBuf,
    pub members: ScoringMembers,
    pub input: Input,
    /// Score above which a record is predicted as 1.
    pub threshold: Option<f64>,
    pub run_options: RunOptions,
}

/// The processes that score.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ScoringMembers {
    /// Number of servers that hold the model; none: the process that reads the data.
    pub servers: Option<u32>,
    /// Number of workers that read the data; none: the process of the command.
    pub workers: Option<u32>,
    /// Maximum number of tasks of one worker; none: as many as the worker has slots.
    pub threads: Option<u32>,
}

impl ScoringMembers {
    fn check(checker: &Checker<'_>) -> Result<Self, Error> {
        let count = |name| Ok::<_, Error>(checker.count(name)?.map(|count| count as u32));
        Ok(Self { servers: count("servers")?, workers: count("workers")?, threads: count("threads")? })
    }

    /// The numbers of servers and workers, if workers read the data. There are as many servers as workers unless their
    /// number is given.
    pub fn size(self) -> Option<ClusterSize> {
        let size = |workers| ClusterSize { servers: self.servers.unwrap_or(workers), workers };
        self.workers.map(size)
    }
}

impl PredictJob {
    /// Checks the settings of a raw job.
    pub fn check(raw: &RawJob) -> Result<Self, Error> {
        let checker = Checker::new(raw, JobCommand::Predict);
        Ok(Self {
            model: checker.required_path("model", "a model")?,
            members: ScoringMembers::check(&checker)?,
            input: input_for(&checker, InputPurpose::Prediction)?,
            output: checker.required_path("output", "a file for the scores")?,
            overwrite: checker.switch("overwrite")?,
            raw_scores: checker.switch("raw_scores")?,
            explanation: explanation(&checker)?,
            run_options: run_options(&checker)?,
        })
    }
}

/// What is written instead of scores; at most one of the flags is given.
fn explanation(checker: &Checker<'_>) -> Result<Option<Explanation>, Error> {
    let switches = [
        ("raw_scores", None),
        ("leaves", Some(Explanation::Leaves)),
        ("contributions", Some(Explanation::Contributions)),
    ];
    let mut given = Vec::new();
    for (name, explanation) in switches {
        if checker.switch(name)? {
            given.push((name, explanation));
        }
    }
    match &given[..] {
        [] => Ok(None),
        [(_, explanation)] => Ok(*explanation),
        [(first, _), (second, _), ..] => Err(Error::InvalidRequest {
            what: format!("{first} and {second} are different outputs").replace('_', "-"),
            advice: "give one of them".into(),
        }),
    }
}

impl EvaluateJob {
    /// Checks the settings of a raw job.
    pub fn check(raw: &RawJob) -> Result<Self, Error> {
        let checker = Checker::new(raw, JobCommand::Evaluate);
        Ok(Self {
            model: checker.required_path("model", "a model")?,
            members: ScoringMembers::check(&checker)?,
            input: input_for(&checker, InputPurpose::Evaluation)?,
            threshold: checker.parsed("threshold", "a number", |text| {
                text.parse().ok().filter(|threshold: &f64| threshold.is_finite())
            })?,
            run_options: run_options(&checker)?,
        })
    }
}

/// Refuses keys that the command does not have, as flags of `train` beside a job file of another command.
fn check_keys(raw: &RawJob) -> Result<(), Error> {
    let names = || keys_of(raw.command).map(|key| key.name);
    match raw.texts().into_keys().find(|key| !names().any(|name| name == key)) {
        None => Ok(()),
        Some(key) => {
            let (place, nearest) = (format!("a job of `{}`", raw.command.name()), nearest(&key, names()));
            Err(Error::UnknownKey { key, place, nearest })
        }
    }
}

/// Refuses data that only one worker has: scores are in the order of the data.
fn refuse_local_data(raw: &RawJob) -> Result<(), Error> {
    let texts = raw.texts();
    match texts.iter().find(|(_, paths)| paths.iter().any(|path| is_local(path))) {
        None => Ok(()),
        Some((key, _)) => Err(Error::InvalidRequest {
            what: format!(
                "{key}: worker:// names files that only one worker has, and `{}` needs files that all of them have",
                raw.command.name()
            ),
            advice: "give a path that every worker can read, or score the files of each machine there".into(),
        }),
    }
}

/// A job of either command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ScoringJob {
    Predict(PredictJob),
    Evaluate(EvaluateJob),
}

impl ScoringJob {
    /// Checks the settings of a raw job; none if it is a training.
    pub fn check(raw: &RawJob) -> Result<Option<Self>, Error> {
        if !raw.command.is_train() {
            check_keys(raw)?;
            refuse_local_data(raw)?;
        }
        Ok(match raw.command {
            JobCommand::Train => None,
            JobCommand::Predict => Some(Self::Predict(PredictJob::check(raw)?)),
            JobCommand::Evaluate => Some(Self::Evaluate(EvaluateJob::check(raw)?)),
        })
    }

    pub fn command(&self) -> JobCommand {
        match self {
            Self::Predict(_) => JobCommand::Predict,
            Self::Evaluate(_) => JobCommand::Evaluate,
        }
    }

    pub fn model(&self) -> &Path {
        match self {
            Self::Predict(job) => &job.model,
            Self::Evaluate(job) => &job.model,
        }
    }

    pub fn members(&self) -> ScoringMembers {
        match self {
            Self::Predict(job) => job.members,
            Self::Evaluate(job) => job.members,
        }
    }

    pub fn input(&self) -> &Input {
        match self {
            Self::Predict(job) => &job.input,
            Self::Evaluate(job) => &job.input,
        }
    }

    pub fn run_options(&self) -> RunOptions {
        match self {
            Self::Predict(job) => job.run_options,
            Self::Evaluate(job) => job.run_options,
        }
    }

    /// The path of the scores.
    pub fn output(&self) -> Option<&Path> {
        match self {
            Self::Predict(job) => Some(&job.output),
            Self::Evaluate(_) => None,
        }
    }
}
