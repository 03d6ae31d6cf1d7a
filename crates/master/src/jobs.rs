//! Jobs: queued until they have their members, run by a runner, watched, cancelled, and stored for a while after their
//! end.

use std::collections::BTreeMap;

use control::limits::{REPORT_BYTES, TITLE_BYTES};
use control::{CallResult, ClientId, ClientResponse, JobState, JobStatus, JobSubmission, SubmissionId, text};
use rpc::message::JobId;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::record::Records;

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
    pub(crate) earlier_runs: Vec<JobId>,
    /// Whether it has lost a member and waits for others.
    pub(crate) waits_for_members: bool,
    pub(crate) cancelled: bool,
    /// The report of the runner as JSON, for requests of this job by its number, while there is room.
    pub(crate) report: Option<String>,
    /// What its runner wants to find again under another master.
    pub(crate) recorded: Value,
    /// `None` for a session of the parameter service.
    pub(crate) submission_key: Option<SubmissionKey>,
    pub(crate) watchers: Vec<ClientId>,
}

/// Identifies a repeat of a submission, with a digest that checks that it submits the same job.
#[derive(Debug)]
pub(crate) struct SubmissionKey {
    pub(crate) id: SubmissionId,
    pub(crate) digest: u128,
    /// Number of bytes of the job as it was submitted.
    pub(crate) bytes: u64,
}

/// All stored jobs, by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) last_id: JobId,
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
    pub(crate) fn add_session(&mut self, submission: JobSubmission) -> JobId {
        self.add(submission, None)
    }

    pub(crate) fn add(&mut self, submission: JobSubmission, key: Option<SubmissionKey>) -> JobId {
        let id = self.next_id();
        self.all.insert(id, Job::new(id, submission, key));
        id
    }

    /// Number of jobs that run and are no sessions.
    pub(crate) fn working_count(&self) -> usize {
        self.iter().filter(|job| job.status.state == JobState::Running && !job.is_session()).count()
    }

    /// Bytes of the queued jobs, as they were submitted.
    pub(crate) fn queued_bytes(&self) -> u64 {
        let queued = self.iter().filter(|job| job.status.state == JobState::Queued);
        queued.filter_map(|job| job.submission_key.as_ref()).map(|key| key.bytes).sum()
    }

    /// Bytes of the reports of jobs that have ended.
    pub(crate) fn report_bytes(&self) -> u64 {
        self.iter().filter_map(|job| job.report.as_ref()).map(|report| report.len() as u64).sum()
    }

    /// Removes the oldest ended jobs above `limit`, then the oldest reports above `report_limit_bytes`. Returns the jobs
    /// that were removed.
    pub(crate) fn forget_ended(&mut self, limit: usize, report_limit_bytes: u64) -> Vec<Job> {
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
    fn new(id: JobId, submission: JobSubmission, submission_key: Option<SubmissionKey>) -> Self {
        let title = text::plain(&submission.title, TITLE_BYTES);
        Self {
            status: JobStatus {
                id,
                title: title.clone(),
                state: JobState::Queued,
                progress: Value::Null,
                error: None,
            },
            submission: JobSubmission { title, ..submission },
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
    pub(crate) fn notify_end(&mut self, report: Option<Value>, answers: &mut Vec<(ClientId, CallResult)>) {
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
    pub(crate) fn with_report(&self) -> JobStatus {
        let report = self.report.as_ref().and_then(|text| serde_json::from_str(text).ok());
        match report {
            Some(progress) => JobStatus { progress, ..self.status.clone() },
            None => self.status.clone(),
        }
    }
}

/// A digest of the submission and its number of bytes. Equal submissions have equal digests; for different ones a
/// collision is not expected in practice.
pub(crate) fn digest(submission: &JobSubmission) -> (u128, u64) {
    let JobSubmission { title, spec, servers, workers, worker_group } = submission;
    let mut bytes = spec.to_string().into_bytes();
    let group = Some(worker_group.as_bytes()).filter(|group| !group.is_empty());
    for part in [title.as_bytes(), &servers.to_le_bytes(), &workers.to_le_bytes()].into_iter().chain(group) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    (xxh3_128(&bytes), bytes.len() as u64)
}
