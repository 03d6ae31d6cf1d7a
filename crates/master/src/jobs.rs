//! Jobs: queued until they have their members, run by a runner, watched, cancelled, and stored for a while after their
//! end.

use std::collections::BTreeMap;

use control::limits::{ERROR_BYTES, PROGRESS_BYTES, REPORT_BYTES, TITLE_BYTES};
use control::{CallResult, ClientId, ClientResponse, JobState, JobStatus, JobSubmission, SubmissionId, text};
use rpc::message::{FaultKind, JobId};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::record::{RecordChange, Records, Standing, SubmittedJob};
use crate::runner::JobEvent;
use crate::state::MasterState;

/// The documented exit code of a command that could not write.
const WRITE_FAILED_EXIT: u8 = 5;

/// A job with its members and watchers.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) status: JobStatus,
    pub(crate) submission: JobSubmission,
    /// Numbers of its members, while it runs; empty while it waits for others.
    pub(crate) members: Vec<u32>,
    /// The number by which its members know it.
    pub(crate) run: JobId,
    /// Numbers of its last runs under earlier masters.
    earlier_runs: Vec<JobId>,
    /// Whether it has lost a member and waits for others.
    pub(crate) waits_for_members: bool,
    pub(crate) cancelled: bool,
    /// The report of the runner as JSON, for requests of this job by its number, while there is room.
    report: Option<String>,
    /// What its runner wants to find again under another master.
    pub(crate) recorded: Value,
    /// `None` for a session of the parameter service.
    submission_key: Option<SubmissionKey>,
    watchers: Vec<ClientId>,
}

/// Identifies a repeat of a submission, with a digest that checks that it submits the same job.
#[derive(Debug)]
struct SubmissionKey {
    id: SubmissionId,
    digest: u128,
    /// Number of bytes of the job as it was submitted.
    bytes: u64,
}

/// All stored jobs, by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    last_id: JobId,
    /// The last number that was recorded.
    recorded_last_id: JobId,
    pub(crate) all: BTreeMap<JobId, Job>,
}

