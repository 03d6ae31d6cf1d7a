//! The state of a lane. Each arm of `LaneState::handle` is one call into the file of its concern.
//!
//! Invariants:
//! - A deferred request is in `deferred_requests` of its job once, by its arrival.
//! - A deferred push is also the first request in the queue of its connection, and this connection is blocked.
//! - `deferred_bytes` is the sum over deferred pulls and all queues.
//! - After every call no request is deferred that could be answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use matrix::FunctionTable;
use rpc::message::{Durability, FaultKind, JobId, RequestId};
use rpc::{Message, Metrics};

use crate::changes::recorder::Recorder;
use crate::closed_jobs::ClosedJobs;
use crate::config::{LaneConfig, ModuleCache, OpenJobs};
use crate::connection::{Connection, QueuedRequest};
use crate::injected_fault::InjectedFault;
use crate::job::{DeferredCall, DeferredRequest, Job};
use crate::log::log_deferred;
use crate::memory::MemoryCount;
use crate::push::PushRequest;
use crate::ready_work::{ReadyItem, ReadyWork};
use crate::refusal::Refusal;
use crate::stats::LaneStats;
use rpc::service::{ConnectionId, Effect, Service};

/// One lane: its partitions, its clocks and its deferred requests.
#[derive(Debug)]
pub struct LaneState {
    pub(crate) config: LaneConfig,
    pub(crate) connections: BTreeMap<ConnectionId, Connection>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) closed_jobs: ClosedJobs,
    pub(crate) arrival_count: u64,
    pub(crate) deferred_bytes: u64,
    pub(crate) memory: MemoryCount,
    pub(crate) ready: ReadyWork,
    pub(crate) stats: LaneStats,
    /// Gets each job that this lane opens or closes.
    pub(crate) open_jobs: OpenJobs,
    /// The functions for jobs without modules.
    pub(crate) functions: Arc<FunctionTable>,
    pub(crate) module_cache: Option<ModuleCache>,
    /// What there is of this lane when its process has died.
    pub(crate) durability: Durability,
    /// Records changes for the write-ahead log or for standbys. None: there is neither.
    pub(crate) recorder: Option<Recorder>,
    /// Number of connections that replays have made.
    pub(crate) replay_connection_count: u64,
}

impl LaneState {
    /// A lane without jobs, with the built-in functions.
    pub fn new(config: LaneConfig) -> Self {
        Self {
            config,
            connections: BTreeMap::new(),
            jobs: BTreeMap::new(),
            closed_jobs: ClosedJobs::default(),
            arrival_count: 0,
            deferred_bytes: 0,
            memory: MemoryCount::default(),
            ready: ReadyWork::default(),
            stats: LaneStats::default(),
            open_jobs: OpenJobs::default(),
            functions: Arc::new(FunctionTable::builtin()),
            module_cache: None,
            durability: Durability::Checkpoint,
            recorder: None,
            replay_connection_count: 0,
        }
    }

    /// Replaces the functions.
    #[must_use]
    pub fn with_functions(self, functions: FunctionTable) -> Self {
        Self { functions: Arc::new(functions), ..self }
    }

    /// Accepts jobs with modules, whose functions come from this cache.
    #[must_use]
    pub fn with_modules(self, modules: Option<ModuleCache>) -> Self {
        Self { module_cache: modules, ..self }
    }

    /// Reports the jobs of the lane to `open_jobs`.
    #[must_use]
    pub fn with_open_jobs(self, open_jobs: OpenJobs) -> Self {
        Self { open_jobs, ..self }
    }

