//! A worker: takes part in jobs on the word of their drivers, until it is told to stop or the master is gone for good.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver as Events, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::Door;
use data::FormatTable;
use matrix::FunctionTable;
use rpc::member::{MemberConfig, MemberEvent, Membership, join};
use rpc::message::{ControlBody, JobId};
use rpc::service::Service;
use rpc::{Address, Limits, Listener, ServeConfig, Stop};
use serde_json::json;
use worker::Cancellation;

use super::face::{Face, Gauges};
use super::orphan::{self, Ordered, Orphan, Training};
use super::part::{Part, lock};
use super::say::{FromWorker, Packed, ToWorker};
use super::tasks::{RemoteCoordinator, Say, Slowness};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::run::Environment;
use crate::run::failure::Busy;

/// How often the worker looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest wait of a worker that is told to stop for the threads of its jobs. What they wait for ends at once; one that is in
/// the middle of a read or a write ends with the process.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// How often it looks whether they have ended.
const JOIN_EVERY: Duration = Duration::from_millis(10);

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
    say: Sender<(ToWorker, Busy)>,
    coordinator: Arc<RemoteCoordinator>,
    /// Ends reading and writing of files.
    interrupt: Interrupt,
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
                // First the master is told: it ends what ran here, and places nothing more.
                membership.leave();
                stop_all(jobs, "the worker was stopped");
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
                // The jobs that ran here have ended without this worker, and nobody will say so.
                Ok(MemberEvent::Forgotten { .. }) => {
                    for (job, here) in std::mem::take(jobs) {
                        tracing::warn!(job, "the master had taken this worker for dead: the job is over");
                        here.cancel("the master had taken this worker for dead");
                    }
                }
                Ok(MemberEvent::Said(_) | MemberEvent::Back) | Err(RecvTimeoutError::Timeout) => {}
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
        let cancellation = Cancellation::default();
        let gauges = self.gauges.clone();
        let coordinator =
            RemoteCoordinator::new(Arc::clone(&say), job, gauges, wait_limit, cancellation.clone());
        let (sender, receiver) = channel();
        let (training, ordered) = (Arc::default(), Arc::new(Mutex::new(Ordered::Nothing)));
        let interrupt = Interrupt::new();
        let part = Part {
            say,
            coordinator: Arc::clone(&coordinator),
            token: self.config.member.token.clone(),
            slowness: self.config.slowness,
            formats: Arc::clone(&self.formats),
            functions: Arc::clone(&self.functions),
            interrupt: interrupt.clone(),
            cancellation,
            opened: Mutex::default(),
            training: Arc::clone(&training),
            ordered: Arc::clone(&ordered),
            names: Mutex::default(),
        };
        let gauges = self.gauges.clone();
        let thread = std::thread::spawn(move || {
            let mut ready = None;
            for (message, busy) in receiver {
                let mut busy = Some(busy);
                if matches!(message, ToWorker::End { .. }) {
                    break;
                }
                if let Err(error) = part.obey(message, &mut ready, &mut busy) {
                    *lock(&part.ordered) = Ordered::Nothing;
                    tracing::info!(job, %error, "the part of a job failed here");
                    let (rank, exit) = (part.coordinator.failures().rank(), error.exit() as u8);
                    (part.say)(FromWorker::Failed { error: error.to_string(), exit, rank });
                }
            }
            gauges.end(job);
        });
        Here { say: sender, coordinator, interrupt, training, ordered, thread }
    }
}

/// Ends the jobs of a worker that stops, all at once.
fn stop_all(jobs: BTreeMap<JobId, Here>, reason: &str) {
    for here in jobs.values() {
        here.cancel(reason);
    }
    let deadline = Instant::now() + STOP_LIMIT;
    for (job, here) in jobs {
        if !here.join(deadline) {
            tracing::warn!(job, "the job is still reading or writing: it ends with the process");
        }
    }
}

impl Here {
    /// Whatever its tasks wait for, they wait no longer.
    fn cancel(&self, reason: &str) {
        self.coordinator.fail(reason);
        self.interrupt.raise();
    }

    /// Waits for its thread; false when that has not ended in time.
    fn join(self, deadline: Instant) -> bool {
        drop(self.say);
        while !self.thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(JOIN_EVERY);
        }
        true
    }

    /// Nobody waits for it any longer.
    fn fail(self, reason: &str) {
        self.cancel(reason);
        self.join(Instant::now() + STOP_LIMIT);
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
        let busy = Busy::new(self.coordinator.failures());
        match serde_json::from_value(body) {
            Ok(ToWorker::Verdict { epoch, verdict, line: Packed(line) }) => {
                self.coordinator.decide(epoch, verdict, line);
            }
            Ok(ToWorker::Stop) => self.coordinator.stop(),
            Ok(ToWorker::Settle { position }) => self.coordinator.settle(position),
            Ok(ToWorker::End { reason }) => {
                if let Some(reason) = &reason {
                    self.cancel(reason);
                }
                // The thread may have ended by itself.
                let _ = self.say.send((ToWorker::End { reason }, busy));
            }
            Ok(message) => {
                if matches!(message, ToWorker::Save { .. }) {
                    *lock(&self.ordered) = Ordered::UnderWay;
                }
                drop(self.say.send((message, busy)));
            }
            Err(error) => tracing::warn!(job, %error, "the driver says what this program does not know"),
        }
    }
}
