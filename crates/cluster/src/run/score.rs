//! Scores data with a model, in parallel and in order: the input is cut into chunks, threads take the chunks in turn,
//! and the results arrive in the order of the input for any number of threads.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use algo::{Families, Output, Scorer};
use data::{BadLinePolicy, Batch, LabelRule, ReadSummary, Source, Split};
use matrix::{Agent, Consistency, LocalConfig, LocalStore, MatrixSpec};
use model::ModelFiles;
use worker::JobLayout;

use super::cluster::launch::LocalServers;
use super::cluster::servers::Servers;
use super::resume::import_matrix;
use super::totals::Totals;
use super::{Environment, load_model};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::job::{Input, RunOptions};
use crate::labels;

/// Size of a chunk of input in bytes. It does not depend on the number of threads, so that sums over chunks have the
/// same bits.
const CHUNK_BYTES: u64 = 4 << 20;
/// Maximum number of chunks of an input: each has a channel.
const CHUNK_LIMIT: u64 = 1 << 16;
/// Number of records that are scored at once.
const BATCH_RECORDS: usize = 4096;
/// Maximum number of results of a chunk that wait to be received.
const CHUNK_QUEUE_LIMIT: usize = 4;
/// The text of the error when the run was interrupted.
pub(super) const NOT_ENDED: &str = "scoring was not finished; no result was written";
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
    },
}

impl ModelScorer {
    /// Loads a model into this process, for `workers` threads. `scoring` is the same model as its family knows it.
    pub fn new(model: &mut ModelFiles, scoring: Arc<dyn algo::Model>, workers: usize) -> Result<Self, Error> {
        let mut store = LocalStore::new(LocalConfig { task_count: workers as u32, wait_limit: WAIT_LIMIT });
        for (spec, entry) in checked_specs(model, &*scoring, PARTITION_COUNT)? {
            let bytes = spec.initial_size_bytes(&(0..spec.partitioner.partition_count()).collect::<Vec<_>>());
            if let Some(memory) = crate::machine::memory_bytes().filter(|memory| bytes > *memory) {
                let (needed, memory) = (crate::amounts::bytes(bytes), crate::amounts::bytes(memory));
                let what = format!(
                    "matrix {:?} takes {needed}, this machine has {memory}; --servers on machines with more memory",
                    spec.name
                );
                return Err(bad_model(model, what));
            }
            let id = store.create(spec).map_err(|error| bad_model(model, error.to_string()))?;
            let path = model.path.clone();
            import_matrix(model, entry, |rows, replace| {
                let set = store.import_block(id, &rows, replace);
                let what = |error: matrix::Error| error.to_string();
                Ok(set.map_err(|error| model::Error::BadModel { path: path.clone(), what: what(error) })?)
            })?;
        }
        Ok(Self { parameters: Parameters::Process(Arc::new(store)), model: scoring, workers })
    }

    /// Starts servers and loads a model into them, for `workers` threads of this process.
    pub fn on_servers(
        model: &mut ModelFiles,
        scoring: Arc<dyn algo::Model>,
        workers: usize,
        server_count: u32,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let partition_count = PARTITIONS_PER_SERVER * server_count;
        let specs = checked_specs(model, &*scoring, partition_count)?;
        let processes = LocalServers::start(server_count, interrupt)?;
        let matrices: Vec<MatrixSpec> = specs.iter().map(|(spec, _)| spec.clone()).collect();
        let layout = processes.layout(matrices, workers as u32, WAIT_LIMIT);
        let mut servers = Servers::connect(&layout, &[])?;
        servers.open_job()?;
        for (matrix, (_, entry)) in (0..).zip(&specs) {
            import_matrix(model, *entry, |rows, replace| servers.import(matrix, &rows, replace))?;
        }
        let parameters = Parameters::Servers { layout: Box::new(layout), processes };
        Ok(Self { parameters, model: scoring, workers })
    }

    fn agent(&self, worker: u32) -> Result<Box<dyn Agent>, Error> {
        Ok(match &self.parameters {
            Parameters::Process(store) => Box::new(store.agent(worker)),
            Parameters::Servers { layout, processes } => Box::new(processes.agent(layout, worker)?),
        })
    }

