//! What comes from outside: connections, messages, time.

use std::time::Duration;

use matrix::Error;
use rpc::Message;
use rpc::message::{Done, Fault, FaultKind, Mark, Pulled, RequestId, Welcome};

use crate::lane::{Link, Owner, Request, SHORTEST_PAUSE};
use crate::state::{AgentEffect, AgentState, Call};

impl AgentState {
    /// A lane has taken the connection that was asked for.
    pub fn on_connected(&mut self, now: Duration, lane: u16, welcome: &Welcome) {
        let at = usize::from(lane);
        if self.lanes[at].link != Link::Opening {
            return;
        }
        if self.lanes[at].incarnation.is_some_and(|before| before != welcome.incarnation) {
            let text = "it was started anew, and what it held of this job is lost: start the job again";
            return self.fail(self.server_error(lane, text.into()));
        }
        self.progress = now;
        self.lanes[at].connected(welcome);
        self.sendings += 1;
        self.read_again(at);
        self.settle(now);
    }

    /// The connection to a lane is gone, or could not be made.
    pub fn on_closed(&mut self, now: Duration, lane: u16, reason: &str) {
        let at = usize::from(lane);
        if matches!(self.lanes[at].link, Link::Open | Link::Opening) {
            self.lanes[at].closed(now, reason.to_owned());
        }
        self.on_time(now);
    }

    /// A lane has said something.
    pub fn on_message(&mut self, now: Duration, lane: u16, message: Message) {
        let at = usize::from(lane);
        match (self.lanes[at].link, message) {
            (Link::Opening, Message::Welcome(welcome)) => return self.on_connected(now, lane, &welcome),
            (Link::Opening, Message::Fault(fault)) => self.refused(now, lane, &fault),
            (Link::Open, Message::Pulled(pulled)) => self.on_pulled(lane, pulled),
            (Link::Open, Message::PulledFunction(pulled)) => self.on_pulled_function(lane, pulled),
            (Link::Open, Message::Done(done)) => self.on_done(at, done),
            (Link::Open, Message::Released(released)) => {
                if self.take_request(at, released.request).is_some() {
                    self.released(at, released);
                }
            }
            (Link::Open, Message::Fault(fault)) => self.on_fault(now, lane, &fault),
            (Link::Open, _) => self.fail(self.server_error(lane, "it said what no agent asks for".into())),
            (Link::Opening | Link::Closed { .. } | Link::Ended, _) => return,
        }
        (self.progress, self.heard) = (now, now);
        self.lanes[at].pause = SHORTEST_PAUSE;
        self.settle(now);
    }

    /// Time has passed: connects again, or gives up.
    pub fn on_time(&mut self, now: Duration) {
        if let Some(lane) = (0..self.lanes.len()).find(|lane| self.lost_at(*lane).is_some_and(|at| at <= now))
        {
            let (since, reason) = self.lanes[lane].lost.clone().unwrap_or_default();
            let seconds = now.saturating_sub(since).as_secs_f64();
            let text = format!("task {} could not reach it for {seconds:.1} s: {reason}", self.task);
            return self.fail(self.server_error(lane as u16, text));
        }
        if self.call.is_some() && self.silent_at() <= now {
            let lane = (0..self.lanes.len()).find(|lane| self.waits_for(*lane)).unwrap_or(0);
            let seconds = now.saturating_sub(self.heard).as_secs_f64();
            let text = format!("it has not answered task {} for {seconds:.1} s", self.task);
            return self.fail(self.server_error(lane as u16, text));
        }
        self.settle(now);
    }

    fn on_pulled(&mut self, lane: u16, pulled: Pulled) {
        let at = usize::from(lane);
        self.lanes[at].log.confirm(pulled.applied);
        let Some(request) = self.take_request(at, pulled.request) else { return };
        let Owner::Ask { ask: id, piece } = request.owner else { return };
        let open = match &mut self.call {
            Some(Call::Pull(ask)) => Some(ask),
            _ => None,
        };
        let Some(ask) = self.ahead.iter_mut().chain(open).find(|ask| ask.id == id) else { return };
        let spec = &self.layout.matrices[ask.matrix];
        if !ask.take(piece, pulled, spec.columns_of_table(), spec.element) {
            let text = format!("it sent values of matrix {:?} that do not fit the keys", spec.name);
            self.fail(self.server_error(lane, text));
        }
    }

