//! Runs jobs beside the master: connects each [`Driver`] with the workers and the servers of its job. A job that loses a
//! member is run again with other members, from its last checkpoint.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use algo::Families;
use checkpoint::TrainingId;
use control::JobSubmission;
use driver::amounts::counted;
use driver::messages::{BegunTraining, ToWorker, decode, encode};
use driver::progress::ProgressListener;
use driver::scoring::{ScoringConfig, ScoringDriver};
use driver::{
    Driver, DriverConfig, Error, Event, Incidents, JobDriver, ParameterPlace, RecordTimes, RunEnd, WorkerInfo,
};
use job::submission::{CheckedJob, PathBase};
use job::{Exit, ScoringJob, TrainJob, submission};
use master::{JobEvent, JobLink, JobResult, Runner};
use matrix::FunctionTable;
use rpc::message::{Durability, Member, MemberKind};
use serde_json::{Map, Value, json};

use crate::cluster::driver_parameters::ServerParameters;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::run_loop::{WorkerLink, drive};

/// Time until the master knows that the connection of a process has ended that no longer exists.
const DISCONNECT_LIMIT: Duration = Duration::from_secs(1);
/// Longest time from the end of the lease of a member until the master reports it as lost: a few heartbeats.
const LOSS_GRACE: Duration = Duration::from_secs(2);
/// Maximum wait of a job that has lost a member for another one.
const REPLACEMENT_LIMIT: Duration = Duration::from_mins(10);
/// Time between two checks of a job that waits for members.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub struct JobRunner {
    /// Learns of the progress of jobs that are not quiet; silent except for a cluster that was started for one job.
    progress: Arc<dyn ProgressListener>,
    token: Vec<u8>,
    interrupt: Interrupt,
    families: Families,
    functions: Arc<FunctionTable>,
    /// How long a member that is silent or away stays a member.
    lease: Duration,
    /// The folder to which the members of its jobs resolve relative paths.
    folder: PathBase,
    /// Where checkpoints of sessions are: a folder, or an address of a store; none: there are none.
    session_checkpoints: Option<String>,
    /// The error of the last failed job, for code in this process.
    failed: Arc<Mutex<Option<Error>>>,
}

impl JobRunner {
    /// Creates a runner whose jobs stop when `interrupt` is raised.
    pub fn new(
        progress: Arc<dyn ProgressListener>,
        token: Vec<u8>,
        interrupt: Interrupt,
        families: Families,
    ) -> Self {
        let (lease, folder) = (master::Settings::default().lease, PathBase::Unknown);
        let (functions, session_checkpoints, failed) = (Arc::default(), None, Arc::default());
        Self { progress, token, interrupt, families, functions, lease, folder, session_checkpoints, failed }
    }

    /// Returns the same runner with a place for checkpoints of sessions, and the functions of the program, whose
    /// partitioners matrices of sessions may have.
    #[must_use]
    pub fn with_session_checkpoints(self, location: Option<String>, functions: &FunctionTable) -> Self {
        Self { session_checkpoints: location, functions: Arc::new(functions.clone()), ..self }
    }

    /// Returns the same runner for a master with this lease of members.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Returns the same runner for members that were started in the folder of the submitting process.
    #[must_use]
    pub fn with_shared_folder(self) -> Self {
        Self { folder: PathBase::Same, ..self }
    }