impl Jobs {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.all.values()
    }

    pub(crate) fn count(&self, state: JobState) -> usize {
        self.iter().filter(|job| job.status.state == state).count()
    }

    pub(crate) fn ids(&self, wanted: impl Fn(&Job) -> bool) -> Vec<JobId> {
        self.iter().filter(|job| wanted(job)).map(|job| job.status.id).collect()
    }

    /// Running jobs that a member belongs to.
    pub(crate) fn running_with(&self, member: u32) -> Vec<JobId> {
        self.ids(|job| job.status.state == JobState::Running && job.members.contains(&member))
    }

    /// The runs that a member is part of, by the numbers by which it knows them.
    pub(crate) fn runs_of(&self, member: u32) -> Vec<JobId> {
        self.running_with(member).iter().filter_map(|id| Some(self.all.get(id)?.run)).collect()
    }

    /// The job that a member knows by this number, if it runs with the member.
    pub(crate) fn of_run(&self, run: JobId, member: u32) -> Option<JobId> {
        let is_it = |job: &&Job| {
            job.run == run && job.status.state == JobState::Running && job.members.contains(&member)
        };
        self.iter().find(is_it).map(|job| job.status.id)
    }

    /// A number that no job and no run has.
    pub(crate) fn next_id(&mut self) -> JobId {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn unwatch(&mut self, client: ClientId) {
        for job in self.all.values_mut() {
            job.watchers.retain(|watcher| *watcher != client);
        }
    }

    /// The last number, if it has changed since the last call.
    pub(crate) fn take_last_id(&mut self) -> Option<JobId> {
        let last = self.last_id;
        (std::mem::replace(&mut self.recorded_last_id, last) != last).then_some(last)
    }

    /// Takes over the jobs of an earlier master. Returns the runs that members may still be part of, and whose jobs go on
    /// with other numbers.
    pub(crate) fn restore(&mut self, records: Records) -> Vec<JobId> {
        self.last_id = records.last_id;
        let mut continued = Vec::new();
        for (job, standing) in records.jobs {
            let id = job.job;
            let digest = u128::from_str_radix(&job.digest, 16).unwrap_or_default();
            let key = SubmissionKey { id: job.id(), digest, bytes: job.bytes };
            let mut restored = Job::new(id, job.submission(), Some(key));
            let is_cut = standing.is_cancelled && !standing.state.is_over();
            restored.status.error = standing.error;
            restored.recorded = standing.runner;
            restored.earlier_runs = standing.earlier_runs;
            restored.status.state = match standing.state {
                _ if is_cut => JobState::Cancelled,
                JobState::Running => JobState::Queued,
                state => state,
            };
            if standing.state == JobState::Running {
                restored.earlier_runs.push(standing.run);
                restored.run = self.next_id();
            }
            if !standing.state.is_over() {
                continued.extend(&restored.earlier_runs);
            }
            if is_cut {
                restored.status.error = Some(
                    "the master ended before the cancelled job was saved; its checkpoints are kept".into(),
                );
            }
            if restored.status.state.is_over() {
                restored.submission.spec = Value::Null;
            }
            self.all.insert(id, restored);
        }
        continued
    }

    /// Adds a session to the queue.
    pub(crate) fn add_session(&mut self, order: JobSubmission) -> JobId {
        self.add(order, None)
    }

    fn add(&mut self, order: JobSubmission, submission: Option<SubmissionKey>) -> JobId {
        let id = self.next_id();
        self.all.insert(id, Job::new(id, order, submission));
        id
    }

    /// Number of jobs that run and are no sessions.
    pub(crate) fn working_count(&self) -> usize {
        self.iter().filter(|job| job.status.state == JobState::Running && !job.is_session()).count()
    }

    /// Bytes of the queued jobs, as they were submitted.
    fn queued_bytes(&self) -> u64 {
        let queued = self.iter().filter(|job| job.status.state == JobState::Queued);
        queued.filter_map(|job| job.submission_key.as_ref()).map(|submission| submission.bytes).sum()
    }

    /// Bytes of the reports of jobs that have ended.
    pub(crate) fn report_bytes(&self) -> u64 {
        self.iter().filter_map(|job| job.report.as_ref()).map(|report| report.len() as u64).sum()
    }

    /// Removes the oldest ended jobs above `limit`, then the oldest reports above `report_limit_bytes`. Returns the jobs
    /// that were removed.
    fn forget_ended(&mut self, limit: usize, report_limit_bytes: u64) -> Vec<Job> {
        let ended = self.ids(|job| job.status.state.is_over());
        let excess_count = ended.len().saturating_sub(limit);
        let removed = ended[..excess_count].iter().filter_map(|id| self.all.remove(id)).collect();
        let mut excess = self.report_bytes().saturating_sub(report_limit_bytes);
        for job in self.all.values_mut() {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(job.report.take().map_or(0, |report| report.len() as u64));
        }
        removed
    }
}

impl Job {
    fn new(id: JobId, order: JobSubmission, submission_key: Option<SubmissionKey>) -> Self {
        let title = text::plain(&order.title, TITLE_BYTES);
        Self {
            status: JobStatus {
                id,
                title: title.clone(),
                state: JobState::Queued,
                progress: Value::Null,
                error: None,
            },
            submission: JobSubmission { title, ..order },
            members: Vec::new(),
            run: id,
            earlier_runs: Vec::new(),
            waits_for_members: false,
            cancelled: false,
            report: None,
            recorded: Value::Null,
            submission_key,
            watchers: Vec::new(),
        }
    }

    pub(crate) fn is_session(&self) -> bool {
        self.submission_key.is_none()
    }

    pub(crate) fn notify_watchers(&mut self, answers: &mut Vec<(ClientId, CallResult)>) {
        for client in &self.watchers {
            answers.push((*client, Ok(ClientResponse::Job(self.status.clone()))));
        }
    }

    /// Sends the end of the job to all watchers, with the whole report unless it is too long for an answer.
    fn notify_end(&mut self, report: Option<Value>, answers: &mut Vec<(ClientId, CallResult)>) {
        let text = report.as_ref().map(Value::to_string).filter(|text| text.len() <= REPORT_BYTES);
        let status = match report.filter(|_| text.is_some()) {
            Some(report) => JobStatus { progress: report, ..self.status.clone() },
            None => self.status.clone(),
        };
        for client in std::mem::take(&mut self.watchers) {
            answers.push((client, Ok(ClientResponse::Job(status.clone()))));
        }
        self.report = text;
    }

