//! Changing parameters: each name once, in order, at once or when m has come.

use std::time::Duration;

use matrix::{HeldMatrix, KeyRun, OwnedValues, PushName};
use rpc::WireValues;
use rpc::message::{FaultKind, JobId, Mark, Message, Push, PushFunction, RequestId, TryFunction};

use crate::broken::Broken;
use crate::connection::Queued;
use crate::job::{Held, HeldWhat};
use crate::key_lists::{List, Place};
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

/// Elements pushed before the memory is counted again.
const COUNT_EVERY: usize = 1 << 16;

/// What a name means after the pushes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Next,
    AppliedBefore,
    Gap,
}

fn turn_of(expected: Mark, name: Mark) -> Turn {
    if name < expected {
        Turn::AppliedBefore
    } else if name == expected || (name.clock > expected.clock && name.index == 0) {
        Turn::Next
    } else {
        Turn::Gap
    }
}

/// What has a name and changes a matrix.
#[derive(Debug)]
pub(crate) enum Change {
    Push(Push),
    Function(PushFunction),
}

/// The name of a change, and what else all of them say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) request: RequestId,
    pub(crate) job: JobId,
    pub(crate) task: u32,
    pub(crate) clock: u64,
    pub(crate) index: u32,
    pub(crate) matrix: u32,
}

impl Head {
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

    pub(crate) fn mark(self) -> Mark {
        Mark { clock: self.clock, index: self.index }
    }

    pub(crate) fn name(self) -> PushName {
        PushName { clock: self.clock, task: self.task, index: self.index }
    }
}

impl Change {
    pub(crate) fn of(message: Message) -> Option<Self> {
        match message {
            Message::Push(push) => Some(Change::Push(push)),
            Message::PushFunction(push) => Some(Change::Function(push)),
            _ => None,
        }
    }

    fn head(&self) -> Head {
        match self {
            Change::Push(push) => Head::of(push),
            Change::Function(push) => Head::of_function(push),
        }
    }

    fn into_message(self) -> Message {
        match self {
            Change::Push(push) => Message::Push(push),
            Change::Function(push) => Message::PushFunction(push),
        }
    }
}

impl LaneState {
    pub(crate) fn push(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        change: Change,
        out: &mut Vec<Effect>,
    ) {
        let head = change.head();
        let change = match change {
            Change::Push(push) if self.is_of_session(at) => return self.push_of_session(at, push, out),
            Change::Function(push) if self.is_of_session(at) => {
                return self.push_function_of_session(at, &push, out);
            }
            change => change,
        };
        let Head { request, job, task, clock, matrix, .. } = head;
        let turn = match self.turn(at, head) {
            Ok(turn) => turn,
            Err(refusal) => return self.refuse_push(at, head, refusal, out),
        };
        match turn {
            Turn::AppliedBefore => return self.say_again(at, head, out),
            Turn::Gap => {
                let expected = self.jobs.get(&job).map(|job| job.mark(task)).unwrap_or_default();
                let text = format!(
                    "pushes are missing before it: expected clock {}, index {}, or index 0 of a later clock",
                    expected.clock, expected.index
                );
                self.refuse_push(at, head, Refusal::new(FaultKind::Invalid, text), out);
                return self.close(now, at, out);
            }
            Turn::Next => {}
        }
        let needed = match self.start_push(head) {
            Ok(needed) => needed,
            Err(refusal) => return self.refuse_push(at, head, refusal, out),
        };
        let Some(needed) = needed else { return self.serve_change(now, at, change, out) };
        let message = change.into_message();
        let bytes = message.frame_bytes();
        let Some(connection) = self.connections.get_mut(&at) else { return };
        connection.blocked = true;
        connection.push_front(Queued { arrival, message, bytes });
        self.held_bytes += bytes;
        if let Some(job) = self.jobs.get_mut(&job) {
            let what = HeldWhat::Push;
            let held = Held {
                connection: at,
                needed,
                since: now,
                until: None,
                task,
                clock,
                request,
                matrix,
                bytes: 0,
                what,
            };
            job.held.insert(arrival, held);
        }
        self.stop_reading_if_full(at, out);
    }

    /// Carries out a change whose turn and m have come.
    pub(crate) fn serve_change(
        &mut self,
        now: Duration,
        at: ConnectionId,
        change: Change,
        out: &mut Vec<Effect>,
    ) {
        match change {
            Change::Push(push) => self.serve_push(now, at, push, out),
            Change::Function(push) => self.serve_push_function(at, &push, out),
        }
    }

