//! A worker: runs tasks of jobs for their drivers until it is asked to stop or the master is lost.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver as Events, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use data::FormatTable;
use matrix::FunctionTable;
use rpc::Address;
use rpc::member::{MemberConfig, MemberEvent, Membership, join};
use rpc::message::{ControlBody, JobId};
use serde_json::json;
use worker::CancellationToken;

use super::messages::{FromWorker, HexEncoded, ToWorker};
use super::metrics_endpoint::{MetricsEndpoint, WorkerMetrics};
use super::salvage::{self, Salvage, SalvageContext, SaveStatus};
use super::task_runner::{MessageSender, RemoteCoordinator, Throttle};
use super::worker_job::{WorkerJob, lock};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::run::Environment;
use crate::run::failure::BusyGuard;

/// Time between two checks whether the worker must stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum wait of a stopping worker for the threads of its jobs. Their waits end at once; a thread that is in the
/// middle of a read or a write ends with the process.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Time between two checks whether the threads have ended.
const JOIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

pub struct WorkerConfig {
    /// Settings of its membership.
    pub member: MemberConfig,
    /// Addresses of the metrics endpoint.
    pub http: Vec<Address>,
    /// Artificial slowness, for tests.
    pub slowness: Throttle,
    /// Time for saving jobs after the loss of the master; 0: jobs are not saved.
    pub save_limit: Duration,
}

/// A running job: what the worker needs to reach its thread.
struct JobHandle {
    sender: Sender<(ToWorker, BusyGuard)>,
    coordinator: Arc<RemoteCoordinator>,
    /// Ends reading and writing of files.
    interrupt: Interrupt,
    training: Arc<Mutex<Option<SalvageContext>>>,
    save_status: Arc<Mutex<SaveStatus>>,
    thread: JoinHandle<()>,
}

/// Why a membership ended.
enum MembershipEnd {
    /// The worker is asked to stop.
    Stopped,
    /// The master is lost, for this reason.
    MasterLost(String),
    /// The master was restarted.
    MasterRestarted,
}

/// Runs until `interrupt` is raised or the master is lost. Jobs whose master is lost are saved first. When the master
/// was restarted, the worker joins again.
pub fn run(config: WorkerConfig, environment: Environment<'_>) -> Result<(), Error> {
    let gauges = WorkerMetrics::default();
    let face = MetricsEndpoint::start(&config.http, &config.member.token, gauges.clone())?;
    let Environment { formats, functions, interrupt } = environment;
    let (formats, functions) = (Arc::new(formats.clone()), Arc::new(functions.clone()));
    let mut worker = Worker { formats, functions, config, gauges, interrupt: interrupt.clone() };
    loop {
        let address = worker.config.member.master.to_string();
        let (membership, events) = join(worker.config.member.clone()).map_err(Error::server(&address))?;
        membership.set_report(json!({"http": face.addresses}));
        tracing::info!(id = membership.id(), master = %address, http = face.addresses.join(", "), "worker joined");
        let mut jobs = BTreeMap::new();
        match worker.handle_events(&membership, &events, &mut jobs) {
            MembershipEnd::Stopped => {
                // The master is notified first: it ends the jobs of this worker and assigns no new ones.
                membership.leave();
                stop_all(jobs, "the worker was stopped");
                return Ok(());
            }
            MembershipEnd::MasterLost(reason) => {
                tracing::warn!(reason, jobs = jobs.len(), "the master is lost: jobs are saved");
                let ends = worker.salvage_jobs(jobs, "the master is lost");
                return Err(salvage::master_lost_error(&address, &reason, &ends));
            }
            MembershipEnd::MasterRestarted => {
                tracing::warn!(jobs = jobs.len(), "the master was restarted: jobs are saved");
                worker.salvage_jobs(jobs, "the master was restarted");
                worker.config.member.connect_limit = worker.config.member.lost_limit;
            }
        }
    }
}

struct Worker {
    config: WorkerConfig,
    formats: Arc<FormatTable>,
    functions: Arc<FunctionTable>,
    gauges: WorkerMetrics,
    interrupt: Interrupt,
}

impl Worker {
    fn handle_events(
        &self,
        membership: &Membership,
        events: &Events<MemberEvent>,
        jobs: &mut BTreeMap<JobId, JobHandle>,
    ) -> MembershipEnd {
        loop {
            if self.interrupt.is_raised() {
                return MembershipEnd::Stopped;
            }
            jobs.retain(|_, here| !here.thread.is_finished());
            match events.recv_timeout(POLL_INTERVAL) {
                Ok(MemberEvent::Message(ControlBody::ToTask { job, body })) => {
                    let here = jobs.entry(job).or_insert_with(|| self.start(job, membership));
                    here.on_message(job, body);
                }
                Ok(MemberEvent::MasterLost { reason }) => return MembershipEnd::MasterLost(reason),
                Ok(MemberEvent::MasterRestarted) => return MembershipEnd::MasterRestarted,
                // The jobs of this worker have ended without it, and no message will report that.
                Ok(MemberEvent::LeaseExpired { .. }) => {
                    for (job, here) in std::mem::take(jobs) {
                        tracing::warn!(job, "the lease of this worker has expired: the job has ended");
                        here.cancel("the lease of this worker has expired");
                    }
                }
                Ok(MemberEvent::Message(_) | MemberEvent::Reconnected) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return MembershipEnd::Stopped,
            }
        }
    }

