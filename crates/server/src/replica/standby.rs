//! A lane with copies of the jobs of another lane, which it takes over.

use std::collections::BTreeMap;
use std::time::Duration;

use rpc::message::{
    CloseJob, Done, Durability, Fault, FaultKind, Hello, JobId, PushPosition, RequestId, Role, Welcome,
};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::{Message, Metrics};

use super::events::{ClusterEvent, ClusterEvents};
use crate::changes::replay::Replay;
use crate::injected_fault::InjectedFault;
use crate::state::LaneState;

/// Until the standby has taken the job over, or the task reaches the primary, it asks again after this time.
const RETRY_MS: u32 = 50;

/// A lane that follows primaries.
pub struct StandbyLane {
    state: LaneState,
    events: ClusterEvents,
    /// The jobs that their primaries have.
    copies: BTreeMap<JobId, JobCopy>,
    /// The jobs that this lane has taken over, with the incarnations of their primaries.
    taken_over: BTreeMap<JobId, u64>,
    /// The connections of primaries.
    primaries: BTreeMap<ConnectionId, JobId>,
}

/// The copy of a job.
struct JobCopy {
    replay: Replay,
    incarnation: u64,
    /// The connection of the primary.
    at: ConnectionId,
    /// Why the copy is not what the primary is.
    problem: Option<String>,
}

impl StandbyLane {
    pub fn new(mut state: LaneState, events: ClusterEvents) -> Self {
        state.durability = Durability::Replica;
        events.subscribe(state.config.lane);
        let (copies, taken_over, primaries) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { state, events, copies, taken_over, primaries }
    }

    /// The lane with its copies.
    pub fn state(&self) -> &LaneState {
        &self.state
    }

    fn on_hello(&mut self, now: Duration, at: ConnectionId, hello: Hello, out: &mut Vec<Effect>) {
        if let Role::Primary { job, incarnation } = hello.role {
            return self.on_primary(now, at, job, incarnation, hello.request, out);
        }
        let job = hello.role.job();
        let incarnation = job.and_then(|job| self.taken_over.get(&job)).copied();
        if let Some(job) =
            job.filter(|job| incarnation.is_none() && self.state.closed_jobs.reason(*job).is_none())
        {
            let text = format!("this lane is the standby of job {job}, which another server has");
            let fault =
                Fault { request: hello.request, kind: FaultKind::Busy, text, retry_after_ms: RETRY_MS };
            out.push(Effect::Send { connection: at, message: Message::Fault(fault) });
            out.push(Effect::Close { connection: at });
            return;
        }
        let first = out.len();
        self.state.on_message(now, at, Message::Hello(hello), out);
        // For those who had connections to the primary, this lane is the primary.
        for effect in &mut out[first..] {
            if let (Effect::Send { message: Message::Welcome(welcome), .. }, Some(incarnation)) =
                (effect, incarnation)
            {
                welcome.incarnation = incarnation;
            }
        }
    }

    /// A primary opens a connection, or another one in place of one that was reset.
    fn on_primary(
        &mut self,
        now: Duration,
        at: ConnectionId,
        job: JobId,
        incarnation: u64,
        request: RequestId,
        out: &mut Vec<Effect>,
    ) {
        let is_refused = match self.copies.get(&job) {
            Some(copy) => copy.incarnation != incarnation || copy.problem.is_some(),
            None => self.state.jobs.contains_key(&job) || self.state.closed_jobs.reason(job).is_some(),
        };
        if is_refused {
            let problem = self.copies.get(&job).and_then(|copy| copy.problem.clone());
            let (kind, text) = match problem {
                Some(problem) => (FaultKind::Stopped, problem),
                None => (FaultKind::NoSuchJob, format!("it has taken job {job} over, or the job has ended")),
            };
            return self.refuse_primary(at, Fault { request, kind, text, retry_after_ms: 0 }, out);
        }
        if !self.copies.contains_key(&job) {
            let replay = Replay::new(&mut self.state);
            self.copies.insert(job, JobCopy { replay, incarnation, at, problem: None });
        }
        let Some(copy) = self.copies.get_mut(&job) else { return };
        let before = std::mem::replace(&mut copy.at, at);
        if before != at {
            self.primaries.remove(&before);
            out.push(Effect::Close { connection: before });
        }
        self.primaries.insert(at, job);
        let welcome = Welcome {
            request,
            incarnation: self.state.config.incarnation,
            lanes: self.state.config.lanes,
            window_bytes: self.state.config.window_bytes,
            applied: PushPosition::default(),
            clock: copy.replay.count,
            minimum: u64::MAX,
        };
        tracing::debug!(job, changes = copy.replay.count, ?now, "a primary has connected to its standby");
        out.push(Effect::Send { connection: at, message: Message::Welcome(welcome) });
    }

