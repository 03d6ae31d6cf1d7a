//! Training, prediction and evaluation for programs. Nothing is printed, nothing ends the process, and every error is a
//! value.
//!
//! ```
//! use seraphim::library::{CsrArrays, RecordAttributes, Training};
//!
//! # fn main() -> Result<(), seraphim::Error> {
//! // Two records: features 3 and 7, and feature 7 alone.
//! let rows = CsrArrays {
//!     offsets: [0, 2, 3].into(),
//!     features: [3, 7, 7].into(),
//!     attributes: RecordAttributes { labels: [1.0, 0.0].into(), ..Default::default() },
//!     ..Default::default()
//! };
//! let model = Training::new("lr").set("epochs", 5).run(&rows.into())?;
//! let more = CsrArrays { offsets: [0, 1].into(), features: [3].into(), ..Default::default() };
//! assert!(model.predict(&more.into())?.values[0] > 0.5);
//! # Ok(())
//! # }
//! ```
//!
//! A run is the same as that of `seraphim train` in one process: the same data, settings and seed give the same bytes.
//! `docs/library.md` has examples, also of loops of your own over parameters.

use std::fmt::{Debug, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster::interrupt::Interrupt;
use cluster::job::keys::{self, JobCommand};
use cluster::job::raw::RawJob;
use cluster::job::scoring::ScoringMembers;
use cluster::job::{EvaluateJob, PredictJob, TrainJob};
use cluster::progress::ProgressListener;
use cluster::run::score::LoadedModel;
use cluster::run::{Environment, evaluate, local};
use data::arrays::{Arrays, MemoryInputs};
use tempfile::TempDir;

pub use cluster::report::{EpochLine, Report};
pub use cluster::run::evaluate::Evaluation;
pub use cluster::run::recommend::LoadedRecommender;
pub use cluster::run::score::Scores;
#[cfg(feature = "parquet")]
pub use data::arrays::RecordBatch;
pub use data::arrays::{CsrArrays, DenseArrays, RecordAttributes};

use crate::cli::Tables;
use crate::error::Error;

/// What goes on after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// Training ends at the next step, and the model so far is the result.
    Stop,
}

/// What a program does after each epoch.
type EpochCallback = Arc<dyn Fn(&EpochLine) -> Flow + Send + Sync>;

/// Records: files, or arrays in memory. Cloning it copies no record.
#[derive(Clone, Debug)]
pub struct Data(DataKind);

#[derive(Clone, Debug)]
enum DataKind {
    Files(Vec<String>),
    Arrays(Arrays),
}

impl Data {
    /// Files, folders and patterns, as `--data` takes them.
    pub fn files(inputs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(DataKind::Files(inputs.into_iter().map(Into::into).collect()))
    }

    /// The inputs of a job; arrays get the name `name` in `memory`.
    fn inputs(&self, name: &str, memory: &mut MemoryInputs) -> Result<Vec<String>, Error> {
        Ok(match &self.0 {
            DataKind::Files(files) => files.clone(),
            DataKind::Arrays(arrays) => vec![memory.add(name, arrays.clone())?],
        })
    }
}

impl From<CsrArrays> for Data {
    fn from(rows: CsrArrays) -> Self {
        Self(DataKind::Arrays(Arrays::Csr(rows)))
    }
}

impl From<DenseArrays> for Data {
    fn from(rows: DenseArrays) -> Self {
        Self(DataKind::Arrays(Arrays::Dense(rows)))
    }
}

#[cfg(feature = "parquet")]
impl From<Vec<RecordBatch>> for Data {
    fn from(batches: Vec<RecordBatch>) -> Self {
        Self(DataKind::Arrays(Arrays::Arrow(batches.into())))
    }
}

/// A training run that is being described.
#[derive(Clone)]
pub struct Training {
    algorithm: String,
    /// Keys of a job file with their values.
    options: Vec<(String, String)>,
    validation: Option<Data>,
    from: Option<PathBuf>,
    tables: Tables,
    on_epoch: Option<EpochCallback>,
}

