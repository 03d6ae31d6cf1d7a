//! Ticks, barriers, leaving: said to every lane of the job.

use std::time::Duration;

use matrix::Clock;
use rpc::Message;
use rpc::message::{Barrier, Leave, Released, Tick};

use crate::broken::Broken;
use crate::cache::Cache;
use crate::known::Parcel;
use crate::lane::{Link, Owner, Request};
use crate::state::{AgentEffect, AgentState, Call, Outcome};

/// A barrier under way.
#[derive(Debug)]
pub(crate) struct Meeting {
    /// Lanes that have not released the task.
    pub(crate) missing: usize,
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
            self.send_tick(lane);
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
        self.settle(now);
    }

    /// A call that ends when all that was ticked has gone out to every lane.
    pub fn deliver(&mut self, now: Duration) {
        if self.begin(now, "tick") {
            self.call = Some(Call::Tick);
            self.settle(now);
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
        if let Err(error) = self.push_rests() {
            return self.end(Err(error));
        }
        self.matrices.iter_mut().filter_map(|state| state.cache.as_mut()).for_each(Cache::clear);
        if self.push_count > 0 {
            self.end_step();
        }
        for lane in 0..self.lanes.len() {
            let part = if lane == usize::from(self.layout.home) { part.take() } else { None };
            let request = self.next_id();
            let barrier = Barrier {
                request,
                job: self.layout.job,
                task: self.task,
                clock: self.clock,
                wait_ms: self.layout.wait_ms(),
                generation: self.generation,
                part,
            };
            self.request(lane, request, Owner::Barrier, Message::Barrier(barrier));
        }
        let missing = self.lanes.len();
        self.call = Some(Call::Barrier(Meeting { missing, clocks: vec![0; missing], sum: Vec::new() }));
        self.settle(now);
    }

    /// Leaves: ends when all lanes have everything. Leaving twice is done already.
    pub fn finish(&mut self, now: Duration) {
        if self.left && self.failed.is_none() {
            self.outcome = Some(Ok(Outcome::Done));
            return;
        }
        if !self.begin(now, "finish") {
            return;
        }
        if let Err(error) = self.push_rests() {
            return self.end(Err(error));
        }
        self.left = true;
        self.drop_all_ahead();
        for lane in 0..self.lanes.len() {
            let request = self.next_id();
            let leave = Leave { request, job: self.layout.job, task: self.task };
            self.request(lane, request, Owner::Leave, Message::Leave(leave));
        }
        self.call = Some(Call::Finish);
        self.settle(now);
    }

    pub(crate) fn end_finish(&mut self) {
        for (at, lane) in (0u16..).zip(&mut self.lanes) {
            if lane.link == Link::Open {
                self.effects.push(AgentEffect::Close { lane: at });
            }
            lane.link = Link::Ended;
        }
        self.end(Ok(Outcome::Done));
    }

    pub(crate) fn released(&mut self, lane: usize, released: Released) {
        let Some(Call::Barrier(meeting)) = &mut self.call else { return };
        meeting.missing -= 1;
        self.call_held_ns = self.call_held_ns.max(released.held_ns);
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
                self.send_tick(lane);
            }
        }
        self.pump(now);
        self.end(Ok(Outcome::Passed(meeting.sum)));
    }

    /// One clock further, at every lane, touched or not.
    fn end_step(&mut self) {
        self.clock += 1;
        self.push_count = 0;
        for lane in 0..self.lanes.len() {
            self.lanes[lane].next_index = 0;
            self.send_tick(lane);
        }
    }

    fn send_tick(&mut self, lane: usize) {
        let tick = Tick { request: 0, job: self.layout.job, task: self.task, clock: self.clock };
        self.lanes[lane].log.tick(tick);
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn request(&mut self, lane: usize, id: u64, owner: Owner, message: Message) {
        let parcel = Parcel::new(message, None, None);
        let bytes = parcel.bytes;
        let request = Request { owner, parcel, bytes, sent: false, not_before: None, due: None };
        self.lanes[lane].requests.insert(id, request);
    }
}
