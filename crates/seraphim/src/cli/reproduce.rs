//! `seraphim reproduce MODEL`: trains a model again as its manifest says, and compares the files.

mod comparison;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};
use model::Manifest;
use serde_json::json;

use self::comparison::{data_changes, differences, version_difference};
use super::flags::{key_flag, raw_job_of};
use super::{print_json, print_text};
use crate::error::Error;
use crate::exit::Exit;
use crate::job::TrainJob;
use crate::job::keys::{JobCommand, find};
use crate::job::raw::RawJob;
use crate::progress::{Progress, counted};
use crate::run::{Environment, data_digests};

/// Keys that say how it is trained again: no byte of a bsp model depends on them.
const OWN_KEYS: [&str; 8] =
    ["data", "validate", "servers", "workers", "threads", "memory_limit", "quiet", "json"];

pub(super) fn command() -> Command {
    let model = Arg::new("of").value_name("MODEL").required(true).help("The folder of the model");
    let output = Arg::new("output")
        .long("output")
        .value_name("DIR")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Keep the model that was trained again in this folder [default: a temporary one, which is removed]");
    let command = Command::new("reproduce")
        .about("Train a model again from its data, settings and seed, and compare every byte")
        .arg(model)
        .arg(output);
    OWN_KEYS.iter().filter_map(|name| find(JobCommand::Train, name)).map(key_flag).fold(command, Command::arg)
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let path = PathBuf::from(matches.get_one::<String>("of").expect("clap asks for it"));
    let manifest = model::read_manifest(&path)?;
    let scratch = Scratch::new();
    let output = matches.get_one::<PathBuf>("output").cloned().unwrap_or_else(|| scratch.0.clone());
    let raw =
        job_of(&path, &manifest, &output)?.overridden_by(raw_job_of(matches, &OWN_KEYS)).with_modules()?;
    let job = TrainJob::check(&raw, environment.families)?;
    let changes = data_changes(&manifest.trained.files, &data_digests(&job, environment)?);
    if !changes.is_empty() {
        return tell(&path, &manifest, &job, &changes);
    }
    let progress = Arc::new(Progress::new());
    let report = match job.size {
        None => crate::run::local::train(&raw, &job, environment, progress)?,
        Some(size) => crate::run::cluster::launch::train(&raw, &job, size, environment, progress)?,
    };
    if report.ended_by == "interrupted" {
        return Ok(Exit::Interrupted);
    }
    tell(&path, &manifest, &job, &differences((&path, &manifest), &output)?)
}

/// Prints how the model that was trained again differs, and what was compared.
fn tell(path: &Path, manifest: &Manifest, job: &TrainJob, differences: &[String]) -> Result<Exit, Error> {
    let names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    let version = version_difference(manifest);
    if job.manner.json {
        let is_reproduced = differences.is_empty();
        let compared = [&names[..], &["model.json"]].concat();
        print_json(&json!({
            "is_reproduced": is_reproduced, "differences": differences, "compared": compared, "version": version,
        }))?;
    } else if differences.is_empty() {
        let files = counted(manifest.files.len() as u64, "file");
        let version = version.map_or(String::new(), |version| format!(" ({version})"));
        let text = format!(
            "{} is reproduced{version}: every byte of {files} is the same ({}), and model.json says the same, apart from \
             version and places of data\n",
            path.display(),
            names.join(", ")
        );
        print_text(&text)?;
    } else {
        print_text(&format!("{} is not reproduced:\n  {}\n", path.display(), differences.join("\n  ")))?;
    }
    Ok(if differences.is_empty() { Exit::Done } else { Exit::Model })
}

/// The folder of a model that is only compared.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("seraphim-reproduce-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is not there if the training failed, or wrote elsewhere.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The job that has trained a model, which now writes to `output`.
fn job_of(path: &Path, manifest: &Manifest, output: &Path) -> Result<RawJob, Error> {
    let trained = &manifest.trained;
    let refuse = |why: &str, advice: &str| {
        let what = format!("{} cannot be reproduced: {why}", path.display());
        Err(Error::InvalidRequest { what, advice: advice.to_owned() })
    };
    if trained.interrupted {
        return refuse("its training was interrupted", "reproduce a model whose training was complete");
    }
    if !trained.applied.is_empty() {
        return refuse("functions were applied to it after its training", "reproduce the model before that");
    }
    if trained.files.is_empty() {
        return refuse(
            "its manifest does not say which files it was trained on, because an older version wrote it or the data \
             came from standard input or from a program",
            "train it again with this version, from files",
        );
    }
    let mut values: BTreeMap<String, Vec<String>> = trained.given.clone();
    let from = trained.from.iter().cloned().collect();
    for (name, texts) in [
        ("data", trained.data.clone()),
        ("validate", trained.validate.clone()),
        ("from", from),
        ("seed", vec![trained.seed.to_string()]),
        ("tasks", vec![trained.tasks.to_string()]),
        ("consistency", vec![trained.consistency.clone()]),
        ("model", vec![output.display().to_string()]),
        ("checkpoint_every", vec!["off".to_owned()]),
    ] {
        if !texts.is_empty() {
            values.insert(name.to_owned(), texts);
        }
    }
    let mut raw = RawJob::new();
    raw.algorithm = Some(manifest.algorithm.clone());
    for (name, texts) in values {
        let Some(key) = find(JobCommand::Train, &name) else {
            let why = format!("its setting {name} is not one of this version");
            return refuse(&why, "use the version that trained it");
        };
        raw.set_option(key, texts);
    }
    Ok(raw)
}