    fn on_done(&mut self, at: usize, done: Done) {
        self.lanes[at].log.confirm(done.applied);
        self.lanes[at].log.answered(done.request);
        self.take_request(at, done.request);
    }

    /// An answer is taken once; what comes for a request that is no more is an echo.
    pub(crate) fn take_request(&mut self, at: usize, id: RequestId) -> Option<Request> {
        self.lanes[at].requests.remove(&id)
    }

    /// A lane refused the connection.
    fn refused(&mut self, now: Duration, lane: u16, fault: &Fault) {
        let at = usize::from(lane);
        match fault.kind {
            FaultKind::TaskLeft if self.left => self.has_left(at),
            kind if kind.retry_may_help() => self.lanes[at].closed(now, fault.text.clone()),
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
            FaultKind::TaskLeft if self.left => self.has_left(at),
            FaultKind::Function if owner == Owner::Function => {
                self.take_request(at, id);
                self.function_failed(lane, fault);
            }
            FaultKind::UnknownKeys => self.repeat(at, id, None),
            FaultKind::Busy => {
                let pause = Duration::from_millis(u64::from(fault.retry_after_ms.max(1)));
                self.repeat(at, id, Some(now + pause));
            }
            _ => match self.ahead.iter().position(|a| matches!(owner, Owner::Ask { ask, .. } if ask == a.id))
            {
                Some(ahead) => self.drop_ahead(ahead),
                None => self.fail(self.error_of(lane, fault)),
            },
        }
    }

    /// A fault for a push, or for a request that is no more.
    fn on_stray_fault(&mut self, now: Duration, lane: u16, fault: &Fault) {
        let state = &mut self.lanes[usize::from(lane)];
        if fault.request != 0 && !state.log.asks(fault.request) {
            return;
        }
        if fault.kind == FaultKind::Function && state.log.answered(fault.request) {
            return self.function_failed(lane, fault);
        }
        if fault.kind == FaultKind::TaskLeft && self.left && !state.log.has_pushes() {
            // The answer to the leave was lost, and ticks before it went out once more.
            return self.has_left(usize::from(lane));
        }
        if fault.kind.retry_may_help() {
            // Nothing behind the refused push may be applied before it: all of it goes again over a new connection.
            self.effects.push(AgentEffect::Close { lane });
            state.closed(now, fault.text.clone());
            let pause = Duration::from_millis(u64::from(fault.retry_after_ms));
            state.link = Link::Closed { retry_at: now + pause };
        } else {
            self.fail(self.error_of(lane, fault));
        }
    }

    /// Sends a request once more, its keys in full.
    fn repeat(&mut self, at: usize, id: RequestId, not_before: Option<Duration>) {
        let lane = &mut self.lanes[at];
        let Some(request) = lane.requests.get_mut(&id) else { return };
        request.parcel.unknown(&mut lane.known);
        request.sent = false;
        lane.resend_count += 1;
        request.not_before = not_before;
        self.sendings += 1;
        self.read_again(at);
    }

    /// Some pulls of a lane are sent again, and read later than they were asked.
    fn read_again(&mut self, at: usize) {
        let open = match &mut self.call {
            Some(Call::Pull(ask)) => Some(ask),
            _ => None,
        };
        for ask in self.ahead.iter_mut().chain(open) {
            let is_there = |(_, request): (&RequestId, &Request)| matches!(request.owner, Owner::Ask { ask: id, .. } if id == ask.id);
            if self.lanes[at].requests.iter().any(is_there) {
                ask.last_sent = self.sendings;
            }
        }
        if let Some(Call::PullFunction(ask)) = &mut self.call
            && self.lanes[at].requests.values().any(|request| request.owner == Owner::Function)
        {
            ask.last_sent = self.sendings;
        }
    }

    /// A lane says that this task has left it: it has all that was said before.
    fn has_left(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        lane.link = Link::Ended;
        lane.requests.retain(|_, request| request.owner != Owner::Leave);
        lane.log.confirm(Mark { clock: u64::MAX, index: u32::MAX });
    }

    fn error_of(&self, lane: u16, fault: &Fault) -> Error {
        match fault.kind {
            FaultKind::Stopped => Error::Stopped { reason: fault.text.clone() },
            _ => self.server_error(lane, fault.text.clone()),
        }
    }

    pub(crate) fn server_error(&self, lane: u16, text: String) -> Error {
        Error::Server { server: self.layout.lanes[usize::from(lane)].to_string(), text }
    }
}