    /// The status of the job with its stored report.
    fn with_report(&self) -> JobStatus {
        let report = self.report.as_ref().and_then(|text| serde_json::from_str(text).ok());
        match report {
            Some(progress) => JobStatus { progress, ..self.status.clone() },
            None => self.status.clone(),
        }
    }
}

/// A digest of the submission and its number of bytes. Equal submissions have equal digests; for different ones a
/// collision is not expected in practice.
fn digest(order: &JobSubmission) -> (u128, u64) {
    let JobSubmission { title, spec, servers, workers, worker_group } = order;
    let mut bytes = spec.to_string().into_bytes();
    let group = Some(worker_group.as_bytes()).filter(|group| !group.is_empty());
    for part in [title.as_bytes(), &servers.to_le_bytes(), &workers.to_le_bytes()].into_iter().chain(group) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    (xxh3_128(&bytes), bytes.len() as u64)
}

impl MasterState {
    pub(crate) fn on_submit(&mut self, client: ClientId, submission: SubmissionId, order: JobSubmission) {
        let (digest, bytes) = digest(&order);
        let known = self.jobs.iter().find_map(|job| {
            let known = job.submission_key.as_ref().filter(|known| known.id == submission)?;
            Some((job.status.id, known.digest == digest))
        });
        if let Some((id, is_same)) = known {
            if is_same {
                return self.answer(client, ClientResponse::Submitted { job: id });
            }
            let text = format!(
                "this submission id was used for job {id}, which is another job: use a new id for each job"
            );
            return self.refuse_client(client, FaultKind::Invalid, text);
        }
        let limit = self.settings.queued_job_limit;
        if self.jobs.count(JobState::Queued) >= limit {
            let text =
                format!("{limit} jobs are queued, the limit (queued_job_limit): cancel one, or retry later");
            return self.refuse_client(client, FaultKind::Busy, text);
        }
        let limit = self.settings.queued_limit_bytes;
        if self.jobs.queued_bytes() + bytes > limit {
            let text = format!(
                "the queued jobs would have more than {limit} bytes, the limit (queued_limit_bytes): retry later"
            );
            return self.refuse_client(client, FaultKind::Busy, text);
        }
        let JobSubmission { title, spec, servers, workers, worker_group } = order.clone();
        let id = self.jobs.add(order, Some(SubmissionKey { id: submission, digest, bytes }));
        let (submission_id, digest) = (submission.0, format!("{digest:x}"));
        let job = SubmittedJob {
            job: id,
            title,
            spec,
            servers,
            workers,
            worker_group,
            submission_id,
            digest,
            bytes,
        };
        self.changes.push(RecordChange::Submitted(Box::new(job)));
        self.answer(client, ClientResponse::Submitted { job: id });
        self.start_ready_jobs();
    }

    pub(crate) fn on_cancel(&mut self, client: ClientId, id: JobId) {
        let Some(job) = self.jobs.all.get(&id) else {
            return self.refuse_job(client, id);
        };
        let was_live = !job.status.state.is_over();
        self.answer(client, ClientResponse::Cancelled { was_live });
        self.cancel(id);
    }

    pub(crate) fn on_checkpoint(&mut self, client: ClientId, id: JobId) {
        let Some(job) = self.jobs.all.get(&id) else {
            return self.refuse_job(client, id);
        };
        let problem = match job.status.state {
            JobState::Running if job.is_session() => {
                "is a session of the parameter service: only its host writes checkpoints"
            }
            JobState::Running if job.waits_for_members => "waits for members: retry when it runs again",
            JobState::Running => {
                self.send_to_runner(id, JobEvent::CheckpointRequested);
                return self.answer(client, ClientResponse::CheckpointRequested);
            }
            JobState::Queued => "is queued: it has nothing to save before it runs",
            JobState::Done | JobState::Failed | JobState::Cancelled => "has ended",
        };
        self.refuse_client(client, FaultKind::Invalid, format!("job {id} {problem}"));
    }

