//! A worker: runs tasks of jobs for their drivers until it is asked to stop or the master is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Events, RecvTimeoutError};
use std::time::{Duration, Instant};

use algo::Families;
use data::FormatTable;
use driver::Error;
use driver::messages::{ToWorker, decode, encode};
use job::Exit;
use matrix::FunctionTable;
use member::{MemberConfig, MemberEvent, Membership, join};
use rpc::Address;
use rpc::message::{Base64Bytes, ControlBody, JobId};
use serde_json::json;

use crate::cluster::metrics_endpoint::{MetricsEndpoint, WorkerMetrics};
use crate::cluster::server_parameters::ServerConnections;
use crate::environment::Environment;
use crate::errors::server_error;
use crate::interrupt::Interrupt;
use crate::local_data::LocalData;
use crate::worker::job_handle::JobHandle;
use crate::worker::{ModelTarget, WorkerContext};

/// Time between two checks whether the worker must stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum wait of a stopping worker for the threads of its jobs. Their waits end at once; a thread that is in the
/// middle of a read or a write ends with the process.
const STOP_LIMIT: Duration = Duration::from_secs(5);
pub struct WorkerConfig {
    /// Settings of its membership.
    pub member: MemberConfig,
    /// Addresses of the metrics endpoint.
    pub http: Vec<Address>,
    /// Where the files of this worker are.
    pub local_data: LocalData,
}

/// A running job.
struct ClusterJob {
    handle: JobHandle,
    /// Ends reading and writing of files.
    interrupt: Interrupt,
    servers: Arc<ServerConnections>,
}

/// Why a membership ended.
enum MembershipEnd {
    /// The worker is asked to stop.
    Stopped,
    /// The master is lost, for this reason.
    MasterLost(String),
    /// The master was restarted.
    MasterRestarted(Vec<JobId>),
}

/// Runs until `interrupt` is raised or the master is lost. When the master was restarted, the worker joins again.
pub fn run(config: WorkerConfig, environment: Environment<'_>) -> Result<(), Error> {
    let metrics = WorkerMetrics::default();
    let endpoint = MetricsEndpoint::start(&config.http, &config.member.token, metrics.clone())?;
    let Environment { formats, families, functions, interrupt, .. } = environment;
    let (formats, functions) = (Arc::new(formats.clone()), Arc::new(functions.clone()));
    let families = families.clone();
    let mut worker = Worker { formats, families, functions, config, metrics, interrupt: interrupt.clone() };
    loop {
        let address = worker.config.member.master.to_string();
        let (membership, events) = join(worker.config.member.clone()).map_err(server_error(&address))?;
        membership.set_report(json!({"http": endpoint.addresses}));
        tracing::info!(id = membership.id(), master = %address, http = endpoint.addresses.join(", "), "worker joined");
        let mut jobs = BTreeMap::new();
        match worker.handle_events(&membership, &events, &mut jobs) {
            MembershipEnd::Stopped => {
                // The master is notified first: it ends the jobs of this worker and assigns no new ones.
                membership.leave();
                stop_all(jobs, "the worker was stopped");
                return Ok(());
            }
            MembershipEnd::MasterLost(reason) => {
                let error = master_lost_error(&address, &reason, &jobs);
                stop_all(jobs, "the master is lost");
                return Err(error);
            }
            MembershipEnd::MasterRestarted(continued) => {
                for job in continued {
                    if let Some(running) = jobs.remove(&job) {
                        tracing::info!(job, "the master was restarted and goes on with the job");
                        running.cancel("the master was restarted, and another run of the job begins");
                    }
                }
                for (job, running) in &jobs {
                    tracing::warn!(job, "the master was restarted without this job: {}", running.advice());
                }
                stop_all(jobs, "the master was restarted without this job");
                worker.config.member.connect_limit = worker.config.member.lost_limit;
            }
        }
    }
}

struct Worker {
    config: WorkerConfig,
    formats: Arc<FormatTable>,
    families: Families,
    functions: Arc<FunctionTable>,
    metrics: WorkerMetrics,
    interrupt: Interrupt,
}

