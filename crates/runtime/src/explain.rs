//! What a saved model tells of itself besides its scores: explanations as predictions, and the whole model as a text.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algo::{Explanation, ModelFacts, TextFormat};
use data::{KeyNames, Schema};
use driver::Error;
use job::ScoringJob;
use matrix::OwnedValues;
use model::ModelReader;

use crate::environment::Environment;
use crate::outputs;
use crate::outputs::{OutputKind, Outputs};
use crate::score::LoadedModel;

/// What explanations and texts need of a model directory.
struct SavedFacts {
    schema: Schema,
    names: KeyNames,
    single_rows: BTreeMap<String, Vec<f64>>,
}

impl SavedFacts {
    fn read(files: &mut ModelReader) -> Result<Self, Error> {
        let mut single_rows = BTreeMap::new();
        for number in 0..files.manifest.matrices.len() {
            if files.manifest.matrices[number].rows != 1 {
                continue;
            }
            if let OwnedValues::F64(row) = files.rows_from(number, 0)?.values {
                single_rows.insert(files.manifest.matrices[number].name.clone(), row);
            }
        }
        Ok(Self { schema: files.manifest.schema.clone(), names: files.dictionary()?, single_rows })
    }

    fn view(&self) -> ModelFacts<'_> {
        ModelFacts { schema: &self.schema, names: &self.names, single_rows: &self.single_rows }
    }
}

/// The model of a scoring job with the predictions that the job asks for.
pub fn model_for(scoring: Arc<dyn algo::Model>, job: &ScoringJob) -> Result<Arc<dyn algo::Model>, Error> {
    let ScoringJob::Predict(job) = job else { return Ok(scoring) };
    let Some(explanation) = job.explanation else { return Ok(scoring) };
    explained(&mut ModelReader::open(&job.model, false)?, &*scoring, explanation)
}

/// A model whose predictions are explanations.
pub fn explained(
    files: &mut ModelReader,
    scoring: &dyn algo::Model,
    explanation: Explanation,
) -> Result<Arc<dyn algo::Model>, Error> {
    let facts = SavedFacts::read(files)?;
    if let Some(model) = scoring.explained(explanation, &facts.view()) {
        return Ok(model?);
    }
    let (flag, what) = match explanation {
        Explanation::Leaves => ("--leaves", "has no trees, and so no leaves"),
        Explanation::Contributions => ("--contributions", "does not tell what each feature adds to a score"),
    };
    Err(Error::request(
        format!("{flag}: a model of {} {what}", files.manifest.algorithm),
        "leave it out, or use a model of gbdt",
    ))
}

/// A whole model as a text, and where it is written to.
#[derive(Clone, Debug)]
pub struct TextJob {
    /// The model directory.
    pub model: PathBuf,
    pub format: TextFormat,
    /// A file, or `-` for standard output.
    pub output: PathBuf,
    /// Whether an earlier text is replaced.
    pub overwrite: bool,
}

/// Writes a model as a text.
pub fn export_text(job: &TextJob, environment: Environment<'_>) -> Result<(), Error> {
    let is_standard = job.output.as_os_str() == "-";
    if !is_standard {
        let outputs = Outputs::new(job.overwrite).with_model(&job.model);
        outputs.check_file("--output", &job.output, OutputKind::ModelText)?;
    }
    let mut loaded = LoadedModel::read(&job.model, environment.families, environment.functions, 1)?;
    let facts = SavedFacts::read(&mut loaded.model)?;
    let mut agent = loaded.scorer.agent(0)?;
    let text = loaded.scoring.document(job.format, &facts.view(), &mut *agent).unwrap_or_else(|| {
        let what = format!("--format: a model of {} has no trees", loaded.model.manifest.algorithm);
        Err(algo::Error::UnsuitableData { reason: format!("{what}; leave it out for a table") })
    })?;
    if is_standard {
        return std::io::stdout().write_all(text.as_bytes()).map_err(Error::io("write", Path::new("-")));
    }
    let stored = environment.interrupt.temp_output(&job.output);
    std::fs::write(stored.path(), text).map_err(Error::io("write", stored.shown()))?;
    stored.persist(outputs::put_file(job.overwrite))
}
