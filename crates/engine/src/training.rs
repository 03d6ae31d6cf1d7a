//! Training in a program.

use std::fmt::{Debug, Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use data::arrays::MemoryInputs;
use driver::progress::ProgressListener;
use driver::report::EpochLine;
use job::checkpoints::CheckpointEvery;
use job::keys::JobCommand;
use job::{RawJob, TrainJob};
use model::ModelReader;
use runtime::cluster::local_training;
use runtime::interrupt::Interrupt;
use runtime::program::{Program, THIS_PROGRAM};
use runtime::score::LoadedModel;
use runtime::{Environment, local, machine};

use crate::dataset::Data;
use crate::options::{not_in_one_process, set_options};
use crate::tables::Tables;
use crate::trained_model::TrainedModel;
use driver::Error;

/// What goes on after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// Training ends at the next step, and the model so far is the result.
    Stop,
}

/// What a program does after each epoch.
type EpochCallback = Arc<dyn Fn(&EpochLine) -> Flow + Send + Sync>;

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
    interrupt: Interrupt,
    program: Option<Program>,
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
            interrupt: Interrupt::new(),
            program: None,
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

    /// Ends training at the next step when `interrupt` is raised: the model so far is the result.
    #[must_use]
    pub fn stopped_by(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = interrupt.clone();
        self
    }

    /// What servers of this machine are processes of: a program with the commands of `seraphim`. Without it a training is in one process.
    #[must_use]
    pub fn with_program(mut self, program: &Program) -> Self {
        self.program = Some(program.clone());
        self
    }

    /// Trains on `data`. With the option `servers` the parameters are on as many servers, processes of [`Self::with_program`] that end with
    /// the training; the tasks are in this process.
    ///
    /// # Errors
    /// Those of `seraphim train`: an unknown algorithm, key or value, data that cannot be read, a loss that diverged.
    pub fn run(&self, data: &Data) -> Result<TrainedModel, Error> {
        let mut memory = MemoryInputs::default();
        let mut raw = RawJob::new();
        raw.algorithm = Some(self.algorithm.clone());
        let mut own = vec![
            ("model", vec![model::IN_MEMORY.to_owned()]),
            ("data", data.inputs("training", &mut memory)?),
        ];
        if let Some(validation) = &self.validation {
            own.push(("validate", validation.inputs("validation", &mut memory)?));
        }
        own.extend(self.from.iter().map(|from| ("from", vec![from.display().to_string()])));
        set_options(&mut raw, JobCommand::Train, &self.options, own)?;
        let mut job = TrainJob::check(&raw, &self.tables.families)?;
        let size = job.size;
        if size.is_some() && self.program.is_none() {
            return Err(not_in_one_process("train"));
        }
        if size.is_some_and(|size| size.workers != size.servers) {
            return Err(Error::request(
                "the option workers of a training of a program, whose tasks are in its process",
                "leave it out, or use `seraphim train` or `seraphim submit`",
            ));
        }
        if job.checkpoints.is_temporary {
            if job.checkpoints.is_asked_for || job.checkpoints.resume.is_some() {
                return Err(Error::request(
                    "checkpoint_every or resume without checkpoints: a model in memory has no folder beside it",
                    "add option(\"checkpoints\", FOLDER)",
                ));
            }
            job.checkpoints.every = CheckpointEvery::Off;
        }
        let formats = self.tables.formats.clone().with_memory(memory);
        let environment = Environment {
            formats: &formats,
            families: &self.tables.families,
            functions: &self.tables.functions,
            interrupt: &self.interrupt,
            program: self.program.as_ref().unwrap_or(&THIS_PROGRAM),
        };
        let listener = EpochListener { on_epoch: self.on_epoch.clone(), interrupt: self.interrupt.clone() };
        let listener = Arc::new(listener);
        let (report, model) = match size {
            None => local::train_in_memory(&job, environment, listener)?,
            Some(size) => local_training::train_in_memory(&job, size.servers, environment, listener)?,
        };
        let threads = job.run_options.threads.unwrap_or_else(machine::core_count);
        let (reader, tables) = (ModelReader::of_memory(Arc::new(model)), self.tables.clone());
        let loaded = LoadedModel::of(reader, &tables.families, &tables.functions, threads)?;
        Ok(TrainedModel { loaded: Arc::new(loaded), report: Some(Arc::new(report)), tables })
    }
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
