//! Scores data with a model, in parallel and in order: the input is cut into chunks, threads take the chunks in turn,
//! and the results arrive in the order of the input for any number of threads.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use algo::{Explanation, Families, Output, Scorer};
use data::{Batch, KeyNames, LabelRule, Schema, Source, Split};
use driver::scoring::{NOT_ENDED, refuse_no_predictions};
use driver::totals::{ChunkSummary, Totals};
use driver::{Error, labels};
use job::{EvaluateJob, Input, PredictJob, RunOptions};
use matrix::{Agent, Consistency, FunctionTable, LocalConfig, LocalStore, MatrixSpec};
use model::{Manifest, ModelReader};
use rpc::layout::JobLayout;

use crate::cluster::launch::LocalServers;
use crate::cluster::servers::Servers;
use crate::coverage_agent::CoverageAgent;
use crate::coverage_recorder::{CoverageRecorder, feature_matrices, known_features};
use crate::environment::{Environment, load_model};
use crate::explain::explained;
use crate::input::source_config;
use crate::interrupt::Interrupt;
use crate::local::LocalMatrices;
use crate::machine;
use crate::resume::import_matrix;
use crate::score_columns::ScoreColumns;
use crate::worker::TaskParameters;

/// Size of a chunk of input in bytes. It does not depend on the number of threads, so that sums over chunks have the
/// same bits.
const CHUNK_BYTES: u64 = 4 << 20;
/// Maximum number of chunks of an input: each has a channel.
const CHUNK_LIMIT: u64 = 1 << 16;
/// Number of records that are scored at once.
const BATCH_RECORDS: usize = 4096;
/// Maximum number of results of a chunk that wait to be received.
const CHUNK_QUEUE_LIMIT: usize = 4;
/// Number of partitions of a model's matrices, so that concurrent reads seldom need the same one.
const PARTITION_COUNT: u32 = 64;
/// The same, for each server.
const PARTITIONS_PER_SERVER: u32 = 4;
/// Nothing waits under ASP, but the store requires a limit.
const WAIT_LIMIT: Duration = Duration::from_mins(10);

/// A model whose matrices are in this process or on servers, ready for scoring.
pub struct ModelScorer {
    parameters: Parameters,
    model: Arc<dyn algo::Model>,
    workers: usize,
}

/// Where the matrices of the model are.
enum Parameters {
    Process(Arc<LocalStore>),
    /// On servers of this machine that end with the scorer.
    Servers {
        layout: Box<JobLayout>,
        processes: LocalServers,
        functions: Arc<FunctionTable>,
    },
    /// On the servers of a job, of which these are tasks.
    Job {
        layout: Box<JobLayout>,
        first_task: u32,
        connections: Arc<dyn TaskParameters>,
        functions: Arc<FunctionTable>,
    },
}

impl ModelScorer {
    /// Loads a model into this process, for `workers` threads. `scoring` is the same model as its family knows it.
    pub fn new(
        model: &mut ModelReader,
        scoring: Arc<dyn algo::Model>,
        workers: usize,
        functions: &FunctionTable,
    ) -> Result<Self, Error> {
        let config = LocalConfig { task_count: workers as u32, wait_limit: WAIT_LIMIT };
        let mut store = LocalStore::with_functions(config, functions.clone());
        let specs = checked_specs(&model.manifest, &model.path, &*scoring, PARTITION_COUNT, functions)?;
        for (spec, _) in &specs {
            let bytes = spec.initial_size_bytes(&(0..spec.partitioner.partition_count()).collect::<Vec<_>>());
            if let Some(memory) = machine::memory_bytes().filter(|memory| bytes > *memory) {
                let (needed, memory) = (driver::amounts::bytes(bytes), driver::amounts::bytes(memory));
                let what = format!(
                    "matrix {:?} takes {needed}, this machine has {memory}; --servers on machines with more memory",
                    spec.name
                );
                return Err(bad_model(&model.path, what));
            }
            store.create(spec.clone()).map_err(|error| bad_model(&model.path, error.to_string()))?;
        }
        let store = Arc::new(store);
        let mut matrices = LocalMatrices::new(Arc::clone(&store));
        for (number, (spec, entry)) in (0..).zip(&specs) {
            import_matrix(model, *entry, (number, spec), &mut matrices, true).map_err(
                |error| match error {
                    Error::Matrix(error) => bad_model(&model.path, error.to_string()),
                    error => error,
                },
            )?;
        }
        Ok(Self { parameters: Parameters::Process(store), model: scoring, workers })
    }

