//! The agent of a task whose matrices are on servers, without sockets, threads or a clock of its own.
//!
//! A call begins with one of `pull`, `wait`, `push`, `pull_function`, `push_function`, `tick`, `barrier`, `finish`. Its result
//! is in [`AgentState::take_result`] at once or after some input. There is one call at a time. After each call and each
//! input the caller must run the effects in order. It must pass the messages of a connection in order, and none after
//! the connection was closed by either side, or after the next one of its lane was opened.

use std::sync::Arc;
use std::time::Duration;

use matrix::clock::ClockFault;
use matrix::{Clock, Error, FunctionTable, KeyRuns, MatrixSpec, Placement};
use rpc::Message;
use rpc::layout::{JobLayout, LayoutError};
use rpc::message::{Leave, RequestId};

use crate::call::{Call, CallOutput, CurrentCall};
use crate::injected_fault::InjectedFault;
use crate::lane::{Lane, LinkState, RequestOwner};
use crate::long_key_list::{PART_KEYS, PREFETCHED_PARTS};
use crate::prefetch::Prefetches;
use crate::residuals::{RESIDUAL_LIMIT_BYTES, Residuals};

/// What the caller has to do. Lanes are indices of [`JobLayout::lanes`].
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEffect {
    /// Open a connection to a lane. Then call `on_connected`, or `on_closed` if it fails, or `on_message` with a fault
    /// that came in place of the welcome.
    Connect {
        /// Index of the lane.
        lane: u16,
    },
    /// Send over the connection of a lane.
    Send {
        lane: u16,
        /// The message. It is shared, because it is kept until the lane has acknowledged it.
        message: Arc<Message>,
    },
    /// Close the connection of a lane. No `on_closed` is needed.
    Close {
        /// Index of the lane.
        lane: u16,
    },
}

/// The state of a matrix.
#[derive(Debug)]
pub(crate) struct MatrixState {
    pub(crate) placement: Placement,
    /// The partitions of each lane.
    pub(crate) lane_partitions: Vec<Vec<u32>>,
    /// The key runs of the last pull or push, unless a pending pull has it.
    pub(crate) key_runs: KeyRuns,
    /// Routes to reuse for the parts of a long pull.
    pub(crate) spare_key_runs: Vec<KeyRuns>,
    pub(crate) push_count: u64,
    /// The number of the last sending of the read that was returned last.
    pub(crate) last_read_send: u64,
    /// What rounding took from pushes.
    pub(crate) residuals: Residuals,
}

impl MatrixState {
    /// Key runs to be set anew.
    pub(crate) fn acquire_key_runs(&mut self) -> KeyRuns {
        self.spare_key_runs.pop().unwrap_or_else(|| std::mem::take(&mut self.key_runs))
    }

    /// Takes back the key runs of a pull that has ended.
    pub(crate) fn recycle_key_runs(&mut self, key_runs: KeyRuns, of_part: bool) {
        let before = std::mem::replace(&mut self.key_runs, key_runs);
        if of_part && self.spare_key_runs.len() < PREFETCHED_PARTS && before.key_count() <= PART_KEYS {
            self.spare_key_runs.push(before);
        }
    }
}

/// The agent of a task. Invariants: at most one call is open; every request of a lane belongs to the open call or to a
/// prefetch; a push leaves the retransmit queue of a lane only when the lane has reported it as applied.
#[derive(Debug)]
pub struct AgentState {
    pub(crate) layout: JobLayout,
    pub(crate) task: u32,
    pub(crate) clock: Clock,
    /// Number of barriers passed.
    pub(crate) generation: u64,
    /// Pushes since the last tick.
    pub(crate) push_count: u64,
    pub(crate) has_left: bool,
    /// The error that ended the agent. All later calls return it.
    pub(crate) failure: Option<Error>,
    pub(crate) matrices: Vec<MatrixState>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) functions: FunctionTable,
    pub(crate) last_request_id: RequestId,
    /// Number of sendings of pulls.
    pub(crate) send_count: u64,
    pub(crate) call: CurrentCall,
    pub(crate) prefetches: Prefetches,
    /// Most bytes of residuals.
    pub(crate) residual_limit_bytes: u64,
    pub(crate) effects: Vec<AgentEffect>,
    /// The fault that is injected, if any.
    injected_fault: Option<InjectedFault>,
}

