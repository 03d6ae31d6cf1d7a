//! Changes of parameters: each push id is applied once, in order, at once or when the smallest clock is far enough.

use std::time::Duration;

use matrix::{KeyRun, Matrix, OwnedValues, PushId};
use rpc::WireValues;
use rpc::message::{
    FaultKind, JobId, Message, Push, PushFunction, PushPosition, RequestId, Tick, TryFunction,
};

use crate::connection::QueuedRequest;
use crate::injected_fault::InjectedFault;
use crate::job::{DeferredCall, DeferredRequest};
use crate::key_lists::{CachedKeyList, TableId};
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// The place of a push id among the pushes of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushTurn {
    Next,
    AppliedBefore,
    Gap,
}

fn push_turn(expected: PushPosition, name: PushPosition) -> PushTurn {
    if name < expected {
        PushTurn::AppliedBefore
    } else if name == expected || (name.clock > expected.clock && name.index == 0) {
        PushTurn::Next
    } else {
        PushTurn::Gap
    }
}

/// A push or a push function: a request with a push id that changes a matrix.
#[derive(Debug)]
pub(crate) enum PushRequest {
    Push(Push),
    Function(PushFunction),
}

/// The push id of a push request, and the other fields that all push requests have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushHeader {
    pub(crate) request: RequestId,
    pub(crate) job: JobId,
    pub(crate) task: u32,
    pub(crate) clock: u64,
    pub(crate) index: u32,
    pub(crate) matrix: u32,
}

impl PushHeader {
    pub(crate) fn of(push: &Push) -> Self {
        let Push { request, job, task, clock, index, matrix, .. } = *push;
        Self { request, job, task, clock, index, matrix }
    }

    pub(crate) fn of_function(push: &PushFunction) -> Self {
        let PushFunction { request, job, task, clock, index, matrix, .. } = *push;
        Self { request, job, task, clock, index, matrix }
    }

    pub(crate) fn of_try(ask: &TryFunction) -> Self {
        let TryFunction { request, job, task, clock, index, matrix, .. } = *ask;
        Self { request, job, task, clock, index, matrix }
    }

    pub(crate) fn mark(self) -> PushPosition {
        PushPosition { clock: self.clock, index: self.index }
    }

    pub(crate) fn name(self) -> PushId {
        PushId { clock: self.clock, task: self.task, index: self.index }
    }
}

impl PushRequest {
    pub(crate) fn from_message(message: Message) -> Option<Self> {
        match message {
            Message::Push(push) => Some(PushRequest::Push(push)),
            Message::PushFunction(push) => Some(PushRequest::Function(push)),
            _ => None,
        }
    }

    fn header(&self) -> PushHeader {
        match self {
            PushRequest::Push(push) => PushHeader::of(push),
            PushRequest::Function(push) => PushHeader::of_function(push),
        }
    }

    fn into_message(self) -> Message {
        match self {
            PushRequest::Push(push) => Message::Push(push),
            PushRequest::Function(push) => Message::PushFunction(push),
        }
    }
}

impl LaneState {
    pub(crate) fn push(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        change: PushRequest,
        out: &mut Vec<Effect>,
    ) {
        let head = change.header();
        let change = match change {
            PushRequest::Push(push) if self.is_of_session(at) => return self.push_of_session(at, push, out),
            PushRequest::Function(push) if self.is_of_session(at) => {
                return self.push_function_of_session(at, &push, out);
            }
            change => change,
        };
        let PushHeader { request, job, task, clock, matrix, .. } = head;
        let turn = match self.check_turn(at, head) {
            Ok(turn) => turn,
            Err(refusal) => return self.refuse_push(at, head, refusal, out),
        };
        match turn {
            PushTurn::AppliedBefore => return self.repeat_reply(at, head, out),
            PushTurn::Gap => {
                let expected = self.jobs.get(&job).map(|job| job.mark(task)).unwrap_or_default();
                let text = format!(
                    "earlier pushes are missing: expected clock {}, index {}, or index 0 of a later clock",
                    expected.clock, expected.index
                );
                self.refuse_push(at, head, Refusal::new(FaultKind::Invalid, text), out);
                return self.close(now, at, out);
            }
            PushTurn::Next => {}
        }
        let needed = match self.start_push(head) {
            Ok(needed) => needed,
            Err(refusal) => return self.refuse_push(at, head, refusal, out),
        };
        let Some(needed) = needed else { return self.serve_push_request(now, at, change, out) };
        let message = change.into_message();
        let bytes = message.frame_bytes();
        let Some(connection) = self.connections.get_mut(&at) else { return };
        connection.is_blocked = true;
        connection.push_front(QueuedRequest { arrival, message, bytes });
        self.deferred_bytes += bytes;
        if let Some(job) = self.jobs.get_mut(&job) {
            let what = DeferredCall::Push;
            let deferred = DeferredRequest {
                connection: at,
                needed_clock: needed,
                since: now,
                task_deadline: None,
                task,
                clock,
                request,
                matrix,
                bytes: 0,
                call: what,
            };
            job.deferred_requests.insert(arrival, deferred);
        }
        self.pause_if_full(at, out);
    }

