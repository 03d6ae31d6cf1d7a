//! Runs jobs beside the master: connects each [`Driver`] with the workers and the servers of its job.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use algo::Families;
use control::JobSubmission;
use master::{JobEvent, JobLink, JobResult, Runner};
use rpc::message::{Member, MemberKind};
use serde_json::{Map, Value, json};

use super::servers::Servers;
use super::stats_poller::StatsPoller;
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::submission::{self, PathBase, Submission};
use crate::progress::ProgressListener;
use crate::run::driver::messages::{ToWorker, decode, encode};
use crate::run::driver::run_loop::{Parameters, WorkerLink, drive};
use crate::run::driver::{Driver, DriverConfig, Event, ParameterPlace, ParametersRequest, WorkerInfo};

pub struct JobRunner {
    /// Learns of the progress of jobs that are not quiet; silent except for a cluster that was started for one job.
    progress: Arc<dyn ProgressListener>,
    token: Vec<u8>,
    interrupt: Interrupt,
    families: Families,
    /// The folder to which the members of its jobs resolve relative paths.
    folder: PathBase,
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
        Self { progress, token, interrupt, families, folder: PathBase::Unknown, failed: Arc::default() }
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

    fn run_job(&self, link: &JobLink) -> Result<JobResult, Error> {
        let order = JobSubmission {
            title: link.title.clone(),
            spec: link.spec.clone(),
            servers: link.servers.len() as u32,
            workers: link.workers.len() as u32,
        };
        let Submission { raw, job } = submission::check(&order, self.folder, &self.families)?;
        let name = |member: &Member| WorkerInfo { id: member.id, name: Some(member.name.clone()) };
        let config = DriverConfig {
            job: link.job,
            workers: link.workers.iter().map(name).collect(),
            parameters: ParameterPlace::Servers(link.servers.clone()),
            progress: Arc::clone(&self.progress),
            families: self.families.clone(),
            run: 1,
            training: None,
        };
        let mut driver = Driver::new(config, raw, job, Instant::now());
        let mut workers = MasterLink { link, lost_member: None };
        let mut servers = ServerParameters { link, token: &self.token, servers: None, poller: None };
        let finished = drive(&mut driver, &mut workers, &mut servers, &self.interrupt)?;
        let report = serde_json::to_value(finished.report).expect("texts, numbers and lists are always JSON");
        Ok(JobResult { report, is_complete: finished.is_complete })
    }
}

impl Runner for JobRunner {
    fn run(&self, link: JobLink) -> Result<JobResult, String> {
        self.run_job(&link).map_err(|error| {
            let text = error.to_string();
            link.progress(json!({"exit": error.exit() as u8}));
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            text
        })
    }

    fn serve_session(&self, link: JobLink) -> Result<JobResult, String> {
        super::session::serve(&link, &self.token).map(Into::into).map_err(|error| error.to_string())
    }

    fn check(&self, order: &JobSubmission) -> Result<(), String> {
        submission::check(order, self.folder, &self.families).map(drop).map_err(|error| error.to_string())
    }
}

/// The connection to the workers of a job, through the master.
struct MasterLink<'a> {
    link: &'a JobLink,
    /// The error of a lost member, once it is known.
    lost_member: Option<Error>,
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
            JobEvent::MemberLost { member, reason } => Event::Failed(member_lost_error(&member, &reason)),
            JobEvent::Cancelled => Event::StopRequested,
            // The other events concern sessions, not jobs.
            JobEvent::Session { .. } | JobEvent::MemberReconnected { .. } | JobEvent::Timeout => {
                Event::Timeout
            }
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
        while self.lost_member.is_none() && self.link.member_lost.is_raised() {
            match self.link.receive(Duration::ZERO) {
                JobEvent::MemberLost { member, reason } => {
                    self.lost_member = Some(member_lost_error(&member, &reason));
                }
                JobEvent::Timeout | JobEvent::Cancelled => break,
                JobEvent::FromTask { .. } | JobEvent::Session { .. } | JobEvent::MemberReconnected { .. } => {
                }
            }
        }
        self.lost_member.take()
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

/// The servers of a job as its driver reaches them.
struct ServerParameters<'a> {
    link: &'a JobLink,
    token: &'a [u8],
    servers: Option<Servers>,
    poller: Option<StatsPoller>,
}

impl Parameters for ServerParameters<'_> {
    fn request(&mut self, request: ParametersRequest) -> Result<Value, Error> {
        if let ParametersRequest::Create { layout, modules, workers } = request {
            let is_lost = self.link.member_lost.clone();
            let servers =
                Servers::connect(&layout, self.token)?.with_cancellation(move || is_lost.is_raised());
            self.servers.insert(servers).open_job_with(&modules)?;
            self.poller = Some(StatsPoller::start(&layout, self.token, workers));
            return Ok(Value::Null);
        }
        let servers = self.servers.as_mut().expect("the matrices are created first");
        match request {
            ParametersRequest::Create { .. } => unreachable!("handled above"),
            ParametersRequest::CopyRows => servers.keep_rows()?,
            ParametersRequest::RestoreRows => servers.restore_rows()?,
            ParametersRequest::Stats => return Ok(json!(servers.stats()?)),
        }
        Ok(Value::Null)
    }

    fn close(&mut self, failure: Option<&str>) {
        self.poller = None;
        if let Some(servers) = &mut self.servers {
            // An error is ignored: a lost server needs no closing.
            let _ = match failure {
                Some(reason) => servers.close_failed_job(reason),
                None => servers.close_job("the job has ended"),
            };
        }
    }

    fn add_status(&self, status: &mut Map<String, Value>) {
        if let Some(Value::Object(latest)) = self.poller.as_ref().map(StatsPoller::latest) {
            status.extend(latest);
        }
    }
}
