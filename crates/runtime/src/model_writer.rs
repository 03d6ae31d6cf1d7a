//! Writes the model of a training, under the first name that is free, or collects it in memory.

use std::path::{Path, PathBuf};

use data::KeyNames;
use driver::Error;
use job::{Exit, TrainJob};
use matrix::MatrixSpec;
use model::{Manifest, MatrixSource, Model, WriteResult};

use crate::worker::{ModelTarget, WorkerContext};

/// Maximum number of names that are tried for a model: `OUT`, `OUT-2`, ...
const NAME_LIMIT: u32 = 1000;

/// Removes the partitions, since a model must have the same bytes for any number of partitions.
fn without_partitions(spec: &MatrixSpec) -> MatrixSpec {
    MatrixSpec { partitioner: spec.partitioner.whole(), ..spec.clone() }
}

/// Writes the model under the first of the names of `path_of`, from 1, at which there is nothing; `job.model` is that one
/// then. Only the first one may replace something. The manifest and the matrices are as for `save`.
pub fn save_under(
    (job, algorithm): (&mut TrainJob, &dyn algo::Job),
    path_of: impl Fn(u32) -> PathBuf,
    manifest: &Manifest,
    (specs, source): (&[MatrixSpec], &mut dyn MatrixSource<Error>),
    dictionary: &KeyNames,
    context: &WorkerContext,
) -> Result<WriteResult, Error> {
    use model::Error as E;
    let mut number = 1;
    loop {
        job.model = path_of(number);
        match save((job, algorithm), manifest.clone(), (specs, &mut *source), dictionary, context) {
            Err(Error::Model(
                E::ModelExists { .. } | E::NotReplaceable { .. } | E::ForeignFileInModel { .. },
            )) if number < NAME_LIMIT => {}
            result => return result,
        }
        job.overwrite = false;
        number += 1;
    }
}

/// The path beside `path` with a suffix, and from number 2 on with the number.
pub fn numbered_path(path: &Path, suffix: &str, number: u32) -> PathBuf {
    let name = path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    let more = if number == 1 { String::new() } else { format!("-{number}") };
    path.with_file_name(format!("{name}{suffix}{more}"))
}

/// Writes the model. `source` has its matrices, which are the first of those that are declared in `specs`.
fn save(
    (job, algorithm): (&TrainJob, &dyn algo::Job),
    manifest: Manifest,
    (specs, source): (&[MatrixSpec], &mut dyn MatrixSource<Error>),
    dictionary: &KeyNames,
    context: &WorkerContext,
) -> Result<WriteResult, Error> {
    let specs: Vec<MatrixSpec> = specs.iter().map(without_partitions).collect();
    let (overwrite, with_slots) = (job.overwrite, job.keep_optimizer);
    let (schema, position) = (manifest.schema.clone(), manifest.trained.position);
    let written = match &context.model_target {
        ModelTarget::Folder => {
            let outputs = context.interrupt.temp_outputs();
            model::write(&job.model, overwrite, manifest, (&specs, source), with_slots, dictionary, outputs)
        }
        ModelTarget::Memory(target) => Model::collect(manifest, (&specs, source), with_slots, dictionary)
            .map(|model| WriteResult {
                manifest: target.get_or_init(|| model).manifest.clone(),
                sync_s: 0.0,
            }),
    };
    written.map_err(|error| match error {
        Error::Model(model::Error::NotFinite { matrix, key, value, .. }) => {
            let is_of_features = specs.iter().any(|spec| spec.name == matrix && spec.rows != 1);
            let feature = if is_of_features { schema.feature_name(dictionary, key) } else { String::new() };
            let of = if feature.is_empty() { feature } else { format!(" for the feature '{feature}'") };
            let after = position.map_or_else(String::new, |at| {
                format!(" after epoch {}, step {}", at.epochs, at.clock)
            });
            let advice = algorithm.divergence_advice();
            Error::UnusableData {
                what: format!("training diverged: a value of the matrix {matrix} is {value}{of}{after}; no model is saved. {advice}"),
                exit: Exit::Data,
            }
        }
        error => error,
    })
}
