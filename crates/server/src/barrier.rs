//! The barrier of a job, with its sums. Barriers are numbered by generation. So the barrier can be used again, and a
//! task that repeats an old request gets the result of that barrier.

use std::time::Duration;

use matrix::reduce::sum_in_task_order;
use rpc::message::{Barrier, FaultKind, Message, Released, RequestId};
use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::log::log_wait;
use crate::pull::{deadline_after, nanoseconds};
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};
use rpc::trace::RequestIdentity;

/// The tasks that wait at the barrier, the part of the sum that each has sent, and the result of the last barrier.
#[derive(Debug)]
pub(crate) struct JobBarrier {
    /// Indexed by task.
    tasks: Vec<BarrierTask>,
    /// Number of passed barriers that were answered.
    answered_count: u64,
    /// The sum of the last barrier. It stays until all tasks have arrived at the next one, so that each task can still
    /// get it.
    sum: Result<Vec<f64>, matrix::Error>,
}

#[derive(Clone, Debug, Default)]
struct BarrierTask {
    /// Number of barriers that were passed before the task joined.
    joined_generation: u64,
    part: Option<Vec<f64>>,
    waiter: Option<BarrierWaiter>,
}

/// A barrier request that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierWaiter {
    pub(crate) connection: ConnectionId,
    pub(crate) request: RequestId,
    pub(crate) since: Duration,
    /// The time at which the task stops waiting, if that is before the wait limit of the job.
    pub(crate) task_deadline: Option<Duration>,
}

/// A barrier in the image of a lane: without the waiters, whose connections end with the lane. Numbers are those of the
/// bits of the sums, which JSON does not have for all.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BarrierImage {
    /// For each task the number of barriers before it joined, and its part.
    tasks: Vec<(u64, Option<Vec<u64>>)>,
    answered_count: u64,
    sum: Vec<u64>,
}

impl BarrierImage {
    pub(crate) fn task_count(&self) -> usize {
        self.tasks.len()
    }
}

fn bits(part: &[f64]) -> Vec<u64> {
    part.iter().map(|value| value.to_bits()).collect()
}

fn values(bits: &[u64]) -> Vec<f64> {
    bits.iter().map(|bits| f64::from_bits(*bits)).collect()
}

impl BarrierWaiter {
    fn expires_at(&self, limit: Duration) -> Duration {
        let end = self.since + limit;
        self.task_deadline.map_or(end, |until| until.min(end))
    }
}

impl JobBarrier {
    pub(crate) fn new(task_count: u32) -> Self {
        Self {
            tasks: vec![BarrierTask::default(); task_count as usize],
            answered_count: 0,
            sum: Ok(Vec::new()),
        }
    }

    /// `None` if the last sum has failed.
    pub(crate) fn image(&self) -> Option<BarrierImage> {
        let tasks = self.tasks.iter().map(|task| (task.joined_generation, task.part.as_deref().map(bits)));
        let sum = bits(self.sum.as_ref().ok()?);
        Some(BarrierImage { tasks: tasks.collect(), answered_count: self.answered_count, sum })
    }

    pub(crate) fn restore(&mut self, image: BarrierImage) {
        let task = |(joined_generation, part): (u64, Option<Vec<u64>>)| BarrierTask {
            joined_generation,
            part: part.as_deref().map(values),
            waiter: None,
        };
        self.tasks = image.tasks.into_iter().map(task).collect();
        self.answered_count = image.answered_count;
        self.sum = Ok(values(&image.sum));
    }

    pub(crate) fn join(&mut self, generation: u64) {
        self.tasks.push(BarrierTask { joined_generation: generation, ..BarrierTask::default() });
    }

