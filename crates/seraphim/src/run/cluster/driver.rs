//! The driver: runs jobs beside the master. It handles neither records nor parameters.

mod first_failure;
mod settings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use algo::{EpochDecision, EpochReport, Job};
use control::JobSubmission;
use data::{LabelRule, Schema};
use master::{JobEvent, JobLink, JobResult, Runner};
use serde_json::{Value, json};
use worker::JobLayout;

use self::first_failure::member_lost_error;
use super::job_layout::{WorkerTasks, assign_tasks, check_bad_lines, layout};
use super::messages::{FromWorker, HexEncoded, ToWorker, split_names};
use super::servers::Servers;
use super::stats_poller::{JobProgress, StatsPoller};
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::job::submission::{self, PathBase, Submission};
use crate::model::{Manifest, TrainingPosition};
use crate::progress::{Progress, counted};
use crate::report::Timings;
use crate::run::epoch_monitor::{
    EpochMonitor, InterruptState, StopReason, TrainingSummary, missing_reports_error,
};
use crate::run::resume;
use crate::run::run_info::RunInfo;
use crate::run::totals::{TaskSummary, Totals, validation_notices};

/// Time between two checks whether the driver must stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two progress reports for people.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

pub struct Driver {
    /// Whether to print no progress; true except for a cluster that was started for one job.
    quiet: bool,
    token: Vec<u8>,
    interrupt: Interrupt,
    /// The folder to which the members of its jobs resolve relative paths.
    folder: PathBase,
    /// The error of the last failed job, for code in this process.
    failed: Arc<Mutex<Option<Error>>>,
}

impl Driver {
    /// Creates a driver whose jobs stop when `interrupt` is raised.
    pub fn new(quiet: bool, token: Vec<u8>, interrupt: Interrupt) -> Self {
        Self { quiet, token, interrupt, folder: PathBase::Unknown, failed: Arc::default() }
    }

    /// Returns the same driver for members that were started in the folder of the submitting process.
    #[must_use]
    pub fn with_shared_folder(self) -> Self {
        Self { folder: PathBase::Same, ..self }
    }

