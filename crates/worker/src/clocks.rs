//! Ticks, barriers, leaving: said to every lane of the job.

use std::time::Duration;

use matrix::Clock;
use rpc::Message;
use rpc::message::{Barrier, Leave, Released, Tick};

use crate::broken::Broken;
use crate::cache::Cache;
use crate::cached_key_lists::OutgoingRequest;
use crate::lane::{LinkState, PendingRequest, RequestOwner};
use crate::state::{AgentEffect, AgentState, Call, CallOutput};

/// A barrier under way.
#[derive(Debug)]
pub(crate) struct PendingBarrier {
    /// Lanes that have not released the task.
    pub(crate) missing_count: usize,
    /// What each lane said the clock is.
    clocks: Vec<Clock>,
    sum: Vec<f64>,
}

impl AgentState {
    /// Where another attempt of a task goes on: the lowest clock that the task has at any lane, when all lanes have said
    /// theirs. From there it does its steps once more, with the same pushes in the same order; a lane drops those that it
    /// has. Under BSP a pull of such a step may see at the lanes that are ahead what was pushed under its own clock.
    pub fn resume_clock(&self) -> Option<Clock> {
        let clocks: Option<Vec<Clock>> = self.lanes.iter().map(|lane| lane.first_clock).collect();
        if self.lacks(Broken::AttemptsBeginAtTheHighestClock) {
            return clocks?.into_iter().max();
        }
        clocks?.into_iter().min()
    }

    /// Before the first call of a task that begins at `clock`: one that goes on from another attempt, at its
    /// [`Self::resume_clock`], or one that joins, at the largest clock that a lane has said.
    pub fn start_at(&mut self, clock: Clock) {
        self.clock = clock;
        for lane in 0..self.lanes.len() {
            self.enqueue_tick(lane);
        }
    }

    /// Ends a step. It has ended when the tick has gone out to every lane: a task that computes for long hears nothing
    /// meanwhile, and the others wait for its tick. What has come in the meantime must be given before, so that a
    /// connection that broke is known.
    pub fn tick(&mut self, now: Duration) {
        if !self.begin(now, "tick") {
            return;
        }
        self.end_step();
        self.call = Some(Call::Tick);
        self.advance(now);
    }

    /// A call that ends when all that was ticked has gone out to every lane.
    pub fn flush_ticks(&mut self, now: Duration) {
        if self.begin(now, "tick") {
            self.call = Some(Call::Tick);
            self.advance(now);
        }
    }

    /// Begins a barrier, and a sum over all tasks when `part` is given. An open step is ended first.
    pub fn barrier(&mut self, now: Duration, mut part: Option<Vec<f64>>) {
        if !self.begin(now, "barrier") {
            return;
        }
        // What was asked before may miss what others have pushed since; behind a barrier all see all.
        if !self.lacks(Broken::AheadIsKeptAtBarriers) {
            self.drop_all_ahead();
        }
        if let Err(error) = self.push_residuals() {
            return self.end(Err(error));
        }
        self.matrices.iter_mut().filter_map(|state| state.cache.as_mut()).for_each(Cache::clear);
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
        self.call = Some(Call::Barrier(PendingBarrier {
            missing_count: missing,
            clocks: vec![0; missing],
            sum: Vec::new(),
        }));
        self.advance(now);
    }

    /// Leaves: ends when all lanes have everything. Leaving twice is done already.
    pub fn finish(&mut self, now: Duration) {
        if self.has_left && self.failure.is_none() {
            self.result = Some(Ok(CallOutput::Done));
            return;
        }
        if !self.begin(now, "finish") {
            return;
        }
        if let Err(error) = self.push_residuals() {
            return self.end(Err(error));
        }
        self.has_left = true;
        self.drop_all_ahead();
        for lane in 0..self.lanes.len() {
            let request = self.next_request_id();
            let leave = Leave { request, job: self.layout.job, task: self.task };
            self.add_request(lane, request, RequestOwner::Leave, Message::Leave(leave));
        }
        self.call = Some(Call::Finish);
        self.advance(now);
    }

    pub(crate) fn end_finish(&mut self) {
        for (at, lane) in (0u16..).zip(&mut self.lanes) {
            if lane.link == LinkState::Open {
                self.effects.push(AgentEffect::Close { lane: at });
            }
            lane.link = LinkState::Ended;
        }
        self.end(Ok(CallOutput::Done));
    }

    pub(crate) fn on_released(&mut self, lane: usize, released: Released) {
        let Some(Call::Barrier(meeting)) = &mut self.call else { return };
        meeting.missing_count -= 1;
        self.call_deferred_ns = self.call_deferred_ns.max(released.held_ns);
        meeting.clocks[lane] = released.clock;
        if lane == usize::from(self.layout.home) {
            meeting.sum = released.sum;
        }
    }

    /// All lanes have released the task: its clock is the largest that any of them says.
    pub(crate) fn end_barrier(&mut self, now: Duration) {
        let Some(Call::Barrier(meeting)) = self.call.take() else { return };
        self.generation += 1;
        let clock = meeting.clocks.iter().copied().fold(self.clock, Clock::max);
        if clock > self.clock {
            self.lanes.iter_mut().for_each(|lane| lane.next_index = 0);
        }
        self.clock = clock;
        for lane in 0..self.lanes.len() {
            if meeting.clocks[lane] < clock {
                self.enqueue_tick(lane);
            }
        }
        self.send_ready(now);
        self.end(Ok(CallOutput::BarrierSum(meeting.sum)));
    }

    /// One clock further, at every lane, touched or not.
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
        let parcel = OutgoingRequest::new(message, None, None);
        let bytes = parcel.bytes;
        let request =
            PendingRequest { owner, outgoing: parcel, bytes, is_sent: false, retry_at: None, deadline: None };
        self.lanes[lane].requests.insert(id, request);
    }
}