    /// Number of barriers that were passed before the task joined.
    pub(crate) fn joined_generation(&self, task: u32) -> u32 {
        let at = self.tasks.get(task as usize).map_or(0, |task| task.joined_generation);
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Removes the part of a task that has left: it adds nothing to the sum.
    pub(crate) fn leave(&mut self, task: u32) {
        if let Some(task) = self.tasks.get_mut(task as usize) {
            task.part = None;
        }
    }

    /// Removes the waiters of a connection. The parts that they have sent stay.
    pub(crate) fn remove_waiter(&mut self, at: ConnectionId) {
        for task in &mut self.tasks {
            task.waiter.take_if(|waiting| waiting.connection == at);
        }
    }

    pub(crate) fn take_waiters(&mut self) -> Vec<(ConnectionId, RequestId)> {
        let waiting = self.tasks.iter_mut().filter_map(|task| task.waiter.take());
        waiting.map(|waiting| (waiting.connection, waiting.request)).collect()
    }

    /// Removes the waiters whose wait has reached `limit` or their own deadline, and returns them with their tasks.
    pub(crate) fn take_expired(&mut self, now: Duration, limit: Duration) -> Vec<(BarrierWaiter, u32)> {
        let late = |waiting: &mut BarrierWaiter| waiting.expires_at(limit) <= now;
        let tasks = self.tasks.iter_mut().zip(0u32..);
        tasks.filter_map(|(entry, task)| Some((entry.waiter.take_if(late)?, task))).collect()
    }

    /// The times at which the waiters expire.
    pub(crate) fn deadlines(&self, limit: Duration) -> impl Iterator<Item = Duration> {
        self.tasks.iter().filter_map(move |task| Some(task.waiter?.expires_at(limit)))
    }

    /// The time since which a task waits.
    pub(crate) fn waiting_since(&self, task: u32) -> Option<Duration> {
        Some(self.tasks.get(task as usize)?.waiter?.since)
    }

    /// The time since which each waiter waits.
    pub(crate) fn wait_starts(&self) -> impl Iterator<Item = Duration> {
        self.tasks.iter().filter_map(|task| Some(task.waiter?.since))
    }

    pub(crate) fn waiter_count(&self) -> u64 {
        self.wait_starts().count() as u64
    }
}

impl LaneState {
    pub(crate) fn barrier(
        &mut self,
        now: Duration,
        at: ConnectionId,
        barrier: Barrier,
        out: &mut Vec<Effect>,
    ) {
        let Barrier { request, job, task, .. } = barrier;
        let arrived = self.check_task(at, job, task).and_then(|()| {
            let open = self.job(job)?;
            open.arrive(now, at, barrier)
        });
        match arrived {
            Ok(released) => {
                out.extend(released.map(|message| Effect::Send { connection: at, message }));
                self.ready.add_job(job);
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }
}

impl Job {
    /// Handles the arrival of a task. Returns the answer at once when the barrier is already passed.
    fn arrive(
        &mut self,
        now: Duration,
        at: ConnectionId,
        barrier: Barrier,
    ) -> Result<Option<Message>, Refusal> {
        let Barrier { request, task, clock, wait_ms, generation, part, .. } = barrier;
        let fault = |fault| Refusal::from_clock_fault(task, "barrier", fault);
        self.clock_table.clock(task).map_err(fault)?;
        let entry = &mut self.barrier.tasks[task as usize];
        let (asked, open) = (entry.joined_generation + generation, self.clock_table.generation());
        if asked < open {
            if self.clock_table.is_late(task) {
                self.clock_table.advance(task, clock).map_err(fault)?;
                self.clock_table.barrier(task).map_err(fault)?;
            }
            return self.release_message(task, request, Duration::ZERO).map(Some);
        }
        if asked > open {
            let passed = open.saturating_sub(entry.joined_generation);
            let text = format!(
                "task {task} reports {generation} passed barriers, but has passed {passed} on this lane"
            );
            return Err(Refusal::new(FaultKind::Invalid, text));
        }
        entry.part = part;
        entry.waiter = Some(BarrierWaiter {
            connection: at,
            request,
            since: now,
            task_deadline: deadline_after(now, wait_ms),
        });
        if !self.clock_table.is_at_barrier(task) {
            self.clock_table.advance(task, clock).map_err(fault)?;
            self.clock_table.barrier(task).map_err(fault)?;
        }
        Ok(None)
    }

    /// Closes the sum and answers all waiters in the order of tasks, if the barrier has opened.
    pub(crate) fn pass_barrier(&mut self, now: Duration, lane: u16, out: &mut Vec<Effect>) -> bool {
        if self.barrier.answered_count == self.clock_table.generation() {
            return false;
        }
        self.barrier.answered_count = self.clock_table.generation();
        let mut parts: Vec<_> = self.barrier.tasks.iter_mut().map(|task| task.part.take()).collect();
        self.barrier.sum = sum_in_task_order(&mut parts);
        for task in 0..self.clock_table.task_count() {
            let Some(waiting) = self.barrier.tasks[task as usize].waiter.take() else { continue };
            let waited = now.saturating_sub(waiting.since);
            self.stats.count_wait(waited);
            let clock = self.clock_table.last_clock(task).unwrap_or(0);
            log_wait(
                waited,
                &RequestIdentity {
                    kind: "Barrier",
                    job: self.open_request.job,
                    task,
                    request: waiting.request,
                    clock,
                    index: 0,
                },
                lane,
            );
            let message = self
                .release_message(task, waiting.request, waited)
                .unwrap_or_else(|refusal| Message::Fault(refusal.into_fault(waiting.request)));
            out.push(Effect::Send { connection: waiting.connection, message });
        }
        true
    }

    /// The message that releases a task from the last barrier.
    fn release_message(&self, task: u32, request: RequestId, waited: Duration) -> Result<Message, Refusal> {
        let clock = self
            .clock_table
            .clock(task)
            .map_err(|fault| Refusal::from_clock_fault(task, "barrier", fault))?;
        let sum = self.barrier.sum.clone()?;
        Ok(Message::Released(Released { request, clock, deferred_ns: nanoseconds(waited), sum }))
    }
}
