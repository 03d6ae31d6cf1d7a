//! PS functions at the lanes. A call goes to all lanes with partitions of its matrix at once and ends when all have
//! answered, so a call is one round trip for any number of servers.
//!
//! A push function is queued among the pushes of the task. If the matrix stages pushes, its result is not known yet and
//! the function is sent like a push, without a wait. Otherwise the task waits for the answers. If then several lanes
//! have partitions and the functions may fail, all lanes try them first. If a lane refuses, the call fails and nothing
//! has changed at any lane. Its push id is used up by an empty push, so that another attempt of the task gets the same
//! push ids. The error of a function is an error of its call: the agent continues.

use std::ops::Range;
use std::time::Duration;

use matrix::{Clock, Error, FunctionCall, FunctionFault, MatrixId, PartialAnswer, merge_partial_answers};
use rpc::message::{Fault, PullFunction, PulledFunction, PushFunction, TryFunction};
use rpc::{FUNCTION_BYTES, Message};

use crate::cached_key_lists::OutgoingRequest;
use crate::call::{Call, CallOutput};
use crate::lane::RequestOwner;
use crate::state::AgentState;

/// A pull function that some lanes have not answered.
#[derive(Debug)]
pub(crate) struct PendingPullFunction {
    matrix: usize,
    call: FunctionCall,
    parts: Vec<PartialAnswer>,
    /// Lanes that have not answered.
    pub(crate) missing_count: usize,
    /// The smallest clock of all answers.
    minimum: Clock,
    /// The number of the last sending: all rows are read before the next one.
    pub(crate) last_send: u64,
    /// The longest time for which a lane deferred it for other tasks, in nanoseconds.
    deferred_ns: u64,
}

/// The push functions of a call, with the calls for each lane.
#[derive(Debug)]
pub(crate) struct PushFunctionPlan {
    id: MatrixId,
    calls_by_lane: Vec<(usize, Vec<FunctionCall>)>,
    /// Whether all lanes try the functions before they are pushed.
    tries_first: bool,
}

/// Push functions that the lanes try.
#[derive(Debug)]
pub(crate) struct PendingTry {
    plan: PushFunctionPlan,
    /// The first lane, in the order of lanes, that has refused, and its error.
    failure: Option<(u16, Error)>,
}

impl AgentState {
    /// Begins a pull function. Its result is [`CallOutput::FunctionAnswer`].
    pub fn pull_function(&mut self, now: Duration, matrix: MatrixId, call: &FunctionCall) {
        if !self.begin(now, "pull_function") {
            return;
        }
        match self.request_pull_function(matrix, call) {
            Ok(pending) => {
                self.call.open(Call::PullFunction(pending));
                self.advance(now);
            }
            Err(error) => self.call.end(Err(error)),
        }
    }

    fn request_pull_function(
        &mut self,
        id: MatrixId,
        call: &FunctionCall,
    ) -> Result<PendingPullFunction, Error> {
        let matrix = self.matrix_index(id)?;
        let spec = &self.layout.matrices[matrix];
        self.functions.check_pull(spec, call)?;
        check_length(&spec.name, std::slice::from_ref(call))?;
        self.send_count += 1;
        let lanes =
            (0..self.lanes.len()).filter(|lane| !self.matrices[matrix].lane_partitions[*lane].is_empty());
        let lanes: Vec<usize> = lanes.collect();
        let missing = lanes.len();
        for lane in lanes {
            let own = self.call_of_lane(matrix, lane, call)?;
            let request = self.next_request_id();
            let pull = PullFunction {
                request,
                job: self.layout.job,
                task: self.task,
                clock: self.clock,
                matrix: id.0,
                wait_ms: self.layout.wait_ms(),
                call: own,
            };
            self.add_request(lane, request, RequestOwner::Function, Message::PullFunction(pull));
        }
        Ok(PendingPullFunction {
            matrix,
            call: call.clone(),
            parts: Vec::new(),
            missing_count: missing,
            minimum: Clock::MAX,
            last_send: self.send_count,
            deferred_ns: 0,
        })
    }

    pub(crate) fn on_pulled_function(&mut self, lane: u16, pulled: PulledFunction) {
        let at = usize::from(lane);
        self.lanes[at].retransmit_queue.acknowledge(pulled.applied);
        let Some(request) = self.take_request(at, pulled.request) else { return };
        let Some(Call::PullFunction(pending)) = self.call.get_mut() else { return };
        let owned = &self.matrices[pending.matrix].lane_partitions[at];
        let are_owned = pulled.parts.iter().all(|part| owned.contains(&part.partition));
        if request.owner != RequestOwner::Function || !are_owned || !is_ascending(&pulled.parts) {
            let text = format!("its answer to {:?} has partitions that it does not own", pending.call.name);
            return self.fail(self.server_error(lane, text));
        }
        pending.parts.extend(pulled.parts);
        pending.missing_count -= 1;
        pending.minimum = pending.minimum.min(pulled.minimum);
        pending.deferred_ns = pending.deferred_ns.max(pulled.deferred_ns);
    }