    /// Takes the error of the last failed job.
    pub fn take_error(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn run_job(&self, link: &mut JobLink) -> Result<JobResult, Error> {
        let job = serde_json::from_value(link.spec.clone()).map_err(|error| Error::Cluster {
            text: format!("the job was recorded by another version of the master, submit it again: {error}"),
            exit: Exit::Internal,
        })?;
        match job {
            CheckedJob::Train(job) => self.train(link, &job),
            CheckedJob::Score(job) => self.score(link, job),
        }
    }

    /// Scores records. The job ends when it loses a member.
    fn score(&self, link: &JobLink, job: ScoringJob) -> Result<JobResult, Error> {
        let config = ScoringConfig {
            job: link.run,
            workers: worker_infos(link),
            parameters: ParameterPlace::Servers(link.servers.clone()),
            families: self.families.clone(),
        };
        let mut driver = ScoringDriver::new(config, job);
        match self.drive(link, 1, Durability::Checkpoint, &mut driver) {
            Ok(RunEnd::Scored(report)) => Ok(report.into()),
            Ok(RunEnd::Finished(_) | RunEnd::TasksMove(_)) => unreachable!("nothing was trained"),
            Err(RunFailure { error, lost: None, is_disconnected, .. }) if error.exit() == Exit::Io => {
                Err(Loss::wait(link, is_disconnected, self.lease + LOSS_GRACE)
                    .map_or(*error, |loss| loss.error()))
            }
            Err(failure) => Err(*failure.error),
        }
    }

    /// Trains, and again with other members when one is lost. The training goes on from its last checkpoint.
    fn train(&self, link: &mut JobLink, job: &TrainJob) -> Result<JobResult, Error> {
        let mut runs = Runs::recorded(&link.recorded);
        loop {
            let failure = match self.run_once(link, job, &mut runs) {
                Ok(RunEnd::Finished(finished)) => {
                    let report =
                        serde_json::to_value(&finished.report).expect("a report is texts and numbers");
                    return Ok(JobResult { report, is_complete: finished.is_complete });
                }
                Ok(RunEnd::Scored(_)) => unreachable!("a training scores no records"),
                Ok(RunEnd::TasksMove(times)) => {
                    runs.move_tasks(times);
                    self.replace_members(link, "its tasks move to other workers", &runs)?;
                    continue;
                }
                Err(failure) => failure,
            };
            let may_run_again =
                runs.loss_count < job.restarts && !failure.is_cancelled && !self.interrupt.is_raised();
            if !may_run_again {
                return Err(*failure.error);
            }
            let (error, noticed_at) = self.loss_behind(link, failure)?;
            runs.loss_count += 1;
            let run = runs.number();
            self.replace_members(link, &error, &runs)?;
            let line = format!(
                "{error}: run {run} of the job begins {:.1} s after the loss",
                noticed_at.elapsed().as_secs_f64()
            );
            runs.incidents.add(&line);
            if !job.run_options.quiet {
                self.progress.print_line(&line);
            }
            tracing::warn!(job = link.job, run, error, "a job goes on with other members");
        }
    }

    /// The loss because of which a run has failed, with the time at which it was noticed. The error of the run, if the job
    /// itself is the reason.
    fn loss_behind(&self, link: &JobLink, failure: RunFailure) -> Result<(String, Instant), Error> {
        let noticed_at = Instant::now();
        let RunFailure { error, lost, is_disconnected, .. } = failure;
        let lost = match lost {
            None if error.exit() == Exit::Io => {
                Loss::wait(link, is_disconnected, self.lease + LOSS_GRACE).map(Box::new)
            }
            lost => lost,
        };
        match lost {
            Some(loss) => Ok((loss.error().to_string(), loss.noticed_at)),
            // No member is lost, but a member has lost its part of the run, as one that was away.
            None if error.is_loss() => Ok((error.to_string(), noticed_at)),
            None => Err(*error),
        }
    }

    /// Runs a job on the members of `link`.
    fn run_once(&self, link: &JobLink, job: &TrainJob, runs: &mut Runs) -> Result<RunEnd, RunFailure> {
        let config = DriverConfig {
            threads: job.run_options.threads.unwrap_or_else(machine::core_count),
            job: link.run,
            workers: worker_infos(link),
            parameters: ParameterPlace::Servers(link.servers.clone()),
            progress: Arc::clone(&self.progress),
            families: self.families.clone(),
            run: runs.number(),
            begun: runs.begun.clone(),
            record_times: runs.record_times.clone(),
            move_count: runs.move_count,
            earlier_time: runs.since.map_or(Duration::ZERO, |since| since.elapsed()),
            incidents: runs.incidents.clone(),
        };
        runs.since.get_or_insert_with(Instant::now);
        let mut driver = Driver::new(config, job.clone(), Instant::now()).map_err(RunFailure::of_job)?;
        let ended = self.drive(link, runs.number(), job.durability, &mut driver);
        runs.incidents = driver.incidents().clone();
        runs.begun = driver.begun().cloned().or(runs.begun.take());
        ended
    }

    /// Carries out what a driver wants with the members of `link`.
    fn drive(
        &self,
        link: &JobLink,
        run: u32,
        durability: Durability,
        driver: &mut dyn JobDriver,
    ) -> Result<RunEnd, RunFailure> {
        let mut workers =
            MasterLink { link, run, lost: None, disconnected: BTreeMap::new(), is_cancelled: false };
        let token = &self.token[..];
        let mut parameters = ServerParameters { link, token, durability, servers: None, poller: None };
        let ended = drive(driver, &mut workers, &mut parameters, &self.interrupt);
        ended.map_err(|error| RunFailure {
            error: Box::new(error),
            lost: workers.lost.take().map(Box::new),
            is_disconnected: !workers.disconnected.is_empty(),
            is_cancelled: workers.is_cancelled,
        })
    }

    /// Waits until the master gives the job other members.
    fn replace_members(&self, link: &mut JobLink, reason: &str, runs: &Runs) -> Result<(), Error> {
        link.replace_members();
        let waits_for = format!("members for run {}: {reason}", runs.number());
        link.progress(json!({ "waits_for": waits_for, "incidents": runs.incidents }));
        let interrupted = || Error::Interrupted {
            what: format!("while the job waited for members to continue: {reason}; no model was written"),
        };
        let deadline = Instant::now() + REPLACEMENT_LIMIT;
        loop {
            match link.receive(POLL_INTERVAL) {
                JobEvent::Members { run, servers, workers } => {
                    link.set_members(run, servers, workers);
                    return Ok(());
                }
                JobEvent::Cancelled => return Err(interrupted()),
                _ if self.interrupt.is_raised() => return Err(interrupted()),
                _ if Instant::now() >= deadline => {
                    let (servers, workers) = (link.servers.len() as u64, link.workers.len() as u64);
                    let text = format!(
                        "{reason}; the job waited {} s for {} and {} to continue and did not get them",
                        REPLACEMENT_LIMIT.as_secs(),
                        counted(servers, "server"),
                        counted(workers, "worker")
                    );
                    return Err(Error::Cluster { text, exit: Exit::Io });
                }
                _ => {}
            }
        }
    }
}

/// The workers of a job as its driver knows them.
fn worker_infos(link: &JobLink) -> Vec<WorkerInfo> {
    let info = |member: &Member| {
        let slots = if let MemberKind::Worker { slots, .. } = member.kind { slots } else { 1 };
        WorkerInfo { id: member.id, name: Some(member.name.clone()), slots }
    };
    link.workers.iter().map(info).collect()
}

/// The earlier runs of a job.
#[derive(Default)]
struct Runs {
    /// Runs under an earlier master.
    earlier_count: u32,
    /// How many of them ended with the loss of a member, and how many because tasks moved to other workers.
    loss_count: u32,
    move_count: u32,
    begun: Option<BegunTraining>,
    /// The times of workers for a record, as they were measured last.
    record_times: RecordTimes,
    incidents: Incidents,
    /// When the first run of this process began; none before it.
    since: Option<Instant>,
}

impl Runs {
    /// The runs of a job that had a runner under an earlier master, which has recorded this.
    fn recorded(record: &Value) -> Self {
        let earlier_count = record["runs"].as_u64().unwrap_or(0) as u32;
        let field = |name: &str| record[name].clone();
        let training: Option<TrainingId> = serde_json::from_value(field("training")).ok();
        let data = serde_json::from_value(field("data")).ok();
        let begun = training.map(|training| BegunTraining { training, data });
        Self { earlier_count, begun, ..Self::default() }
    }

