//! A lane that sends the changes of replicated jobs to their standbys before it answers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rpc::message::{CloseJob, Durability, Fault, FaultKind, JobId};
use rpc::service::{ConnectionId, Effect, Service};
use rpc::{Message, Metrics};

use super::events::{ClusterEvent, ClusterEvents};
use super::link::{LinkRefusal, OpenLink, StandbyLink};
use crate::changes::recorder::Recorder;
use crate::injected_fault::InjectedFault;
use crate::state::LaneState;

/// A lane with the standbys of its replicated jobs.
pub struct PrimaryLane {
    state: LaneState,
    open_link: OpenLink,
    events: ClusterEvents,
    replicas: BTreeMap<JobId, ReplicatedJob>,
}

/// A job that a standby has too.
struct ReplicatedJob {
    link: Box<dyn StandbyLink>,
    /// Name of the server of the standby.
    server: String,
    /// Number of changes that were given to the link.
    sent_count: u64,
    /// What is sent when the standby has so many changes.
    unconfirmed: VecDeque<(u64, Effect)>,
}

impl PrimaryLane {
    /// `open_link` connects to the standby of a job.
    pub fn new(mut state: LaneState, open_link: OpenLink, events: ClusterEvents) -> Self {
        state.durability = Durability::Replica;
        state.recorder = Some(Recorder::for_standbys());
        events.subscribe(state.config.lane);
        Self { state, open_link, events, replicas: BTreeMap::new() }
    }

    /// The lane without its standbys.
    pub fn state(&self) -> &LaneState {
        &self.state
    }

    /// Gives the last changes to the standbys, and holds the effects from `first` on that depend on them. `subject` is
    /// the connection that has sent a message about a job.
    fn replicate(&mut self, subject: Option<(ConnectionId, JobId)>, first: usize, out: &mut Vec<Effect>) {
        self.send_changes();
        if self.replicas.is_empty() {
            return;
        }
        let effects: Vec<Effect> = out.drain(first..).collect();
        for effect in effects {
            let replica = self.job_of(&effect, subject).and_then(|job| self.replicas.get_mut(&job));
            match replica.filter(|replica| replica.is_behind()) {
                Some(_) if self.state.config.injects(InjectedFault::AnswerBeforeStandby) => out.push(effect),
                Some(replica) => replica.unconfirmed.push_back((replica.sent_count, effect)),
                None => out.push(effect),
            }
        }
    }

    fn send_changes(&mut self) {
        let Some(recorder) = &mut self.state.recorder else { return };
        while let Some((job, frames)) = recorder.next_job() {
            if !self.replicas.contains_key(&job) {
                let standby = self.state.jobs.get(&job).and_then(|open| open.open_request.standby.as_ref());
                let Some(standby) = standby else {
                    recorder.forget(job);
                    continue;
                };
                let replica = ReplicatedJob {
                    link: (self.open_link)(job, standby),
                    server: standby.server.clone(),
                    sent_count: 0,
                    unconfirmed: VecDeque::new(),
                };
                self.replicas.insert(job, replica);
            }
            if let Some(replica) = self.replicas.get_mut(&job) {
                replica.sent_count += frames.count;
                replica.link.send(&frames.bytes, frames.count);
            }
            frames.clear();
        }
    }

    /// The job on whose changes an effect depends. Connections are opened and closed freely, and a pause is no answer.
    fn job_of(&self, effect: &Effect, subject: Option<(ConnectionId, JobId)>) -> Option<JobId> {
        let (Effect::Send { connection, .. } | Effect::Close { connection }) = effect else { return None };
        match subject {
            Some((at, job)) if at == *connection => Some(job),
            _ => self.state.job_at(*connection),
        }
    }

    /// Sends what the standbys have confirmed.
    fn release(&mut self, now: Duration, out: &mut Vec<Effect>) {
        let mut refusals = Vec::new();
        for (job, replica) in &mut self.replicas {
            let confirmed = replica.link.confirmed_count();
            while let Some((count, _)) = replica.unconfirmed.front()
                && *count <= confirmed
            {
                out.extend(replica.unconfirmed.pop_front().map(|(_, effect)| effect));
            }
            if let Some(reason) = replica.link.refusal() {
                refusals.push((*job, reason));
            }
        }
        for (job, reason) in refusals {
            match reason {
                LinkRefusal::TakenOver => self.leave_job(now, job, out),
                LinkRefusal::Failed(reason) => self.close_refused(now, job, &reason, out),
            }
        }
        let jobs = &self.state.jobs;
        self.replicas.retain(|job, replica| jobs.contains_key(job) || replica.is_behind());
        if let Some(recorder) = &mut self.state.recorder {
            recorder.keep_jobs(|job| jobs.contains_key(&job));
        }
    }

