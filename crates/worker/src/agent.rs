//! The agent over blocking connections, on the thread of its task. It runs the effects of [`AgentState`] and passes the
//! messages of the lanes to it. It sends to all lanes first and then receives from one lane after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use matrix::{
    Agent, Clock, Error, FunctionCall, FunctionTable, MatrixId, Prefetch, PullTicket, Selection, Values,
    ValuesMut,
};
use rpc::layout::{JobLayout, LaneAddress, LayoutError};
use rpc::message::Role;
use rpc::trace::{RequestIdentity, SLOW_REQUEST};
use rpc::{Message, log_request};

use crate::call::CallOutput;
use crate::cancellation::CancellationToken;
use crate::lane_client::{LaneClient, may_come_back};
use crate::prefetch::PrefetchCounts;
use crate::state::{AgentEffect, AgentState};
use crate::stats::{AgentStats, SharedStats};

/// Before a tick, the agent polls each connection that has received nothing for this time: it may have broken while the
/// task computed. A poll costs three system calls, which is little in a step of this length.
const POLL_AFTER: Duration = Duration::from_millis(1);
/// Longest wait for one lane before the agent checks the time, the cancellation token and its other connections again.
const WAIT_LIMIT: Duration = Duration::from_millis(100);

/// An [`Agent`] of matrices on servers. If it is dropped without `finish`, the task leaves, as far as its servers can
/// be reached.
#[derive(Debug)]
pub struct RemoteAgent {
    pub(crate) state: AgentState,
    start: Instant,
    cancellation: CancellationToken,
    /// Indexed by lane.
    clients: Vec<LaneClient>,
    /// The time of the last message or poll of each lane.
    received_at: Vec<Duration>,
    stats: AgentStats,
    shared_stats: SharedStats,
    /// Whether messages of all kinds are buffered until the next flush.
    is_corked: bool,
}

impl RemoteAgent {
    /// The agent of `task`, with the built-in functions. `token` is the secret of the cluster, empty when there is none.
    /// The first call connects.
    pub fn new(layout: JobLayout, task: u32, token: &[u8]) -> Result<Self, LayoutError> {
        Self::with_functions(layout, task, token, FunctionTable::builtin())
    }

    /// Does the same as [`Self::new`], with the given table of functions. The servers must have the same.
    pub fn with_functions(
        layout: JobLayout,
        task: u32,
        token: &[u8],
        functions: FunctionTable,
    ) -> Result<Self, LayoutError> {
        let role = Role::Task { job: layout.job, task };
        let client = |lane: &LaneAddress| LaneClient::new(lane.clone(), role, token);
        let clients: Vec<LaneClient> = layout.lanes.iter().map(client).collect();
        let state = AgentState::new(Duration::ZERO, layout, task, functions)?;
        rpc::buffers::retain_large();
        Ok(Self {
            state,
            start: Instant::now(),
            cancellation: CancellationToken::default(),
            received_at: vec![Duration::ZERO; clients.len()],
            clients,
            stats: AgentStats::default(),
            shared_stats: SharedStats::default(),
            is_corked: false,
        })
    }

    /// Lets `cancellation` end the agent: the call that waits then and all later calls fail with [`Error::Stopped`].
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// What the agent has sent and received so far.
    pub fn stats(&self) -> AgentStats {
        self.stats
    }

    /// Shows the stats to other threads, as of the last call or wait.
    pub fn shared_stats(&self) -> SharedStats {
        self.shared_stats.clone()
    }

    fn publish(&mut self) {
        self.stats.clock = self.state.clock();
        self.stats.in_flight_count = self.state.pending_request_count() as u64;
        self.stats.unacknowledged_bytes = self.state.unacknowledged_bytes();
        self.stats.resend_count = self.state.resend_count();
        self.shared_stats.set(&self.stats);
    }

    /// Writes the messages that were buffered for one write. Returns whether a connection was lost.
    fn flush(&mut self) -> bool {
        let mut is_lost = false;
        for lane in 0..self.clients.len() {
            let start = Instant::now();
            let flushed = self.clients[lane].flush();
            self.stats.send_ns += start.elapsed().as_nanos() as u64;
            is_lost |= flushed.is_err();
            self.on_send_result(lane as u16, flushed, || false);
        }
        is_lost
    }

