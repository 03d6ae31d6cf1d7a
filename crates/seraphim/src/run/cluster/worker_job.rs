//! One job on one worker: handles each message of the driver.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data::{FormatTable, Schema, TaskData};
use matrix::FunctionTable;
use worker::CancellationToken;

use super::messages::{FromWorker, HexEncoded, ToWorker};
use super::salvage::{SalvageContext, SaveStatus};
use super::servers::Servers;
use super::task_runner::{MessageSender, RemoteCoordinator, TaskRunner, Throttle};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::model::{self, Model, TrainingPosition};
use crate::progress::Progress;
use crate::run::Environment;
use crate::run::failure::BusyGuard;
use crate::run::input::{TaskDataPlan, TrainingInput, open};
use crate::run::local::greeting;
use crate::run::resume;
use crate::run::run_info::save;
use crate::run::scan::scan;
use crate::run::task_count::task_count;
use crate::run::totals::TaskSummary;

pub(super) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job as one worker executes it.
pub(super) struct WorkerJob {
    pub(super) sender: MessageSender,
    pub(super) coordinator: Arc<RemoteCoordinator>,
    pub(super) token: Vec<u8>,
    pub(super) slowness: Throttle,
    pub(super) formats: Arc<FormatTable>,
    pub(super) functions: Arc<FunctionTable>,
    /// Raised together with `cancellation`; ends reading and writing of files.
    pub(super) interrupt: Interrupt,
    pub(super) cancellation: CancellationToken,
    pub(super) checked_job: Mutex<Option<TrainJob>>,
    pub(super) salvage_context: Arc<Mutex<Option<SalvageContext>>>,
    pub(super) save_status: Arc<Mutex<SaveStatus>>,
    /// Names of keys for the model to be written.
    pub(super) names: Mutex<BTreeMap<u64, String>>,
}

/// The result of `Prepare`, which `Train` uses.
pub(super) struct PreparedJob {
    raw: RawJob,
    job: TrainJob,
    functions: FunctionTable,
    input: TrainingInput,
    task_count: u32,
    tasks: Range<u32>,
    start: TrainingPosition,
    /// Whether the data were surveyed before the settings were chosen.
    is_survey: bool,
    shares: Vec<TaskData>,
}

