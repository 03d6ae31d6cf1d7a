//! The part of a job that one worker does: what it makes of each message of the driver.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data::{FormatTable, Schema, TaskData};
use matrix::FunctionTable;
use worker::Cancellation;

use super::orphan::{Ordered, Training};
use super::say::{FromWorker, Packed, ToWorker};
use super::servers::Servers;
use super::tasks::{RemoteCoordinator, Say, Slowness, Work};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::model::{self, Model, Position};
use crate::progress::Progress;
use crate::run::Environment;
use crate::run::closing::save;
use crate::run::failure::Busy;
use crate::run::input::{Opened, Shares, open};
use crate::run::local::greeting;
use crate::run::resume;
use crate::run::scan::scan;
use crate::run::tasks::task_count;
use crate::run::totals::TaskSummary;

pub(super) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of a job that is done here.
pub(super) struct Part {
    pub(super) say: Say,
    pub(super) coordinator: Arc<RemoteCoordinator>,
    pub(super) token: Vec<u8>,
    pub(super) slowness: Slowness,
    pub(super) formats: Arc<FormatTable>,
    pub(super) functions: Arc<FunctionTable>,
    /// Raised with `cancellation`: it ends reading and writing of files.
    pub(super) interrupt: Interrupt,
    pub(super) cancellation: Cancellation,
    pub(super) opened: Mutex<Option<TrainJob>>,
    pub(super) training: Arc<Mutex<Option<Training>>>,
    pub(super) ordered: Arc<Mutex<Ordered>>,
    /// Of keys, for the model that is to be written.
    pub(super) names: Mutex<BTreeMap<u64, String>>,
}

/// What `Prepare` has left for `Train`.
pub(super) struct Ready {
    raw: RawJob,
    job: TrainJob,
    functions: FunctionTable,
    opened: Opened,
    task_count: u32,
    tasks: Range<u32>,
    start: Position,
    /// The shares were surveyed, before the settings were chosen.
    is_survey: bool,
    shares: Vec<TaskData>,
}

impl Part {
    fn environment(&self) -> Environment<'_> {
        let Self { formats, functions, interrupt, .. } = self;
        Environment { formats, functions, interrupt }
    }

    /// Does what the driver says. `busy` may be dropped when nothing but the tasks can fail any more.
    pub(super) fn obey(
        &self,
        message: ToWorker,
        ready: &mut Option<Ready>,
        busy: &mut Option<Busy>,
    ) -> Result<(), Error> {
        match message {
            ToWorker::Look { job } => self.look(&job),
            ToWorker::Prepare { job, schema, task_count, first, count, start, survey } => {
                let tasks = first..first + count;
                *ready = Some(self.prepare(&job, &schema, task_count, tasks, start, survey)?);
                Ok(())
            }
            ToWorker::Import { layout } => self.import(&layout),
            ToWorker::Train { set, layout, model, resumed, crews } => {
                let Some(mut ready) = ready.take() else { return Ok(()) };
                ready.raw = ready.raw.with_settings(&set);
                ready.job.set = set;
                let crews: Vec<_> = crews.into_iter().map(|(first, count)| first..first + count).collect();
                if let Some(own) = crews.iter().position(|crew| crew.start == ready.tasks.start) {
                    let (schema, raw) = (ready.opened.source.schema().clone(), ready.raw.clone());
                    let (layout, model, start) = (layout.clone(), model.clone(), ready.start);
                    let training = Training { raw, schema, layout, model, crews, own, start };
                    *lock(&self.training) = Some(training);
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
                *lock(&self.ordered) = Ordered::Done(job.model.clone());
                let manifest = Box::new(written.manifest);
                (self.say)(FromWorker::Saved { manifest, sync_s: written.sync_s });
                Ok(())
            }
            ToWorker::Verdict { .. } | ToWorker::Stop | ToWorker::Settle { .. } | ToWorker::End { .. } => {
                Ok(())
            }
        }
    }

    /// Connections to all lanes, until the job ends.
    fn servers(&self, layout: &worker::JobLayout) -> Result<Servers, Error> {
        let cancellation = self.cancellation.clone();
        Ok(Servers::connect(layout, &self.token)?.until(move || cancellation.is_raised()))
    }

    fn job(&self) -> Result<TrainJob, Error> {
        let job = lock(&self.opened).clone();
        job.ok_or_else(|| Error::Cluster {
            text: "the driver has not said which job this is".into(),
            exit: crate::exit::Exit::Internal,
        })
    }

    fn check(&self, raw: &RawJob) -> Result<(TrainJob, Box<dyn algo::Job>), Error> {
        let job = TrainJob::check(raw)?;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        *lock(&self.opened) = Some(job.clone());
        Ok((job, algorithm))
    }

    fn look(&self, raw: &RawJob) -> Result<(), Error> {
        let (job, algorithm) = self.check(raw)?;
        model::check_place(&job.model, job.overwrite)?;
        let previous = job.from.as_deref().map(|path| Model::read(path, false)).transpose()?;
        let schema = previous.as_ref().map(|model| &model.manifest.schema);
        let opened = open(&job, algorithm.as_ref(), schema, self.environment())?;
        let task_count = task_count(job.manner.tasks, &opened.source);
        let resumed = |model: &Model| resume::start(&job, task_count, &model.manifest);
        let start = previous.as_ref().map(resumed).unwrap_or_default();
        (self.say)(FromWorker::Looked {
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
        start: Position,
        is_survey: bool,
    ) -> Result<Ready, Error> {
        let (job, algorithm) = self.check(raw)?;
        let functions = job.modules.added_to(&self.functions)?;
        let opened = open(&job, algorithm.as_ref(), Some(schema), self.environment())?;
        let first_epoch = start.epochs;
        let plan =
            Shares { job: &job, opened: &opened, task_count, tasks: tasks.clone(), first_epoch, is_survey };
        let mut shares = plan.training()?;
        let scanned = plan.must_scan();
        if scanned {
            let (failures, progress) = (self.coordinator.failures(), Progress::silent());
            scan(&mut shares, plan.tasks.start, None, failures, &self.interrupt, &progress)?;
        }
        let summaries = Packed(shares.iter().map(|share| TaskSummary::of(share, None)).collect());
        (self.say)(FromWorker::Prepared { scanned, summaries });
        Ok(Ready { raw: raw.clone(), job, functions, opened, task_count, tasks, start, is_survey, shares })
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
        (self.say)(FromWorker::Imported { notices });
        Ok(())
    }

    fn train(
        &self,
        ready: Ready,
        layout: &worker::JobLayout,
        model: &algo::Model,
        resumed: bool,
        begun: Option<Busy>,
    ) -> Result<(), Error> {
        let Ready { job, functions, mut opened, task_count, tasks, start, is_survey, mut shares, .. } = ready;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        opened.settle(algorithm.as_ref());
        let first_epoch = start.epochs;
        let plan = Shares { job: &job, opened: &opened, task_count, tasks, first_epoch, is_survey: false };
        if is_survey {
            plan.settle(&mut shares)?;
        }
        let work = Work {
            plan,
            algorithm: algorithm.as_ref(),
            layout,
            token: &self.token,
            functions: &functions,
            model,
            resumed,
            coordinator: &self.coordinator,
            say: &self.say,
            slowness: self.slowness,
        };
        work.run(shares, begun)
    }
}
