//! Training in one process: a driver and one worker, which exchange messages through channels, and a parameter store
//! that the threads of the tasks share.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use driver::messages::ToWorker;
use driver::progress::ProgressListener;
use driver::report::Report;
use driver::{
    Driver, DriverConfig, Error, Event, Incidents, ParameterPlace, ParametersRequest, RecordTimes, RunEnd,
    SnapshotPurpose, WorkerInfo,
};
use job::{Exit, TrainJob};
use matrix::{Agent, FunctionTable, LocalConfig, LocalStore, MatrixId, RowBlock, RowCounts, Snapshot};
use model::{MatrixSource, Model};
use rpc::WireType;
use rpc::layout::JobLayout;
use rpc::message::Durability;
use serde_json::{Map, Value};

use crate::cluster::metrics_endpoint::WorkerMetrics;
use crate::environment::Environment;
use crate::local_data::LocalData;
use crate::machine;
use crate::modules::extend_table;
use crate::outputs::{check_outputs, check_report, write_report};
use crate::run_loop::{Parameters, WorkerLink, drive};
use crate::worker::job_handle::JobHandle;
use crate::worker::{MatrixAccess, ModelTarget, TaskParameters, WorkerContext, lock};

/// Number of the only job and of its worker.
const JOB: u32 = 0;

