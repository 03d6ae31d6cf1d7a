//! Inputs of the agent: connections, messages, time.

use std::time::Duration;

use matrix::Error;
use rpc::Message;
use rpc::message::{Done, Fault, FaultKind, Pulled, PushPosition, RequestId, Welcome};

use crate::call::Call;
use crate::lane::{LinkState, PendingRequest, RequestOwner};
use crate::lane_client::{Backoff, RESTARTED};
use crate::state::{AgentEffect, AgentState};

impl AgentState {
    /// Handles the welcome of a lane to a connection that the agent has asked for.
    pub fn on_connected(&mut self, now: Duration, lane: u16, welcome: &Welcome) {
        let at = usize::from(lane);
        if self.lanes[at].link != LinkState::Opening {
            return;
        }
        if self.lanes[at].incarnation.is_some_and(|before| before != welcome.incarnation) {
            return self.fail(self.lost_error(lane, RESTARTED.into()));
        }
        self.call.on_progress(now);
        self.lanes[at].on_connected(welcome);
        self.send_count += 1;
        self.mark_reads_resent(at);
        self.advance(now);
    }

    /// Handles a connection that was closed or could not be opened.
    pub fn on_closed(&mut self, now: Duration, lane: u16, reason: &str) {
        let at = usize::from(lane);
        if matches!(self.lanes[at].link, LinkState::Open | LinkState::Opening) {
            self.lanes[at].on_closed(now, reason.to_owned(), Duration::ZERO);
        }
        self.on_time(now);
    }

    /// Handles a message of a lane.
    pub fn on_message(&mut self, now: Duration, lane: u16, message: Message) {
        let at = usize::from(lane);
        match (self.lanes[at].link, message) {
            (LinkState::Opening, Message::Welcome(welcome)) => return self.on_connected(now, lane, &welcome),
            (LinkState::Opening, Message::Fault(fault)) => self.on_refused(now, lane, &fault),
            (LinkState::Open, Message::Pulled(pulled)) => self.on_pulled(lane, pulled),
            (LinkState::Open, Message::PulledFunction(pulled)) => self.on_pulled_function(lane, pulled),
            (LinkState::Open, Message::Done(done)) => self.on_done(at, done),
            (LinkState::Open, Message::Released(released)) => {
                if self.take_request(at, released.request).is_some() {
                    self.on_released(at, released);
                }
            }
            (LinkState::Open, Message::Fault(fault)) => self.on_fault(now, lane, &fault),
            (LinkState::Open, _) => {
                self.fail(self.server_error(lane, "it sent an unexpected message".into()));
            }
            (LinkState::Opening | LinkState::Closed { .. } | LinkState::Ended, _) => return,
        }
        self.call.on_received(now);
        self.lanes[at].backoff = Backoff::default();
        self.advance(now);
    }

    /// Handles the passing of time: connects again, or fails when a deadline has passed.
    pub fn on_time(&mut self, now: Duration) {
        if let Some(lane) =
            (0..self.lanes.len()).find(|lane| self.lane_deadline(*lane).is_some_and(|at| at <= now))
        {
            let (since, reason) = self.lanes[lane].outage.clone().unwrap_or_default();
            let seconds = now.saturating_sub(since).as_secs_f64();
            let text = format!("task {} could not reach it for {seconds:.1} s: {reason}", self.task);
            return self.fail(self.lost_error(lane as u16, text));
        }
        if self.call.deadline(self.layout.wait_limit).is_some_and(|late| late <= now) {
            let lane = (0..self.lanes.len()).find(|lane| self.waits_for(*lane)).unwrap_or(0);
            let seconds = self.call.silence(now).as_secs_f64();
            let text = format!("it has not answered task {} for {seconds:.1} s", self.task);
            return self.fail(self.lost_error(lane as u16, text));
        }
        self.advance(now);
    }

    fn on_pulled(&mut self, lane: u16, pulled: Pulled) {
        let at = usize::from(lane);
        self.lanes[at].retransmit_queue.acknowledge(pulled.applied);
        let Some(request) = self.take_request(at, pulled.request) else { return };
        let RequestOwner::Pull { pull_id: id, reply_index } = request.owner else { return };
        let mut pulls = self.prefetches.sent_mut().chain(self.call.pull_mut());
        let Some(pending) = pulls.find(|pending| pending.id == id) else { return };
        let spec = &self.layout.matrices[pending.matrix];
        if !pending.accept_reply(reply_index, pulled, spec.columns_of_table(), spec.element) {
            let text = format!("it sent values of matrix {:?} that do not fit the keys", spec.name);
            self.fail(self.server_error(lane, text));
        }
    }

    fn on_done(&mut self, at: usize, done: Done) {
        self.lanes[at].retransmit_queue.acknowledge(done.applied);
        self.lanes[at].retransmit_queue.acknowledge_function(done.request);
        self.take_request(at, done.request);
    }

    /// Takes the request of an answer. An answer to a request that is not pending is a duplicate and is ignored.
    pub(crate) fn take_request(&mut self, at: usize, id: RequestId) -> Option<PendingRequest> {
        self.lanes[at].requests.remove(&id)
    }