    /// The number of the present run, from 1.
    fn number(&self) -> u32 {
        1 + self.earlier_count + self.loss_count + self.move_count
    }

    fn move_tasks(&mut self, times: RecordTimes) {
        self.move_count += 1;
        self.record_times.extend(times);
    }
}

/// Why a run has failed.
struct RunFailure {
    error: Box<Error>,
    /// The loss that the master has reported.
    lost: Option<Box<Loss>>,
    /// Whether the connection of a member had ended.
    is_disconnected: bool,
    /// Whether the user had cancelled the job.
    is_cancelled: bool,
}

impl RunFailure {
    /// The job itself is the reason.
    fn of_job(error: Error) -> Self {
        Self { error: Box::new(error), lost: None, is_disconnected: false, is_cancelled: false }
    }
}

/// The loss of a member.
struct Loss {
    member: Member,
    reason: String,
    noticed_at: Instant,
}

impl Loss {
    fn new(member: Member, reason: String) -> Self {
        Self { member, reason, noticed_at: Instant::now() }
    }

    /// The loss that explains the failure of a connection, if the master reports one. A connection to a server breaks
    /// before the master knows whether the server is lost.
    fn wait(link: &JobLink, is_disconnected: bool, loss_limit: Duration) -> Option<Self> {
        let limit = if is_disconnected { loss_limit } else { DISCONNECT_LIMIT };
        let mut deadline = Instant::now() + limit;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            match link.receive(left) {
                JobEvent::MemberLost { member, reason } => return Some(Self::new(member, reason)),
                JobEvent::MemberDisconnected { .. } => deadline = Instant::now() + loss_limit,
                JobEvent::Cancelled => return None,
                _ => {}
            }
        }
        None
    }

    fn error(&self) -> Error {
        member_lost_error(&self.member, &self.reason)
    }
}

impl Runner for JobRunner {
    fn run(&self, mut link: JobLink) -> Result<JobResult, String> {
        let result = self.run_job(&mut link);
        result.map_err(|error| {
            let text = error.to_string();
            link.progress(json!({"exit": error.exit() as u8}));
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            text
        })
    }