/// Trains in this process, and writes the model. `progress` learns of it, unless the job is quiet.
pub fn train(
    job: &TrainJob,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<Report, Error> {
    check_outputs(job)?;
    check_one_process(job)?;
    train_into(ModelTarget::Folder, own_parameters(job, environment)?, job, environment, progress)
}

/// Where the parameters are, how the tasks reach them, and how the driver does.
pub type TrainingParameters = (ParameterPlace, Arc<dyn TaskParameters>, Box<dyn Parameters>);

/// The parameters in a store of this process.
fn own_parameters(job: &TrainJob, environment: Environment<'_>) -> Result<TrainingParameters, Error> {
    let functions = extend_table(job.modules(), environment.functions)?;
    let threads = job.run_options.threads.unwrap_or_else(machine::core_count);
    let memory_bytes = machine::memory_bytes();
    let store = Arc::new(SharedStore { functions, store: OnceLock::new(), snapshots: Mutex::default() });
    let place = ParameterPlace::Process { threads: threads as u32, memory_bytes };
    let parameters = LocalParameters { store: Arc::clone(&store), memory_bytes };
    Ok((place, store, Box::new(parameters)))
}

/// Refuses what is for values that are sent, and for servers that may die.
fn check_one_process(job: &TrainJob) -> Result<(), Error> {
    if job.wire != WireType::F32 {
        return Err(Error::request(
            format!("--wire {} in one process, where no values are sent", job.wire.name()),
            "give --servers N and --workers N, or leave it out",
        ));
    }
    if job.durability != Durability::Checkpoint {
        return Err(Error::request(
            format!(
                "--durability {} in one process, which has its parameters in itself",
                job.durability.name()
            ),
            "give --servers N and --workers N, or leave it out: checkpoints serve one process",
        ));
    }
    Ok(())
}

/// Trains in this process a model that stays in memory. `progress` learns of it, unless the job is quiet.
pub fn train_in_memory(
    job: &TrainJob,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<(Report, Model), Error> {
    check_one_process(job)?;
    train_with(own_parameters(job, environment)?, job, environment, progress)
}

/// Trains a model that stays in memory with tasks of this process, and parameters in this place.
pub fn train_with(
    parameters: TrainingParameters,
    job: &TrainJob,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<(Report, Model), Error> {
    check_report(job)?;
    let model = Arc::default();
    let target = ModelTarget::Memory(Arc::clone(&model));
    let mut report = train_into(target, parameters, job, environment, progress)?;
    let model = Arc::into_inner(model).and_then(OnceLock::into_inner);
    let model = model.expect("the worker has ended, after it had collected the model");
    report.model.size_bytes = model.size_bytes();
    Ok((report, model))
}

fn train_into(
    target: ModelTarget,
    (place, tasks, mut parameters): TrainingParameters,
    job: &TrainJob,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<Report, Error> {
    let start = Instant::now();
    let threads = job.run_options.threads.unwrap_or_else(machine::core_count);
    let config = DriverConfig {
        threads,
        job: JOB,
        workers: vec![WorkerInfo { id: JOB, name: None, slots: 1 }],
        parameters: place,
        progress,
        families: environment.families.clone(),
        run: 1,
        begun: None,
        record_times: RecordTimes::new(),
        move_count: 0,
        earlier_time: Duration::ZERO,
        incidents: Incidents::default(),
    };
    let (sender, events) = channel();
    let context = worker_context(sender, tasks, (threads, target), environment);
    let mut driver = Driver::new(config, job.clone(), start)?;
    let mut link = ChannelLink { worker: JobHandle::start(context), events };
    let result = drive(&mut driver, &mut link, &mut *parameters, environment.interrupt);
    link.worker.wait();
    let RunEnd::Finished(finished) = result? else {
        unreachable!("the only worker has nobody to give tasks to")
    };
    let report = finished.report;
    if let Some(path) = &job.report {
        write_report(&report, path)?;
    }
    Ok(report)
}

fn worker_context(
    sender: Sender<Event>,
    parameters: Arc<dyn TaskParameters>,
    (threads, model_target): (usize, ModelTarget),
    environment: Environment<'_>,
) -> WorkerContext {
    WorkerContext {
        job: JOB,
        sender: Arc::new(move |message| {
            // The driver may have ended already, because of a failure.
            let _ = sender.send(Event::FromWorker { worker: JOB, message });
        }),
        parameters,
        formats: Arc::new(environment.formats.clone()),
        families: environment.families.clone(),
        functions: Arc::new(environment.functions.clone()),
        interrupt: environment.interrupt.clone(),
        model_target,
        local_data: LocalData::default(),
        threads: Some(threads),
        metrics: WorkerMetrics::default(),
    }
}

/// The channels between driver and worker.
struct ChannelLink {
    worker: JobHandle,
    events: Receiver<Event>,
}

impl WorkerLink for ChannelLink {
    fn send(&mut self, _worker: u32, message: ToWorker) {
        self.worker.on_message(message);
    }

    fn receive(&mut self, timeout: Duration) -> Event {
        match self.events.recv_timeout(timeout) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => Event::Timeout,
            Err(RecvTimeoutError::Disconnected) => {
                let text = "the thread of the tasks has ended unexpectedly".into();
                Event::Failed(Error::Cluster { text, exit: Exit::Internal })
            }
        }
    }

    fn lost_member(&mut self) -> Option<Error> {
        None
    }

    fn report_status(&mut self, _status: Map<String, Value>) {}
}

/// The store of the job, once the driver has created it.
struct SharedStore {
    functions: FunctionTable,
    store: OnceLock<Arc<LocalStore>>,
    /// By [`SnapshotPurpose`].
    snapshots: Mutex<[Snapshots; SnapshotPurpose::COUNT]>,
}

/// Those of all matrices of one moment, if they were taken.
type Snapshots = Option<Arc<Vec<Snapshot>>>;

impl SharedStore {
    fn get(&self) -> &Arc<LocalStore> {
        self.store.get().expect("the driver creates the store before it is used")
    }

    fn snapshots(&self, purpose: SnapshotPurpose) -> Snapshots {
        lock(&self.snapshots)[purpose as usize].clone()
    }

    fn set_snapshots(&self, purpose: SnapshotPurpose, snapshots: Snapshots) {
        lock(&self.snapshots)[purpose as usize] = snapshots;
    }
}

impl TaskParameters for SharedStore {
    fn agent(
        &self,
        _layout: &JobLayout,
        task: u32,
        _functions: &FunctionTable,
    ) -> Result<Box<dyn Agent>, Error> {
        Ok(Box::new(self.get().agent(task)))
    }

    fn open(&self, _layout: &JobLayout) -> Result<Box<dyn MatrixAccess>, Error> {
        Ok(Box::new(LocalMatrices {
            store: Arc::clone(self.get()),
            snapshots: self.snapshots(SnapshotPurpose::Checkpoint),
        }))
    }

    fn on_task_failed(&self, task: u32, reason: &str) {
        self.get().fail(task, reason);
    }

    fn cancel(&self, reason: &str) {
        if let Some(store) = self.store.get() {
            store.stop(reason);
        }
    }
}

/// The matrices of a store.
pub struct LocalMatrices {
    store: Arc<LocalStore>,
    /// Those for the checkpoint that is being written.
    snapshots: Snapshots,
}

impl LocalMatrices {
    /// Without snapshots.
    pub fn new(store: Arc<LocalStore>) -> Self {
        Self { store, snapshots: None }
    }
}

impl MatrixSource<Error> for LocalMatrices {
    fn count_rows(&mut self, matrix: usize) -> Result<RowCounts, Error> {
        Ok(self.store.count_rows(MatrixId(matrix as u32))?)
    }

    fn rows_from(&mut self, matrix: usize, key: u64) -> Result<RowBlock, Error> {
        Ok(self.store.export_block(MatrixId(matrix as u32), key)?)
    }
}

impl MatrixAccess for LocalMatrices {
    fn import(&mut self, matrix: u32, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error> {
        Ok(self.store.import_block(MatrixId(matrix), rows, replace)?)
    }

    fn import_all(
        &mut self,
        blocks: &mut (dyn Iterator<Item = (u32, RowBlock)> + Send),
    ) -> Result<(), Error> {
        let blocks = Mutex::new(blocks);
        let next = || lock(&blocks).next();
        let import = || {
            std::iter::from_fn(next)
                .try_for_each(|(matrix, rows)| self.store.import_block(MatrixId(matrix), &rows, None))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..machine::core_count()).map(|_| scope.spawn(import)).collect();
            threads
                .into_iter()
                .try_for_each(|thread| Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?))
        })
    }

    fn read_snapshot(
        &mut self,
        matrix: u32,
        only_changed: bool,
        write: &mut dyn FnMut(&RowBlock) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let snapshots = self.snapshots.clone().expect("the driver has them taken first");
        let all = &snapshots[matrix as usize];
        let rows = &if only_changed { all.changes() } else { all.clone() };
        let threads = machine::core_count();
        let next = AtomicU64::new(0);
        let blocks = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            (index < rows.block_count()).then(|| rows.block(index))
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(threads);
            for _ in 0..threads {
                let sender = sender.clone();
                // The receiver has gone if writing has failed.
                scope.spawn(move || std::iter::from_fn(blocks).all(|rows| sender.send(rows).is_ok()));
            }
            drop(sender);
            receiver.iter().try_for_each(|rows| write(&rows))
        })
    }
}