    /// The answer to a change that counts already: the one that it has had.
    pub(crate) fn say_again(&mut self, at: ConnectionId, head: Head, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&head.job) else { return };
        job.stats.duplicate_count += 1;
        match job.function_faults.get(&head.task) {
            Some((name, refusal)) if *name == head.mark() => {
                let refusal = refusal.clone();
                self.refuse_push(at, head, refusal, out);
            }
            _ => self.done(at, head.request, head.job, out),
        }
    }

    fn turn(&mut self, at: ConnectionId, head: Head) -> Result<Turn, Refusal> {
        self.check_task(at, head.job, head.task)?;
        let keeps_duplicates = self.config.lacks(Broken::DuplicatesApplied);
        let expected = self.job(head.job)?.mark(head.task);
        Ok(match turn_of(expected, head.mark()) {
            Turn::AppliedBefore if keeps_duplicates => Turn::Next,
            turn => turn,
        })
    }

    /// The task is at the clock of its push. The m that the push has to wait for; `None` when it has come.
    fn start_push(&mut self, head: Head) -> Result<Option<u64>, Refusal> {
        let Head { job, task, clock, .. } = head;
        let breaks =
            self.config.lacks(Broken::TickOvertakesPush) || self.config.lacks(Broken::DuplicatesApplied);
        let open = self.job(job)?;
        let known = open.table.clock(task).map_err(|fault| Refusal::of_task(task, "push", fault))?;
        if clock < known && !breaks {
            let text = format!("task {task} is at clock {known}, this clock is over");
            return Err(Refusal::new(FaultKind::Invalid, text));
        }
        if open.table.is_at_barrier(task) {
            return Err(Refusal::of_task(task, "push", matrix::clock::ClockFault::AtBarrier));
        }
        let needed = open.matrix(head.matrix)?.spec().consistency.push_needs(clock);
        if clock > known {
            open.table.advance(task, clock).map_err(|fault| Refusal::of_task(task, "push", fault))?;
            self.changed.insert(job);
        }
        let job = &self.jobs[&job];
        Ok((!self.has_come(job, needed)).then_some(needed))
    }

    /// Merges a push whose turn and m have come.
    pub(crate) fn serve_push(
        &mut self,
        now: Duration,
        at: ConnectionId,
        mut push: Push,
        out: &mut Vec<Effect>,
    ) {
        let head = Head::of(&push);
        let Head { request, job, task, clock, index, .. } = head;
        let room = self.check_room(push.values.len());
        let (Some(connection), Some(open)) = (self.connections.get_mut(&at), self.jobs.get_mut(&job)) else {
            return;
        };
        let place = Place { job, matrix: push.matrix, table: push.table };
        let (runs, keys) = (std::mem::take(&mut push.runs), std::mem::replace(&mut push.keys, NO_KEYS));
        let values = std::mem::replace(&mut push.values, NO_VALUES);
        let value_count = values.len();
        // The master may have taken the task out while the push was held.
        let live = open.table.clock(task).map_err(|fault| Refusal::of_task(task, "push", fault));
        let result = room.and(live).and_then(|_| connection.lists.take(runs, keys)).and_then(|mut list| {
            let merged =
                open.matrix(place.matrix).and_then(|matrix| merge(matrix, place, &mut list, &push, values));
            connection.lists.put(list);
            merged
        });
        match result {
            Ok(()) => {
                open.marks[task as usize] = open.mark(task).max(Mark { clock, index: index + 1 });
                open.stats.push_count += 1;
                open.changes(place.matrix);
                self.pushed_since_count += value_count;
                self.done(at, request, job, out);
            }
            Err(refusal) => {
                let closes = refusal.kind == FaultKind::UnknownKeys;
                self.refuse_push(at, head, refusal, out);
                // Nothing behind it may be applied before it has come again.
                if closes {
                    self.close(now, at, out);
                }
            }
        }
    }

    /// Refuses what would need more memory than there is. Counted now and then: a bound, not a promise to the byte.
    pub(crate) fn check_room(&mut self, element_count: usize) -> Result<(), Refusal> {
        if self.pushed_since_count + element_count >= COUNT_EVERY {
            self.count_memory();
        }
        let (used, limit) = (self.memory_bytes, self.config.memory_limit_bytes);
        if used <= limit {
            return Ok(());
        }
        let of = |(id, job): (&u32, &crate::job::Job)| format!("job {id} {}", job.bytes());
        let parts: Vec<String> = self.jobs.iter().map(of).collect();
        let text = format!(
            "the rows on lane {} take {} = {used} bytes, the limit is {limit}: use more servers or a larger limit",
            self.config.lane,
            parts.join(" + ")
        );
        Err(Refusal::new(FaultKind::TooLarge, text))
    }

    /// Refuses with the name in the text; who called a function knows it.
    pub(crate) fn refuse_push(
        &mut self,
        at: ConnectionId,
        head: Head,
        refusal: Refusal,
        out: &mut Vec<Effect>,
    ) {
        let Head { task, clock, index, .. } = head;
        let refusal = match refusal.kind {
            FaultKind::Function => refusal,
            _ => refusal.of(format_args!("push (task {task}, clock {clock}, index {index})")),
        };
        self.refuse(at, head.request, refusal, out);
    }
}

/// What is left of a push whose keys and values were taken.
pub(crate) const NO_KEYS: rpc::message::KeyList = rpc::message::KeyList::Listed(Vec::new());
pub(crate) const NO_VALUES: WireValues = WireValues::Exact(OwnedValues::F32(Vec::new()));

/// Merges all of it, or nothing.
pub(crate) fn merge(
    matrix: &mut HeldMatrix,
    place: Place,
    list: &mut List,
    push: &Push,
    values: WireValues,
) -> Result<(), Refusal> {
    let columns = matrix.spec().columns_of_table();
    let (runs, keys, found) = list.at(place);
    let values = values.into_values();
    let values = values.as_values();
    if values.len() != keys.len() * columns {
        let (expected, actual) = (keys.len() * columns, values.len());
        return Err(matrix::Error::ValueCount { matrix: matrix.spec().name.clone(), expected, actual }.into());
    }
    let name = PushName { clock: push.clock, task: push.task, index: push.index };
    let parts = runs.iter().scan(0, |start, run| {
        let range = *start..*start + run.count as usize;
        *start = range.end;
        let keys = &keys[range.clone()];
        let part = KeyRun { partition: run.partition, table: place.table, keys };
        Some((part, values.part(range.start * columns..range.end * columns)))
    });
    for ((part, values), found) in parts.clone().zip(&mut *found) {
        matrix.check_push(part, found, values)?;
    }
    for ((part, values), found) in parts.zip(found) {
        matrix.push_checked(part, found, name, values);
    }
    Ok(())
}
