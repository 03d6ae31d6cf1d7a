//! Ticks, leaving and joining; and the end of waits that took too long.

use std::time::Duration;

use matrix::Error;
use matrix::error::Holdup;
use rpc::message::{FaultKind, JobId, Join, Joined, Leave, Mark, Message, Tick};

use crate::broken::Broken;
use crate::job::{Held, HeldWhat, Job};
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// After so long a lane where a barrier is still open is asked again to let a task in.
const JOIN_PAUSE: Duration = Duration::from_millis(10);

impl LaneState {
    pub(crate) fn tick(&mut self, at: ConnectionId, tick: Tick, out: &mut Vec<Effect>) {
        let Tick { request, job, task, clock } = tick;
        let result = self.check_task(at, job, task).and_then(|()| {
            let open = self.job(job)?;
            if let Some(known) = open.table.last_clock(task).filter(|known| clock <= *known) {
                // A repeat, also behind the end of the task: the connection broke before it heard that it had left.
                return Ok(known);
            }
            open.table.advance(task, clock).map_err(|fault| Refusal::of_task(task, "tick", fault))
        });
        match result {
            Ok(_) => {
                self.changed.insert(job);
                self.done(at, request, job, out);
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    pub(crate) fn leave(&mut self, at: ConnectionId, leave: Leave, out: &mut Vec<Effect>) {
        let Leave { request, job, task } = leave;
        let result = self.check_task_or_tool(at, job, task).and_then(|()| {
            let open = self.job(job)?;
            let count = open.table.task_count();
            if task >= count {
                let text = format!("job {job} has no task {task}: it has {count}, numbered from 0");
                return Err(Refusal::new(FaultKind::NotFound, text));
            }
            open.table.finish(task);
            open.barriers.leave(task);
            Ok(())
        });
        match result {
            Ok(()) => {
                if !self.config.lacks(Broken::RemovedTaskKeepsWaiters) {
                    self.changed.insert(job);
                }
                self.done(at, request, job, out);
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    pub(crate) fn join(&mut self, at: ConnectionId, join: Join, out: &mut Vec<Effect>) {
        let Join { request, job, task, generation } = join;
        let lates_wait = self.config.lacks(Broken::LateTasksWait);
        let result = self.job(job).and_then(|open| {
            let count = open.table.task_count();
            if task > count {
                let text = format!("task {task} cannot join job {job}: the next number is {count}");
                return Err(Refusal::new(FaultKind::Invalid, text));
            }
            if task == count {
                open.let_in(task, generation, lates_wait)?;
            }
            let clock = open.table.clock(task).map_err(|fault| Refusal::of_task(task, "join", fault))?;
            Ok((clock, open.barriers.joined_at(task)))
        });
        match result {
            Ok((clock, generation)) => {
                // With nobody live before, those who wait now wait for the new task.
                self.changed.insert(job);
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

    /// Ends the waits that have reached the limit of their job. Nothing behind a push that is given up may be applied, so
    /// that its connection is closed.
    pub(crate) fn give_up_waits(&mut self, now: Duration, out: &mut Vec<Effect>) {
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in jobs {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let (limit, slowest) = (job.wait_limit(), job.table.who_holds_back());
            let late: Vec<u64> = late(job, now).collect();
            for arrival in late {
                let Some(held) = self.jobs.get_mut(&id).and_then(|job| job.held.remove(&arrival)) else {
                    continue;
                };
                self.give_up(now, id, &held, slowest, out);
            }
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            for (waiting, task) in job.barriers.take_late(now, limit) {
                let purpose = "at a barrier".to_owned();
                let clock = job.table.last_clock(task).unwrap_or(0);
                let waited = now.saturating_sub(waiting.since);
                job.stats.waited(waited);
                let refusal = waited_too_long(task, clock, waited, purpose, slowest);
                self.stats.refused(refusal.kind);
                let message = Message::Fault(refusal.fault(waiting.request));
                out.push(Effect::Send { connection: waiting.connection, message });
            }
        }
    }

    fn give_up(
        &mut self,
        now: Duration,
        id: JobId,
        held: &Held,
        slowest: Option<(u32, u64)>,
        out: &mut Vec<Effect>,
    ) {
        let waited = now.saturating_sub(held.since);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.stats.waited(waited);
        let name = job.name_of(held.matrix);
        let purpose = match &held.what {
            HeldWhat::Pull(_) => format!("to pull from matrix {name:?}"),
            HeldWhat::PullFunction(pull) => format!("to pull {:?} from matrix {name:?}", pull.call.name),
            HeldWhat::TryFunction(_) => format!("to try functions on matrix {name:?}"),
            HeldWhat::Push => format!("to push to matrix {name:?}"),
        };
        let refusal = waited_too_long(held.task, held.clock, waited, purpose, slowest);
        self.held_bytes -= held.bytes;
        self.refuse(held.connection, held.request, refusal, out);
        if let HeldWhat::Push = held.what {
            self.close(now, held.connection, out);
        }
    }
}

impl Job {
    /// A new task takes part in all barriers from the one that is open at the home lane. Where an earlier one is open,
    /// all that wait there would wait for a task that does not come: it has to be over first, as it is at the home lane.
    /// Where that one is over, the others wait at the home lane for the new task: it must not wait for their clocks here.
    fn let_in(&mut self, task: u32, generation: u32, lates_wait: bool) -> Result<(), Refusal> {
        let open = self.table.generation();
        let generation = if self.opened.home { open } else { u64::from(generation) };
        if open < generation {
            let text = format!(
                "task {task} takes part in barriers from number {generation} on, and here number {open} is open: ask again"
            );
            return Err(Refusal::new(FaultKind::Busy, text).retry_after(JOIN_PAUSE));
        }
        if open > generation && !lates_wait {
            self.table.join_late();
        } else {
            self.table.join();
        }
        self.marks.push(Mark::default());
        self.connections.push(None);
        self.barriers.join(generation);
        Ok(())
    }

    /// When the first wait reaches the limit.
    pub(crate) fn next_time(&self) -> Option<Duration> {
        let limit = self.wait_limit();
        let held = self.held.values().map(|held| held.gives_up_at(limit));
        held.chain(self.barriers.give_up_times(limit)).min()
    }
}

fn late(job: &Job, now: Duration) -> impl Iterator<Item = u64> {
    let limit = job.wait_limit();
    job.held.iter().filter(move |(_, held)| held.gives_up_at(limit) <= now).map(|(arrival, _)| *arrival)
}

fn waited_too_long(
    task: u32,
    clock: u64,
    waited: Duration,
    purpose: String,
    slowest: Option<(u32, u64)>,
) -> Refusal {
    let waited_for = Holdup { slowest };
    Error::WaitedTooLong { task, clock, seconds: waited.as_secs_f64(), purpose, waited_for }.into()
}