    /// Starts servers and loads a model into them, for `workers` threads of this process.
    pub fn on_servers(
        model: &mut ModelReader,
        scoring: Arc<dyn algo::Model>,
        workers: usize,
        server_count: u32,
        environment: Environment<'_>,
    ) -> Result<Self, Error> {
        let (partition_count, functions) = (PARTITIONS_PER_SERVER * server_count, environment.functions);
        let specs = checked_specs(&model.manifest, &model.path, &*scoring, partition_count, functions)?;
        let processes = LocalServers::start(server_count, environment.program, environment.interrupt)?;
        let matrices: Vec<MatrixSpec> = specs.iter().map(|(spec, _)| spec.clone()).collect();
        let layout = processes.layout(matrices, workers as u32, WAIT_LIMIT);
        let functions = Arc::new(functions.clone());
        let mut servers = Servers::connect(&layout, &[])?.with_functions(Arc::clone(&functions));
        servers.open_job()?;
        for (number, (spec, entry)) in (0..).zip(&specs) {
            import_matrix(model, *entry, (number, spec), &mut servers, true)?;
        }
        let parameters = Parameters::Servers { layout: Box::new(layout), processes, functions };
        Ok(Self { parameters, model: scoring, workers })
    }

    /// A scorer of these tasks of a job, whose servers have the model.
    pub fn of_job(
        layout: JobLayout,
        tasks: Range<u32>,
        scoring: Arc<dyn algo::Model>,
        connections: Arc<dyn TaskParameters>,
        functions: Arc<FunctionTable>,
    ) -> Self {
        let (layout, first_task) = (Box::new(layout), tasks.start);
        let parameters = Parameters::Job { layout, first_task, connections, functions };
        Self { parameters, model: scoring, workers: tasks.len() }
    }

    /// The access of a thread to the tables.
    pub fn agent(&self, worker: u32) -> Result<Box<dyn Agent>, Error> {
        Ok(match &self.parameters {
            Parameters::Process(store) => Box::new(store.agent(worker)),
            Parameters::Servers { layout, processes, functions } => {
                Box::new(processes.agent(layout, worker, functions)?)
            }
            Parameters::Job { layout, first_task, connections, functions } => {
                connections.agent(layout, first_task + worker, functions)?
            }
        })
    }

