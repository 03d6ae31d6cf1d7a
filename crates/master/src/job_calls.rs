//! What clients do to jobs: submit, watch, cancel; and how a job ends.

use control::limits::{ERROR_BYTES, PROGRESS_BYTES};
use control::{ClientId, ClientResponse, JobState, JobSubmission, SubmissionId, text};
use rpc::message::{FaultKind, JobId};
use serde_json::{Value, json};

use crate::jobs::{SubmissionKey, digest};
use crate::record::{RecordChange, Standing, SubmittedJob};
use crate::runner::JobEvent;
use crate::state::MasterState;

/// The documented exit code of a command that could not write.
const WRITE_FAILED_EXIT: u8 = 5;

impl MasterState {
    pub(crate) fn on_submit(
        &mut self,
        client: ClientId,
        submission_id: SubmissionId,
        submission: JobSubmission,
    ) {
        let (digest, bytes) = digest(&submission);
        let known = self.jobs.iter().find_map(|job| {
            let known = job.submission_key.as_ref().filter(|known| known.id == submission_id)?;
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
        let JobSubmission { title, spec, servers, workers, worker_group } = submission.clone();
        let id = self.jobs.add(submission, Some(SubmissionKey { id: submission_id, digest, bytes }));
        let (submission_id, digest) = (submission_id.0, format!("{digest:x}"));
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
