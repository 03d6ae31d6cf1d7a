//! Ticks, leaving and joining, and the end of waits that took too long.

use std::time::Duration;

use matrix::Error;
use matrix::error::SlowestTask;
use rpc::message::{FaultKind, JobId, Join, Joined, Leave, Message, PushPosition, Tick};

use crate::injected_fault::InjectedFault;
use crate::job::{DeferredCall, DeferredRequest, Job};
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// Delay after which a task may try again to join at a lane that still waits at an earlier barrier.
const JOIN_RETRY_DELAY: Duration = Duration::from_millis(10);

impl LaneState {
    pub(crate) fn tick(&mut self, at: ConnectionId, tick: Tick, out: &mut Vec<Effect>) {
        let Tick { request, job, task, clock } = tick;
        let result = self.check_task(at, job, task).and_then(|()| {
            let open = self.job(job)?;
            if let Some(known) = open.clock_table.last_clock(task).filter(|known| clock <= *known) {
                // This is a repeat. It may come after the task has left: the connection broke before the task got the
                // answer.
                return Ok(known);
            }
            open.clock_table
                .advance(task, clock)
                .map_err(|fault| Refusal::from_clock_fault(task, "tick", fault))
        });
        match result {
            Ok(_) => {
                self.ready.add_job(job);
                self.reply_done(at, request, job, out);
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    pub(crate) fn leave(&mut self, at: ConnectionId, leave: Leave, out: &mut Vec<Effect>) {
        let Leave { request, job, task } = leave;
        let result = self.check_task_or_tool(at, job, task).and_then(|()| {
            let open = self.job(job)?;
            let count = open.clock_table.task_count();
            if task >= count {
                let text = format!("job {job} has no task {task}: it has {count}, numbered from 0");
                return Err(Refusal::new(FaultKind::NotFound, text));
            }
            open.clock_table.finish(task);
            open.barrier.leave(task);
            Ok(())
        });
        match result {
            Ok(()) => {
                if !self.config.injects(InjectedFault::RemovedTaskKeepsWaiters) {
                    self.ready.add_job(job);
                }
                self.reply_done(at, request, job, out);
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    pub(crate) fn join(&mut self, at: ConnectionId, join: Join, out: &mut Vec<Effect>) {
        let Join { request, job, task, generation } = join;
        let lates_wait = self.config.injects(InjectedFault::LateTasksWait);
        let result = self.job(job).and_then(|open| {
            let count = open.clock_table.task_count();
            if task > count {
                let text = format!("task {task} cannot join job {job}: the next number is {count}");
                return Err(Refusal::new(FaultKind::Invalid, text));
            }
            if task == count {
                open.admit_task(task, generation, lates_wait)?;
            }
            let clock = open
                .clock_table
                .clock(task)
                .map_err(|fault| Refusal::from_clock_fault(task, "join", fault))?;
            Ok((clock, open.barrier.joined_generation(task)))
        });
        match result {
            Ok((clock, generation)) => {
                // If no other task was live, the requests that wait now wait for the new task.
                self.ready.add_job(job);
                let joined = Message::Joined(Joined { request, clock, generation });
                out.push(Effect::Send { connection: at, message: joined });
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    fn check_task_or_tool(&self, at: ConnectionId, job: JobId, task: u32) -> Result<(), Refusal> {
        match self.task_at(at) {
            Some(_) => self.check_task(at, job, task),
            None => Ok(()),
        }
    }

    /// Ends the waits that have reached the limit of their job. Nothing behind an expired push may be applied, so its
    /// connection is closed.
    pub(crate) fn expire_waits(&mut self, now: Duration, out: &mut Vec<Effect>) {
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in jobs {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let (limit, slowest) = (job.wait_limit(), job.clock_table.slowest_task());
            let late: Vec<u64> = expired_requests(job, now).collect();
            for arrival in late {
                let Some(deferred) =
                    self.jobs.get_mut(&id).and_then(|job| job.deferred_requests.remove(&arrival))
                else {
                    continue;
                };
                self.expire_request(now, id, &deferred, slowest, out);
            }
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            for (waiting, task) in job.barrier.take_expired(now, limit) {
                let purpose = "at a barrier".to_owned();
                let clock = job.clock_table.last_clock(task).unwrap_or(0);
                let waited = now.saturating_sub(waiting.since);
                job.stats.count_wait(waited);
                let refusal = waited_too_long(task, clock, waited, purpose, slowest);
                self.stats.count_refusal(refusal.kind);
                let message = Message::Fault(refusal.into_fault(waiting.request));
                out.push(Effect::Send { connection: waiting.connection, message });
            }
        }
    }

    fn expire_request(
        &mut self,
        now: Duration,
        id: JobId,
        deferred: &DeferredRequest,
        slowest: Option<(u32, u64)>,
        out: &mut Vec<Effect>,
    ) {
        let waited = now.saturating_sub(deferred.since);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.stats.count_wait(waited);
        let name = job.name_of(deferred.matrix);
        let purpose = match &deferred.call {
            DeferredCall::Pull(_) => format!("to pull from matrix {name:?}"),
            DeferredCall::PullFunction(pull) => format!("to pull {:?} from matrix {name:?}", pull.call.name),
            DeferredCall::TryFunction(_) => format!("to try functions on matrix {name:?}"),
            DeferredCall::Push => format!("to push to matrix {name:?}"),
        };
        let refusal = waited_too_long(deferred.task, deferred.clock, waited, purpose, slowest);
        self.deferred_bytes -= deferred.bytes;
        self.refuse(deferred.connection, deferred.request, refusal, out);
        if let DeferredCall::Push = deferred.call {
            self.close(now, deferred.connection, out);
        }
    }
}

impl Job {
    /// Adds a task. It takes part in all barriers from the one that is open at the home lane. If an earlier barrier is
    /// open here, its waiters would wait for a task that does not come: the task can join when that barrier is passed,
    /// as it is at the home lane. If a later barrier is open here, the other tasks wait at the home lane for the new
    /// task: it must not wait for their clocks here.
    fn admit_task(&mut self, task: u32, generation: u32, lates_wait: bool) -> Result<(), Refusal> {
        let open = self.clock_table.generation();
        let generation = if self.open_request.home { open } else { u64::from(generation) };
        if open < generation {
            let text = format!(
                "task {task} takes part in barriers from number {generation} on, but number {open} is open on \
                 this lane: retry"
            );
            return Err(Refusal::new(FaultKind::Busy, text).retry_after(JOIN_RETRY_DELAY));
        }
        if open > generation && !lates_wait {
            self.clock_table.join_late();
        } else {
            self.clock_table.join();
        }
        self.marks.push(PushPosition::default());
        self.connections.push(None);
        self.barrier.join(generation);
        Ok(())
    }

    /// The time at which the first wait expires.
    pub(crate) fn next_time(&self) -> Option<Duration> {
        let limit = self.wait_limit();
        let deferred = self.deferred_requests.values().map(|deferred| deferred.expires_at(limit));
        deferred.chain(self.barrier.deadlines(limit)).min()
    }
}

fn expired_requests(job: &Job, now: Duration) -> impl Iterator<Item = u64> {
    let limit = job.wait_limit();
    job.deferred_requests
        .iter()
        .filter(move |(_, deferred)| deferred.expires_at(limit) <= now)
        .map(|(arrival, _)| *arrival)
}

fn waited_too_long(
    task: u32,
    clock: u64,
    waited: Duration,
    purpose: String,
    slowest: Option<(u32, u64)>,
) -> Refusal {
    let waited_for = SlowestTask { task_and_clock: slowest };
    Error::WaitTimeout { task, clock, seconds: waited.as_secs_f64(), purpose, waited_for }.into()
}
