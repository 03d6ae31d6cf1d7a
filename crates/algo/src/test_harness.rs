//! Small data, an in-process coordinator, and runs on `LocalStore`, for tests of families.

#![allow(clippy::unwrap_used, reason = "it is part of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use data::{Batch, BatchBuilder, BatchStream, MemoryStream};
use math::elementary::sigmoid;
use math::random::{Purpose, stream};
use matrix::{Agent, Clock, Consistency, FunctionTable, LocalConfig, LocalStore, MatrixId, OwnedValues};

use crate::coordinator::{Coordinator, EpochDecision, EpochReport, StepDecision};
use crate::error::Error;
use crate::family::{Families, Family, Model};
pub use crate::in_process::WAIT_LIMIT;
use crate::in_process::{self, Finished, Moment, Setup};
use crate::job::{DataFacts, Job, TableLayout, TrainTask, evaluate};
use crate::metric::{MetricAccumulator, Metrics};

/// A label and its entries.
pub type Record = (f32, Vec<(u64, f32)>);

/// Records in batches of `size`.
pub fn build(records: &[Record], size: usize) -> Vec<Batch> {
    let chunk = |records: &[Record]| {
        let mut builder = BatchBuilder::new();
        for (label, entries) in records {
            for &(key, value) in entries {
                builder.push(key, value);
            }
            builder.end_record(f64::from(*label), 1.0, None);
        }
        let mut batch = Batch::default();
        builder.finish(&mut batch);
        batch
    };
    records.chunks(size).map(chunk).collect()
}

/// Sparse records with the value 1 in some of 64 features, and labels drawn from a logistic model.
pub fn clicks(seed: u64, batch_count: usize, size: usize) -> Vec<Batch> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut record = || {
        let mut keys: Vec<u64> = (0..6).map(|_| random.below(64)).collect();
        keys.sort_unstable();
        keys.dedup();
        let score: f64 = keys.iter().map(|&key| (key as f64 - 31.5) / 16.0).sum();
        let label = f32::from(random.uniform() < sigmoid(score));
        (label, keys.into_iter().map(|key| (key, 1.0)).collect())
    };
    let records: Vec<Record> = (0..batch_count * size).map(|_| record()).collect();
    build(&records, size)
}

/// The records of `batch`, each repeated as often as `times` returns.
pub fn batches(batch: &Batch, times: impl Fn(usize) -> usize) -> Batch {
    let mut records: Vec<Record> = Vec::new();
    for r in 0..batch.record_count() {
        let entries: Vec<_> =
            batch.entries(r).map(|i| (batch.columns[batch.indices[i] as usize], 1.0)).collect();
        (0..times(r)).for_each(|_| records.push((batch.labels[r] as f32, entries.clone())));
    }
    build(&records, records.len()).remove(0)
}

/// The values of an f32 matrix.
pub fn f32s(store: &LocalStore, id: MatrixId) -> Vec<f32> {
    match store.export(id).unwrap().values {
        OwnedValues::F32(values) => values,
        other => panic!("f32 expected: {other:?}"),
    }
}

/// The number of distinct features.
fn feature_count(batches: &[Batch]) -> u64 {
    let keys: BTreeSet<u64> = batches.iter().flat_map(|batch| batch.columns.iter().copied()).collect();
    keys.len() as u64
}

/// What the driver of a job would know of these data.
fn facts_of(name: &str, tasks: &[Vec<Batch>]) -> DataFacts {
    let labels = tasks.iter().flatten().flat_map(|batch| &batch.labels);
    let mut classes: Vec<f32> = labels.map(|label| *label as f32).collect();
    classes.sort_by(f32::total_cmp);
    classes.dedup();
    DataFacts {
        classes,
        dense: name == "linear" || name == "huber",
        feature_count: tasks.iter().map(|batches| feature_count(batches)).sum(),
        field_count: tasks
            .iter()
            .flatten()
            .flat_map(|batch| &batch.fields)
            .max()
            .map_or(0, |field| u64::from(*field) + 1),
        ..DataFacts::default()
    }
}

