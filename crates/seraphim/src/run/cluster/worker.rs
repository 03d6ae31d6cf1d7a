//! A worker: takes part in jobs on the word of their drivers, until it is told to stop or the master is gone for good.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver as Events, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use control::Door;
use data::{FormatTable, Schema, TaskData};
use matrix::FunctionTable;
use rpc::member::{MemberConfig, MemberEvent, Membership, join};
use rpc::message::{ControlBody, JobId};
use rpc::service::Service;
use rpc::{Address, Limits, Listener, ServeConfig, Stop};
use serde_json::json;

use super::face::{Face, Gauges};
use super::orphan::{self, Ordered, Orphan, Training};
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
use crate::run::input::{Opened, Shares, open};
use crate::run::local::greeting;
use crate::run::resume;
use crate::run::scan::scan;
use crate::run::tasks::task_count;
use crate::run::totals::TaskSummary;

/// How often the worker looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Settings of a worker.
pub struct WorkerConfig {
    /// How it joins.
    pub member: MemberConfig,
    /// Where it answers those who ask for metrics.
    pub listen: Vec<Address>,
    /// How slow it is made, for tests.
    pub slowness: Slowness,
    /// How long jobs may take to be saved when the master is gone; 0: they are not saved.
    pub save_limit: Duration,
}

/// A job under way here.
struct Here {
    say: Sender<ToWorker>,
    coordinator: Arc<RemoteCoordinator>,
    training: Arc<Mutex<Option<Training>>>,
    ordered: Arc<Mutex<Ordered>>,
    thread: JoinHandle<()>,
}

/// Why a worker no longer hears its master.
enum End {
    /// It is to stop.
    Stopped,
    /// The master is gone for good.
    Lost(String),
    /// Another master is in its place.
    Anew,
}

/// Works until `interrupt` is raised or the master is gone for good. Jobs whose master is gone are saved first; with a
/// master that was started anew the worker joins again.
pub fn run(config: WorkerConfig, environment: Environment<'_>) -> Result<(), Error> {
    let gauges = Gauges::default();
    let face = FaceServer::start(&config, gauges.clone())?;
    let Environment { formats, functions, interrupt } = environment;
    let (formats, functions) = (Arc::new(formats.clone()), Arc::new(functions.clone()));
    let mut worker = Worker { formats, functions, config, gauges, interrupt: interrupt.clone() };
    loop {
        let address = worker.config.member.master.to_string();
        let (membership, events) = join(worker.config.member.clone()).map_err(Error::server(&address))?;
        membership.report(json!({"listens": face.addresses}));
        tracing::info!(id = membership.id(), master = %address, listens = face.addresses.join(", "), "worker joined");
        let mut jobs = BTreeMap::new();
        match worker.attend(&membership, &events, &mut jobs) {
            End::Stopped => {
                for here in jobs.into_values() {
                    here.fail("the worker is stopping");
                }
                membership.leave();
                return Ok(());
            }
            End::Lost(reason) => {
                tracing::warn!(reason, jobs = jobs.len(), "the master is gone for good: jobs are saved");
                let ends = worker.end_alone(jobs, "the master is gone");
                return Err(orphan::lost(&address, &reason, &ends));
            }
            End::Anew => {
                tracing::warn!(jobs = jobs.len(), "the master was started anew: jobs are saved");
                worker.end_alone(jobs, "the master was started anew");
                worker.config.member.connect_limit = worker.config.member.lost_limit;
            }
        }
    }
}

struct Worker {
    config: WorkerConfig,
    formats: Arc<FormatTable>,
    functions: Arc<FunctionTable>,
    gauges: Gauges,
    interrupt: Interrupt,
}

/// The port of a worker, while this lives.
struct FaceServer {
    addresses: Vec<String>,
    stop: Stop,
}

impl FaceServer {
    fn start(config: &WorkerConfig, gauges: Gauges) -> Result<Self, Error> {
        let listeners = config
            .listen
            .iter()
            .map(Listener::bind)
            .collect::<Result<Vec<_>, _>>()
            .map_err(Error::process)?;
        let addresses = listeners.iter().map(|listener| listener.address().to_string()).collect();
        let serve = ServeConfig { token: config.member.token.clone(), limits: Limits::default() };
        let stop = Stop::new();
        let raised = stop.clone();
        std::thread::spawn(move || {
            let (lanes, door) =
                (vec![Box::new(Face(gauges)) as Box<dyn Service>], Arc::new(Door::of_member()));
            if let Err(error) = rpc::serve_with(listeners, lanes, serve, door, raised) {
                tracing::warn!(%error, "the metrics of this worker are not served any more");
            }
        });
        Ok(Self { addresses, stop })
    }
}