impl Worker {
    fn handle_events(
        &self,
        membership: &Membership,
        events: &Events<MemberEvent>,
        jobs: &mut BTreeMap<JobId, ClusterJob>,
    ) -> MembershipEnd {
        loop {
            if self.interrupt.is_raised() {
                return MembershipEnd::Stopped;
            }
            jobs.retain(|_, running| !running.handle.is_finished());
            match events.recv_timeout(POLL_INTERVAL) {
                Ok(MemberEvent::Message(ControlBody::ToTask { job, body })) => {
                    let running = jobs.entry(job).or_insert_with(|| self.start(job, membership));
                    running.on_message(job, &body);
                }
                Ok(MemberEvent::Message(ControlBody::Gone { member, .. })) => {
                    for running in jobs.values() {
                        running.servers.on_server_lost(&member.name);
                    }
                }
                Ok(MemberEvent::MasterLost { reason }) => return MembershipEnd::MasterLost(reason),
                Ok(MemberEvent::MasterRestarted { continued }) => {
                    return MembershipEnd::MasterRestarted(continued);
                }
                // The jobs of this worker have ended without it, and no message will report that.
                Ok(MemberEvent::LeaseExpired { .. }) => {
                    for (job, running) in std::mem::take(jobs) {
                        tracing::warn!(job, "the lease of this worker has expired: the job has ended");
                        running.cancel("the lease of this worker has expired");
                    }
                }
                Ok(MemberEvent::Message(_) | MemberEvent::Reconnected) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return MembershipEnd::Stopped,
            }
        }
    }

    fn start(&self, job: JobId, membership: &Membership) -> ClusterJob {
        let membership = membership.clone();
        let (interrupt, token) = (Interrupt::new(), self.config.member.token.clone());
        let servers =
            Arc::new(ServerConnections::new(token, Arc::clone(&self.functions), self.metrics.clone()));
        let context = WorkerContext {
            job,
            sender: Arc::new(move |message| {
                membership.send(ControlBody::FromTask { job, body: encode(&message) });
            }),
            parameters: Arc::<ServerConnections>::clone(&servers),
            formats: Arc::clone(&self.formats),
            families: self.families.clone(),
            functions: Arc::clone(&self.functions),
            interrupt: interrupt.clone(),
            model_target: ModelTarget::Folder,
            local_data: self.config.local_data.clone(),
            threads: None,
            metrics: self.metrics.clone(),
        };
        ClusterJob { handle: JobHandle::start(context), interrupt, servers }
    }
}

/// The error of a worker whose master is lost: it names the checkpoints of its jobs.
fn master_lost_error(address: &str, reason: &str, jobs: &BTreeMap<JobId, ClusterJob>) -> Error {
    let mut text = format!("the master at {address} is lost: {reason}");
    for (job, running) in jobs {
        text.push_str(&format!("; job {job} has ended: {}", running.advice()));
    }
    Error::Cluster { text, exit: Exit::Io }
}

/// Ends the jobs of a stopping worker in parallel.
fn stop_all(jobs: BTreeMap<JobId, ClusterJob>, reason: &str) {
    for running in jobs.values() {
        running.cancel(reason);
    }
    let deadline = Instant::now() + STOP_LIMIT;
    for (job, running) in jobs {
        if !running.join(deadline) {
            tracing::warn!(job, "the job is still reading or writing: it ends with the process");
        }
    }
}

impl ClusterJob {
    /// Ends all waits of the tasks.
    fn cancel(&self, reason: &str) {
        self.handle.cancel(reason);
        self.interrupt.raise();
    }

    /// Waits for the thread; false if it has not ended by the deadline.
    fn join(self, deadline: Instant) -> bool {
        self.handle.join(deadline)
    }

    /// What the user can do with a job that has lost its master.
    fn advice(&self) -> String {
        match self.handle.checkpoints() {
            None => "it has no checkpoints: submit it again".into(),
            Some(location) => format!(
                "go on from its last checkpoint with `seraphim train --resume {location}`, or submit it again if it has none \
                 yet"
            ),
        }
    }

    fn on_message(&self, job: JobId, body: &Base64Bytes) {
        match decode(body) {
            Ok(message) => {
                if matches!(message, ToWorker::End { reason: Some(_) }) {
                    self.interrupt.raise();
                }
                self.handle.on_message(message);
            }
            Err(error) => {
                tracing::warn!(job, error, "this version does not understand a message of the driver");
            }
        }
    }
}