    /// Whether the lane has neither jobs nor connections.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.connections.is_empty()
    }

    fn receive(&mut self, now: Duration, at: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        self.arrival_count += 1;
        let arrival = self.arrival_count;
        if let Message::Hello(hello) = message {
            return self.on_hello(now, at, &hello, out);
        }
        let overtakes =
            self.config.injects(InjectedFault::TickOvertakesPush) && matches!(message, Message::Tick(_));
        // Frames of a connection that the lane has closed may still arrive.
        let Some(connection) = self.connections.get_mut(&at) else { return };
        if !connection.is_blocked || overtakes {
            return self.handle(now, at, arrival, message, out);
        }
        let bytes = message.frame_bytes();
        self.deferred_bytes += bytes;
        connection.push_back(QueuedRequest { arrival, message, bytes });
        self.pause_if_full(at, out);
    }

    pub(crate) fn pause_if_full(&mut self, at: ConnectionId, out: &mut Vec<Effect>) {
        let window = self.config.window_bytes;
        if let Some(connection) = self.connections.get_mut(&at)
            && !connection.is_paused
            && connection.queued_bytes > window
        {
            connection.is_paused = true;
            self.stats.pause_count += 1;
            out.push(Effect::Pause { connection: at });
        }
    }

    fn resume_if_half_empty(&mut self, at: ConnectionId, out: &mut Vec<Effect>) {
        let window = self.config.window_bytes;
        if let Some(connection) = self.connections.get_mut(&at)
            && connection.is_paused
            && connection.queued_bytes <= window / 2
        {
            connection.is_paused = false;
            out.push(Effect::Resume { connection: at });
        }
    }

    /// Handles a message. What it changes is recorded, unless it is refused; changes that may be deferred are recorded
    /// where they are made.
    pub(crate) fn handle(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        let recorded = self.recorder.as_mut().and_then(|recorder| recorder.record_request(&message));
        let first_effect = out.len();
        self.dispatch(now, at, arrival, message, out);
        let is_refusal = |effect: &Effect| matches!(effect, Effect::Send { connection, message: Message::Fault(_) } if *connection == at);
        if let (Some(recorded), Some(recorder)) = (recorded, &mut self.recorder)
            && out[first_effect..].iter().any(is_refusal)
        {
            recorder.take_back(recorded);
        }
    }

    fn dispatch(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        match message {
            Message::OpenJob(open) => self.open_job(at, open, out),
            Message::CloseJob(close) => self.close_job(at, close, out),
            Message::Pull(pull) => self.pull(now, at, arrival, pull, out),
            Message::PullFunction(pull) => self.pull_function(now, at, arrival, pull, out),
            Message::Push(push) => self.push(now, at, arrival, PushRequest::Push(push), out),
            Message::PushFunction(push) => self.push(now, at, arrival, PushRequest::Function(push), out),
            Message::TryFunction(attempt) => self.try_function(now, at, arrival, attempt, out),
            Message::Tick(tick) => self.tick(at, tick, out),
            Message::Leave(leave) => self.leave(at, leave, out),
            Message::Join(join) => self.join(at, join, out),
            Message::Barrier(barrier) => self.barrier(now, at, barrier, out),
            Message::Export(export) => self.export(at, export, out),
            Message::Import(import) => self.import(at, import, out),
            Message::KeepRows(keep) => self.keep_rows(at, keep, out),
            Message::RestoreRows(restore) => self.restore_rows(at, restore, out),
            Message::DropRows(drop) => self.drop_rows(at, drop, out),
            Message::ScanRows(scan) => self.scan_rows(at, scan, out),
            Message::Stats(stats) => self.reply_stats(now, at, stats, out),
            Message::AddMatrix(add) => self.add_matrix(at, add, out),
            Message::DropMatrix(drop) => self.drop_matrix(at, drop, out),
            Message::PushStaged(push) => self.push_staged(at, push, out),
            Message::Commit(commit) => self.commit(at, commit, out),
            Message::CommitFunction(commit) => self.commit_function(at, commit, out),
            Message::CloseToken(close) => self.close_token(at, close, out),
            Message::Batch(batch) => self.batch(now, at, arrival, batch, out),
            Message::Hello(_)
            | Message::Welcome(_)
            | Message::Pulled(_)
            | Message::PulledFunction(_)
            | Message::Joined(_)
            | Message::Released(_)
            | Message::ExportPage(_)
            | Message::StatsReply(_)
            | Message::Done(_)
            | Message::Fault(_)
            | Message::Control(_)
            | Message::OpenSession(_)
            | Message::SessionMap(_)
            | Message::CreateMatrix(_)
            | Message::AskMap(_)
            | Message::RenewSession(_)
            | Message::CloseSession(_)
            | Message::CheckpointSession(_)
            | Message::Committed(_) => {
                let text =
                    "a server does not accept this message: it is an answer, or a request for the master";
                self.refuse(at, 0, Refusal::new(FaultKind::BadFrame, text), out);
                self.close(now, at, out);
            }
        }
    }

    /// Runs everything that need not wait any more: queues behind deferred pushes, then deferred requests in the order
    /// of arrival.
    pub(crate) fn run_ready(&mut self, now: Duration, out: &mut Vec<Effect>) {
        while let Some(item) = self.ready.first() {
            match item {
                ReadyItem::Connection(at) => self.run_queue(now, at, out),
                ReadyItem::Job(job) => {
                    if !self.release_next(now, job, out) {
                        self.ready.remove_job(job);
                    }
                }
            }
        }
    }

    fn run_queue(&mut self, now: Duration, at: ConnectionId, out: &mut Vec<Effect>) {
        while let Some(connection) = self.connections.get_mut(&at)
            && !connection.is_blocked
            && let Some(queued) = connection.pop_front()
        {
            self.deferred_bytes -= queued.bytes;
            self.handle(now, at, queued.arrival, queued.message, out);
        }
        self.ready.remove_connection(at);
        self.resume_if_half_empty(at, out);
    }

    /// Answers the tasks at an open barrier, or the first deferred request that need not wait. Returns false when there
    /// is none.
    fn release_next(&mut self, now: Duration, id: JobId, out: &mut Vec<Effect>) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        job.invalidate_staged_export();
        if job.pass_barrier(now, self.config.lane, out) {
            return true;
        }
        let Some(job) = self.jobs.get(&id) else { return false };
        let mut deferred = job.deferred_requests.iter();
        let Some(arrival) = deferred
            .find(|(_, deferred)| self.has_reached(job, deferred.needed_clock))
            .map(|(arrival, _)| *arrival)
        else {
            return false;
        };
        let deferred = self.jobs.get_mut(&id).and_then(|job| {
            let deferred = job.deferred_requests.remove(&arrival)?;
            job.stats.count_wait(now.saturating_sub(deferred.since));
            log_deferred(now, id, self.config.lane, &deferred);
            Some(deferred)
        });
        if let Some(deferred) = deferred {
            self.serve_deferred(now, deferred, out);
        }
        true
    }

    fn serve_deferred(&mut self, now: Duration, deferred: DeferredRequest, out: &mut Vec<Effect>) {
        self.deferred_bytes -= deferred.bytes;
        match deferred.call {
            DeferredCall::Pull(pull) => {
                self.serve_pull(deferred.connection, pull, now.saturating_sub(deferred.since), out);
            }
            DeferredCall::PullFunction(pull) => {
                self.serve_pull_function(deferred.connection, &pull, now.saturating_sub(deferred.since), out);
            }
            DeferredCall::TryFunction(attempt) => self.serve_try_function(deferred.connection, &attempt, out),
            DeferredCall::Push => {
                let Some(connection) = self.connections.get_mut(&deferred.connection) else { return };
                connection.is_blocked = false;
                let queued = connection.pop_front();
                self.ready.add_connection(deferred.connection);
                if let Some(QueuedRequest { message, bytes, .. }) = queued {
                    self.deferred_bytes -= bytes;
                    if let Some(change) = PushRequest::from_message(message) {
                        self.serve_push_request(now, deferred.connection, change, out);
                    }
                }
            }
        }
    }

    pub(crate) fn refuse(
        &mut self,
        at: ConnectionId,
        request: RequestId,
        refusal: Refusal,
        out: &mut Vec<Effect>,
    ) {
        self.stats.count_refusal(refusal.kind);
        self.log_refusal(at, request, &refusal);
        out.push(Effect::Send { connection: at, message: Message::Fault(refusal.into_fault(request)) });
    }
}

impl Service for LaneState {
    fn on_message(
        &mut self,
        now: Duration,
        connection: ConnectionId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        self.stats.count_request(&message);
        self.log_arrival(&message);
        self.receive(now, connection, message, out);
        self.run_ready(now, out);
    }

    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>) {
        self.remove_connection(now, connection);
        self.run_ready(now, out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.expire_waits(now, out);
        self.run_ready(now, out);
    }

    fn next_time(&self) -> Option<Duration> {
        self.jobs.values().filter_map(Job::next_time).min()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.write_metrics(out);
    }
}