    /// Counts of prefetches so far.
    pub fn prefetch_counts(&self) -> PrefetchCounts {
        self.state.prefetch_counts()
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Runs until the open call has ended.
    pub(crate) fn run(&mut self) -> Result<CallOutput, Error> {
        let waited_ns = self.stats.wait_ns;
        let mut has_listened = false;
        loop {
            self.run_effects();
            if let Some(reason) = self.cancellation.reason() {
                self.state.stop(&reason);
            }
            if let Some(outcome) = self.state.take_result() {
                self.run_effects();
                let waited_ns = self.stats.wait_ns - waited_ns;
                self.stats.deferred_ns += self.state.deferred_ns().min(waited_ns);
                self.stats.round_trip_count += u64::from(has_listened);
                self.stats.count_staleness(self.state.take_staleness());
                self.publish();
                return outcome;
            }
            self.publish();
            self.wait_for_message();
            has_listened = true;
        }
    }

    pub(crate) fn run_effects(&mut self) {
        loop {
            let effects = self.state.take_effects();
            if effects.is_empty() {
                return;
            }
            for (i, effect) in effects.iter().enumerate() {
                match effect {
                    AgentEffect::Connect { lane } => self.connect(*lane),
                    AgentEffect::Close { lane } => self.clients[usize::from(*lane)].close(),
                    AgentEffect::Send { lane, message } => {
                        let is_over = |later: &AgentEffect| match later {
                            AgentEffect::Connect { lane: other } | AgentEffect::Close { lane: other } => {
                                other == lane
                            }
                            AgentEffect::Send { .. } => false,
                        };
                        let is_over = || effects[i + 1..].iter().any(is_over);
                        self.send(*lane, message, is_over);
                    }
                }
            }
        }
    }

    /// Sends a message over the connection of a lane. `is_over` tells whether a later effect closes or replaces this
    /// connection.
    fn send(&mut self, lane: u16, message: &Arc<Message>, is_over: impl Fn() -> bool) {
        let client = &mut self.clients[usize::from(lane)];
        if !client.is_open() {
            return;
        }
        if tracing::enabled!(tracing::Level::DEBUG)
            && let Some(identity) = RequestIdentity::of(message)
        {
            let place = &self.state.layout().lanes[usize::from(lane)];
            log_request!(debug, identity, lane = place.lane, server = %place, "request sent");
        }
        let start = Instant::now();
        let result = client.send(message, self.is_corked);
        self.stats.send_ns += start.elapsed().as_nanos() as u64;
        self.stats.count_sent(message);
        self.on_send_result(lane, result, is_over);
    }

    fn on_send_result(&mut self, lane: u16, result: Result<(), rpc::Error>, is_over: impl Fn() -> bool) {
        match result {
            Ok(()) => {}
            Err(error @ rpc::Error::TooLong { .. }) => self.state.give_up(lane, &error.to_string()),
            Err(_) if is_over() => {}
            Err(error) => self.state.on_closed(self.now(), lane, &error.to_string()),
        }
    }

    fn connect(&mut self, lane: u16) {
        let client = &mut self.clients[usize::from(lane)];
        if self.cancellation.is_cancelled() {
            return self.state.on_closed(self.now(), lane, "the job has ended");
        }
        let start = Instant::now();
        let limit = self.state.layout().wait_limit;
        let opened = client.connect_once(limit, |server| self.cancellation.is_server_lost(server));
        self.stats.wait_ns += start.elapsed().as_nanos() as u64;
        if let Some(closer) = client.closer() {
            self.cancellation.watch(&client.address().server, closer);
        }
        let now = self.now();
        match opened {
            Ok(welcome) => {
                self.stats.connection_count += 1;
                self.received_at[usize::from(lane)] = now;
                self.state.on_connected(now, lane, &welcome);
            }
            Err(rpc::Error::Refused(fault)) => self.state.on_message(now, lane, Message::Fault(fault)),
            Err(error) if may_come_back(&error) => self.state.on_closed(now, lane, &error.to_string()),
            Err(error) => self.state.give_up(lane, &error.to_string()),
        }
    }

    /// Waits for the next message of a lane that the open call needs, or until a deadline.
    fn wait_for_message(&mut self) {
        let now = self.now();
        let due = self.state.next_time().map_or(WAIT_LIMIT, |time| time.saturating_sub(now));
        if due.is_zero() {
            return self.state.on_time(now);
        }
        let is_open = |lane: &usize| self.clients[*lane].is_open() && self.state.waits_for(*lane);
        if let Some(lane) = (0..self.clients.len()).find(is_open) {
            return self.receive(lane, now, due.min(WAIT_LIMIT));
        }
        self.cancellation.wait(due.min(WAIT_LIMIT));
        self.stats.wait_ns += (self.now().saturating_sub(now)).as_nanos() as u64;
        self.state.on_time(self.now());
    }

    fn receive(&mut self, lane: usize, start: Duration, limit: Duration) {
        let received = self.clients[lane].receive(limit);
        let now = self.now();
        self.received_at[lane] = now;
        self.stats.wait_ns += now.saturating_sub(start).as_nanos() as u64;
        match received {
            Err(rpc::Error::TimedOut { .. }) => {
                self.state.on_time(now);
                // Tasks that this lane waits for may wait for what was lost with the connection to another one.
                self.poll_connections();
            }
            received => self.on_received(lane as u16, now, received),
        }
    }

    fn on_received(&mut self, lane: u16, now: Duration, received: Result<Message, rpc::Error>) {
        match received {
            Ok(message) => {
                self.stats.received_bytes += message.frame_bytes();
                self.log_answer(lane, now, &message);
                self.state.on_message(now, lane, message);
            }
            Err(error) => self.state.on_closed(now, lane, &error.to_string()),
        }
    }

    /// Handles messages that have arrived while the task computed, without a wait.
    fn poll_connections(&mut self) {
        let now = self.now();
        for lane in 0..self.clients.len() {
            while self.clients[lane].is_open() && now.saturating_sub(self.received_at[lane]) >= POLL_AFTER {
                match self.clients[lane].receive_now().transpose() {
                    None => self.received_at[lane] = now,
                    Some(received) => self.on_received(lane as u16, now, received),
                }
                self.run_effects();
            }
        }
    }

    /// Logs the answer of a request: each at level debug, a slow one at level info.
    fn log_answer(&self, lane: u16, now: Duration, message: &Message) {
        let (request, deferred_ns) = match message {
            Message::Pulled(pulled) => (pulled.request, pulled.deferred_ns),
            Message::PulledFunction(pulled) => (pulled.request, pulled.deferred_ns),
            Message::Released(released) => (released.request, released.deferred_ns),
            Message::Done(done) => (done.request, 0),
            Message::Fault(fault) => (fault.request, 0),
            _ => return,
        };
        let sent_at = self.state.sent_at(lane, request);
        let took = sent_at.map_or(Duration::ZERO, |sent_at| now.saturating_sub(sent_at));
        let is_slow = took >= SLOW_REQUEST;
        if !is_slow && !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let (job, task, kind) = (self.state.layout().job, self.state.task(), message.kind_name());
        let place = &self.state.layout().lanes[usize::from(lane)];
        let (took_ms, deferred_ms) = (took.as_millis() as u64, deferred_ns / 1_000_000);
        if is_slow {
            tracing::info!(job, task, request, kind, lane = place.lane, server = %place, took_ms, deferred_ms, "slow response");
        } else {
            tracing::debug!(job, task, request, kind, lane = place.lane, server = %place, took_ms, deferred_ms, "response received");
        }
    }

    pub(crate) fn push_whole(
        &mut self,
        matrix: MatrixId,
        part: Selection<'_>,
        values: Values<'_>,
    ) -> Result<(), Error> {
        self.state.push(self.now(), matrix, part, values);
        self.run().map(drop)
    }

    fn pass_barrier(&mut self, part: Option<Vec<f64>>) -> Result<Vec<f64>, Error> {
        self.state.barrier(self.now(), part);
        match self.run()? {
            CallOutput::BarrierSum(sum) => Ok(sum),
            CallOutput::ValuesReady | CallOutput::FunctionAnswer(_) | CallOutput::Done => Ok(Vec::new()),
        }
    }
}

impl Agent for RemoteAgent {
    fn task(&self) -> u32 {
        self.state.task()
    }