    /// Runs `work` on every batch of these chunks and passes its results to `take`, in the order of the input.
    pub fn run<T: Send>(
        &self,
        source: &Source,
        chunks: &[Split],
        interrupt: &Interrupt,
        work: impl Fn(&mut dyn Scorer, &mut dyn Agent, &Batch) -> Result<T, Error> + Sync,
        mut take: impl FnMut(ScoredPiece<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (senders, receivers): (Vec<_>, Vec<_>) = chunks
            .iter()
            .map(|_| sync_channel::<Result<ScoredPiece<T>, Error>>(CHUNK_QUEUE_LIMIT))
            .map(|(s, r)| (Mutex::new(Some(s)), r))
            .unzip();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let worker_count = self.workers.min(chunks.len()) as u32;
        let agents = (0..worker_count).map(|worker| self.agent(worker)).collect::<Result<Vec<_>, _>>()?;
        std::thread::scope(|scope| {
            for agent in agents {
                let coverage = CoverageRecorder::default();
                let matrices = feature_matrices(&*self.model);
                let mut agent = CoverageAgent::new(agent, matrices, coverage.clone());
                let (senders, next, stop, work) = (&senders, &next, &stop, &work);
                scope.spawn(move || {
                    let mut scorer = self.model.scorer();
                    let mut batch = Batch::default();
                    while !stop.load(Ordering::Relaxed) {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(chunk) = chunks.get(i) else { return };
                        let sender = senders[i].lock().unwrap_or_else(PoisonError::into_inner).take();
                        let sender = sender.expect("each chunk is taken by one worker");
                        let mut score = |batch: &Batch| work(&mut *scorer, &mut agent, batch);
                        if !read_chunk(source, chunk, &mut batch, &sender, &mut score, &coverage) {
                            return;
                        }
                    }
                });
            }
            let result = receive(receivers, interrupt, &mut take);
            stop.store(true, Ordering::Relaxed);
            // Chunks that no thread has taken still have their senders here; threads find their receivers closed.
            result
        })
    }
}

/// What scoring gives, in the order of the input.
pub enum ScoredPiece<T> {
    /// The result of a batch.
    Batch(T),
    /// The end of a chunk, with what was read of it.
    ChunkEnd(Box<ChunkSummary>),
}

/// Data that are opened for scoring.
pub struct OpenedInput {
    pub source: Source,
    /// Whether the data have labels that the model uses.
    has_label: bool,
}

impl OpenedInput {
    /// Opens data as a model needs them. `label_rule` says how labels become numbers.
    fn open(
        input: &Input,
        manifest: &Manifest,
        scoring: &dyn algo::Model,
        label_rule: LabelRule,
        environment: Environment<'_>,
    ) -> Result<Result<Self, data::Error>, Error> {
        refuse_no_predictions(scoring, &manifest.algorithm)?;
        let (mut input, needs) = (input.clone(), scoring.record_needs());
        input.options.label_rule = label_rule;
        input.options.uses_labels = needs.uses_labels;
        input.options.keep_zeros = needs.keep_zeros;
        input.options.key_limit = needs.key_limit;
        input.options.field_limit = needs.field_limit;
        input.options.requires_entries = needs.requires_entries;
        let config = source_config(&input, environment.interrupt);
        let source = Source::open_with_schema(&config, &manifest.schema, environment.formats);
        environment.interrupt.check(NOT_ENDED)?;
        let has_label = input.options.has_label && needs.uses_labels;
        Ok(source.map(|source| Self { source, has_label }))
    }

    pub fn for_prediction(
        job: &PredictJob,
        manifest: &Manifest,
        scoring: &dyn algo::Model,
        environment: Environment<'_>,
    ) -> Result<Self, Error> {
        let opened = Self::open(&job.input, manifest, scoring, LabelRule::Real, environment)?;
        opened.map_err(|error| without_label(error, job, &manifest.schema))
    }

    pub fn for_evaluation(
        job: &EvaluateJob,
        manifest: &Manifest,
        scoring: &dyn algo::Model,
        environment: Environment<'_>,
    ) -> Result<Self, Error> {
        let label_rule = scoring.record_needs().label_rule;
        Ok(Self::open(&job.input, manifest, scoring, label_rule, environment)??)
    }

    /// The columns of the scores.
    pub fn columns<'a>(
        &'a self,
        job: &PredictJob,
        scoring: &dyn algo::Model,
        schema: &'a Schema,
    ) -> Result<ScoreColumns<'a>, Error> {
        let passthrough_columns = self.source.passthrough_columns();
        ScoreColumns::new(scoring.output(), schema, passthrough_columns, self.has_label, job.raw_scores)
    }

    /// The chunks of the data, in their order.
    pub fn chunks(&self) -> Vec<Split> {
        let bytes = self.source.size_bytes();
        let count = bytes.map_or(1, |bytes| bytes.div_ceil(CHUNK_BYTES)).clamp(1, CHUNK_LIMIT);
        self.source.chunks(count as usize)
    }
}