    /// Runs a push request whose turn has come and whose clock is reached.
    pub(crate) fn serve_push_request(
        &mut self,
        now: Duration,
        at: ConnectionId,
        change: PushRequest,
        out: &mut Vec<Effect>,
    ) {
        match change {
            PushRequest::Push(push) => self.serve_push(now, at, push, out),
            PushRequest::Function(push) => self.serve_push_function(at, &push, out),
        }
    }

    /// Repeats the answer of a push request that was applied before.
    pub(crate) fn repeat_reply(&mut self, at: ConnectionId, head: PushHeader, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&head.job) else { return };
        job.stats.duplicate_count += 1;
        match job.function_faults.get(&head.task) {
            Some((name, refusal)) if *name == head.mark() => {
                let refusal = refusal.clone();
                self.refuse_push(at, head, refusal, out);
            }
            _ => self.reply_done(at, head.request, head.job, out),
        }
    }

    fn check_turn(&mut self, at: ConnectionId, head: PushHeader) -> Result<PushTurn, Refusal> {
        self.check_task(at, head.job, head.task)?;
        let keeps_duplicates = self.config.injects(InjectedFault::DuplicatesApplied);
        let expected = self.job(head.job)?.mark(head.task);
        Ok(match push_turn(expected, head.mark()) {
            PushTurn::AppliedBefore if keeps_duplicates => PushTurn::Next,
            turn => turn,
        })
    }

    /// Moves the task to the clock of its push. Returns the smallest clock that the push has to wait for, or `None` if
    /// it is reached.
    fn start_push(&mut self, head: PushHeader) -> Result<Option<u64>, Refusal> {
        let PushHeader { job, task, clock, .. } = head;
        let breaks = self.config.injects(InjectedFault::TickOvertakesPush)
            || self.config.injects(InjectedFault::DuplicatesApplied);
        let open = self.job(job)?;
        let known =
            open.clock_table.clock(task).map_err(|fault| Refusal::from_clock_fault(task, "push", fault))?;
        if clock < known && !breaks {
            let text = format!("task {task} is already at clock {known}");
            return Err(Refusal::new(FaultKind::Invalid, text));
        }
        if open.clock_table.is_at_barrier(task) {
            return Err(Refusal::from_clock_fault(task, "push", matrix::clock::ClockFault::AtBarrier));
        }
        let needed = open.matrix(head.matrix)?.spec().consistency.push_needs(clock);
        if clock > known {
            open.clock_table
                .advance(task, clock)
                .map_err(|fault| Refusal::from_clock_fault(task, "push", fault))?;
            self.ready.add_job(job);
            if let Some(recorder) = &mut self.recorder {
                // The push itself may be deferred, and others need not wait for the task meanwhile.
                recorder.record(&Message::Tick(Tick { request: 0, job, task, clock }));
            }
        }
        let job = &self.jobs[&job];
        Ok((!self.has_reached(job, needed)).then_some(needed))
    }

    /// Merges a push whose turn has come and whose clock is reached.
    pub(crate) fn serve_push(
        &mut self,
        now: Duration,
        at: ConnectionId,
        mut push: Push,
        out: &mut Vec<Effect>,
    ) {
        let head = PushHeader::of(&push);
        let PushHeader { request, job, task, clock, index, .. } = head;
        let room = self.check_memory(push.values.len());
        let (Some(connection), Some(open)) = (self.connections.get_mut(&at), self.jobs.get_mut(&job)) else {
            return;
        };
        let place = TableId { job, matrix: push.matrix, table: push.table };
        let (runs, keys) = (std::mem::take(&mut push.runs), std::mem::replace(&mut push.keys, NO_KEYS));
        let value_count = push.values.len();
        // The master may have removed the task while the push was deferred.
        let live =
            open.clock_table.clock(task).map_err(|fault| Refusal::from_clock_fault(task, "push", fault));
        let mut recorder = self.recorder.as_mut();
        let result =
            room.and(live).and_then(|_| connection.key_lists.take(runs, keys)).and_then(|mut list| {
                let number = connection.recorded_count;
                let recorded = recorder
                    .as_mut()
                    .and_then(|recorder| recorder.record_push(&mut push, &mut list, Some(number)));
                let values = std::mem::replace(&mut push.values, NO_VALUES);
                let merged = open
                    .matrix(place.matrix)
                    .and_then(|matrix| merge(matrix, place, &mut list, &push, values));
                if let (Some(recorded), Some(recorder)) = (recorded, &mut recorder) {
                    if merged.is_ok() {
                        connection.recorded_count = number + 1;
                        list.recorded_at = Some(number);
                    } else {
                        recorder.take_back(recorded);
                    }
                }
                connection.key_lists.put(list);
                merged
            });
        match result {
            Ok(()) => {
                open.marks[task as usize] = open.mark(task).max(PushPosition { clock, index: index + 1 });
                open.stats.push_count += 1;
                open.invalidate_export(place.matrix);
                self.memory.add_elements(value_count);
                self.reply_done(at, request, job, out);
            }
            Err(refusal) => {
                let closes = refusal.kind == FaultKind::UnknownKeys;
                self.refuse_push(at, head, refusal, out);
                // Nothing behind this push may be applied before the task has sent it again.
                if closes {
                    self.close(now, at, out);
                }
            }
        }
    }

    /// Refuses a push request, with its push id in the text. The error of a function goes without it: the task knows
    /// the call.
    pub(crate) fn refuse_push(
        &mut self,
        at: ConnectionId,
        head: PushHeader,
        refusal: Refusal,
        out: &mut Vec<Effect>,
    ) {
        let PushHeader { task, clock, index, .. } = head;
        let refusal = match refusal.kind {
            FaultKind::Function => refusal,
            _ => refusal.with_context(format_args!("push (task {task}, clock {clock}, index {index})")),
        };
        self.refuse(at, head.request, refusal, out);
    }
}