/// The results of a finished run.
pub struct Run {
    pub harness: Harness,
    pub store: Arc<LocalStore>,
    pub model: Arc<dyn Model>,
    /// Merged metrics, one per epoch.
    pub training: Vec<Metrics>,
    pub validation: Vec<Metrics>,
    pub notices: Vec<String>,
    pub record_count: u64,
    /// The moments at which the tasks saved their states: after each epoch but the last, and within an epoch if the
    /// setup says so.
    pub moments: Vec<Moment>,
}

/// The families whose algorithms a test trains.
#[derive(Clone, Copy, Debug)]
pub struct Harness(pub &'static [&'static Family]);

impl Harness {
    /// A job with settings `name=value`.
    pub fn job(self, name: &str, settings: &str) -> Result<Arc<dyn Job>, Error> {
        let pairs = settings.split_whitespace().filter_map(|pair| pair.split_once('='));
        Families::new(self.0)?.configure(name, &pairs.collect())
    }

    /// Trains with one task for each list of batches.
    pub fn train(
        self,
        name: &str,
        settings: &str,
        tasks: Vec<Vec<Batch>>,
        validation: Option<&[Batch]>,
        consistency: Consistency,
    ) -> Result<Run, Error> {
        let setup = Setup { consistency, validation, ..Setup::default() };
        self.start(name, settings, None, tasks, setup, |_, _| StepDecision::Continue)
    }

    /// Like [`Self::train`] under BSP, with this number of partitions.
    pub fn train_on(
        self,
        partition_count: u32,
        name: &str,
        settings: &str,
        tasks: Vec<Vec<Batch>>,
    ) -> Result<Run, Error> {
        let setup = Setup { partition_count, ..Setup::default() };
        self.start(name, settings, None, tasks, setup, |_, _| StepDecision::Continue)
    }

    /// Like [`Self::train`] under BSP; the tasks save their states within an epoch at this clock.
    pub fn train_saving_at(
        self,
        clock: Clock,
        name: &str,
        settings: &str,
        tasks: Vec<Vec<Batch>>,
    ) -> Result<Run, Error> {
        let setup = Setup { save_clock: Some(clock), ..Setup::default() };
        self.start(name, settings, None, tasks, setup, |_, _| StepDecision::Continue)
    }

    /// Like [`Self::train`] under BSP, from a moment of another run.
    pub fn train_from(
        self,
        moment: &Moment,
        name: &str,
        settings: &str,
        tasks: Vec<Vec<Batch>>,
        validation: Option<&[Batch]>,
    ) -> Result<Run, Error> {
        let setup = Setup { validation, from: Some(moment), ..Setup::default() };
        self.start(name, settings, None, tasks, setup, |_, _| StepDecision::Continue)
    }

    /// Like [`Self::train`], with a decision after each epoch, and one after every step (`flow`).
    pub fn run(
        self,
        name: &str,
        settings: &str,
        tasks: Vec<Vec<Batch>>,
        validation: Option<&[Batch]>,
        consistency: Consistency,
        decision: EpochDecision,
        flow: impl Fn(u32, u64) -> StepDecision + Sync,
    ) -> Result<Run, Error> {
        let setup = Setup { consistency, validation, decision, ..Setup::default() };
        self.start(name, settings, None, tasks, setup, flow)
    }

    /// Trains a model that the test has made.
    pub fn with_model(
        self,
        name: &str,
        settings: &str,
        model: Arc<dyn Model>,
        tasks: Vec<Vec<Batch>>,
    ) -> Result<Run, Error> {
        self.start(name, settings, Some(model), tasks, Setup::default(), |_, _| StepDecision::Continue)
    }

