//! `seraphim reproduce MODEL`: trains a model again as its manifest says, and compares the files.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};
use model::Manifest;
use model::manifest::DataDigest;
use serde_json::json;

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

/// Prints how the model that was trained again differs.
fn tell(path: &Path, manifest: &Manifest, job: &TrainJob, differences: &[String]) -> Result<Exit, Error> {
    if job.manner.json {
        print_json(&json!({ "is_reproduced": differences.is_empty(), "differences": differences }))?;
    } else if differences.is_empty() {
        let files = counted(manifest.files.len() as u64, "file");
        let text =
            format!("{} is reproduced: {files} and the manifest, every byte the same\n", path.display());
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
    if trained.interrupted || trained.unfinished.is_some() {
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

/// How the data differ from those of the model, a line each. Then nothing is trained.
fn data_changes(before: &[DataDigest], now: &[DataDigest]) -> Vec<String> {
    let changed = before.iter().zip(now).filter(|(then, now)| then.digest != now.digest);
    let mut lines: Vec<String> = changed
        .map(|(then, now)| {
            let (name, size, now_name, now_size) = (&then.name, then.size_bytes, &now.name, now.size_bytes);
            format!("the data differ: {name} of {size} bytes then, {now_name} of {now_size} bytes now")
        })
        .collect();
    if before.len() != now.len() {
        let then = counted(before.len() as u64, "file");
        lines.push(format!("the data differ: {then} then, {} now", now.len()));
    }
    lines
}

/// How the model that was trained again differs, a line each. What may explain the differences comes first.
fn differences((path, before): (&Path, &Manifest), output: &Path) -> Result<Vec<String>, Error> {
    let now = model::read_manifest(output)?;
    let mut lines = Vec::new();
    for file in &before.files {
        if !now.files.iter().any(|other| other.name == file.name) {
            lines.push(format!("{} is missing", file.name));
        } else if !is_same(&path.join(&file.name), &output.join(&file.name))? {
            lines.push(format!("{} has other bytes", file.name));
        }
    }
    if comparable(before) != comparable(&now) {
        lines.push("model.json says something else".to_owned());
    }
    if lines.is_empty() {
        return Ok(lines);
    }
    Ok([explanations(before, &now), lines].concat())
}

/// What may explain that two models differ, a line each.
fn explanations(before: &Manifest, now: &Manifest) -> Vec<String> {
    let mut lines = Vec::new();
    if before.program_version != now.program_version {
        lines.push(format!("version {} trained it, this is {}", before.program_version, now.program_version));
    }
    if before.trained.consistency != "bsp" && before.trained.tasks > 1 {
        lines.push(format!(
            "it was trained under {} with {} tasks: its bytes depend on when they pushed",
            before.trained.consistency, before.trained.tasks
        ));
    }
    lines
}

/// Whether two files have the same bytes.
fn is_same(a: &Path, b: &Path) -> Result<bool, Error> {
    const BLOCK_BYTES: u64 = 1 << 20;
    let open = |path: &Path| std::fs::File::open(path).map_err(Error::io("read", path));
    let (mut first, mut second) = (open(a)?, open(b)?);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        (&mut first).take(BLOCK_BYTES).read_to_end(&mut left).map_err(Error::io("read", a))?;
        (&mut second).take(BLOCK_BYTES).read_to_end(&mut right).map_err(Error::io("read", b))?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

/// A manifest without where the data lie and which version has written it.
fn comparable(manifest: &Manifest) -> String {
    let mut manifest = manifest.clone();
    manifest.program_version.clear();
    manifest.trained.data.clear();
    manifest.trained.validate.clear();
    manifest.trained.from = None;
    manifest.trained.given.clear();
    manifest.trained.files.iter_mut().for_each(|file| file.name.clear());
    manifest.to_text()
}