    /// Merges the partial answers when all lanes have answered.
    pub(crate) fn end_pull_function(&mut self) {
        let Some(Call::PullFunction(pending)) = self.call.take() else { return };
        self.call.add_deferred(pending.deferred_ns);
        self.call.set_staleness(self.clock, pending.minimum);
        let state = &mut self.matrices[pending.matrix];
        state.last_read_send = state.last_read_send.max(pending.last_send);
        let spec = &self.layout.matrices[pending.matrix];
        let answer = merge_partial_answers(&self.functions, spec, &pending.call, pending.parts);
        self.call.end(answer.map(CallOutput::FunctionAnswer));
    }

    /// Begins push functions. Each lane runs them in this order, one directly after the other.
    pub fn push_function(&mut self, now: Duration, matrix: MatrixId, calls: &[FunctionCall]) {
        if !self.begin(now, "push_function") {
            return;
        }
        // Residuals of earlier pushes are pushed first, also before a try.
        let plan = self.plan_push_function(matrix, calls).and_then(|plan| {
            self.push_matrix_residuals(matrix.0 as usize)?;
            Ok(plan)
        });
        match plan {
            Ok(plan) => {
                let call =
                    if plan.tries_first { self.request_try(plan) } else { self.enqueue_functions(plan) };
                self.call.open(call);
                self.advance(now);
            }
            Err(error) => self.call.end(Err(error)),
        }
    }

    /// Checks all calls before anything is sent.
    fn plan_push_function(&self, id: MatrixId, calls: &[FunctionCall]) -> Result<PushFunctionPlan, Error> {
        let matrix = self.matrix_index(id)?;
        let spec = &self.layout.matrices[matrix];
        if let [call] = calls
            && call.is_append()
            && spec.storage.has_lists()
        {
            return self.plan_append(id, matrix, call);
        }
        let may_fail = self.functions.check_push(spec, calls)?;
        let mut by_lane = Vec::new();
        for lane in 0..self.lanes.len() {
            let Some(columns) = self.columns_of(matrix, lane) else { continue };
            let own = calls.iter().map(|call| {
                let split = call.split(&self.functions, columns.clone());
                split.map_err(|fault| Error::function(&spec.name, &call.name, fault))
            });
            let own = own.collect::<Result<Vec<_>, _>>()?;
            check_length(&spec.name, &own)?;
            by_lane.push((lane, own));
        }
        // A single lane tries the functions on all of its partitions by itself.
        let tries_first = may_fail && by_lane.len() > 1 && !spec.consistency.stages_pushes();
        Ok(PushFunctionPlan { id, calls_by_lane: by_lane, tries_first })
    }

    /// An append to lists, of which each lane gets its rows. The lanes check it.
    fn plan_append(
        &self,
        id: MatrixId,
        matrix: usize,
        call: &FunctionCall,
    ) -> Result<PushFunctionPlan, Error> {
        let name = &self.layout.matrices[matrix].name;
        let owners = &self.layout.owners[matrix];
        let lane_of = |partition: usize| usize::from(owners[partition]);
        let split = call.split_append(&self.matrices[matrix].placement, self.lanes.len(), lane_of);
        let split = split.map_err(|fault| Error::function(name, &call.name, fault))?;
        let calls_by_lane = (0..).zip(split).map(|(lane, call)| (lane, vec![call])).collect();
        Ok(PushFunctionPlan { id, calls_by_lane, tries_first: false })
    }

    /// Sends the functions to all lanes for a try.
    fn request_try(&mut self, plan: PushFunctionPlan) -> Call {
        for (lane, calls) in &plan.calls_by_lane {
            let request = self.next_request_id();
            let attempt = TryFunction {
                request,
                job: self.layout.job,
                task: self.task,
                clock: self.clock,
                index: self.lanes[*lane].next_index,
                matrix: plan.id.0,
                wait_ms: self.layout.wait_ms(),
                calls: calls.clone(),
            };
            self.add_request(*lane, request, RequestOwner::Function, Message::TryFunction(attempt));
        }
        Call::TryFunction(PendingTry { plan, failure: None })
    }