    /// Runs `work` on every batch and passes its results to `take`, in the order of the input.
    pub fn run<T: Send>(
        &self,
        source: &Source,
        input: &Input,
        interrupt: &Interrupt,
        work: impl Fn(&mut dyn Scorer, &mut dyn Agent, &Batch) -> Result<T, Error> + Sync,
        mut take: impl FnMut(T) -> Result<(), Error>,
    ) -> Result<Totals, Error> {
        let count = source.size_bytes().map_or(1, |bytes| bytes.div_ceil(CHUNK_BYTES)).clamp(1, CHUNK_LIMIT);
        let chunks = source.chunks(count as usize);
        let (senders, receivers): (Vec<_>, Vec<_>) = chunks
            .iter()
            .map(|_| sync_channel::<ChunkMessage<T>>(CHUNK_QUEUE_LIMIT))
            .map(|(s, r)| (Mutex::new(Some(s)), r))
            .unzip();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let mut totals = Totals::default();
        let worker_count = self.workers.min(chunks.len()) as u32;
        let agents = (0..worker_count).map(|worker| self.agent(worker)).collect::<Result<Vec<_>, _>>()?;
        let result = std::thread::scope(|scope| {
            for mut agent in agents {
                let (chunks, senders, next, stop, work) = (&chunks, &senders, &next, &stop, &work);
                scope.spawn(move || {
                    let mut scorer = self.model.scorer();
                    let mut batch = Batch::default();
                    while !stop.load(Ordering::Relaxed) {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(chunk) = chunks.get(i) else { return };
                        let sender = senders[i].lock().unwrap_or_else(PoisonError::into_inner).take();
                        let sender = sender.expect("each chunk is taken by one worker");
                        let mut score = |batch: &Batch| work(&mut *scorer, &mut *agent, batch);
                        if !read_chunk(source, chunk, &mut batch, &sender, &mut score) {
                            return;
                        }
                    }
                });
            }
            let result = receive(receivers, interrupt, input.bad_lines, &mut totals, &mut take);
            stop.store(true, Ordering::Relaxed);
            // Chunks that no thread has taken still have their senders here; threads find their receivers closed.
            result
        });
        result?;
        if totals.records == 0 {
            return Err(Error::NoRecords { inputs: input.data.clone() });
        }
        Ok(totals)
    }
}

/// A model that was read, ready for scoring.
pub struct LoadedModel {
    pub model: ModelFiles,
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
}

impl LoadedModel {
    /// Reads a model into this process, for scoring on this number of threads.
    pub fn read(path: &Path, families: &Families, threads: usize) -> Result<Self, Error> {
        let mut model = ModelFiles::open(path, false)?;
        let scoring = load_model(&model, families)?;
        let scorer = ModelScorer::new(&mut model, Arc::clone(&scoring), threads)?;
        Ok(Self { model, scoring, scorer })
    }

    /// Reads the model of a command: into this process, or into servers that are started for it.
    pub(crate) fn of_command(
        path: &Path,
        manner: &RunOptions,
        servers: Option<u32>,
        environment: Environment<'_>,
    ) -> Result<Self, Error> {
        let threads = manner.tasks.map_or(manner.threads, |n| n as usize);
        let Some(count) = servers else { return Self::read(path, environment.families, threads) };
        let mut model = ModelFiles::open(path, false)?;
        let scoring = load_model(&model, environment.families)?;
        let (own, interrupt) = (Arc::clone(&scoring), environment.interrupt);
        let scorer = ModelScorer::on_servers(&mut model, own, threads, count, interrupt)?;
        Ok(Self { model, scoring, scorer })
    }

    /// Opens data as the model needs them. `label_rule` says how labels become numbers.
    pub(crate) fn open(
        &self,
        input: &Input,
        label_rule: LabelRule,
        environment: Environment<'_>,
    ) -> Result<(Input, Result<Source, data::Error>), Error> {
        let mut input = input.clone();
        input.options.label_rule = label_rule;
        input.options.uses_labels = self.scoring.uses_labels();
        input.options.keep_zeros = self.scoring.keep_zeros();
        input.options.key_limit = self.scoring.key_limit();
        let config = input.source_config(environment.interrupt);
        let source = Source::open_with_schema(&config, &self.model.manifest.schema, environment.formats);
        environment.interrupt.check(NOT_ENDED)?;
        Ok((input, source))
    }