    fn cancel(&mut self, id: JobId) {
        let Some(job) = self.jobs.all.get_mut(&id) else { return };
        match job.status.state {
            JobState::Queued => {
                job.status.progress = Value::Null;
                self.end(id, JobState::Cancelled, None);
            }
            JobState::Running if !job.cancelled => {
                job.cancelled = true;
                self.record(id);
                self.send_to_runner(id, JobEvent::Cancelled);
            }
            JobState::Running | JobState::Done | JobState::Failed | JobState::Cancelled => {}
        }
    }

    /// Records where a job stands. Sessions end with their master.
    pub(crate) fn record(&mut self, id: JobId) {
        let Some(job) = self.jobs.all.get(&id).filter(|job| !job.is_session()) else { return };
        let standing = Standing {
            state: job.status.state,
            run: job.run,
            earlier_runs: job.earlier_runs.clone(),
            runner: job.recorded.clone(),
            is_cancelled: job.cancelled,
            error: job.status.error.clone(),
        };
        self.changes.push(RecordChange::Moved { job: id, standing });
    }

    /// Fails a job that could not be recorded. Its progress has the exit code of a command that could not write.
    pub(crate) fn fail_unrecorded(&mut self, id: JobId, error: &str) {
        if let Some(job) = self.jobs.all.get_mut(&id) {
            job.status.progress = json!({ "exit": WRITE_FAILED_EXIT });
            job.status.error = Some(text::plain_lines(error, ERROR_BYTES));
            self.end(id, JobState::Failed, None);
        }
    }

    pub(crate) fn is_running(&self, id: JobId) -> bool {
        self.jobs.all.get(&id).is_some_and(|job| job.status.state == JobState::Running)
    }

    /// Cancels all jobs that have not ended.
    pub(crate) fn cancel_all(&mut self) {
        for id in self.jobs.ids(|job| !job.status.state.is_over()) {
            self.cancel(id);
        }
    }

    pub(crate) fn running_count(&self) -> usize {
        self.jobs.count(JobState::Running)
    }

    pub(crate) fn on_watch(&mut self, client: ClientId, id: JobId) {
        let limit = self.settings.watcher_limit;
        let Some(job) = self.jobs.all.get_mut(&id) else {
            return self.refuse_job(client, id);
        };
        if job.watchers.len() >= limit {
            let text = format!("{limit} clients watch job {id}, the limit (watcher_limit)");
            return self.refuse_client(client, FaultKind::Busy, text);
        }
        if !job.status.state.is_over() {
            job.watchers.push(client);
        }
        let status = job.with_report();
        self.answer(client, ClientResponse::Job(status));
    }

    fn refuse_job(&mut self, client: ClientId, id: JobId) {
        let last = self.jobs.last_id;
        let text =
            format!("no job {id}: the last job is {last}, and the master forgets ended jobs after some time");
        self.refuse_client(client, FaultKind::NoSuchJob, text);
    }

    pub(crate) fn set_progress(&mut self, id: JobId, progress: Value) {
        let Some(job) = self.jobs.all.get_mut(&id) else { return };
        if progress.to_string().len() > PROGRESS_BYTES {
            tracing::warn!(job = id, "progress of more than {PROGRESS_BYTES} bytes is not shown");
            return;
        }
        if job.status.progress != progress {
            job.status.progress = progress;
            job.notify_watchers(&mut self.responses);
        }
    }

    pub(crate) fn end(&mut self, id: JobId, state: JobState, report: Option<Value>) {
        if let Some(job) = self.jobs.all.get_mut(&id) {
            job.status.state = state;
            job.members.clear();
            job.waits_for_members = false;
            job.submission.spec = Value::Null;
            job.notify_end(report, &mut self.responses);
        }
        self.record(id);
        let forgotten =
            self.jobs.forget_ended(self.settings.ended_job_limit, self.settings.report_limit_bytes);
        let forgotten = forgotten.iter().filter(|job| !job.is_session());
        self.changes.extend(forgotten.map(|job| RecordChange::Forgotten { job: job.status.id }));
        self.start_ready_jobs();
    }
}