    fn serve_session(&self, link: JobLink) -> Result<JobResult, String> {
        crate::cluster::session::serve(&link, &self.token, &self.functions, self.session_checkpoints.clone())
            .map(Into::into)
            .map_err(|error| error.to_string())
    }

    fn check(&self, order: &JobSubmission) -> Result<Value, String> {
        let job = submission::check(order, self.folder, &self.families).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(job).expect("texts, numbers and lists are always JSON"))
    }
}

/// The connection to the workers of a job, through the master.
struct MasterLink<'a> {
    link: &'a JobLink,
    /// The number of the run, from 1.
    run: u32,
    /// The first loss of a member.
    lost: Option<Loss>,
    /// Members whose connections have ended and have not come back, with the time of the end.
    disconnected: BTreeMap<u32, Instant>,
    is_cancelled: bool,
}

impl MasterLink<'_> {
    fn event(&mut self, event: JobEvent) -> Event {
        match event {
            JobEvent::FromTask { worker, body } => match decode(&body) {
                Ok(message) => Event::FromWorker { worker, message },
                Err(error) => Event::Failed(Error::Cluster {
                    text: format!(
                        "worker {} sent a message that this version does not understand: {error}",
                        self.worker_name(worker)
                    ),
                    exit: Exit::Internal,
                }),
            },
            JobEvent::MemberLost { member, reason } => {
                Event::Failed(self.lost.get_or_insert_with(|| Loss::new(member, reason)).error())
            }
            JobEvent::Cancelled => {
                self.is_cancelled = true;
                Event::StopRequested
            }
            JobEvent::CheckpointRequested => Event::CheckpointRequested,
            JobEvent::MemberDisconnected { member } => {
                self.disconnected.insert(member.id, Instant::now());
                Event::MemberAway { member: member.id }
            }
            JobEvent::MemberReconnected { member, is_restored } => {
                let since = self.disconnected.remove(&member.id);
                let away_s = since.map_or(0.0, |since| since.elapsed().as_secs_f64());
                let line = || {
                    format!(
                        "{} is back after {away_s:.1} s with its write-ahead log: no task goes back",
                        member.name
                    )
                };
                Event::MemberBack { member: member.id, incident: is_restored.then(line) }
            }
            JobEvent::ServerTakesOver { lost, reason, by } => {
                let since = self.disconnected.remove(&lost.id);
                let away = since.map_or(String::new(), |since| {
                    format!(" {:.1} s after its connection ended", since.elapsed().as_secs_f64())
                });
                let line = format!(
                    "{} is lost ({reason}): {} has its partitions and takes over{away}; no task goes back",
                    lost.name, by
                );
                Event::MemberBack { member: lost.id, incident: Some(line) }
            }
            // The other events concern sessions, a job that waits for members, or nothing that a driver must know.
            JobEvent::Session { .. } | JobEvent::Members { .. } | JobEvent::Timeout => Event::Timeout,
        }
    }

    fn worker_name(&self, worker: u32) -> String {
        let member = self.link.workers.iter().find(|member| member.id == worker);
        member.map_or_else(|| worker.to_string(), |member| member.name.clone())
    }
}

impl WorkerLink for MasterLink<'_> {
    fn send(&mut self, worker: u32, message: ToWorker) {
        self.link.send(worker, encode(&message));
    }

    fn receive(&mut self, timeout: Duration) -> Event {
        // The loss of a member comes first: other failures may be its consequences.
        match self.lost_member() {
            Some(error) => Event::Failed(error),
            None => self.event(self.link.receive(timeout)),
        }
    }

    fn lost_member(&mut self) -> Option<Error> {
        let is_lost = self.link.member_lost();
        while self.lost.is_none() && is_lost.is_raised() {
            match self.link.receive(Duration::ZERO) {
                JobEvent::MemberLost { member, reason } => self.lost = Some(Loss::new(member, reason)),
                JobEvent::Cancelled => self.is_cancelled = true,
                JobEvent::Timeout => break,
                _ => {}
            }
        }
        self.lost.as_ref().map(Loss::error)
    }

    fn report_training(&mut self, begun: &BegunTraining) {
        let BegunTraining { training, data } = begun;
        self.link.record(json!({ "training": training, "data": data, "runs": self.run }));
    }

    fn report_status(&mut self, status: Map<String, Value>) {
        self.link.progress(Value::Object(status));
    }
}

fn member_lost_error(member: &Member, reason: &str) -> Error {
    let place = match &member.kind {
        MemberKind::Server { addresses, .. } => format!(" at {}", addresses.join(", ")),
        MemberKind::Worker { .. } => String::new(),
    };
    let text = format!("{}{place} was lost during the job: {reason}", member.name);
    Error::Cluster { text, exit: Exit::Io }
}