    /// Closes a job whose standby follows no more: nothing of it can be acknowledged.
    fn close_refused(&mut self, now: Duration, job: JobId, reason: &str, out: &mut Vec<Effect>) {
        let Some(replica) = self.stop_replication(job) else { return };
        let server = &replica.server;
        tracing::warn!(job, server, reason, "the standby of a job follows no more: this lane closes the job");
        let reason = format!("the standby at {server} follows no more: {reason}");
        for (_, effect) in replica.unconfirmed {
            match effect {
                Effect::Send { connection, message: Message::Done(done) } if done.request != 0 => {
                    let (request, text) = (done.request, reason.clone());
                    let fault = Fault { request, kind: FaultKind::Stopped, text, retry_after_ms: 0 };
                    out.push(Effect::Send { connection, message: Message::Fault(fault) });
                }
                Effect::Send { connection, .. } | Effect::Close { connection } => {
                    self.state.close(now, connection, out);
                }
                Effect::Pause { .. } | Effect::Resume { .. } => {}
            }
        }
        self.state.close_job(0, CloseJob { request: 0, job, reason }, out);
        self.state.run_ready(now, out);
    }

    /// Forgets a job that goes on elsewhere. Nobody may take for done what the standby does not have, so nothing is answered:
    /// its tasks lose their connections and find the standby.
    fn leave_job(&mut self, now: Duration, job: JobId, out: &mut Vec<Effect>) {
        let Some(replica) = self.stop_replication(job) else { return };
        tracing::info!(job, server = replica.server, "the standby of a job has it from now on");
        let unconfirmed = replica.unconfirmed.into_iter().filter_map(|(_, effect)| match effect {
            Effect::Send { connection, .. } | Effect::Close { connection } => Some(connection),
            Effect::Pause { .. } | Effect::Resume { .. } => None,
        });
        let of_job = self.state.connections.keys().copied().filter(|at| self.state.job_at(*at) == Some(job));
        let all: BTreeSet<ConnectionId> = unconfirmed.chain(of_job).collect();
        for at in all {
            self.state.close(now, at, out);
        }
        let reason = "it goes on at another server".to_owned();
        self.state.close_job(0, CloseJob { request: 0, job, reason }, out);
        self.state.closed_jobs.remove(job);
        self.state.run_ready(now, out);
    }

    fn stop_replication(&mut self, job: JobId) -> Option<ReplicatedJob> {
        if let Some(recorder) = &mut self.state.recorder {
            recorder.forget(job);
        }
        self.replicas.remove(&job)
    }

    fn handle_events(&mut self, now: Duration, out: &mut Vec<Effect>) {
        while let Some(event) = self.events.take(self.state.config.lane) {
            let is_over = |job: &JobId, replica: &ReplicatedJob| match &event {
                ClusterEvent::ServerLost(name) => replica.server == *name,
                ClusterEvent::JobsEnd(jobs) => jobs.contains(job),
            };
            let over = self.replicas.iter().filter(|(job, replica)| is_over(job, replica));
            let over: Vec<JobId> = over.map(|(job, _)| *job).collect();
            for job in over {
                if matches!(event, ClusterEvent::JobsEnd(_)) {
                    self.leave_job(now, job, out);
                } else if let Some(replica) = self.stop_replication(job) {
                    let server = &replica.server;
                    tracing::info!(
                        job,
                        server,
                        "the standby of a job is lost: this lane goes on alone, and if it is lost too, the job goes back \
                         to its last checkpoint"
                    );
                    out.extend(replica.unconfirmed.into_iter().map(|(_, effect)| effect));
                }
            }
        }
    }
}

impl ReplicatedJob {
    /// Whether the standby has not confirmed everything.
    fn is_behind(&self) -> bool {
        !self.unconfirmed.is_empty() || self.link.confirmed_count() < self.sent_count
    }
}

impl LaneState {
    /// The job that a connection is about.
    fn job_at(&self, at: ConnectionId) -> Option<JobId> {
        self.connections.get(&at)?.role.job()
    }
}

impl Service for PrimaryLane {
    fn on_message(&mut self, now: Duration, at: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        let job = match &message {
            // The welcome says which pushes were applied.
            Message::Hello(hello) => hello.role.job(),
            message => self.state.job_at(at).or_else(|| message.request_of_job().map(|(job, _)| job)),
        };
        let first = out.len();
        self.state.on_message(now, at, message, out);
        self.replicate(job.map(|job| (at, job)), first, out);
    }

    fn on_closed(&mut self, now: Duration, at: ConnectionId, out: &mut Vec<Effect>) {
        let first = out.len();
        self.state.on_closed(now, at, out);
        self.replicate(None, first, out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.handle_events(now, out);
        self.release(now, out);
        let first = out.len();
        self.state.on_time(now, out);
        self.replicate(None, first, out);
    }

    fn next_time(&self) -> Option<Duration> {
        self.state.next_time()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.state.metrics(out);
        let lane = self.state.config.lane.to_string();
        let behind =
            |replica: &ReplicatedJob| replica.sent_count.saturating_sub(replica.link.confirmed_count());
        let behind: u64 = self.replicas.values().map(behind).sum();
        let help = "Changes of replicated jobs that their standbys have not confirmed";
        out.gauge("seraphim_standby_behind_changes", help, &[("lane", &lane)], behind);
    }
}
