//! A model in a program: predictions, metrics, its files.

use std::fmt::{Debug, Formatter};
use std::path::Path;
use std::sync::Arc;

use data::arrays::MemoryInputs;
use driver::Error;
use driver::evaluation::Evaluation;
use driver::report::Report;
use job::keys::JobCommand;
use job::{EvaluateJob, PredictJob, RawJob};
use model::ModelReader;
use runtime::Environment;
use runtime::interrupt::Interrupt;
use runtime::program::THIS_PROGRAM;
use runtime::score::{LoadedModel, Scores};

use crate::dataset::Data;
use crate::evaluate::evaluate_loaded;
use crate::options::{check_members, set_options};
use crate::recommend::LoadedRecommender;
use crate::tables::Tables;

/// A model in memory. Clones share it, and threads may use it at the same time.
#[derive(Clone)]
pub struct TrainedModel {
    pub(crate) loaded: Arc<LoadedModel>,
    pub(crate) report: Option<Arc<Report>>,
    pub(crate) tables: Tables,
}

impl Debug for TrainedModel {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let manifest = &self.loaded.model.manifest;
        f.debug_struct("TrainedModel").field("algorithm", &manifest.algorithm).finish_non_exhaustive()
    }
}

impl TrainedModel {
    /// Reads a model directory.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::load_with(path, Tables::default())
    }

    /// Reads a model directory, with families of algorithms and formats of the program.
    pub fn load_with(path: impl AsRef<Path>, tables: Tables) -> Result<Self, Error> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let loaded = LoadedModel::read(path.as_ref(), &tables.families, &tables.functions, threads)?;
        Ok(Self { loaded: Arc::new(loaded), report: None, tables })
    }

    /// Reads a model directory, which may be removed then: all tables of the model are in memory.
    pub fn load_into_memory(path: impl AsRef<Path>) -> Result<Self, Error> {
        let tables = Tables::default();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let reader = ModelReader::of_memory(Arc::new(model::Model::read(path.as_ref(), false)?));
        let loaded = LoadedModel::of(reader, &tables.families, &tables.functions, threads)?;
        Ok(Self { loaded: Arc::new(loaded), report: None, tables })
    }

    /// Writes the model directory, which every command and version reads.
    ///
    /// # Errors
    /// If something is at `path`; a model is replaced with `overwrite`.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: bool) -> Result<(), Error> {
        let outputs = store::TempOutputs::default();
        Ok(self.loaded.model.save(path.as_ref(), overwrite, &outputs)?)
    }

    /// What the numbers of a prediction mean.
    pub fn output(&self) -> algo::Output {
        self.loaded.scoring.output()
    }

    pub fn manifest(&self) -> &model::Manifest {
        &self.loaded.model.manifest
    }

    /// The report of the run that trained it; `None` for a model that was loaded.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }

    /// The model with its matrices in memory.
    pub fn model(&self) -> Result<Arc<model::Model>, Error> {
        let reader = &self.loaded.model;
        Ok(match reader.memory() {
            Some(model) => Arc::clone(model),
            None => Arc::new(model::Model::read(&reader.path, false)?),
        })
    }

    /// Predicts all records, in their order. Labels are not needed.
    pub fn predict(&self, data: &Data) -> Result<Scores, Error> {
        self.predict_with(data, &[])
    }

    /// Predicts with keys of `seraphim predict`, such as `format`, `skip_columns` or `raw_scores`.
    pub fn predict_with(&self, data: &Data, options: &[(&str, &str)]) -> Result<Scores, Error> {
        let (raw, memory) = self.raw(JobCommand::Predict, data, options, &[("output", "-")])?;
        let job = PredictJob::check(&raw)?;
        check_members(job.members, "predict")?;
        self.in_environment(memory, |environment| {
            self.loaded.predict(&job.input, job.raw_scores, environment)
        })
    }

    /// The model of a recommender, for the best items of users and for similar items.
    ///
    /// # Errors
    /// If the model is none of users and items.
    pub fn recommender(&self) -> Result<LoadedRecommender, Error> {
        LoadedRecommender::read(self.loaded.model.reopened()?, &self.tables.families, None)
    }

    /// The metrics of labelled records.
    pub fn evaluate(&self, data: &Data) -> Result<Evaluation, Error> {
        self.evaluate_with(data, &[])
    }

    /// Evaluates with keys of `seraphim evaluate`, such as `label`, `weight` or `threshold`.
    pub fn evaluate_with(&self, data: &Data, options: &[(&str, &str)]) -> Result<Evaluation, Error> {
        let (raw, memory) = self.raw(JobCommand::Evaluate, data, options, &[])?;
        let job = EvaluateJob::check(&raw)?;
        check_members(job.members, "evaluate")?;
        self.in_environment(memory, |environment| evaluate_loaded(&self.loaded, &job, environment))
    }

    fn raw(
        &self,
        command: JobCommand,
        data: &Data,
        options: &[(&str, &str)],
        more: &[(&'static str, &str)],
    ) -> Result<(RawJob, MemoryInputs), Error> {
        let (mut raw, mut memory) = (RawJob::new(), MemoryInputs::default());
        let given: Vec<_> =
            options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let path = self.loaded.model.path.display().to_string();
        let mut own = vec![("model", vec![path]), ("data", data.inputs("records", &mut memory)?)];
        own.extend(more.iter().map(|&(name, value)| (name, vec![value.to_owned()])));
        set_options(&mut raw, command, &given, own)?;
        Ok((raw, memory))
    }

    fn in_environment<T>(
        &self,
        memory: MemoryInputs,
        run: impl FnOnce(Environment<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let formats = self.tables.formats.clone().with_memory(memory);
        run(Environment {
            formats: &formats,
            families: &self.tables.families,
            functions: &self.tables.functions,
            interrupt: &Interrupt::new(),
            program: &THIS_PROGRAM,
        })
    }
}