/// Data for prediction seldom have labels, so this function adds to the error that the missing column is the label.
pub fn without_label(error: data::Error, job: &PredictJob, schema: &Schema) -> Error {
    match error {
        data::Error::UnknownColumn { file, column, .. }
            if job.input.options.label.is_none() && schema.label.as_ref() == Some(&column) =>
        {
            let what = format!("{file} has no label column '{column}'");
            Error::request(what, "add --no-label to predict without labels")
        }
        error => error.into(),
    }
}

/// A model that was read, ready for scoring.
pub struct LoadedModel {
    pub model: ModelReader,
    /// The same model as its family knows it.
    pub scoring: Arc<dyn algo::Model>,
    pub scorer: ModelScorer,
}

/// The numbers of a prediction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Names of the numbers of a record: `score`, or `probability_LABEL` for each class, or those that the family names.
    pub columns: Vec<String>,
    /// Records x columns.
    pub values: Vec<f64>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

impl LoadedModel {
    /// Reads a model into this process, for scoring on this number of threads.
    pub fn read(
        path: &Path,
        families: &Families,
        functions: &FunctionTable,
        threads: usize,
    ) -> Result<Self, Error> {
        Self::of(ModelReader::open(path, false)?, families, functions, threads)
    }

    /// Reads an opened model into this process, for scoring on this number of threads.
    pub fn of(
        mut model: ModelReader,
        families: &Families,
        functions: &FunctionTable,
        threads: usize,
    ) -> Result<Self, Error> {
        let scoring = load_model(&model.path, &model.manifest, families)?;
        let scorer = ModelScorer::new(&mut model, Arc::clone(&scoring), threads, functions)?;
        Ok(Self { model, scoring, scorer })
    }

    /// Reads the model of a command: into this process, or into servers that are started for it.
    pub fn of_command(
        path: &Path,
        run_options: &RunOptions,
        servers: Option<u32>,
        environment: Environment<'_>,
    ) -> Result<Self, Error> {
        let threads =
            run_options.tasks.map_or(run_options.threads.unwrap_or_else(machine::core_count), |n| n as usize);
        let Some(count) = servers else {
            return Self::read(path, environment.families, environment.functions, threads);
        };
        let mut model = ModelReader::open(path, false)?;
        let scoring = load_model(path, &model.manifest, environment.families)?;
        let scorer = ModelScorer::on_servers(&mut model, Arc::clone(&scoring), threads, count, environment)?;
        Ok(Self { model, scoring, scorer })
    }

    /// Makes explanations the predictions of the model.
    pub fn explain(&mut self, explanation: Explanation) -> Result<(), Error> {
        self.scoring = explained(&mut self.model, &*self.scoring, explanation)?;
        self.scorer.model = Arc::clone(&self.scoring);
        Ok(())
    }

    /// The numbers of all records, in the order of the input; raw scores are those before they become probabilities.
    pub fn predict(
        &self,
        input: &Input,
        is_raw: bool,
        environment: Environment<'_>,
    ) -> Result<Scores, Error> {
        let (manifest, scoring) = (&self.model.manifest, &*self.scoring);
        let opened = OpenedInput::open(input, manifest, scoring, LabelRule::Real, environment)??;
        let names = &self.model.manifest.schema.label_names;
        let of_class = if is_raw { "score" } else { "probability" };
        let columns = match self.scoring.output() {
            Output::Classes(classes) => classes
                .iter()
                .map(|&class| format!("{of_class}_{}", labels::text(f64::from(class), names)))
                .collect(),
            output => output.names().into_iter().map(str::to_owned).collect(),
        };
        let mut values = Vec::new();
        let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
            let mut out = Vec::new();
            if is_raw {
                scorer.raw_scores(agent, batch, &mut out)?;
            } else {
                scorer.predict(agent, batch, &mut out)?;
            }
            Ok(out)
        };
        let mut totals = Totals::default();
        let take = |output: ScoredPiece<Vec<f64>>| match output {
            ScoredPiece::Batch(scores) => {
                values.extend(scores);
                Ok(())
            }
            ScoredPiece::ChunkEnd(summary) => totals.add_checked(&summary, input.bad_lines),
        };
        self.scorer.run(&opened.source, &opened.chunks(), environment.interrupt, work, take)?;
        totals.check_not_empty(input)?;
        let known = known_features(&self.model)?;
        let notices =
            opened.source.notices().iter().cloned().chain(totals.notices_of_scores(&known)).collect();
        Ok(Scores { columns, values, notices })
    }
}