impl WorkerJob {
    fn environment(&self) -> Environment<'_> {
        let Self { formats, functions, interrupt, .. } = self;
        Environment { formats, functions, interrupt }
    }

    /// Handles a message of the driver. It may drop `busy` when only the tasks can still fail.
    pub(super) fn handle_message(
        &self,
        message: ToWorker,
        ready: &mut Option<PreparedJob>,
        busy: &mut Option<BusyGuard>,
    ) -> Result<(), Error> {
        match message {
            ToWorker::Look { job } => self.inspect_data(&job),
            ToWorker::Prepare { job, schema, task_count, first, count, start, survey } => {
                let tasks = first..first + count;
                *ready = Some(self.prepare(&job, &schema, task_count, tasks, start, survey)?);
                Ok(())
            }
            ToWorker::Import { layout } => self.import(&layout),
            ToWorker::Train { set, layout, model, resumed, worker_tasks } => {
                let Some(mut ready) = ready.take() else { return Ok(()) };
                ready.raw = ready.raw.with_settings(&set);
                ready.job.set = set;
                let worker_tasks: Vec<_> =
                    worker_tasks.into_iter().map(|(first, count)| first..first + count).collect();
                if let Some(own) = worker_tasks.iter().position(|share| share.start == ready.tasks.start) {
                    let (schema, raw) = (ready.input.source.schema().clone(), ready.raw.clone());
                    let (layout, model, start) = (layout.clone(), model.clone(), ready.start);
                    let training =
                        SalvageContext { raw, schema, layout, model, worker_tasks, own_index: own, start };
                    *lock(&self.salvage_context) = Some(training);
                }
                self.train(ready, &layout, &model, resumed, busy.take())
            }
            ToWorker::Names { names } => {
                lock(&self.names).extend(names);
                Ok(())
            }
            ToWorker::Save { layout, manifest } => {
                let job = self.job()?;
                let mut servers = self.servers(&layout)?;
                let rows = (0..manifest.model.matrix_count() as u32)
                    .map(|matrix| servers.export(matrix))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut names = match &job.from {
                    Some(path) => Model::read(path, false)?.dictionary,
                    None => BTreeMap::new(),
                };
                names.append(&mut lock(&self.names));
                let written = save(&job, *manifest, &layout.matrices, &rows, names, &self.interrupt)?;
                *lock(&self.save_status) = SaveStatus::Done(job.model.clone());
                let manifest = Box::new(written.manifest);
                (self.sender)(FromWorker::Saved { manifest, sync_s: written.sync_s });
                Ok(())
            }
            ToWorker::Verdict { .. } | ToWorker::Stop | ToWorker::Settle { .. } | ToWorker::End { .. } => {
                Ok(())
            }
        }
    }

    /// Connects to all lanes, until the job ends.
    fn servers(&self, layout: &worker::JobLayout) -> Result<Servers, Error> {
        let cancellation = self.cancellation.clone();
        Ok(Servers::connect(layout, &self.token)?.with_cancellation(move || cancellation.is_cancelled()))
    }

    fn job(&self) -> Result<TrainJob, Error> {
        let job = lock(&self.checked_job).clone();
        job.ok_or_else(|| Error::Cluster {
            text: "the driver has not sent the description of the job".into(),
            exit: crate::exit::Exit::Internal,
        })
    }

    fn check(&self, raw: &RawJob) -> Result<(TrainJob, Box<dyn algo::Job>), Error> {
        let job = TrainJob::check(raw)?;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        *lock(&self.checked_job) = Some(job.clone());
        Ok((job, algorithm))
    }

    fn inspect_data(&self, raw: &RawJob) -> Result<(), Error> {
        let (job, algorithm) = self.check(raw)?;
        model::check_target(&job.model, job.overwrite)?;
        let previous = job.from.as_deref().map(|path| Model::read(path, false)).transpose()?;
        let schema = previous.as_ref().map(|model| &model.manifest.schema);
        let opened = open(&job, algorithm.as_ref(), schema, self.environment())?;
        let task_count = task_count(job.manner.tasks, &opened.source);
        let resumed = |model: &Model| resume::start(&job, task_count, &model.manifest);
        let start = previous.as_ref().map(resumed).unwrap_or_default();
        (self.sender)(FromWorker::Looked {
            schema: opened.source.schema().clone(),
            size_bytes: opened.source.size_bytes(),
            notices: opened.notices(),
            task_count,
            greeting: greeting(&job, &opened, task_count),
            previous: previous.map(|model| model.manifest.model),
            start,
        });
        Ok(())
    }

    fn prepare(
        &self,
        raw: &RawJob,
        schema: &Schema,
        task_count: u32,
        tasks: Range<u32>,
        start: TrainingPosition,
        is_survey: bool,
    ) -> Result<PreparedJob, Error> {
        let (job, algorithm) = self.check(raw)?;
        let functions = job.modules.extend_table(&self.functions)?;
        let opened = open(&job, algorithm.as_ref(), Some(schema), self.environment())?;
        let first_epoch = start.epochs;
        let plan = TaskDataPlan {
            job: &job,
            opened: &opened,
            task_count,
            tasks: tasks.clone(),
            first_epoch,
            is_survey,
        };
        let mut shares = plan.training()?;
        let scanned = plan.must_scan();
        if scanned {
            let (failures, progress) = (self.coordinator.failures(), Progress::silent());
            scan(&mut shares, plan.tasks.start, None, failures, &self.interrupt, &progress)?;
        }
        let summaries = HexEncoded(shares.iter().map(|share| TaskSummary::of(share, None)).collect());
        (self.sender)(FromWorker::Prepared { scanned, summaries });
        Ok(PreparedJob {
            raw: raw.clone(),
            job,
            functions,
            input: opened,
            task_count,
            tasks,
            start,
            is_survey,
            shares,
        })
    }

    fn import(&self, layout: &worker::JobLayout) -> Result<(), Error> {
        let job = self.job()?;
        let Some(path) = &job.from else { return Ok(()) };
        let previous = Model::read(path, true)?;
        let mut servers = self.servers(layout)?;
        for (position, rows) in resume::rows(&previous, &layout.matrices) {
            servers.import(position as u32, &rows)?;
        }
        let notices = resume::notices(&previous, &layout.matrices);
        (self.sender)(FromWorker::Imported { notices });
        Ok(())
    }

    fn train(
        &self,
        ready: PreparedJob,
        layout: &worker::JobLayout,
        model: &algo::Model,
        resumed: bool,
        begun: Option<BusyGuard>,
    ) -> Result<(), Error> {
        let PreparedJob {
            job,
            functions,
            input: mut opened,
            task_count,
            tasks,
            start,
            is_survey,
            mut shares,
            ..
        } = ready;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        opened.apply_settings(algorithm.as_ref());
        let first_epoch = start.epochs;
        let plan =
            TaskDataPlan { job: &job, opened: &opened, task_count, tasks, first_epoch, is_survey: false };
        if is_survey {
            plan.finish_survey(&mut shares)?;
        }
        let work = TaskRunner {
            plan,
            algorithm: algorithm.as_ref(),
            layout,
            token: &self.token,
            functions: &functions,
            model,
            resumed,
            coordinator: &self.coordinator,
            say: &self.sender,
            throttle: self.slowness,
        };
        work.run(shares, begun)
    }
}