impl AgentState {
    /// The agent of `task`, at clock 0. It asks for connections to all lanes. The error says what the layout does not
    /// pass of [`JobLayout::check`], or that it has no such task.
    pub fn new(
        now: Duration,
        layout: JobLayout,
        task: u32,
        functions: FunctionTable,
    ) -> Result<Self, LayoutError> {
        layout.check(&functions)?;
        if task >= layout.task_count {
            let (job, what) = (layout.job, "the task".to_owned());
            let expected = format!("below {}", layout.task_count);
            return Err(LayoutError::Field { job, what, actual: u64::from(task), expected });
        }
        let state = |(i, spec): (usize, &MatrixSpec)| -> Result<MatrixState, Error> {
            Ok(MatrixState {
                placement: spec.placement(&functions)?,
                lane_partitions: (0..layout.lanes.len())
                    .map(|lane| layout.lane_partitions_of(i, lane as u16))
                    .collect(),
                key_runs: KeyRuns::default(),
                spare_key_runs: Vec::new(),
                push_count: 0,
                last_read_send: 0,
                residuals: Residuals::new(spec),
            })
        };
        let matrices = layout.matrices.iter().enumerate().map(state).collect::<Result<_, _>>()?;
        let lanes: Vec<Lane> =
            layout.lanes.iter().map(|_| Lane::new(now, layout.window_bytes, layout.wait_limit)).collect();
        let effects = (0..lanes.len() as u16).map(|lane| AgentEffect::Connect { lane }).collect();
        Ok(Self {
            layout,
            task,
            clock: 0,
            generation: 0,
            push_count: 0,
            has_left: false,
            failure: None,
            matrices,
            lanes,
            functions,
            last_request_id: 0,
            send_count: 0,
            call: CurrentCall::new(now),
            prefetches: Prefetches::default(),
            residual_limit_bytes: RESIDUAL_LIMIT_BYTES,
            effects,
            injected_fault: None,
        })
    }

    /// Injects a fault, for the simulation.
    #[cfg(feature = "fault-injection")]
    #[must_use]
    pub fn with_fault(self, fault: Option<InjectedFault>) -> Self {
        Self { injected_fault: fault, ..self }
    }

    pub(crate) fn injects(&self, fault: InjectedFault) -> bool {
        self.injected_fault == Some(fault)
    }

    pub fn task(&self) -> u32 {
        self.task
    }