    fn refuse_primary(&mut self, at: ConnectionId, fault: Fault, out: &mut Vec<Effect>) {
        self.primaries.remove(&at);
        out.push(Effect::Send { connection: at, message: Message::Fault(fault) });
        out.push(Effect::Close { connection: at });
    }

    /// Repeats a change of the primary.
    fn follow(
        &mut self,
        now: Duration,
        at: ConnectionId,
        job: JobId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        let Some(copy) = self.copies.get_mut(&job) else {
            if self.state.config.injects(InjectedFault::PrimaryIsNotRefused) {
                let done = Done { request: u64::MAX, minimum: u64::MAX, applied: PushPosition::default() };
                out.push(Effect::Send { connection: at, message: Message::Done(done) });
            }
            return;
        };
        let names = message.request_of_job().map(|(named, _)| named);
        let applied = if names == Some(job) {
            copy.replay.apply(&mut self.state, now, message)
        } else {
            Err(format!("a change of job {names:?} came over the connection of job {job}"))
        };
        match applied {
            Ok(()) => {
                let done =
                    Done { request: copy.replay.count, minimum: u64::MAX, applied: PushPosition::default() };
                out.push(Effect::Send { connection: at, message: Message::Done(done) });
            }
            Err(problem) => {
                tracing::error!(job, problem, "the copy of a job cannot follow its primary");
                copy.problem = Some(problem.clone());
                let fault = Fault { request: 0, kind: FaultKind::Stopped, text: problem, retry_after_ms: 0 };
                self.refuse_primary(at, fault, out);
            }
        }
    }

    /// Forgets the copies of jobs that were closed.
    fn forget_ended(&mut self) {
        let jobs = &self.state.jobs;
        let has_ended = |job: &JobId, copy: &JobCopy| copy.replay.count > 0 && !jobs.contains_key(job);
        let ended: Vec<JobId> =
            self.copies.iter().filter(|(job, copy)| has_ended(job, copy)).map(|(job, _)| *job).collect();
        for job in ended {
            self.forget_copy(job);
        }
        let jobs = &self.state.jobs;
        self.taken_over.retain(|job, _| jobs.contains_key(job));
    }

    fn forget_copy(&mut self, job: JobId) {
        if let Some(copy) = self.copies.remove(&job) {
            copy.replay.finish(&mut self.state);
        }
    }

    fn handle_events(&mut self, now: Duration, out: &mut Vec<Effect>) {
        while let Some(event) = self.events.take(self.state.config.lane) {
            // The process closes jobs that end.
            let ClusterEvent::ServerLost(lost) = event else { continue };
            let jobs = &self.state.jobs;
            let is_of_lost = |job: &JobId| {
                let standby = jobs.get(job).and_then(|open| open.open_request.standby.as_ref());
                standby.is_some_and(|standby| standby.primary == lost)
            };
            let copies: Vec<JobId> = self.copies.keys().copied().filter(is_of_lost).collect();
            for job in copies {
                self.take_over(now, job, &lost, out);
            }
        }
    }

    fn take_over(&mut self, now: Duration, job: JobId, lost: &str, out: &mut Vec<Effect>) {
        let Some(copy) = self.copies.remove(&job) else { return };
        copy.replay.finish(&mut self.state);
        if !self.state.config.injects(InjectedFault::PrimaryIsNotRefused) {
            self.primaries.remove(&copy.at);
            out.push(Effect::Close { connection: copy.at });
        }
        if let Some(problem) = copy.problem {
            let reason = format!("{lost} is lost, and its standby could not follow it: {problem}");
            self.state.close_job(0, CloseJob { request: 0, job, reason }, out);
            return;
        }
        self.taken_over.insert(job, copy.incarnation);
        let lane = self.state.config.lane;
        tracing::info!(job, lane, lost, "a server is lost: this lane takes its part of the job over");
        self.state.run_ready(now, out);
    }
}

impl Service for StandbyLane {
    fn on_message(&mut self, now: Duration, at: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        match message {
            Message::Hello(hello) => self.on_hello(now, at, hello, out),
            message => match self.primaries.get(&at) {
                Some(job) => self.follow(now, at, *job, message, out),
                None => self.state.on_message(now, at, message, out),
            },
        }
        self.forget_ended();
    }

    fn on_closed(&mut self, now: Duration, at: ConnectionId, out: &mut Vec<Effect>) {
        // A primary that knows another process at this address has sent nothing.
        if let Some(job) = self.primaries.remove(&at)
            && let Some(copy) = self.copies.get(&job)
            && copy.replay.count == 0
            && copy.at == at
        {
            self.forget_copy(job);
        }
        self.state.on_closed(now, at, out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.handle_events(now, out);
        self.state.on_time(now, out);
    }

    fn next_time(&self) -> Option<Duration> {
        self.state.next_time()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.state.metrics(out);
    }
}
