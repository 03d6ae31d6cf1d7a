//! `reproduce`: trains a model again as its manifest says, and compares the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::progress::ProgressListener;
use job::keys::{JobCommand, find};
use job::{RawJob, TrainJob};
use model::Manifest;
use runtime::Environment;
use runtime::worker::data_files::data_digests;

use crate::comparison::{data_changes, differences, version_difference};
use crate::job_file::with_modules;
use crate::train::train;
use driver::Error;

/// A model that is trained again.
#[derive(Clone, Debug)]
pub struct ReproduceJob {
    /// The folder of the model.
    pub model: PathBuf,
    /// Where the model that is trained again is kept; none: nowhere.
    pub output: Option<PathBuf>,
    /// Settings with which it is trained: no byte of a bsp model depends on them.
    pub settings: RawJob,
}

/// How the model that was trained again differs from the first one.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// A line for each difference; empty if it is reproduced.
    pub differences: Vec<String>,
    /// The files that were compared.
    pub files: Vec<String>,
    /// How the version that trained it differs from this one.
    pub version: Option<String>,
    /// Whether the user stopped the training.
    pub is_interrupted: bool,
}

/// Trains a model again, and compares.
///
/// # Errors
/// If its manifest does not say how, or the training fails.
pub fn reproduce(
    job: &ReproduceJob,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<Reproduction, Error> {
    let manifest = model::read_manifest(&job.model)?;
    let scratch = Scratch::new();
    let output = job.output.clone().unwrap_or_else(|| scratch.0.clone());
    let raw = with_modules(job_of(&job.model, &manifest, &output)?.overridden_by(job.settings.clone()))?;
    let training = TrainJob::check(&raw, environment.families)?;
    let mut reproduction = Reproduction {
        differences: data_changes(&manifest.trained.files, &data_digests(&training, environment)?),
        files: manifest.files.iter().map(|file| file.name.clone()).collect(),
        version: version_difference(&manifest),
        is_interrupted: false,
    };
    if reproduction.differences.is_empty() {
        let report = train(&training, environment, progress)?;
        if report.ended_by == "interrupted" {
            return Ok(Reproduction { is_interrupted: true, ..reproduction });
        }
        reproduction.differences = differences((&job.model, &manifest), &output)?;
    }
    Ok(reproduction)
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
        Err(Error::request(what, advice))
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