    /// Salvages jobs in parallel; returns the result of each as text.
    fn salvage_jobs(&self, jobs: BTreeMap<JobId, JobHandle>, why: &str) -> Vec<String> {
        std::thread::scope(|scope| {
            let ends: Vec<_> = jobs
                .into_iter()
                .map(|(job, here)| scope.spawn(move || here.salvage(self, job, why)))
                .collect();
            ends.into_iter().filter_map(|end| end.join().ok()).collect()
        })
    }

    fn start(&self, job: JobId, membership: &Membership) -> JobHandle {
        let membership = membership.clone();
        let say: MessageSender = Arc::new(move |message| {
            let body = serde_json::to_value(message).expect("messages are strings, numbers and lists");
            membership.send(ControlBody::FromTask { job, body });
        });
        // The default until the job sets another limit.
        let wait_limit = Duration::from_hours(24);
        let cancellation = CancellationToken::default();
        let gauges = self.gauges.clone();
        let coordinator =
            RemoteCoordinator::new(Arc::clone(&say), job, gauges, wait_limit, cancellation.clone());
        let (sender, receiver) = channel();
        let (training, ordered) = (Arc::default(), Arc::new(Mutex::new(SaveStatus::Nothing)));
        let interrupt = Interrupt::new();
        let part = WorkerJob {
            sender: say,
            coordinator: Arc::clone(&coordinator),
            token: self.config.member.token.clone(),
            slowness: self.config.slowness,
            formats: Arc::clone(&self.formats),
            functions: Arc::clone(&self.functions),
            interrupt: interrupt.clone(),
            cancellation,
            checked_job: Mutex::default(),
            salvage_context: Arc::clone(&training),
            save_status: Arc::clone(&ordered),
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
                if let Err(error) = part.handle_message(message, &mut ready, &mut busy) {
                    *lock(&part.save_status) = SaveStatus::Nothing;
                    tracing::info!(job, %error, "a job failed on this worker");
                    let (rank, exit) = (part.coordinator.failures().rank(), error.exit() as u8);
                    (part.sender)(FromWorker::Failed { error: error.to_string(), exit, rank });
                }
            }
            gauges.remove_job(job);
        });
        JobHandle { sender, coordinator, interrupt, training, save_status: ordered, thread }
    }
}

/// Ends the jobs of a stopping worker in parallel.
fn stop_all(jobs: BTreeMap<JobId, JobHandle>, reason: &str) {
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

impl JobHandle {
    /// Ends all waits of the tasks.
    fn cancel(&self, reason: &str) {
        self.coordinator.fail(reason);
        self.interrupt.raise();
    }

    /// Waits for the thread; false if it has not ended by the deadline.
    fn join(self, deadline: Instant) -> bool {
        drop(self.sender);
        while !self.thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(JOIN_POLL_INTERVAL);
        }
        true
    }

    /// Cancels the job and waits for its thread.
    fn fail(self, reason: &str) {
        self.cancel(reason);
        self.join(Instant::now() + STOP_LIMIT);
    }

    /// Saves the state of the job without the master, by this worker or another; returns the result as text.
    fn salvage(self, worker: &Worker, job: JobId, why: &str) -> String {
        let training = lock(&self.training).clone();
        let limit = worker.config.save_limit;
        let Some(training) = training.filter(|_| !limit.is_zero()) else {
            self.fail(why);
            return format!("job {job} is not saved: it had not begun to train, or --save-limit is 0");
        };
        self.coordinator.on_master_lost();
        let member = &worker.config.member;
        let salvage = Salvage {
            training: &training,
            token: &member.token,
            name: &member.name,
            limit,
            interrupt: &worker.interrupt,
        };
        let end = salvage.run(|| lock(&self.save_status).clone(), || self.coordinator.epoch_progress());
        let text = end.unwrap_or_else(|error| format!("the state of job {job} could not be saved: {error}"));
        tracing::warn!(job, "{text}");
        self.fail(&text);
        text
    }

    fn on_message(&self, job: JobId, body: serde_json::Value) {
        let busy = BusyGuard::new(self.coordinator.failures());
        match serde_json::from_value(body) {
            Ok(ToWorker::Verdict { epoch, verdict, line: HexEncoded(line) }) => {
                self.coordinator.set_verdict(epoch, verdict, line);
            }
            Ok(ToWorker::Stop) => self.coordinator.stop(),
            Ok(ToWorker::Settle { position }) => self.coordinator.finish_reading(position),
            Ok(ToWorker::End { reason }) => {
                if let Some(reason) = &reason {
                    self.cancel(reason);
                }
                // An error is ignored: the thread may have ended already.
                let _ = self.sender.send((ToWorker::End { reason }, busy));
            }
            Ok(message) => {
                if matches!(message, ToWorker::Save { .. }) {
                    *lock(&self.save_status) = SaveStatus::Running;
                }
                drop(self.sender.send((message, busy)));
            }
            Err(error) => {
                tracing::warn!(job, %error, "this version does not understand a message of the driver");
            }
        }
    }
}