/// The store as the driver reaches it.
struct LocalParameters {
    store: Arc<SharedStore>,
    /// The memory of this machine, if it is known.
    memory_bytes: Option<u64>,
}

impl LocalParameters {
    /// Whether everything may be copied while a snapshot exists.
    fn has_memory_for_snapshot(&self) -> bool {
        let bytes: u64 = self.store.get().stats().matrices.iter().map(|matrix| matrix.size_bytes).sum();
        self.memory_bytes.is_none_or(|memory| bytes <= memory / 2)
    }
}

impl Parameters for LocalParameters {
    fn request(&mut self, request: ParametersRequest) -> Result<Value, Error> {
        match request {
            ParametersRequest::Create { layout, .. } => {
                let config = LocalConfig { task_count: layout.task_count, wait_limit: layout.wait_limit };
                let mut store = LocalStore::with_functions(config, self.store.functions.clone());
                layout.matrices.into_iter().try_for_each(|spec| store.create(spec).map(drop))?;
                assert!(self.store.store.set(Arc::new(store)).is_ok(), "the store is created once");
            }
            ParametersRequest::TakeSnapshot { purpose, records_changes } => {
                if purpose == SnapshotPurpose::Checkpoint && !self.has_memory_for_snapshot() {
                    return Ok(Value::Bool(false));
                }
                let store = self.store.get();
                let matrices = (0..).map(MatrixId).take(store.specs().count());
                let take =
                    if records_changes { LocalStore::snapshot_with_changes } else { LocalStore::snapshot };
                let rows: Result<_, _> = matrices.map(|matrix| take(store, matrix)).collect();
                self.store.set_snapshots(purpose, Some(Arc::new(rows?)));
                return Ok(Value::Bool(true));
            }
            ParametersRequest::RestoreBest => {
                let best =
                    self.store.snapshots(SnapshotPurpose::BestEpoch).expect("taken before it is restored");
                let store = self.store.get();
                (0..).map(MatrixId).zip(&*best).try_for_each(|(matrix, rows)| store.restore(matrix, rows))?;
            }
            ParametersRequest::Stats => {
                return Ok(serde_json::to_value(self.store.get().stats()).unwrap_or_default());
            }
        }
        Ok(Value::Null)
    }

    fn drop_snapshot(&mut self, purpose: SnapshotPurpose) {
        self.store.set_snapshots(purpose, None);
    }

    /// The store is freed with its last user.
    fn close(&mut self, _failure: Option<&str>) {}

    fn add_status(&self, _status: &mut Map<String, Value>) {}
}