/// The matrices of a model for scoring, each with its position in the manifest.
pub fn checked_specs(
    manifest: &Manifest,
    path: &Path,
    scoring: &dyn algo::Model,
    partition_count: u32,
    functions: &FunctionTable,
) -> Result<Vec<(MatrixSpec, usize)>, Error> {
    let checked = |spec: MatrixSpec| {
        debug_assert_eq!(spec.consistency, Consistency::Asp);
        let Some(position) = manifest.matrices.iter().position(|entry| entry.name == spec.name) else {
            return Err(bad_model(path, format!("matrix {:?} is missing", spec.name)));
        };
        // The numbers of a manifest may be anything, so invalid ones are an error of the model and not a fault of the
        // program.
        spec.check(functions).map_err(|error| bad_model(path, error.to_string()))?;
        Ok((spec, position))
    };
    scoring.matrices(partition_count).into_iter().map(checked).collect()
}

fn bad_model(path: &Path, what: String) -> Error {
    model::Error::BadModel { path: path.into(), what }.into()
}

/// Reads and scores one chunk; false if the receiver is closed or an error occurred.
fn read_chunk<T>(
    source: &Source,
    chunk: &Split,
    batch: &mut Batch,
    sender: &SyncSender<Result<ScoredPiece<T>, Error>>,
    score: &mut dyn FnMut(&Batch) -> Result<T, Error>,
    coverage: &CoverageRecorder,
) -> bool {
    let mut outputs = || -> Result<bool, Error> {
        let mut reader = source.reader(vec![chunk.clone()])?;
        while reader.next_batch(BATCH_RECORDS, batch)? {
            coverage.start_batch(batch);
            if sender.send(Ok(ScoredPiece::Batch(score(batch)?))).is_err() {
                return Ok(false);
            }
        }
        let names = if coverage.has_unknown() { reader.take_dictionary() } else { KeyNames::default() };
        let coverage = coverage.take(|key| source.schema().feature_name(&names, key));
        let summary = ChunkSummary { read: reader.summary().clone(), coverage };
        Ok(sender.send(Ok(ScoredPiece::ChunkEnd(Box::new(summary)))).is_ok())
    };
    match outputs() {
        Ok(goes_on) => goes_on,
        Err(error) => {
            // The channel is closed because another thread has failed first.
            let _ = sender.send(Err(error));
            false
        }
    }
}

/// Receives the results, chunk by chunk.
fn receive<T>(
    receivers: Vec<Receiver<Result<ScoredPiece<T>, Error>>>,
    interrupt: &Interrupt,
    take: &mut dyn FnMut(ScoredPiece<T>) -> Result<(), Error>,
) -> Result<(), Error> {
    for (i, receiver) in receivers.into_iter().enumerate() {
        loop {
            interrupt.check(NOT_ENDED)?;
            let output = receiver.recv();
            // Ctrl-C also ends standard input, so this may not be the real end.
            interrupt.check(NOT_ENDED)?;
            let Ok(output) = output else {
                let message = "a scoring thread ended early".into();
                return Err(Error::Panic { task: i as u32, message });
            };
            let output = output?;
            let is_end = matches!(output, ScoredPiece::ChunkEnd(_));
            take(output)?;
            if is_end {
                break;
            }
        }
    }
    Ok(())
}
