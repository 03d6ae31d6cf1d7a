//! Jobs: queued until their members are there, run by a runner, watched, cancelled, kept for a while when they have ended.

use std::collections::BTreeMap;

use rpc::message::{ControlBody, FaultKind, JobId, JobState, JobStatus, RequestId};
use rpc::service::{ConnectionId, Effect};
use serde_json::Value;

use crate::runner::Event;
use crate::state::{MasterState, say};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) title: String,
    pub(crate) spec: Value,
    pub(crate) servers: u32,
    pub(crate) workers: u32,
    /// A session of the parameter service.
    pub(crate) is_session: bool,
}

/// A job and who is concerned.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) status: JobStatus,
    pub(crate) order: Order,
    /// Numbers of its members, while it runs.
    pub(crate) members: Vec<u32>,
    pub(crate) cancelled: bool,
    watchers: Vec<(ConnectionId, RequestId)>,
}

/// All jobs that are remembered, by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    last_id: JobId,
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

    pub(crate) fn runs_with(&self, job: JobId, member: u32) -> bool {
        let runs = |job: &Job| job.status.state == JobState::Running && job.members.contains(&member);
        self.all.get(&job).is_some_and(runs)
    }

    pub(crate) fn unwatch(&mut self, connection: ConnectionId) {
        for job in self.all.values_mut() {
            job.watchers.retain(|(watcher, _)| *watcher != connection);
        }
    }

    /// A new job, which waits.
    pub(crate) fn add(&mut self, order: Order) -> JobId {
        self.last_id += 1;
        let id = self.last_id;
        let title = order.title.clone();
        let status = JobStatus { id, title, state: JobState::Queued, progress: Value::Null, error: None };
        let job = Job { status, order, members: Vec::new(), cancelled: false, watchers: Vec::new() };
        self.all.insert(id, job);
        id
    }

    /// Jobs that run and are no sessions.
    pub(crate) fn working_count(&self) -> usize {
        self.iter().filter(|job| job.status.state == JobState::Running && !job.order.is_session).count()
    }

    fn forget_ended(&mut self, limit: usize) {
        let ended = self.ids(|job| is_over(job.status.state));
        for id in ended.iter().take(ended.len().saturating_sub(limit)) {
            self.all.remove(id);
        }
    }
}

fn is_over(state: JobState) -> bool {
    match state {
        JobState::Queued | JobState::Running => false,
        JobState::Done | JobState::Failed | JobState::Cancelled => true,
    }
}

impl Job {
    pub(crate) fn tell_watchers(&mut self, out: &mut Vec<Effect>) {
        for (connection, request) in &self.watchers {
            out.push(say(*connection, *request, ControlBody::JobNews { status: self.status.clone() }));
        }
        if is_over(self.status.state) {
            self.watchers.clear();
        }
    }
}

impl MasterState {
    pub(crate) fn on_submit(
        &mut self,
        from: ConnectionId,
        request: RequestId,
        order: Order,
        out: &mut Vec<Effect>,
    ) {
        let limit = self.settings.queued_job_limit;
        if self.jobs.count(JobState::Queued) >= limit {
            let text =
                format!("{limit} jobs wait already, the limit (queued_job_limit): cancel one, or come later");
            return self.refuse(from, request, FaultKind::Busy, text, out);
        }
        let id = self.jobs.add(order);
        out.push(say(from, request, ControlBody::Submitted { job: id }));
        self.start_what_can(out);
    }

    pub(crate) fn on_cancel(
        &mut self,
        from: ConnectionId,
        request: RequestId,
        id: JobId,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.all.get(&id) else {
            return self.refuse_job(from, request, id, out);
        };
        let was_live = !is_over(job.status.state);
        out.push(say(from, request, ControlBody::Cancelled { was_live }));
        self.cancel(id, out);
    }

    fn cancel(&mut self, id: JobId, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.all.get_mut(&id) else { return };
        match job.status.state {
            JobState::Queued => {
                job.status.progress = Value::Null;
                self.end(id, JobState::Cancelled, out);
            }
            JobState::Running if !job.cancelled => {
                job.cancelled = true;
                self.tell_runner(id, Event::Cancelled);
            }
            JobState::Running | JobState::Done | JobState::Failed | JobState::Cancelled => {}
        }
    }

    /// Cancels all that lives.
    pub(crate) fn cancel_all(&mut self, out: &mut Vec<Effect>) {
        for id in self.jobs.ids(|job| !is_over(job.status.state)) {
            self.cancel(id, out);
        }
    }

    pub(crate) fn running_count(&self) -> usize {
        self.jobs.count(JobState::Running)
    }

    pub(crate) fn on_watch(
        &mut self,
        from: ConnectionId,
        request: RequestId,
        id: JobId,
        out: &mut Vec<Effect>,
    ) {
        let limit = self.settings.watcher_limit;
        let Some(job) = self.jobs.all.get_mut(&id) else {
            return self.refuse_job(from, request, id, out);
        };
        if job.watchers.len() >= limit {
            let text = format!("{limit} connections watch job {id}, the limit (watcher_limit)");
            return self.refuse(from, request, FaultKind::Busy, text, out);
        }
        out.push(say(from, request, ControlBody::JobNews { status: job.status.clone() }));
        if !is_over(job.status.state) {
            job.watchers.push((from, request));
        }
    }

    fn refuse_job(&mut self, from: ConnectionId, request: RequestId, id: JobId, out: &mut Vec<Effect>) {
        let last = self.jobs.last_id;
        let text = format!(
            "no job {id} is known here: the last one is {last}, and ended ones are forgotten after a while"
        );
        self.refuse(from, request, FaultKind::NoSuchJob, text, out);
    }

    pub(crate) fn set_progress(&mut self, id: JobId, progress: Value, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.all.get_mut(&id) else { return };
        if job.status.progress != progress {
            job.status.progress = progress;
            job.tell_watchers(out);
        }
    }

    pub(crate) fn end(&mut self, id: JobId, state: JobState, out: &mut Vec<Effect>) {
        if let Some(job) = self.jobs.all.get_mut(&id) {
            job.status.state = state;
            job.members.clear();
            job.order.spec = Value::Null;
            job.tell_watchers(out);
        }
        self.jobs.forget_ended(self.settings.ended_job_limit);
        self.start_what_can(out);
    }
}