impl Debug for Training {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { algorithm, options, validation, .. } = self;
        f.debug_struct("Training")
            .field("algorithm", algorithm)
            .field("options", options)
            .field("validation", validation)
            .finish_non_exhaustive()
    }
}

impl Training {
    /// A run of an algorithm (`seraphim algorithms` lists them) with its defaults.
    pub fn new(algorithm: &str) -> Self {
        Self {
            algorithm: algorithm.to_owned(),
            options: Vec::new(),
            validation: None,
            from: None,
            tables: Tables::default(),
            on_epoch: None,
        }
    }

    /// Sets a parameter of the algorithm, as `--set name=value` does.
    #[must_use]
    pub fn set(self, name: &str, value: impl Display) -> Self {
        self.option("set", format!("{name}={value}"))
    }

    /// Sets a key of the job file, such as `label`, `tasks`, `seed` or `consistency`; see `docs/commands.md`.
    #[must_use]
    pub fn option(mut self, key: &str, value: impl Display) -> Self {
        self.options.push((key.to_owned(), value.to_string()));
        self
    }

    /// Data to validate on after every epoch.
    #[must_use]
    pub fn validate(mut self, data: &Data) -> Self {
        self.validation = Some(data.clone());
        self
    }

    /// A model directory from which training continues.
    #[must_use]
    pub fn from_model(mut self, path: impl Into<PathBuf>) -> Self {
        self.from = Some(path.into());
        self
    }

    /// Formats, families of algorithms and functions, with rows of the program.
    #[must_use]
    pub fn with_tables(mut self, tables: Tables) -> Self {
        self.tables = tables;
        self
    }

    /// Calls `callback` with the metrics of each epoch, from a thread of the run, until it returns [`Flow::Stop`].
    #[must_use]
    pub fn on_epoch(mut self, callback: impl Fn(&EpochLine) -> Flow + Send + Sync + 'static) -> Self {
        self.on_epoch = Some(Arc::new(callback));
        self
    }

    /// Trains on `data`.
    ///
    /// # Errors
    /// Those of `seraphim train`: an unknown algorithm, key or value, data that cannot be read, a loss that diverged.
    pub fn run(&self, data: &Data) -> Result<TrainedModel, Error> {
        let folder = tempfile::Builder::new().prefix("seraphim-model-").tempdir();
        let folder = folder.map_err(Error::io("create a folder in", &std::env::temp_dir()))?;
        let path = folder.path().join("model");
        let mut memory = MemoryInputs::default();
        let mut raw = RawJob::new();
        raw.algorithm = Some(self.algorithm.clone());
        let mut own = vec![
            ("model", vec![path.display().to_string()]),
            ("data", data.inputs("training", &mut memory)?),
        ];
        if let Some(validation) = &self.validation {
            own.push(("validate", validation.inputs("validation", &mut memory)?));
        }
        own.extend(self.from.iter().map(|from| ("from", vec![from.display().to_string()])));
        set_options(&mut raw, JobCommand::Train, &self.options, own)?;
        let job = TrainJob::check(&raw, &self.tables.families)?;
        if job.size.is_some() {
            return Err(not_in_one_process("train"));
        }
        let interrupt = Interrupt::new();
        let formats = self.tables.formats.clone().with_memory(memory);
        let environment = Environment {
            formats: &formats,
            families: &self.tables.families,
            functions: &self.tables.functions,
            interrupt: &interrupt,
        };
        let listener = EpochListener { on_epoch: self.on_epoch.clone(), interrupt: interrupt.clone() };
        let report = local::train(&raw, &job, environment, Arc::new(listener))?;
        let loaded =
            LoadedModel::read(&path, &self.tables.families, &self.tables.functions, job.manner.threads)?;
        let tables = self.tables.clone();
        let (loaded, report) = (Arc::new(loaded), Some(Arc::new(report)));
        Ok(TrainedModel { loaded, report, tables, _folder: Some(Arc::new(folder)) })
    }
}

fn check_members(members: ScoringMembers, command: &str) -> Result<(), Error> {
    match members {
        ScoringMembers { servers: None, workers: None, .. } => Ok(()),
        _ => Err(not_in_one_process(command)),
    }
}

