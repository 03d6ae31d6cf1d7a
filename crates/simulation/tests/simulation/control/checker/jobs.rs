//! What must hold of jobs: they start with the members that they asked for, in order, and end once.

use std::collections::BTreeSet;

use control::JobState;
use rpc::message::JobId;

use super::super::client_port::is_over;
use super::{Checker, Job};

impl Checker<'_> {
    pub(super) fn submitted(&mut self, job: Option<JobId>, servers: u32, workers: u32) {
        let limit = self.scenario.settings.queued_job_limit;
        let is_full = self.count(JobState::Queued) >= limit;
        match job {
            None => {
                self.facts.refused += 1;
                if !is_full {
                    self.fault("a job is refused though the line is not full".into());
                }
            }
            Some(id) => {
                if is_full {
                    self.fault(format!("job {id} is taken, and {limit} wait already, the limit"));
                }
                if self.jobs.keys().next_back().is_some_and(|last| *last >= id) {
                    self.fault(format!("job number {id} is given again"));
                }
                let job = Job {
                    servers,
                    workers,
                    state: None,
                    members: Vec::new(),
                    is_started: false,
                    was_queued_long: false,
                    is_cancelled: false,
                    is_withdrawn: false,
                    told_cancelled: false,
                    mourns: BTreeSet::new(),
                    ended: None,
                };
                self.jobs.insert(id, job);
            }
        }
    }

    fn count(&self, state: JobState) -> usize {
        self.jobs.values().filter(|job| job.state == Some(state)).count()
    }

    fn here(&self, servers: bool) -> u32 {
        self.living.iter().filter(|seen| seen.is_connected && seen.is_server == servers).count() as u32
    }

    fn has_members(&self, job: &Job) -> bool {
        job.servers <= self.here(true) && job.workers <= self.here(false)
    }

    /// A job starts once, with the members that it asked for. It does not pass an earlier job that could start too.
    pub(super) fn started(&mut self, id: JobId, servers: &[u32], workers: &[u32]) {
        self.facts.starts += 1;
        let earlier = self
            .jobs
            .range(..id)
            .find(|(_, job)| job.state == Some(JobState::Queued) && !job.is_started && self.has_members(job));
        if let Some((earlier, _)) = earlier {
            let text = format!("job {id} starts before job {earlier}, which has its members too");
            self.fault(text);
        }
        let find = |id: &u32| self.living.iter().find(|seen| seen.id == *id && seen.is_connected);
        let all_here = servers.iter().all(|id| find(id).is_some_and(|seen| seen.is_server))
            && workers.iter().all(|id| find(id).is_some_and(|seen| !seen.is_server));
        let members: BTreeSet<u32> = servers.iter().chain(workers).copied().collect();
        let Some(job) = self.jobs.get_mut(&id) else {
            return self.fault(format!("job {id} starts, and was never submitted"));
        };
        let is_right = (servers.len(), workers.len()) == (job.servers as usize, job.workers as usize)
            && members.len() == servers.len() + workers.len();
        let is_due = !job.is_started && matches!(job.state, None | Some(JobState::Queued));
        self.facts.waited += u64::from(job.was_queued_long);
        job.is_started = true;
        job.members = members.into_iter().collect();
        if !is_right || !all_here || !is_due {
            let text = format!("job {id} starts on servers {servers:?} and workers {workers:?}: {job:?}");
            self.fault(text);
        }
    }

    pub(super) fn cancelled(&mut self, id: JobId, was_live: Option<bool>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let is_live = job.state.is_some_and(|state| !is_over(state));
        if was_live.is_some_and(|was_live| was_live != is_live) || was_live.is_none() && is_live {
            let text = format!("a cancel of job {id} is told was_live {was_live:?}: {job:?}");
            return self.fault(text);
        }
        job.is_cancelled |= job.state == Some(JobState::Running);
        job.is_withdrawn |= job.state == Some(JobState::Queued);
    }

    pub(super) fn told_cancelled(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if !job.is_cancelled || std::mem::replace(&mut job.told_cancelled, true) {
            let text = format!("the runner of job {id} is told that it is cancelled: {job:?}");
            self.fault(text);
        }
    }

    /// A job is queued, then running, then over, and never goes back. Its last state is the result of its runner.
    pub(super) fn check_job(&mut self, id: JobId, state: JobState) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return self.fault(format!("job {id} is shown, and was never submitted"));
        };
        let before = job.state.replace(state);
        job.was_queued_long |= before.is_none() && state == JobState::Queued;
        let ran = job.is_started;
        let is_right = match (state, job.ended) {
            (JobState::Queued, None) => before.is_none() && !ran,
            (JobState::Running, None) => before.is_none_or(|before| before == JobState::Queued) && ran,
            (JobState::Done, Some(true)) => true,
            (JobState::Failed, Some(false)) => !job.is_cancelled,
            (JobState::Cancelled, Some(false)) => job.is_cancelled,
            (JobState::Cancelled, None) => before.is_none_or(|before| before == JobState::Queued) && !ran,
            _ => false,
        };
        match state {
            JobState::Done => self.facts.done += 1,
            JobState::Failed => self.facts.failed += 1,
            JobState::Cancelled => self.facts.cancelled += 1,
            JobState::Queued | JobState::Running => {}
        }
        if !is_right || before.is_some_and(is_over) {
            let text = format!("job {id} becomes {state:?} after {before:?}: {job:?}");
            self.fault(text);
        }
    }

    pub(super) fn forgotten(&mut self, id: JobId, was_over: bool) {
        let ended = self.jobs.get(&id).is_some_and(|job| job.ended.is_some() || job.is_withdrawn);
        if !was_over && !ended {
            self.fault(format!("job {id} is forgotten and has not ended"));
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            // If the master lists few ended jobs, the final state of this one may not be visible.
            job.state = job.state.filter(|state| is_over(*state)).or(Some(JobState::Done));
        }
    }

    /// After each call: no lease has expired, no job waits that could start, and all reports that are due were sent.
    pub(super) fn check_all(&mut self) {
        let living: Vec<u32> = self.living.iter().map(|seen| seen.id).collect();
        for id in living {
            self.check_lease(id);
        }
        let running = self.count(JobState::Running);
        let limit = self.scenario.settings.running_job_limit;
        let mut found = Vec::new();
        if running > limit {
            found.push(format!("{running} jobs run, the limit is {limit}"));
        }
        for (id, job) in &self.jobs {
            if job.state == Some(JobState::Queued) && running < limit && self.has_members(job) {
                found.push(format!("job {id} waits, and has its members: {job:?}"));
            }
            if !job.mourns.is_empty() && job.ended.is_none() {
                found.push(format!("the runner of job {id} was not told who is gone: {job:?}"));
            }
            if job.is_cancelled && !job.told_cancelled {
                found.push(format!("the runner of job {id} was not told that it is cancelled: {job:?}"));
            }
            if job.ended.is_some() && job.state.is_none_or(|state| !is_over(state)) {
                found.push(format!("job {id} has ended, and is shown as something else: {job:?}"));
            }
        }
        for text in found {
            self.fault(text);
        }
    }

    pub(super) fn check_end(&mut self) {
        let open = self.jobs.iter().find(|(_, job)| job.state.is_none_or(|state| !is_over(state)));
        if let Some((id, job)) = open {
            let text = format!("job {id} has not ended at the end: {job:?}");
            self.fault(text);
        }
    }
}
