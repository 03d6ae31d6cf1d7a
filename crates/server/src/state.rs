//! The state of a lane. Each arm of `LaneState::handle` is one call into the file of its concern.
//!
//! Invariants: a held request stands in `held` of its job, once, under its arrival; a held push is also the first in the
//! queue of its connection, which is then blocked; `held_bytes` is the sum over held pulls and all queues; after every
//! call nothing is held that may go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use matrix::FunctionTable;
use rpc::message::{FaultKind, JobId, RequestId};
use rpc::{Message, Metrics};

use crate::broken::Broken;
use crate::config::{JobModules, LaneConfig, OpenJobs};
use crate::connection::{Connection, Queued};
use crate::job::{Held, HeldWhat, Job};
use crate::log::log_held;
use crate::push::Change;
use crate::refusal::Refusal;
use crate::stats::LaneStats;
use rpc::service::{ConnectionId, Effect, Service};

/// One lane: its partitions, its clocks, whoever waits.
#[derive(Debug)]
pub struct LaneState {
    pub(crate) config: LaneConfig,
    pub(crate) connections: BTreeMap<ConnectionId, Connection>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Why jobs were closed.
    pub(crate) closed: BTreeMap<JobId, String>,
    pub(crate) arrivals: u64,
    pub(crate) held_bytes: u64,
    /// As counted last.
    pub(crate) memory_bytes: u64,
    /// Elements pushed since then.
    pub(crate) pushed_since_count: usize,
    /// Connections whose queues may go on, and jobs whose clocks have changed; empty between calls.
    pub(crate) runnable: BTreeSet<ConnectionId>,
    pub(crate) changed: BTreeSet<JobId>,
    pub(crate) stats: LaneStats,
    /// Told of jobs that are opened and closed.
    pub(crate) open_jobs: OpenJobs,
    /// Of jobs that bring none of their own.
    pub(crate) functions: Arc<FunctionTable>,
    pub(crate) modules: Option<JobModules>,
}

impl LaneState {
    /// A lane without jobs, with the built-in functions.
    pub fn new(config: LaneConfig) -> Self {
        Self {
            config,
            connections: BTreeMap::new(),
            jobs: BTreeMap::new(),
            closed: BTreeMap::new(),
            arrivals: 0,
            held_bytes: 0,
            memory_bytes: 0,
            pushed_since_count: 0,
            runnable: BTreeSet::new(),
            changed: BTreeSet::new(),
            stats: LaneStats::default(),
            open_jobs: OpenJobs::default(),
            functions: Arc::new(FunctionTable::builtin()),
            modules: None,
        }
    }

    /// The same, with functions of your own.
    #[must_use]
    pub fn with_functions(self, functions: FunctionTable) -> Self {
        Self { functions: Arc::new(functions), ..self }
    }

    /// The same, taking jobs that bring modules.
    #[must_use]
    pub fn with_modules(self, modules: Option<JobModules>) -> Self {
        Self { modules, ..self }
    }

    /// The same, telling `open_jobs` of its jobs.
    #[must_use]
    pub fn telling(self, open_jobs: OpenJobs) -> Self {
        Self { open_jobs, ..self }
    }