fn not_in_one_process(command: &str) -> Error {
    let what = "a library run is in one process, and servers or workers were asked for".into();
    Error::InvalidRequest { what, advice: format!("use `seraphim {command}` or `seraphim submit`") }
}

/// Sets the options that a user gave, and those that only this module gives.
fn set_options(
    raw: &mut RawJob,
    command: JobCommand,
    given: &[(String, String)],
    own: Vec<(&'static str, Vec<String>)>,
) -> Result<(), Error> {
    let find = |name: &str| {
        keys::find(command, name).ok_or_else(|| Error::UnknownKey {
            key: name.to_owned(),
            place: "the options".to_owned(),
            nearest: algo::param::nearest(name, keys::keys_of(command).map(|key| key.name)),
        })
    };
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, value) in given {
        if own.iter().any(|(own, _)| own == name) {
            let what = format!(
                "the option {name} is not for a library run, whose data and model are in the program"
            );
            return Err(Error::InvalidRequest { what, advice: "leave it out".into() });
        }
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value.clone()),
            None => all.push((name, vec![value.clone()])),
        }
    }
    for (name, values) in all.into_iter().chain(own) {
        raw.set_option(find(name)?, values);
    }
    Ok(())
}

/// Passes epochs to the program.
struct EpochListener {
    on_epoch: Option<EpochCallback>,
    interrupt: Interrupt,
}

impl Debug for EpochListener {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EpochListener").finish_non_exhaustive()
    }
}

impl ProgressListener for EpochListener {
    fn epoch_done(&self, _epoch_count: u64, line: &EpochLine) {
        let Some(on_epoch) = self.on_epoch.as_ref().filter(|_| !self.interrupt.is_raised()) else { return };
        if on_epoch(line) == Flow::Stop {
            self.interrupt.raise();
        }
    }
}

/// A model in memory. Clones share it, and threads may use it at the same time.
#[derive(Clone)]
pub struct TrainedModel {
    loaded: Arc<LoadedModel>,
    report: Option<Arc<Report>>,
    tables: Tables,
    /// The files of a model that was not saved yet. They are removed with the last clone.
    _folder: Option<Arc<TempDir>>,
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
        Ok(Self { loaded: Arc::new(loaded), report: None, tables, _folder: None })
    }

    /// Writes the model directory, which every command and version reads.
    ///
    /// # Errors
    /// If something is at `path`; a model is replaced with `overwrite`.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: bool) -> Result<(), Error> {
        let outputs = store::TempOutputs::default();
        Ok(model::copy(&self.loaded.model.path, path.as_ref(), overwrite, &outputs)?)
    }

    /// The report of the run that trained it; `None` for a model that was loaded.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }

    /// The model with its matrices, read into memory.
    pub fn model(&self) -> Result<model::Model, Error> {
        Ok(model::Model::read(&self.loaded.model.path, false)?)
    }

    /// Predicts all records, in their order. Labels are not needed.
    pub fn predict(&self, data: &Data) -> Result<Scores, Error> {
        self.predict_with(data, &[])
    }

    /// Predicts with keys of `seraphim predict`, such as `format` or `skip_columns`.
    pub fn predict_with(&self, data: &Data, options: &[(&str, &str)]) -> Result<Scores, Error> {
        let (raw, memory) = self.raw(JobCommand::Predict, data, options, &[("output", "-")])?;
        let job = PredictJob::check(&raw)?;
        check_members(job.members, "predict")?;
        self.in_environment(memory, |environment| self.loaded.predict(&job.input, environment))
    }

    /// The model of a recommender, for the best items of users and for similar items.
    ///
    /// # Errors
    /// If the model is none of users and items.
    pub fn recommender(&self) -> Result<LoadedRecommender, Error> {
        LoadedRecommender::read(&self.loaded.model.path, &self.tables.families, None)
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
        self.in_environment(memory, |environment| evaluate::evaluate_loaded(&self.loaded, &job, environment))
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
        })
    }
}