    /// Handles a fault that a lane has sent in place of a welcome.
    fn on_refused(&mut self, now: Duration, lane: u16, fault: &Fault) {
        let at = usize::from(lane);
        match fault.kind {
            FaultKind::TaskLeft if self.has_left => self.on_left(at),
            kind if kind.retry_may_help() => {
                self.lanes[at].on_closed(now, fault.text.clone(), fault.retry_after());
            }
            _ => self.fail(self.error_of(lane, fault)),
        }
    }

    fn on_fault(&mut self, now: Duration, lane: u16, fault: &Fault) {
        let at = usize::from(lane);
        let Some(request) = self.lanes[at].requests.get(&fault.request) else {
            return self.on_stray_fault(now, lane, fault);
        };
        let owner = request.owner;
        let id = fault.request;
        match fault.kind {
            FaultKind::TaskLeft if self.has_left => self.on_left(at),
            FaultKind::Function if owner == RequestOwner::Function => {
                self.take_request(at, id);
                self.function_failed(lane, fault);
            }
            FaultKind::UnknownKeys => self.resend(at, id, None),
            FaultKind::Busy => {
                let pause = Duration::from_millis(u64::from(fault.retry_after_ms.max(1)));
                self.resend(at, id, Some(now + pause));
            }
            _ => {
                match self.prefetches.position(
                    |pull| matches!(owner, RequestOwner::Pull { pull_id, .. } if pull_id == pull.id),
                ) {
                    Some(at) => self.drop_prefetch(at),
                    None => self.fail(self.error_of(lane, fault)),
                }
            }
        }
    }

    /// Handles a fault for a push, or for a request that is not pending.
    fn on_stray_fault(&mut self, now: Duration, lane: u16, fault: &Fault) {
        let state = &mut self.lanes[usize::from(lane)];
        if fault.request != 0 && !state.retransmit_queue.has_ack_request(fault.request) {
            return;
        }
        if fault.kind == FaultKind::Function && state.retransmit_queue.acknowledge_function(fault.request) {
            return self.function_failed(lane, fault);
        }
        if fault.kind == FaultKind::TaskLeft && self.has_left && !state.retransmit_queue.has_pushes() {
            // The answer to the leave was lost, and earlier ticks were sent again.
            return self.on_left(usize::from(lane));
        }
        if fault.kind.retry_may_help() {
            // Nothing behind the refused push may be applied before it: all pushes are sent again over a new
            // connection.
            self.effects.push(AgentEffect::Close { lane });
            state.on_closed(now, fault.text.clone(), fault.retry_after());
        } else {
            self.fail(self.error_of(lane, fault));
        }
    }

    /// Sends a request again, with its keys in full.
    fn resend(&mut self, at: usize, id: RequestId, not_before: Option<Duration>) {
        let lane = &mut self.lanes[at];
        let Some(request) = lane.requests.get_mut(&id) else { return };
        request.outgoing.on_unknown_keys(&mut lane.key_lists);
        request.is_sent = false;
        lane.resend_count += 1;
        request.retry_at = not_before;
        self.send_count += 1;
        self.mark_reads_resent(at);
    }

    /// Notes that pulls of a lane are sent again and read later than they were first sent.
    fn mark_reads_resent(&mut self, at: usize) {
        for pending in self.prefetches.sent_mut().chain(self.call.pull_mut()) {
            let is_there = |(_, request): (&RequestId, &PendingRequest)| matches!(request.owner, RequestOwner::Pull { pull_id: id, .. } if id == pending.id);
            if self.lanes[at].requests.iter().any(is_there) {
                pending.last_send = self.send_count;
            }
        }
        if let Some(Call::PullFunction(pending)) = self.call.get_mut()
            && self.lanes[at].requests.values().any(|request| request.owner == RequestOwner::Function)
        {
            pending.last_send = self.send_count;
        }
    }

    /// Handles the report of a lane that this task has left: the lane has all pushes and ticks.
    fn on_left(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        lane.link = LinkState::Ended;
        lane.requests.retain(|_, request| request.owner != RequestOwner::Leave);
        lane.retransmit_queue.acknowledge(PushPosition { clock: u64::MAX, index: u32::MAX });
    }

    fn error_of(&self, lane: u16, fault: &Fault) -> Error {
        match fault.kind {
            FaultKind::Stopped => Error::Stopped { reason: fault.text.clone() },
            kind if kind.is_loss() => self.lost_error(lane, fault.text.clone()),
            _ => self.server_error(lane, fault.text.clone()),
        }
    }

    /// The error of a task whose request a server refuses, or whose answer is wrong.
    pub(crate) fn server_error(&self, lane: u16, text: String) -> Error {
        Error::Server { server: self.layout.lanes[usize::from(lane)].to_string(), text, is_lost: false }
    }

    /// The error of a task whose server is lost, or has lost its part of the job.
    fn lost_error(&self, lane: u16, text: String) -> Error {
        Error::Server { server: self.layout.lanes[usize::from(lane)].to_string(), text, is_lost: true }
    }
}