    fn receive(&mut self, now: Duration, at: ConnectionId, message: Message, out: &mut Vec<Effect>) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        if let Message::Hello(hello) = message {
            return self.hello(now, at, &hello, out);
        }
        let overtakes = self.config.lacks(Broken::TickOvertakesPush) && matches!(message, Message::Tick(_));
        // A connection that was closed here may still have had frames on their way.
        let Some(connection) = self.connections.get_mut(&at) else { return };
        if !connection.blocked || overtakes {
            return self.handle(now, at, arrival, message, out);
        }
        let bytes = message.frame_bytes();
        self.held_bytes += bytes;
        connection.push_back(Queued { arrival, message, bytes });
        self.stop_reading_if_full(at, out);
    }

    pub(crate) fn stop_reading_if_full(&mut self, at: ConnectionId, out: &mut Vec<Effect>) {
        let window = self.config.window_bytes;
        if let Some(connection) = self.connections.get_mut(&at)
            && !connection.paused
            && connection.queued_bytes > window
        {
            connection.paused = true;
            self.stats.pause_count += 1;
            out.push(Effect::Pause { connection: at });
        }
    }

    fn read_on_if_half_empty(&mut self, at: ConnectionId, out: &mut Vec<Effect>) {
        let window = self.config.window_bytes;
        if let Some(connection) = self.connections.get_mut(&at)
            && connection.paused
            && connection.queued_bytes <= window / 2
        {
            connection.paused = false;
            out.push(Effect::Resume { connection: at });
        }
    }

    pub(crate) fn handle(
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
            Message::Push(push) => self.push(now, at, arrival, Change::Push(push), out),
            Message::PushFunction(push) => self.push(now, at, arrival, Change::Function(push), out),
            Message::TryFunction(ask) => self.try_function(now, at, arrival, ask, out),
            Message::Tick(tick) => self.tick(at, tick, out),
            Message::Leave(leave) => self.leave(at, leave, out),
            Message::Join(join) => self.join(at, join, out),
            Message::Barrier(barrier) => self.barrier(now, at, barrier, out),
            Message::Export(export) => self.export(at, export, out),
            Message::Import(import) => self.import(at, import, out),
            Message::KeepRows(keep) => self.keep_rows(at, keep, out),
            Message::RestoreRows(restore) => self.restore_rows(at, restore, out),
            Message::Stats(stats) => self.report(now, at, stats, out),
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
            | Message::Committed(_)
            | Message::EndBranch(_) => {
                let text = "a message that nobody sends to a server: answers come from it, and sessions are opened at the master";
                self.refuse(at, 0, Refusal::new(FaultKind::BadFrame, text), out);
                self.close(now, at, out);
            }
        }
    }

    /// Lets everything go that may: queues behind pushes that were held, then held requests in the order of arrival.
    pub(crate) fn settle(&mut self, now: Duration, out: &mut Vec<Effect>) {
        loop {
            if let Some(at) = self.runnable.first().copied() {
                self.run_queue(now, at, out);
            } else if let Some(job) = self.changed.first().copied() {
                if !self.release_next(now, job, out) {
                    self.changed.remove(&job);
                }
            } else {
                return;
            }
        }
    }

    fn run_queue(&mut self, now: Duration, at: ConnectionId, out: &mut Vec<Effect>) {
        while let Some(connection) = self.connections.get_mut(&at)
            && !connection.blocked
            && let Some(queued) = connection.pop_front()
        {
            self.held_bytes -= queued.bytes;
            self.handle(now, at, queued.arrival, queued.message, out);
        }
        self.runnable.remove(&at);
        self.read_on_if_half_empty(at, out);
    }

    /// Answers whoever a barrier lets go, or the first held request that may go; false when there is none.
    fn release_next(&mut self, now: Duration, id: JobId, out: &mut Vec<Effect>) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        job.forget_export_of_staged();
        if job.pass_barrier(now, self.config.lane, out) {
            return true;
        }
        let Some(job) = self.jobs.get(&id) else { return false };
        let mut held = job.held.iter();
        let Some(arrival) =
            held.find(|(_, held)| self.has_come(job, held.needed)).map(|(arrival, _)| *arrival)
        else {
            return false;
        };
        let held = self.jobs.get_mut(&id).and_then(|job| {
            let held = job.held.remove(&arrival)?;
            job.stats.waited(now.saturating_sub(held.since));
            log_held(now, id, self.config.lane, &held);
            Some(held)
        });
        if let Some(held) = held {
            self.serve_held(now, held, out);
        }
        true
    }

    fn serve_held(&mut self, now: Duration, held: Held, out: &mut Vec<Effect>) {
        self.held_bytes -= held.bytes;
        match held.what {
            HeldWhat::Pull(pull) => {
                self.serve_pull(held.connection, pull, now.saturating_sub(held.since), out);
            }
            HeldWhat::PullFunction(pull) => {
                self.serve_pull_function(held.connection, &pull, now.saturating_sub(held.since), out);
            }
            HeldWhat::TryFunction(ask) => self.serve_try_function(held.connection, &ask, out),
            HeldWhat::Push => {
                let Some(connection) = self.connections.get_mut(&held.connection) else { return };
                connection.blocked = false;
                let queued = connection.pop_front();
                self.runnable.insert(held.connection);
                if let Some(Queued { message, bytes, .. }) = queued {
                    self.held_bytes -= bytes;
                    if let Some(change) = Change::of(message) {
                        self.serve_change(now, held.connection, change, out);
                    }
                }
            }
        }
    }

    /// Answers with a fault.
    pub(crate) fn refuse(
        &mut self,
        at: ConnectionId,
        request: RequestId,
        refusal: Refusal,
        out: &mut Vec<Effect>,
    ) {
        self.stats.refused(refusal.kind);
        self.log_refusal(at, request, &refusal);
        out.push(Effect::Send { connection: at, message: Message::Fault(refusal.fault(request)) });
    }

    /// Counts the bytes of all jobs.
    pub(crate) fn count_memory(&mut self) {
        self.memory_bytes = self.jobs.values().map(Job::bytes).sum();
        self.pushed_since_count = 0;
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
        self.stats.received(&message);
        self.log_arrival(&message);
        self.receive(now, connection, message, out);
        self.settle(now, out);
    }

    fn on_closed(&mut self, now: Duration, connection: ConnectionId, out: &mut Vec<Effect>) {
        self.forget(now, connection);
        self.settle(now, out);
    }

    fn on_time(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.give_up_waits(now, out);
        self.settle(now, out);
    }

    fn next_time(&self) -> Option<Duration> {
        self.jobs.values().filter_map(Job::next_time).min()
    }

    fn metrics(&self, out: &mut Metrics) {
        self.count_all(out);
    }
}