    fn task_count(&self) -> u32 {
        self.state.layout().task_count
    }

    fn clock(&self) -> Clock {
        self.state.clock()
    }

    fn pull(&mut self, matrix: MatrixId, part: Selection<'_>, out: ValuesMut<'_>) -> Result<(), Error> {
        self.pull_selection(matrix, part, None, out)
    }

    fn sends_prefetches(&self) -> bool {
        self.state.layout().prefetch != Prefetch::Off
    }

    fn prefetch(&mut self, matrix: MatrixId, selection: Selection<'_>, clock: Clock) -> PullTicket {
        let ticket = self.state.prefetch(self.now(), matrix, selection, clock);
        self.run_effects();
        ticket
    }

    fn wait(&mut self, ticket: &PullTicket, out: ValuesMut<'_>) -> Result<(), Error> {
        self.pull_selection(ticket.matrix(), ticket.selection(), Some(ticket), out)
    }

    fn push(&mut self, matrix: MatrixId, part: Selection<'_>, values: Values<'_>) -> Result<(), Error> {
        match self.state.long_key_list(matrix, part) {
            // Residuals are kept for whole pushes only.
            Some(list) if !self.state.layout().wire_of(matrix.0 as usize).is_rounded() => {
                self.push_in_parts(matrix, part, list, values)
            }
            _ => self.push_whole(matrix, part, values),
        }
    }