    /// Ends the try when all lanes have answered: pushes the functions, or empty pushes if a lane has refused.
    pub(crate) fn end_try(&mut self, now: Duration) {
        let Some(Call::TryFunction(PendingTry { plan, failure })) = self.call.take() else {
            return;
        };
        let plan = if failure.is_some() {
            let by_lane = plan.calls_by_lane.into_iter().map(|(lane, _)| (lane, Vec::new())).collect();
            PushFunctionPlan { calls_by_lane: by_lane, ..plan }
        } else {
            plan
        };
        self.enqueue_functions(plan);
        self.call.open(Call::PushFunction(failure));
        self.advance(now);
    }

    /// Enqueues the functions at their lanes. Returns the call that waits for them.
    fn enqueue_functions(&mut self, plan: PushFunctionPlan) -> Call {
        let PushFunctionPlan { id, calls_by_lane: by_lane, .. } = plan;
        let matrix = id.0 as usize;
        // An append to lists is sent like a push: it fails only if they are sealed, and then the task is over.
        let is_append =
            |(_, calls): &(usize, Vec<FunctionCall>)| matches!(&calls[..], [call] if call.is_append());
        let waits =
            !self.layout.matrices[matrix].consistency.stages_pushes() && !by_lane.iter().all(is_append);
        self.matrices[matrix].push_count += 1;
        self.push_count += 1;
        for (lane, calls) in by_lane {
            self.last_request_id += u64::from(waits);
            let lane = &mut self.lanes[lane];
            let push = PushFunction {
                request: if waits { self.last_request_id } else { 0 },
                job: self.layout.job,
                task: self.task,
                clock: self.clock,
                index: lane.next_index,
                matrix: id.0,
                calls,
            };
            lane.next_index += 1;
            lane.retransmit_queue.push(OutgoingRequest::new(Message::PushFunction(push), None, None));
        }
        if waits { Call::PushFunction(None) } else { Call::Push }
    }

    /// What a lane needs of a call of a function of lists; other calls as they are.
    fn call_of_lane(&self, matrix: usize, lane: usize, call: &FunctionCall) -> Result<FunctionCall, Error> {
        let state = &self.matrices[matrix];
        let split = call.split_lists(&self.functions, &state.placement, &state.lane_partitions[lane]);
        let name = &self.layout.matrices[matrix].name;
        Ok(split.map_err(|fault| Error::function(name, &call.name, fault))?.unwrap_or_else(|| call.clone()))
    }

    /// The range from the first to the last column of a lane, or `None` if the lane has no partition of the matrix.
    fn columns_of(&self, matrix: usize, lane: usize) -> Option<Range<u64>> {
        let state = &self.matrices[matrix];
        let range = |partition: &u32| {
            let bound = self.layout.matrices[matrix].key_bound();
            state.placement.range(*partition as usize).unwrap_or(0..bound)
        };
        let ranges = state.lane_partitions[lane].iter().map(range);
        ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
    }

    /// Ends the call when all lanes have answered.
    pub(crate) fn end_push_function(&mut self) {
        let Some(Call::PushFunction(failure)) = self.call.take() else { return };
        self.call.end(failure.map_or(Ok(CallOutput::Done), |(_, error)| Err(error)));
    }

    /// Handles the failure of a function at a lane: it becomes the error of the open call.
    pub(crate) fn function_failed(&mut self, lane: u16, fault: &Fault) {
        let server = self.layout.lanes[usize::from(lane)].to_string();
        let error = Error::FunctionAtServer { server, text: fault.text.clone() };
        match self.call.get_mut() {
            Some(Call::PullFunction(_)) => {
                // The answers of the other lanes are not needed any more.
                self.lanes
                    .iter_mut()
                    .for_each(|lane| lane.requests.retain(|_, r| r.owner != RequestOwner::Function));
                self.call.end(Err(error));
            }
            Some(Call::TryFunction(PendingTry { failure, .. }) | Call::PushFunction(failure)) => {
                // The error of the first lane counts, so that the order of the answers does not matter.
                if failure.as_ref().is_none_or(|(first, _)| lane < *first) {
                    *failure = Some((lane, error));
                }
            }
            // This is a staged function, which asked for an answer only because the window was full.
            _ => self.fail(error),
        }
    }
}

fn is_ascending(parts: &[PartialAnswer]) -> bool {
    parts.array_windows().all(|[a, b]| a.partition < b.partition)
}

/// Refuses calls that are too large for a frame.
fn check_length(matrix: &str, calls: &[FunctionCall]) -> Result<(), Error> {
    let bytes = rpc::codec::calls_bytes(calls);
    if bytes <= FUNCTION_BYTES {
        return Ok(());
    }
    let longest = calls.iter().max_by_key(|call| call.argument.len());
    let fault = FunctionFault::argument(
        "argument",
        format!("{bytes} bytes for one lane"),
        format!("at most {FUNCTION_BYTES}: send it in several calls, or use more servers"),
    );
    Err(Error::function(matrix, longest.map_or("", |call| &call.name), fault))
}
