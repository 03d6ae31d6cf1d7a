//! Ticks, barriers and leaving. They go to every lane of the job.

use std::time::Duration;

use matrix::Clock;
use rpc::Message;
use rpc::message::{Barrier, Leave, Released, Tick};

use crate::cached_key_lists::OutgoingRequest;
use crate::call::{Call, CallOutput};
use crate::injected_fault::InjectedFault;
use crate::lane::{LinkState, PendingRequest, RequestOwner};
use crate::state::{AgentEffect, AgentState};

/// A barrier that some lanes have not released.
#[derive(Debug)]
pub(crate) struct PendingBarrier {
    /// Lanes that have not released the task.
    pub(crate) missing_count: usize,
    /// The clock of the task as each lane has reported it.
    clocks: Vec<Clock>,
    sum: Vec<f64>,
}

impl AgentState {
    /// The clock at which another attempt of a task continues: the lowest clock of the task at any lane. `None` until
    /// all lanes have reported it. The attempt repeats the steps from there, with the same pushes in the same order,
    /// and each lane drops the pushes that it has. Under BSP a pull of such a step may read, at the lanes that are
    /// ahead, pushes of its own clock.
    pub fn resume_clock(&self) -> Option<Clock> {
        let clocks: Option<Vec<Clock>> = self.lanes.iter().map(|lane| lane.first_clock).collect();
        if self.injects(InjectedFault::AttemptsBeginAtTheHighestClock) {
            return clocks?.into_iter().max();
        }
        clocks?.into_iter().min()
    }

    /// Sets the clock of a task before its first call. An attempt that continues begins at its [`Self::resume_clock`];
    /// a task that joins begins at the largest clock that a lane has reported.
    pub fn start_at(&mut self, clock: Clock) {
        self.clock = clock;
        for lane in 0..self.lanes.len() {
            self.enqueue_tick(lane);
        }
    }

    /// Ends a step, and sends the prefetches of the next one behind the tick. The call ends when the tick is sent to
    /// every lane, because other tasks wait for it while this task computes. The caller must pass all received messages
    /// before, so that a broken connection is known.
    pub fn tick(&mut self, now: Duration) {
        if !self.begin(now, "tick") {
            return;
        }
        self.end_step();
        self.request_due_prefetches();
        self.call.open(Call::Tick);
        self.advance(now);
    }

    /// Begins a call that ends when all ticks are sent to every lane.
    pub fn flush_ticks(&mut self, now: Duration) {
        if self.begin(now, "tick") {
            self.call.open(Call::Tick);
            self.advance(now);
        }
    }

    /// Begins a barrier, and a sum over all tasks if `part` is given. An open step is ended first.
    pub fn barrier(&mut self, now: Duration, mut part: Option<Vec<f64>>) {
        if !self.begin(now, "barrier") {
            return;
        }
        // A prefetched answer may lack later pushes of other tasks. After a barrier a task must see all pushes.
        if !self.injects(InjectedFault::PrefetchesSurviveBarriers) {
            self.drop_all_prefetches();
        }
        if let Err(error) = self.push_residuals() {
            return self.call.end(Err(error));
        }
        if self.push_count > 0 {
            self.end_step();
        }
        for lane in 0..self.lanes.len() {
            let part = if lane == usize::from(self.layout.home) { part.take() } else { None };
            let request = self.next_request_id();
            let barrier = Barrier {
                request,
                job: self.layout.job,
                task: self.task,
                clock: self.clock,
                wait_ms: self.layout.wait_ms(),
                generation: self.generation,
                part,
            };
            self.add_request(lane, request, RequestOwner::Barrier, Message::Barrier(barrier));
        }
        let missing = self.lanes.len();
        let barrier = PendingBarrier { missing_count: missing, clocks: vec![0; missing], sum: Vec::new() };
        self.call.open(Call::Barrier(barrier));
        self.advance(now);
    }

    /// Leaves the job. The call ends when all lanes have all pushes. A second call does nothing.
    pub fn finish(&mut self, now: Duration) {
        if self.has_left && self.failure.is_none() {
            return self.call.end(Ok(CallOutput::Done));
        }
        if !self.begin(now, "finish") {
            return;
        }
        if let Err(error) = self.push_residuals() {
            return self.call.end(Err(error));
        }
        self.has_left = true;
        self.drop_all_prefetches();
        for lane in 0..self.lanes.len() {
            let request = self.next_request_id();
            let leave = Leave { request, job: self.layout.job, task: self.task };
            self.add_request(lane, request, RequestOwner::Leave, Message::Leave(leave));
        }
        self.call.open(Call::Finish);
        self.advance(now);
    }

    pub(crate) fn end_finish(&mut self) {
        for (at, lane) in (0u16..).zip(&mut self.lanes) {
            if lane.link == LinkState::Open {
                self.effects.push(AgentEffect::Close { lane: at });
            }
            lane.link = LinkState::Ended;
        }
        self.call.end(Ok(CallOutput::Done));
    }

    pub(crate) fn on_released(&mut self, lane: usize, released: Released) {
        let Some(Call::Barrier(barrier)) = self.call.get_mut() else { return };
        barrier.missing_count -= 1;
        barrier.clocks[lane] = released.clock;
        if lane == usize::from(self.layout.home) {
            barrier.sum = released.sum;
        }
        self.call.add_deferred(released.deferred_ns);
    }

    /// Ends the barrier when all lanes have released the task. Its clock is the largest that a lane reports.
    pub(crate) fn end_barrier(&mut self, now: Duration) {
        let Some(Call::Barrier(barrier)) = self.call.take() else { return };
        self.generation += 1;
        let clock = barrier.clocks.iter().copied().fold(self.clock, Clock::max);
        debug_assert!(
            self.lanes.iter().all(|lane| lane.next_index == 0),
            "a barrier begins by ending the step"
        );
        self.clock = clock;
        for lane in 0..self.lanes.len() {
            if barrier.clocks[lane] < clock {
                self.enqueue_tick(lane);
            }
        }
        self.send_ready(now);
        self.call.end(Ok(CallOutput::BarrierSum(barrier.sum)));
    }

    /// Increments the clock and enqueues a tick for every lane, also for lanes without pushes.
    fn end_step(&mut self) {
        self.clock += 1;
        self.push_count = 0;
        for lane in 0..self.lanes.len() {
            self.lanes[lane].next_index = 0;
            self.enqueue_tick(lane);
        }
    }

    fn enqueue_tick(&mut self, lane: usize) {
        let tick = Tick { request: 0, job: self.layout.job, task: self.task, clock: self.clock };
        self.lanes[lane].retransmit_queue.tick(tick);
    }

    pub(crate) fn next_request_id(&mut self) -> u64 {
        self.last_request_id += 1;
        self.last_request_id
    }

    pub(crate) fn add_request(&mut self, lane: usize, id: u64, owner: RequestOwner, message: Message) {
        let outgoing = OutgoingRequest::new(message, None, None);
        let bytes = outgoing.bytes;
        let request =
            PendingRequest { owner, outgoing, bytes, is_sent: false, retry_at: None, deadline: None };
        self.lanes[lane].requests.insert(id, request);
    }
}