impl Drop for FaceServer {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

impl Worker {
    fn attend(
        &self,
        membership: &Membership,
        events: &Events<MemberEvent>,
        jobs: &mut BTreeMap<JobId, Here>,
    ) -> End {
        loop {
            if self.interrupt.is_raised() {
                return End::Stopped;
            }
            jobs.retain(|_, here| !here.thread.is_finished());
            match events.recv_timeout(LOOK_EVERY) {
                Ok(MemberEvent::Said(ControlBody::ToTask { job, body })) => {
                    let here = jobs.entry(job).or_insert_with(|| self.start(job, membership));
                    here.hear(job, body);
                }
                Ok(MemberEvent::Lost { reason }) => return End::Lost(reason),
                Ok(MemberEvent::Anew) => return End::Anew,
                Ok(MemberEvent::Said(_) | MemberEvent::Forgotten { .. } | MemberEvent::Back)
                | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return End::Stopped,
            }
        }
    }

    /// Ends jobs without their master, all at once; how each ended.
    fn end_alone(&self, jobs: BTreeMap<JobId, Here>, why: &str) -> Vec<String> {
        std::thread::scope(|scope| {
            let ends: Vec<_> = jobs
                .into_iter()
                .map(|(job, here)| scope.spawn(move || here.end_alone(self, job, why)))
                .collect();
            ends.into_iter().filter_map(|end| end.join().ok()).collect()
        })
    }