    /// The numbers of all records, in the order of the input.
    pub fn predict(&self, input: &Input, environment: Environment<'_>) -> Result<Scores, Error> {
        let (input, source) = self.open(input, LabelRule::Real, environment)?;
        let names = &self.model.manifest.schema.label_names;
        let columns = match self.scoring.output() {
            Output::Classes(classes) => {
                classes.iter().map(|&class| format!("probability_{}", labels::text(class, names))).collect()
            }
            output => output.names().iter().map(|&name| name.to_owned()).collect(),
        };
        let mut values = Vec::new();
        let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
            let mut out = Vec::new();
            scorer.predict(agent, batch, &mut out)?;
            Ok(out)
        };
        let take = |scores: Vec<f64>| {
            values.extend(scores);
            Ok(())
        };
        self.scorer.run(&source?, &input, environment.interrupt, work, take)?;
        Ok(Scores { columns, values })
    }
}

/// A message of a thread about its chunk.
enum ChunkMessage<T> {
    Output(T),
    Finished(Box<ReadSummary>),
    Failed(Error),
}

/// The matrices of a model for scoring, each with its position in the manifest.
fn checked_specs(
    model: &ModelFiles,
    scoring: &dyn algo::Model,
    partition_count: u32,
) -> Result<Vec<(MatrixSpec, usize)>, Error> {
    let checked = |spec: MatrixSpec| {
        debug_assert_eq!(spec.consistency, Consistency::Asp);
        let Some(position) = model.manifest.matrices.iter().position(|entry| entry.name == spec.name) else {
            return Err(bad_model(model, format!("matrix {:?} is missing", spec.name)));
        };
        // The numbers of a manifest may be anything, so invalid ones are an error of the model and not a fault of the
        // program.
        spec.check().map_err(|error| bad_model(model, error.to_string()))?;
        Ok((spec, position))
    };
    scoring.matrices(partition_count).into_iter().map(checked).collect()
}

fn bad_model(model: &ModelFiles, what: String) -> Error {
    model::Error::BadModel { path: model.path.clone(), what }.into()
}

/// Reads and scores one chunk; false if the receiver is closed or an error occurred.
fn read_chunk<T>(
    source: &Source,
    chunk: &Split,
    batch: &mut Batch,
    sender: &SyncSender<ChunkMessage<T>>,
    score: &mut dyn FnMut(&Batch) -> Result<T, Error>,
) -> bool {
    let mut pieces = || -> Result<bool, Error> {
        let mut reader = source.reader(vec![chunk.clone()])?;
        while reader.next_batch(BATCH_RECORDS, batch)? {
            if sender.send(ChunkMessage::Output(score(batch)?)).is_err() {
                return Ok(false);
            }
        }
        Ok(sender.send(ChunkMessage::Finished(Box::new(reader.summary().clone()))).is_ok())
    };
    match pieces() {
        Ok(goes_on) => goes_on,
        Err(error) => {
            // The channel is closed because another thread has failed first.
            let _ = sender.send(ChunkMessage::Failed(error));
            false
        }
    }
}

/// Receives the results, chunk by chunk.
fn receive<T>(
    receivers: Vec<Receiver<ChunkMessage<T>>>,
    interrupt: &Interrupt,
    bad_lines: BadLinePolicy,
    totals: &mut Totals,
    take: &mut dyn FnMut(T) -> Result<(), Error>,
) -> Result<(), Error> {
    for (i, receiver) in receivers.into_iter().enumerate() {
        loop {
            interrupt.check(NOT_ENDED)?;
            let piece = receiver.recv();
            // Ctrl-C also ends standard input, so this may not be the real end.
            interrupt.check(NOT_ENDED)?;
            match piece {
                Ok(ChunkMessage::Output(made)) => take(made)?,
                Ok(ChunkMessage::Failed(error)) => return Err(error),
                Ok(ChunkMessage::Finished(summary)) => {
                    totals.add(&summary);
                    totals.check_bad_lines(bad_lines)?;
                    break;
                }
                Err(_) => {
                    return Err(Error::Panic {
                        task: i as u32,
                        message: "a scoring thread ended early".into(),
                    });
                }
            }
        }
    }
    Ok(())
}