    /// Ticks made so far.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    pub fn layout(&self) -> &JobLayout {
        &self.layout
    }

    /// Takes the effects, which the caller has to run in order.
    pub fn take_effects(&mut self) -> Vec<AgentEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes the result of the open call, if it has one. A tick has none before its effects are run, because a
    /// connection may turn out to be closed.
    pub fn take_result(&mut self) -> Option<Result<CallOutput, Error>> {
        let is_tick = matches!(self.call.get(), Some(Call::Tick)) && self.effects.is_empty();
        if is_tick && !(0..self.lanes.len()).any(|lane| self.waits_for(lane)) {
            self.call.end(Ok(CallOutput::Done));
        }
        self.call.take_result()
    }

    /// The longest time for which a lane deferred a request of the last call for other tasks, in nanoseconds.
    pub fn deferred_ns(&self) -> u64 {
        self.call.deferred_ns()
    }

    /// The number of clocks by which the slowest task was behind when the last pull was answered. It is taken once for
    /// each pull.
    pub fn take_staleness(&mut self) -> Option<Clock> {
        self.call.take_staleness()
    }

    /// Number of requests that are not answered.
    pub fn pending_request_count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.requests.len()).sum()
    }

    /// The time at which a pending request was first sent to a lane.
    pub fn sent_at(&self, lane: u16, request: RequestId) -> Option<Duration> {
        let due = self.lanes.get(usize::from(lane))?.requests.get(&request)?.deadline?;
        Some(due.saturating_sub(self.layout.wait_limit))
    }

    /// Bytes of pushes that no lane has acknowledged.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.retransmit_queue.bytes()).sum()
    }

    /// Messages that were sent again, because a connection was lost or a lane requested it.
    pub fn resend_count(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.resend_count).sum()
    }

    /// Whether a call is open, which has no result yet.
    pub fn is_busy(&self) -> bool {
        self.call.is_open()
    }

    /// The time at which [`Self::on_time`] has to run if nothing else happens.
    pub fn next_time(&self) -> Option<Duration> {
        let lanes = self.lanes.iter().filter_map(Lane::next_time);
        let lost = (0..self.lanes.len()).filter_map(|lane| self.lane_deadline(lane));
        lanes.chain(lost).chain(self.call.deadline(self.layout.wait_limit)).min()
    }

    /// The time at which the open call fails because a lane has no connection.
    pub(crate) fn lane_deadline(&self, lane: usize) -> Option<Duration> {
        let (since, _) = self.lanes[lane].outage.as_ref()?;
        self.waits_for(lane).then(|| *since + self.layout.wait_limit)
    }

    /// Whether the open call needs this lane to end.
    pub(crate) fn waits_for(&self, at: usize) -> bool {
        let lane = &self.lanes[at];
        match self.call.get() {
            None => false,
            Some(Call::Push) => lane.retransmit_queue.bytes() > lane.window,
            Some(Call::PushFunction(_)) => lane.retransmit_queue.awaits_answer(),
            Some(Call::Tick) if self.injects(InjectedFault::TicksAreNotAwaited) => false,
            Some(Call::Tick) => lane.link != LinkState::Open || !lane.retransmit_queue.is_all_sent(),
            Some(Call::Pull(open)) => lane
                .requests
                .values()
                .any(|r| matches!(r.owner, RequestOwner::Pull { pull_id, .. } if pull_id == open.id)),
            Some(Call::PullFunction(_) | Call::TryFunction(_)) => {
                lane.requests.values().any(|r| r.owner == RequestOwner::Function)
            }
            Some(Call::Barrier(_)) => lane.requests.values().any(|r| r.owner == RequestOwner::Barrier),
            Some(Call::Finish) => lane.requests.values().any(|r| r.owner == RequestOwner::Leave),
        }
    }

    /// Begins a call. Returns false, with the result set, when it cannot be made.
    pub(crate) fn begin(&mut self, now: Duration, call: &'static str) -> bool {
        self.call.begin(now, call);
        if let Some(unread) = self.call.take_completed_pull() {
            self.matrices[unread.matrix].key_runs = unread.key_runs;
        }
        let error = match &self.failure {
            Some(error) => error.clone(),
            None if self.has_left => Error::Task { task: self.task, call, fault: ClockFault::Left },
            None => return true,
        };
        self.call.end(Err(error));
        false
    }

    /// Sends what the windows allow, and ends the open call if it is complete.
    pub(crate) fn advance(&mut self, now: Duration) {
        self.send_ready(now);
        match self.call.get() {
            Some(Call::Pull(pending)) if pending.missing_count == 0 => self.end_pull(now),
            Some(Call::PullFunction(pending)) if pending.missing_count == 0 => self.end_pull_function(),
            Some(Call::TryFunction(_)) if !(0..self.lanes.len()).any(|lane| self.waits_for(lane)) => {
                self.end_try(now);
            }
            Some(Call::PushFunction(_)) if !(0..self.lanes.len()).any(|lane| self.waits_for(lane)) => {
                self.end_push_function();
            }
            Some(Call::Push) if !(0..self.lanes.len()).any(|lane| self.waits_for(lane)) => {
                self.call.end(Ok(CallOutput::Done));
            }
            Some(Call::Barrier(barrier)) if barrier.missing_count == 0 => self.end_barrier(now),
            Some(Call::Finish) if !(0..self.lanes.len()).any(|lane| self.waits_for(lane)) => {
                self.end_finish();
            }
            _ => {}
        }
    }

    pub(crate) fn send_ready(&mut self, now: Duration) {
        let open = match self.call.get() {
            Some(Call::Pull(pending)) => Some(pending.id),
            _ => None,
        };
        let overtakes = self.injects(InjectedFault::RequestsOvertakeLog);
        for (at, lane) in (0u16..).zip(&mut self.lanes) {
            lane.send_queue(now, at, &mut self.last_request_id, &mut self.effects);
            if overtakes || lane.retransmit_queue.is_all_sent() {
                lane.send_requests(now, at, open, &mut self.effects);
            }
        }
    }

    /// Ends the agent with an error, which the open call and all later calls return.
    pub(crate) fn fail(&mut self, error: Error) {
        if self.failure.is_some() {
            return;
        }
        if self.call.is_open() {
            self.call.end(Err(error.clone()));
        }
        self.failure = Some(error);
        for (at, lane) in (0u16..).zip(&mut self.lanes) {
            // The task leaves where it can, so that other tasks do not wait for a task that has failed.
            if lane.link == LinkState::Open {
                let leave = Leave { request: 0, job: self.layout.job, task: self.task };
                self.effects.push(AgentEffect::Send { lane: at, message: Arc::new(Message::Leave(leave)) });
            }
            if matches!(lane.link, LinkState::Open | LinkState::Opening) {
                self.effects.push(AgentEffect::Close { lane: at });
            }
            lane.link = LinkState::Ended;
        }
    }

    /// Ends the agent because of an error that sending again cannot repair.
    pub fn give_up(&mut self, lane: u16, text: &str) {
        self.fail(self.server_error(lane, text.to_owned()));
    }

    /// Ends the agent because its job has ended: the open call and all later calls fail with [`Error::Stopped`].
    pub fn stop(&mut self, reason: &str) {
        self.fail(Error::Stopped { reason: reason.to_owned() });
    }

    /// Ends the agent of a task that ended without `finish`. Sends a leave to the lanes that can be reached, without a
    /// wait.
    pub fn abandon(&mut self) {
        if !self.has_left {
            self.fail(Error::Task { task: self.task, call: "a method", fault: ClockFault::Left });
        }
    }
}