    /// Takes the error of the last failed job.
    pub fn take_error(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Runner for Driver {
    fn run(&self, link: JobLink) -> Result<JobResult, String> {
        let outcome = JobRun::start(self, &link).and_then(|mut course| {
            let result = course.run().map_err(|error| course.root_cause(error));
            course.end(result.as_ref().err());
            result
        });
        outcome.map_err(|error| {
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
        submission::check(order, self.folder).map(drop).map_err(|error| error.to_string())
    }
}

/// One job as the driver runs it.
struct JobRun<'a> {
    driver: &'a Driver,
    link: &'a JobLink,
    raw: RawJob,
    job: TrainJob,
    algorithm: Box<dyn Job>,
    /// The settings that the program chose, and why.
    reasons: Vec<String>,
    progress: Progress,
    start: Instant,
    timings: Timings,
    cancelled: bool,
    servers: Option<Servers>,
    watch: Option<StatsPoller>,
    reported_at: Instant,
    standing: JobProgress,
}

/// What the first worker found in the data.
struct DataInspection {
    schema: Schema,
    label_rule: LabelRule,
    size_bytes: Option<u64>,
    notices: Vec<String>,
    task_count: u32,
    previous: Option<algo::Model>,
    start: TrainingPosition,
}

/// The result of training when the last task has ended.
struct TrainingResult {
    outcome: TrainingSummary,
    summaries: Vec<TaskSummary>,
    dictionary: BTreeMap<u64, String>,
}

impl<'a> JobRun<'a> {
    fn start(driver: &'a Driver, link: &'a JobLink) -> Result<Self, Error> {
        let order = JobSubmission {
            title: link.title.clone(),
            spec: link.spec.clone(),
            servers: link.servers.len() as u32,
            workers: link.workers.len() as u32,
        };
        let Submission { raw, job, algorithm } = submission::check(&order, driver.folder)?;
        let start = Instant::now();
        let standing = JobProgress::new(start, algorithm.data_needs().epochs);
        Ok(Self {
            driver,
            link,
            raw,
            algorithm,
            reasons: Vec::new(),
            progress: Progress::silent(),
            job,
            start,
            timings: Timings::default(),
            cancelled: false,
            servers: None,
            watch: None,
            reported_at: start,
            standing,
        })
    }

    fn run(&mut self) -> Result<JobResult, Error> {
        let looked = self.inspect_data()?;
        self.timings.open_s = self.start.elapsed().as_secs_f64();
        let worker_tasks = assign_tasks(&self.link.workers, looked.task_count);
        let clock = Instant::now();
        let (scanned, seen) = self.choose_settings(&worker_tasks, &looked)?;
        if scanned {
            self.timings.scan_s = clock.elapsed().as_secs_f64();
        }
        let facts = self.closing(&looked).facts(&Totals::of(&seen), scanned)?;
        let model = self.algorithm.model(&facts, looked.previous.as_ref());
        let model = model.map_err(|error| self.closing(&looked).with_job_context(error.into()))?;
        let mut layout = layout(self.link, &self.job, self.algorithm.as_ref(), &model, looked.task_count)?;
        layout.matrices = resume::with_start_clock(layout.matrices, looked.start);
        let is_gone = self.link.member_lost.clone();
        let servers = Servers::connect(&layout, &self.driver.token)?;
        let mut servers = servers.with_cancellation(move || is_gone.is_raised());
        let opened = servers.open_job_with(self.job.modules.list());
        self.servers = Some(servers);
        opened?;
        let mut notices = Vec::new();
        if looked.previous.is_some() {
            notices.extend(self.import(&worker_tasks, &layout)?);
        }
        self.watch =
            Some(StatsPoller::start(&layout, &self.driver.token, self.workers_of_tasks(&worker_tasks)));
        let clock = Instant::now();
        let trained = self.train(&worker_tasks, &looked, &layout, &model)?;
        self.timings.train_s = clock.elapsed().as_secs_f64();
        self.timings.validate_s = trained.summaries.iter().map(|task| task.validate_s).fold(0.0, f64::max);
        self.save(&worker_tasks, &looked, &layout, model, trained, notices)
    }

    fn closing<'b>(&'b self, looked: &'b DataInspection) -> RunInfo<'b> {
        RunInfo {
            job: &self.job,
            algorithm: self.algorithm.as_ref(),
            label_rule: looked.label_rule,
            schema: &looked.schema,
            size_bytes: looked.size_bytes,
            notices: looked.notices.clone(),
            task_count: looked.task_count,
            start: looked.start,
            reasons: &self.reasons,
        }
    }

    fn is_stop_requested(&self) -> bool {
        self.cancelled || self.driver.interrupt.is_raised()
    }

    fn send(&self, worker: u32, message: &ToWorker) {
        let body = serde_json::to_value(message).expect("messages are strings, numbers and lists");
        self.link.send(worker, body);
    }

    /// Returns the next message of a worker; `None` if none arrives within [`POLL_INTERVAL`].
    fn receive(&mut self) -> Result<Option<(u32, FromWorker)>, Error> {
        match self.link.receive(POLL_INTERVAL) {
            JobEvent::FromTask { worker, body } => {
                let heard = serde_json::from_value(body).map_err(|error| Error::Cluster {
                    text: format!(
                        "worker {} sent a message that this version does not understand: {error}",
                        self.name(worker)
                    ),
                    exit: Exit::Internal,
                })?;
                if let FromWorker::Failed { error, exit, rank } = heard {
                    let error = self.failed_at(worker, &error, exit);
                    return Err(match rank {
                        Some(rank) => self.first_failure(rank, error),
                        None => error,
                    });
                }
                Ok(Some((worker, heard)))
            }
            JobEvent::MemberLost { member, reason } => Err(member_lost_error(&member, &reason)),
            JobEvent::Cancelled => {
                self.cancelled = true;
                Ok(None)
            }
            // These events concern sessions, not jobs.
            JobEvent::Session { .. } | JobEvent::MemberReconnected { .. } | JobEvent::Timeout => Ok(None),
        }
    }

    fn name(&self, worker: u32) -> String {
        self.link
            .workers
            .iter()
            .find(|member| member.id == worker)
            .map_or_else(|| worker.to_string(), |member| member.name.clone())
    }

    /// Waits until `take` returns a value for a worker's message, or the job must stop.
    fn wait<T>(
        &mut self,
        doing: &str,
        mut take: impl FnMut(&mut Self, u32, FromWorker) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        loop {
            if self.is_stop_requested() {
                let what = format!("while {doing}, before the first step; no model was written");
                return Err(Error::Interrupted { what });
            }
            if let Some((worker, heard)) = self.receive()?
                && let Some(value) = take(self, worker, heard)?
            {
                return Ok(value);
            }
        }
    }

    fn inspect_data(&mut self) -> Result<DataInspection, Error> {
        self.send(self.link.workers[0].id, &ToWorker::Look { job: self.raw.clone() });
        self.wait("the data were opened", |course, _, heard| {
            let FromWorker::Looked { schema, size_bytes, notices, task_count, greeting, previous, start } =
                heard
            else {
                return Ok(None);
            };
            let (servers, workers) = (course.link.servers.len(), course.link.workers.len());
            let (quiet, needs) =
                (course.driver.quiet || course.job.manner.quiet, course.algorithm.data_needs());
            course.progress = Progress::new(quiet, size_bytes, needs.epochs);
            let (servers, workers) = (counted(servers as u64, "server"), counted(workers as u64, "worker"));
            course.progress.print_line(&format!("{greeting}, {servers}, {workers}"));
            let label_rule = course.algorithm.label_rule(&schema.label_names)?;
            Ok(Some(DataInspection { schema, label_rule, size_bytes, notices, task_count, previous, start }))
        })
    }

    fn import(&mut self, worker_tasks: &[WorkerTasks], layout: &JobLayout) -> Result<Vec<String>, Error> {
        self.send(worker_tasks[0].worker, &ToWorker::Import { layout: layout.clone() });
        self.wait("the earlier model was sent to the servers", |_, _, heard| {
            Ok(if let FromWorker::Imported { notices } = heard { Some(notices) } else { None })
        })
    }

    fn train(
        &mut self,
        worker_tasks: &[WorkerTasks],
        looked: &DataInspection,
        layout: &JobLayout,
        model: &algo::Model,
    ) -> Result<TrainingResult, Error> {
        let resumed = looked.previous.is_some();
        let all: Vec<(u32, u32)> =
            worker_tasks.iter().map(|share| (share.tasks.start, share.tasks.len() as u32)).collect();
        for share in worker_tasks {
            let (layout, model, worker_tasks) = (layout.clone(), model.clone(), all.clone());
            let set = self.job.set.clone();
            self.send(share.worker, &ToWorker::Train { set, layout, model, resumed, worker_tasks });
        }
        let count = layout.task_count as usize;
        let mut judge = EpochMonitor::new(self.algorithm.stopping());
        let mut reports: Vec<Option<EpochReport>> = (0..count).map(|_| None).collect();
        let mut first_report = None;
        let mut ended: Vec<Option<TaskSummary>> = (0..count).map(|_| None).collect();
        let (mut dictionary, mut bad_lines) = (BTreeMap::new(), BTreeMap::new());
        let (mut step_count, mut told_stop) = (0, false);
        while ended.iter().any(Option::is_none) {
            if self.is_stop_requested() && !told_stop {
                told_stop = true;
                for share in worker_tasks {
                    self.send(share.worker, &ToWorker::Stop);
                }
            }
            self.report_status(&judge);
            match self.receive()? {
                Some((_, FromWorker::Progress { steps, records, loss_sum, bytes })) => {
                    step_count += steps;
                    self.progress.add_bytes(bytes);
                    self.progress.step(records, loss_sum);
                    self.standing.record_steps(records, loss_sum);
                }
                Some((worker, FromWorker::Epoch { report: HexEncoded(report), bad_lines: met })) => {
                    bad_lines.insert(worker, met);
                    first_report.get_or_insert_with(Instant::now);
                    let task = report.task as usize;
                    reports[task] = Some(report);
                    if reports.iter().all(Option::is_some) {
                        first_report = None;
                        let reports: Vec<_> = reports.iter_mut().filter_map(Option::take).collect();
                        self.standing.epoch_done(reports[0].epoch_count);
                        check_bad_lines(self.job.input.bad_lines, worker_tasks, &bad_lines)?;
                        let verdict = self.judge(&mut judge, &reports, told_stop, looked)?;
                        let line = HexEncoded(judge.last_epoch().expect("an epoch was judged").clone());
                        let verdict = ToWorker::Verdict { epoch: reports[0].epoch, verdict, line };
                        for share in worker_tasks {
                            self.send(share.worker, &verdict);
                        }
                    }
                }
                Some((_, FromWorker::Names { names })) => dictionary.extend(names),
                Some((_, FromWorker::TaskEnded { task, summary })) => ended[task as usize] = Some(summary.0),
                Some(_) | None => {}
            }
            if let Some(since) = first_report
                && since.elapsed() > self.job.wait_limit
            {
                return Err(missing_reports_error(&reports, self.job.wait_limit));
            }
        }
        let summaries = ended.into_iter().flatten().collect();
        Ok(TrainingResult { outcome: judge.summary(step_count), summaries, dictionary })
    }

    fn judge(
        &mut self,
        judge: &mut EpochMonitor,
        reports: &[EpochReport],
        told: bool,
        looked: &DataInspection,
    ) -> Result<EpochDecision, Error> {
        let interrupted = InterruptState { stop_sent: told, requested: self.is_stop_requested() };
        let decided = judge.decide(reports, interrupted, &self.progress);
        let decision = decided.map_err(|error| self.closing(looked).with_job_context(error.into()))?;
        let servers = self.servers.as_mut().expect("the servers are there before the tasks");
        if decision.save_best {
            servers.keep_rows()?;
        }
        if decision.restore_best {
            servers.restore_rows()?;
        }
        Ok(decision.verdict)
    }

    /// Reports the progress that `status` and `submit` show.
    fn report_status(&mut self, judge: &EpochMonitor) {
        if self.reported_at.elapsed() >= REPORT_INTERVAL {
            self.reported_at = Instant::now();
            let seen = self.watch.as_ref().map(StatsPoller::latest);
            let mut progress = self.standing.to_json(judge.last_epoch());
            if let Some(Value::Object(seen)) = seen {
                progress.extend(seen);
            }
            self.link.progress(Value::Object(progress));
        }
    }

    /// Returns the name of the worker of each task.
    fn workers_of_tasks(&self, worker_tasks: &[WorkerTasks]) -> Vec<String> {
        worker_tasks.iter().flat_map(|share| share.tasks.clone().map(|_| self.name(share.worker))).collect()
    }

    fn save(
        &mut self,
        worker_tasks: &[WorkerTasks],
        looked: &DataInspection,
        layout: &JobLayout,
        model: algo::Model,
        trained: TrainingResult,
        mut notices: Vec<String>,
    ) -> Result<JobResult, Error> {
        let totals = Totals::of(&trained.summaries);
        let interrupted = self.is_stop_requested();
        self.closing(looked).check_records(&totals, interrupted)?;
        if trained.outcome.step_count == 0 {
            let what = "before the first step, so there is nothing to save".into();
            return Err(Error::Interrupted { what });
        }
        notices.extend(validation_notices(&trained.summaries, &looked.schema));
        let clock = Instant::now();
        let manifest = Box::new(self.closing(looked).manifest(model, &trained.outcome, &totals));
        let saver = worker_tasks[0].worker;
        split_names(trained.dictionary, |names| self.send(saver, &ToWorker::Names { names }));
        self.send(saver, &ToWorker::Save { layout: layout.clone(), manifest });
        let (manifest, sync_s): (Manifest, f64) = loop {
            if let Some((_, FromWorker::Saved { manifest, sync_s })) = self.receive()? {
                break (*manifest, sync_s);
            }
        };
        self.timings.save_s = clock.elapsed().as_secs_f64();
        self.timings.sync_s = sync_s;
        self.timings.total_s = self.start.elapsed().as_secs_f64();
        let stats = self.servers.as_mut().map(Servers::stats).transpose()?;
        let (end, last) = (trained.outcome.end, trained.outcome.epochs.last().cloned());
        let closing = self.closing(looked);
        let report = closing.report(totals, json!(stats), trained.outcome, &manifest, self.timings, notices);
        let mut progress = self.standing.to_json(last.as_ref());
        progress.insert("ended_by".into(), json!(report.ended_by));
        progress.insert("model".into(), json!(report.model.path));
        self.link.progress(Value::Object(progress));
        let report = serde_json::to_value(report).expect("strings, numbers and lists are always JSON");
        Ok(JobResult { report, is_complete: end != StopReason::Interrupted })
    }

    /// Frees servers and workers after success and after failure.
    fn end(&mut self, error: Option<&Error>) {
        let reason = error.map(ToString::to_string);
        self.watch = None;
        if let Some(servers) = &mut self.servers {
            // An error is ignored: a lost server needs no closing.
            let _ = match &reason {
                Some(reason) => servers.close_failed_job(reason),
                None => servers.close_job("the job has ended"),
            };
        }
        for worker in &self.link.workers {
            self.send(worker.id, &ToWorker::End { reason: reason.clone() });
        }
        self.progress.clear();
    }
}