    fn pull_function(&mut self, matrix: MatrixId, call: &FunctionCall) -> Result<Vec<u8>, Error> {
        self.state.pull_function(self.now(), matrix, call);
        match self.run()? {
            CallOutput::FunctionAnswer(bytes) => Ok(bytes),
            CallOutput::ValuesReady | CallOutput::BarrierSum(_) | CallOutput::Done => Ok(Vec::new()),
        }
    }

    fn push_function(&mut self, matrix: MatrixId, steps: &[FunctionCall]) -> Result<(), Error> {
        self.state.push_function(self.now(), matrix, steps);
        self.run().map(drop)
    }

    fn tick(&mut self) -> Result<(), Error> {
        self.poll_connections();
        // The prefetches of the next step go out in one write with the tick.
        self.is_corked = self.state.has_queued_prefetches();
        self.state.tick(self.now());
        let ticked = self.run();
        if !std::mem::take(&mut self.is_corked) {
            return ticked.map(drop);
        }
        let is_lost = self.flush();
        ticked?;
        if is_lost {
            // The step ends when its tick is sent.
            self.state.flush_ticks(self.now());
            self.run()?;
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.pass_barrier(None).map(drop)
    }

    fn all_reduce(&mut self, values: &mut [f64]) -> Result<(), Error> {
        let sum = self.pass_barrier(Some(values.to_vec()))?;
        if sum.len() != values.len() {
            let (task, len) = (self.task(), values.len());
            return Err(Error::ReduceLength { first_task: 0, first_len: sum.len(), task, len });
        }
        values.copy_from_slice(&sum);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.state.finish(self.now());
        self.run()?;
        let PrefetchCounts { sent, used, dropped } = self.prefetch_counts();
        let task = self.task();
        tracing::debug!(task, sent, used, dropped, "prefetched");
        let (sent_bytes, received_bytes) = (self.stats.sent_bytes, self.stats.received_bytes);
        tracing::debug!(task, sent_bytes, received_bytes, "traffic with servers");
        Ok(())
    }
}

impl Drop for RemoteAgent {
    fn drop(&mut self) {
        self.state.abandon();
        self.run_effects();
    }
}