    fn start(&self, job: JobId, membership: &Membership) -> Here {
        let membership = membership.clone();
        let say: Say = Arc::new(move |message| {
            let body = serde_json::to_value(message).expect("messages are strings, numbers and lists");
            membership.say(ControlBody::FromTask { job, body });
        });
        // Until the job says another.
        let wait_limit = Duration::from_hours(24);
        let coordinator = RemoteCoordinator::new(Arc::clone(&say), job, self.gauges.clone(), wait_limit);
        let (sender, receiver) = channel();
        let (training, ordered) = (Arc::default(), Arc::new(Mutex::new(Ordered::Nothing)));
        let part = Part {
            say,
            coordinator: Arc::clone(&coordinator),
            token: self.config.member.token.clone(),
            slowness: self.config.slowness,
            formats: Arc::clone(&self.formats),
            functions: Arc::clone(&self.functions),
            interrupt: Interrupt::new(),
            opened: Mutex::default(),
            training: Arc::clone(&training),
            ordered: Arc::clone(&ordered),
        };
        let gauges = self.gauges.clone();
        let thread = std::thread::spawn(move || {
            let mut ready = None;
            for message in receiver {
                if matches!(message, ToWorker::End { .. }) {
                    break;
                }
                if let Err(error) = part.obey(message, &mut ready) {
                    *lock(&part.ordered) = Ordered::Nothing;
                    tracing::warn!(job, %error, "the part of a job failed here");
                    (part.say)(FromWorker::Failed { error: error.to_string(), exit: error.exit() as u8 });
                }
            }
            gauges.end(job);
        });
        Here { say: sender, coordinator, training, ordered, thread }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Here {
    /// Nobody waits for it any longer.
    fn fail(self, reason: &str) {
        self.coordinator.fail(reason);
        drop(self.say);
        // A thread that panicked has told its driver.
        let _ = self.thread.join();
    }

    /// Without the master: the state is saved, by this worker or another. How that ended.
    fn end_alone(self, worker: &Worker, job: JobId, why: &str) -> String {
        let training = lock(&self.training).clone();
        let limit = worker.config.save_limit;
        let Some(training) = training.filter(|_| !limit.is_zero()) else {
            self.fail(why);
            return format!("job {job} is not saved: it had not begun to train, or nothing is to be saved");
        };
        self.coordinator.go_alone();
        let member = &worker.config.member;
        let orphan = Orphan {
            training: &training,
            token: &member.token,
            name: &member.name,
            limit,
            interrupt: &worker.interrupt,
        };
        let end = orphan.end(|| lock(&self.ordered).clone(), || self.coordinator.reached());
        let text = end.unwrap_or_else(|error| format!("the state of job {job} could not be saved: {error}"));
        tracing::warn!(job, "{text}");
        self.fail(&text);
        text
    }

    fn hear(&self, job: JobId, body: serde_json::Value) {
        match serde_json::from_value(body) {
            Ok(ToWorker::Verdict { epoch, verdict, line: Packed(line) }) => {
                self.coordinator.decide(epoch, verdict, line);
            }
            Ok(ToWorker::Stop) => self.coordinator.stop(),
            Ok(ToWorker::End { reason }) => {
                if let Some(reason) = &reason {
                    self.coordinator.fail(reason);
                }
                // The thread may have ended by itself.
                let _ = self.say.send(ToWorker::End { reason });
            }
            Ok(message) => {
                if matches!(message, ToWorker::Save { .. }) {
                    *lock(&self.ordered) = Ordered::UnderWay;
                }
                drop(self.say.send(message));
            }
            Err(error) => tracing::warn!(job, %error, "the driver says what this program does not know"),
        }
    }
}

/// The part of a job that is done here.
struct Part {
    say: Say,
    coordinator: Arc<RemoteCoordinator>,
    token: Vec<u8>,
    slowness: Slowness,
    formats: Arc<FormatTable>,
    functions: Arc<FunctionTable>,
    interrupt: Interrupt,
    opened: Mutex<Option<TrainJob>>,
    training: Arc<Mutex<Option<Training>>>,
    ordered: Arc<Mutex<Ordered>>,
}

/// What `Prepare` has left for `Train`.
struct Ready {
    raw: RawJob,
    job: TrainJob,
    functions: FunctionTable,
    opened: Opened,
    task_count: u32,
    tasks: Range<u32>,
    start: Position,
    shares: Vec<TaskData>,
}

impl Part {
    fn environment(&self) -> Environment<'_> {
        let Self { formats, functions, interrupt, .. } = self;
        Environment { formats, functions, interrupt }
    }

    fn obey(&self, message: ToWorker, ready: &mut Option<Ready>) -> Result<(), Error> {
        match message {
            ToWorker::Look { job } => self.look(&job),
            ToWorker::Prepare { job, schema, task_count, first, count, start } => {
                *ready = Some(self.prepare(&job, &schema, task_count, first..first + count, start)?);
                Ok(())
            }
            ToWorker::Import { layout } => self.import(&layout),
            ToWorker::Train { layout, model, resumed, crews } => {
                let Some(ready) = ready.take() else { return Ok(()) };
                let crews: Vec<_> = crews.into_iter().map(|(first, count)| first..first + count).collect();
                if let Some(own) = crews.iter().position(|crew| crew.start == ready.tasks.start) {
                    let (schema, raw) = (ready.opened.source.schema().clone(), ready.raw.clone());
                    let (layout, model, start) = (layout.clone(), model.clone(), ready.start);
                    let training = Training { raw, schema, layout, model, crews, own, start };
                    *lock(&self.training) = Some(training);
                }
                self.train(ready, &layout, &model, resumed)
            }
            ToWorker::Save { layout, manifest, dictionary } => {
                let job = self.job()?;
                let mut servers = Servers::connect(&layout, &self.token)?;
                let rows = (0..manifest.model.matrix_count() as u32)
                    .map(|matrix| servers.export(matrix))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut names = match &job.from {
                    Some(path) => Model::read(path, false)?.dictionary,
                    None => BTreeMap::new(),
                };
                names.extend(dictionary);
                let written = save(&job, *manifest, &layout.matrices, &rows, names, &self.interrupt)?;
                *lock(&self.ordered) = Ordered::Done(job.model.clone());
                let manifest = Box::new(written.manifest);
                (self.say)(FromWorker::Saved { manifest, sync_s: written.sync_s });
                Ok(())
            }
            ToWorker::Verdict { .. } | ToWorker::Stop | ToWorker::End { .. } => Ok(()),
        }
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
        let task_count = task_count(job.manner.tasks, &opened.source, job.manner.threads);
        let resumed = |model: &Model| resume::start(&job, task_count, &model.manifest);
        let start = previous.as_ref().map(resumed).unwrap_or_default();
        (self.say)(FromWorker::Looked {
            schema: opened.source.schema().clone(),
            size_bytes: opened.source.size_bytes(),
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
    ) -> Result<Ready, Error> {
        let (job, algorithm) = self.check(raw)?;
        let functions = job.modules.added_to(&self.functions)?;
        let opened = open(&job, algorithm.as_ref(), Some(schema), self.environment())?;
        let first_epoch = start.epochs;
        let plan = Shares { job: &job, opened: &opened, task_count, tasks: tasks.clone(), first_epoch };
        let mut shares = plan.training()?;
        let scanned = plan.must_scan();
        if scanned {
            scan(&mut shares, None, &self.interrupt, &Progress::new(true, None))?;
        }
        let summaries = Packed(shares.iter().map(|share| TaskSummary::of(share, None)).collect());
        (self.say)(FromWorker::Prepared { scanned, summaries });
        Ok(Ready { raw: raw.clone(), job, functions, opened, task_count, tasks, start, shares })
    }

    fn import(&self, layout: &worker::JobLayout) -> Result<(), Error> {
        let job = self.job()?;
        let Some(path) = &job.from else { return Ok(()) };
        let previous = Model::read(path, true)?;
        let mut servers = Servers::connect(layout, &self.token)?;
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
    ) -> Result<(), Error> {
        let Ready { job, functions, opened, task_count, tasks, start, shares, .. } = ready;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        let first_epoch = start.epochs;
        let work = Work {
            plan: Shares { job: &job, opened: &opened, task_count, tasks, first_epoch },
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
        work.run(shares)
    }
}
