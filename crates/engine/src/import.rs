//! A model directory of a model that another program has written.

use std::path::PathBuf;

use algo::SavedModel;
use driver::Error;
use matrix::MatrixSpec;
use model::manifest::{FORMAT_NAME, FORMAT_VERSION};
use model::{Manifest, MatrixSource, RowsInMemory, TrainingRecord};
use runtime::Environment;
use trees::lightgbm::{self, ImportOptions};

/// A model that is imported.
#[derive(Clone, Debug)]
pub struct ImportJob {
    /// The text model of LightGBM.
    pub file: PathBuf,
    /// The model directory that is written.
    pub model: PathBuf,
    /// Whether an earlier model is replaced.
    pub overwrite: bool,
    /// The format of the data that will be scored.
    pub format: String,
    /// The number that the first feature has in the data.
    pub first_feature: Option<u64>,
    /// The column of the labels.
    pub label: Option<String>,
    /// The names of the classes, in the order of their numbers.
    pub classes: Vec<String>,
}

/// What was imported.
#[derive(Clone, Debug)]
pub struct ImportSummary {
    pub iterations: u64,
    pub features: usize,
}

/// Reads the file and writes the model directory.
pub fn import(job: &ImportJob, environment: Environment<'_>) -> Result<ImportSummary, Error> {
    let options = checked_options(job, environment)?;
    model::check_target(&job.model, job.overwrite)?;
    let text = std::fs::read_to_string(&job.file).map_err(Error::io("read", &job.file))?;
    let read = lightgbm::read(&text, &options).map_err(|error| match error {
        algo::Error::UnsuitableData { reason } => {
            algo::Error::UnsuitableData { reason: format!("{}: {reason}", job.file.display()) }
        }
        error => error,
    })?;
    let manifest = Manifest {
        format: FORMAT_NAME.into(),
        format_version: FORMAT_VERSION,
        program_version: env!("CARGO_PKG_VERSION").into(),
        algorithm: read.algorithm.into(),
        settings: read.settings,
        schema: read.schema,
        model: SavedModel::new(&*read.model),
        matrices: Vec::new(),
        trained: TrainingRecord {
            data: vec![job.file.display().to_string()],
            records: read.records,
            epochs: read.iterations,
            consistency: "bsp".into(),
            ..TrainingRecord::default()
        },
        files: Vec::new(),
    };
    let specs = read.model.matrices(1);
    let mut source = RowsInMemory(&read.tables);
    let matrices: (&[MatrixSpec], &mut dyn MatrixSource<Error>) = (&specs, &mut source);
    let outputs = environment.interrupt.temp_outputs();
    model::write(&job.model, job.overwrite, manifest, matrices, false, &read.names, outputs)?;
    Ok(ImportSummary { iterations: read.iterations, features: read.feature_count })
}

fn checked_options(job: &ImportJob, environment: Environment<'_>) -> Result<ImportOptions, Error> {
    let abilities = environment.formats.find(&job.format)?.abilities;
    let refuse =
        |what: &str, advice: &str| Err(Error::request(format!("{what} --format {}", job.format), advice));
    if !abilities.has_columns && !abilities.is_numbered {
        return refuse("features have neither columns nor numbers with", "give csv, parquet or libsvm");
    }
    if abilities.has_columns && job.first_feature.is_some() {
        return refuse("--first-feature is for data whose features are numbers, not for", "leave it out");
    }
    if !abilities.has_columns && job.label.is_some() {
        return refuse("--label names a column, and there are none with", "leave it out");
    }
    Ok(ImportOptions {
        is_numbered: !abilities.has_columns,
        format: job.format.clone(),
        first_feature: job.first_feature.unwrap_or(0),
        label: job.label.clone(),
        classes: job.classes.clone(),
    })
}
