//! A worker: takes part in jobs on the word of their drivers, until it is told to stop or the master is gone for good.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use data::{FormatTable, Schema, TaskData};
use rpc::member::{MemberConfig, MemberEvent, Membership, join};
use rpc::message::{ControlBody, JobId};

use super::say::{FromWorker, Packed, ToWorker};
use super::servers::Servers;
use super::tasks::{RemoteCoordinator, Say, Slowness, Work};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::model::{self, Model};
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
    /// How slow it is made, for tests.
    pub slowness: Slowness,
}

/// A job under way here.
struct Here {
    say: Sender<ToWorker>,
    coordinator: Arc<RemoteCoordinator>,
    thread: JoinHandle<()>,
}

/// Works until `interrupt` is raised or the master is gone for good.
pub fn run(config: WorkerConfig, formats: &FormatTable, interrupt: &Interrupt) -> Result<(), Error> {
    let WorkerConfig { member, slowness } = config;
    let (token, address) = (member.token.clone(), member.master.clone());
    let (membership, events) = join(member).map_err(Error::server(&address))?;
    tracing::info!(id = membership.id(), master = %address, "worker joined");
    let formats = Arc::new(formats.clone());
    let mut jobs: BTreeMap<JobId, Here> = BTreeMap::new();
    let ended = loop {
        if interrupt.is_raised() {
            break Ok(());
        }
        jobs.retain(|_, here| !here.thread.is_finished());
        match events.recv_timeout(LOOK_EVERY) {
            Ok(MemberEvent::Said(ControlBody::ToTask { job, body })) => {
                let here =
                    jobs.entry(job).or_insert_with(|| start(job, &membership, &token, slowness, &formats));
                here.hear(job, body);
            }
            Ok(MemberEvent::Lost { reason }) => {
                for here in jobs.values() {
                    here.coordinator.fail(&format!("the master is gone: {reason}"));
                }
                let text = format!("the master at {address} is gone: {reason}");
                break Err(Error::Cluster { text, exit: crate::exit::Exit::Io });
            }
            Ok(MemberEvent::Said(_) | MemberEvent::Back) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    for (_, here) in jobs {
        here.coordinator.fail("the worker is stopping");
        drop(here.say);
        // A thread that panicked has told its driver.
        let _ = here.thread.join();
    }
    membership.leave();
    ended
}

impl Here {
    fn hear(&self, job: JobId, body: serde_json::Value) {
        match serde_json::from_value(body) {
            Ok(ToWorker::Verdict { epoch, verdict }) => self.coordinator.decide(epoch, verdict),
            Ok(ToWorker::Stop) => self.coordinator.stop(),
            Ok(ToWorker::End { reason }) => {
                if let Some(reason) = &reason {
                    self.coordinator.fail(reason);
                }
                // The thread may have ended by itself.
                let _ = self.say.send(ToWorker::End { reason });
            }
            Ok(message) => drop(self.say.send(message)),
            Err(error) => tracing::warn!(job, %error, "the driver says what this program does not know"),
        }
    }
}

fn start(
    job: JobId,
    membership: &Membership,
    token: &[u8],
    slowness: Slowness,
    formats: &Arc<FormatTable>,
) -> Here {
    let membership = membership.clone();
    let say: Say = Arc::new(move |message| {
        let body = serde_json::to_value(message).expect("messages are strings, numbers and lists");
        membership.say(ControlBody::FromTask { job, body });
    });
    // Until the job says another.
    let wait_limit = Duration::from_hours(24);
    let coordinator = RemoteCoordinator::new(Arc::clone(&say), wait_limit);
    let (sender, receiver) = channel();
    let part = Part {
        say,
        coordinator: Arc::clone(&coordinator),
        token: token.to_vec(),
        slowness,
        formats: Arc::clone(formats),
        interrupt: Interrupt::new(),
        opened: Mutex::default(),
    };
    let thread = std::thread::spawn(move || {
        let mut ready = None;
        for message in receiver {
            if matches!(message, ToWorker::End { .. }) {
                break;
            }
            if let Err(error) = part.obey(message, &mut ready) {
                tracing::warn!(job, %error, "the part of a job failed here");
                (part.say)(FromWorker::Failed { error: error.to_string(), exit: error.exit() as u8 });
            }
        }
    });
    Here { say: sender, coordinator, thread }
}

/// The part of a job that is done here.
struct Part {
    say: Say,
    coordinator: Arc<RemoteCoordinator>,
    token: Vec<u8>,
    slowness: Slowness,
    formats: Arc<FormatTable>,
    interrupt: Interrupt,
    opened: Mutex<Option<TrainJob>>,
}

/// What `Prepare` has left for `Train`.
struct Ready {
    job: TrainJob,
    opened: Opened,
    task_count: u32,
    first: u32,
    count: u32,
    shares: Vec<TaskData>,
}

impl Part {
    fn environment(&self) -> Environment<'_> {
        Environment { formats: &self.formats, interrupt: &self.interrupt }
    }

    fn obey(&self, message: ToWorker, ready: &mut Option<Ready>) -> Result<(), Error> {
        match message {
            ToWorker::Look { job } => self.look(&job),
            ToWorker::Prepare { job, schema, task_count, first, count } => {
                *ready = Some(self.prepare(&job, &schema, task_count, first, count)?);
                Ok(())
            }
            ToWorker::Import { layout } => self.import(&layout),
            ToWorker::Train { layout, model, resumed } => {
                let Some(ready) = ready.take() else { return Ok(()) };
                self.train(ready, &layout, &model, resumed)
            }
            ToWorker::Save { layout, manifest, dictionary } => {
                let job = self.job()?;
                let mut servers = Servers::connect(&layout, &self.token)?;
                let rows = (0..layout.matrices.len() as u32)
                    .map(|matrix| servers.export(matrix))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut names = match &job.from {
                    Some(path) => Model::read(path, false)?.dictionary,
                    None => BTreeMap::new(),
                };
                names.extend(dictionary);
                let written = save(&job, *manifest, &layout.matrices, &rows, names, &self.interrupt)?;
                let manifest = Box::new(written.manifest);
                (self.say)(FromWorker::Saved { manifest, sync_s: written.sync_s });
                Ok(())
            }
            ToWorker::Verdict { .. } | ToWorker::Stop | ToWorker::End { .. } => Ok(()),
        }
    }

    fn job(&self) -> Result<TrainJob, Error> {
        let job = self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone();
        job.ok_or_else(|| Error::Cluster {
            text: "the driver has not said which job this is".into(),
            exit: crate::exit::Exit::Internal,
        })
    }

    fn check(&self, raw: &RawJob) -> Result<(TrainJob, Box<dyn algo::Job>), Error> {
        let job = TrainJob::check(raw)?;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(job.clone());
        Ok((job, algorithm))
    }

    fn look(&self, raw: &RawJob) -> Result<(), Error> {
        let (job, algorithm) = self.check(raw)?;
        model::check_place(&job.model, job.overwrite)?;
        let previous = job.from.as_deref().map(|path| Model::read(path, false)).transpose()?;
        let schema = previous.as_ref().map(|model| &model.manifest.schema);
        let opened = open(&job, &algorithm.data_needs(), schema, self.environment())?;
        let task_count = task_count(job.manner.tasks, &opened.source, job.manner.threads);
        (self.say)(FromWorker::Looked {
            schema: opened.source.schema().clone(),
            size_bytes: opened.source.size_bytes(),
            task_count,
            greeting: greeting(&job, &opened, task_count),
            previous: previous.map(|model| model.manifest.model),
        });
        Ok(())
    }

    fn prepare(
        &self,
        raw: &RawJob,
        schema: &Schema,
        task_count: u32,
        first: u32,
        count: u32,
    ) -> Result<Ready, Error> {
        let (job, algorithm) = self.check(raw)?;
        let needs = algorithm.data_needs();
        let opened = open(&job, &needs, Some(schema), self.environment())?;
        let tasks = first..first + count;
        let plan = Shares { job: &job, needs: &needs, opened: &opened, task_count, tasks };
        let mut shares = plan.training()?;
        let scanned = plan.must_scan();
        if scanned {
            scan(&mut shares, None, &self.interrupt, &Progress::new(true, None))?;
        }
        let summaries = Packed(shares.iter().map(|share| TaskSummary::of(share, None)).collect());
        (self.say)(FromWorker::Prepared { scanned, summaries });
        Ok(Ready { job, opened, task_count, first, count, shares })
    }

    fn import(&self, layout: &worker::JobLayout) -> Result<(), Error> {
        let job = self.job()?;
        let Some(path) = &job.from else { return Ok(()) };
        let previous = Model::read(path, true)?;
        let mut servers = Servers::connect(layout, &self.token)?;
        for (position, rows) in resume::rows(&previous, &layout.matrices) {
            servers.import(position as u32, &rows)?;
        }
        let notice = resume::notice(&previous, &layout.matrices);
        (self.say)(FromWorker::Imported { notice });
        Ok(())
    }

    fn train(
        &self,
        ready: Ready,
        layout: &worker::JobLayout,
        model: &algo::Model,
        resumed: bool,
    ) -> Result<(), Error> {
        let Ready { job, opened, task_count, first, count, shares } = ready;
        let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
        let needs = algorithm.data_needs();
        let tasks = first..first + count;
        let work = Work {
            plan: Shares { job: &job, needs: &needs, opened: &opened, task_count, tasks },
            algorithm: algorithm.as_ref(),
            layout,
            token: &self.token,
            model,
            resumed,
            coordinator: &self.coordinator,
            say: &self.say,
            slowness: self.slowness,
        };
        work.run(shares)
    }
}