/// Placeholders in a push whose keys and values were taken out.
pub(crate) const NO_KEYS: rpc::message::KeyList = rpc::message::KeyList::Listed(Vec::new());
pub(crate) const NO_VALUES: WireValues = WireValues::Exact(OwnedValues::F32(Vec::new()));

/// Merges the whole push, or nothing.
pub(crate) fn merge(
    matrix: &mut Matrix,
    place: TableId,
    list: &mut CachedKeyList,
    push: &Push,
    values: WireValues,
) -> Result<(), Refusal> {
    let columns = matrix.spec().columns_of_table();
    let (runs, keys, positions) = list.with_positions(place);
    let (expected, actual) = (keys.len() * columns, values.len());
    if actual != expected {
        return Err(matrix::Error::ValueCount { matrix: matrix.spec().name.clone(), expected, actual }.into());
    }
    let values = values.into_values();
    let values = values.as_values();
    let name = PushId { clock: push.clock, task: push.task, index: push.index };
    let parts = runs.iter().scan(0, |start, run| {
        let range = *start..*start + run.count as usize;
        *start = range.end;
        let keys = &keys[range.clone()];
        let part = KeyRun { partition: run.partition, table: place.table, keys };
        Some((part, values.slice(range.start * columns..range.end * columns)))
    });
    for ((part, values), positions) in parts.clone().zip(&mut *positions) {
        matrix.check_push(part, positions, values)?;
    }
    for ((part, values), positions) in parts.zip(positions) {
        matrix.push_checked(part, positions, name, values);
    }
    Ok(())
}