    /// A job with one task.
    pub fn single_task(self, name: &str, settings: &str) -> SingleTask {
        let job = self.job(name, settings).unwrap();
        let model = job.model(&DataFacts::default(), None).unwrap();
        let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT });
        let layout = TableLayout { partition_count: 5, task_count: 1 };
        for spec in job.training_matrices(&*model, Consistency::Bsp, layout, 1).unwrap() {
            store.create(spec).unwrap();
        }
        SingleTask { job, model, store: Arc::new(store) }
    }

    /// The built-in PS functions and those of the families.
    pub fn functions(self) -> FunctionTable {
        let mut functions = FunctionTable::builtin();
        Families::new(self.0).unwrap().add_functions(&mut functions).unwrap();
        functions
    }

    fn start(
        self,
        name: &str,
        settings: &str,
        model: Option<Arc<dyn Model>>,
        tasks: Vec<Vec<Batch>>,
        setup: Setup<'_>,
        // Called after every step, with the task and the number of steps of all tasks.
        flow: impl Fn(u32, u64) -> StepDecision + Sync,
    ) -> Result<Run, Error> {
        let job = self.job(name, settings)?;
        let model = match model {
            Some(model) => model,
            None => job.model(&facts_of(name, &tasks), None)?,
        };
        let Finished { store, moments, reports } =
            in_process::run(&*job, &*model, self.functions(), tasks, setup, flow)?;
        let (training, validation, notices, record_count) = merged(&reports);
        Ok(Run { harness: self, store, model, training, validation, notices, record_count, moments })
    }
}

impl Run {
    /// Predictions and metrics of a store that has only the exported values.
    pub fn saved_and_loaded(&self, data: &[Batch]) -> (Vec<f64>, Metrics) {
        let config = LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT };
        let mut loaded = LocalStore::with_functions(config, self.harness.functions());
        for spec in self.model.matrices(3) {
            let id = loaded.create(spec).unwrap();
            let mut exported = self.store.export(id).unwrap();
            exported.slots.clear();
            loaded.import(id, &exported).unwrap();
        }
        let mut agent = Arc::new(loaded).agent(0);
        let (mut scorer, mut all, mut out) = (self.model.scorer(), Vec::new(), Vec::new());
        for batch in data {
            scorer.predict(&mut agent, batch, &mut out).unwrap();
            all.extend_from_slice(&out);
        }
        let parts = evaluate(&*self.model, &mut agent, &mut MemoryStream::new(data.to_vec())).unwrap();
        (all, parts.finish())
    }
}

/// The agent of a single task without matrices.
pub fn one_task_agent() -> impl Agent {
    Arc::new(LocalStore::new(LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT })).agent(0)
}

/// A job with one task, whose agent and data a test brings. Nobody interrupts it.
pub struct SingleTask {
    job: Arc<dyn Job>,
    model: Arc<dyn Model>,
    pub store: Arc<LocalStore>,
}

impl SingleTask {
    pub fn train(&self, agent: &mut dyn Agent, data: &mut dyn BatchStream) {
        let (coordinator, model) = (&NullCoordinator, &*self.model);
        let task = TrainTask { agent, data, validation: None, coordinator, model, resumed: false, seed: 1 };
        crate::train(&*self.job, task, None).unwrap();
    }
}

struct NullCoordinator;

impl Coordinator for NullCoordinator {
    fn report_progress(&self, _: u32, _: u64, _: f64) -> StepDecision {
        StepDecision::Continue
    }

    fn report_epoch(&self, _: EpochReport) -> Result<EpochDecision, Error> {
        Ok(EpochDecision::Continue)
    }
}

/// Metrics per epoch of the training and of the validation data, notices, and the number of records.
fn merged(reports: &[EpochReport]) -> (Vec<Metrics>, Vec<Metrics>, Vec<String>, u64) {
    let merge = |parts: Vec<&MetricAccumulator>| {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?.clone();
        parts.for_each(|other| all.merge(other));
        Some(all.finish())
    };
    let epochs = || reports.chunk_by(|a, b| a.epoch == b.epoch);
    let training = epochs().filter_map(|tasks| merge(tasks.iter().map(|task| &task.training).collect()));
    let validation = epochs()
        .filter_map(|tasks| merge(tasks.iter().filter_map(|task| task.validation.as_ref()).collect()));
    let notices = reports.iter().filter_map(|report| report.notice.clone()).collect();
    let record_count = reports.iter().map(|report| report.record_count).sum();
    (training.collect(), validation.collect(), notices, record_count)
}
