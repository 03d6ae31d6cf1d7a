//! Reads of parameters: answered at once, or when the smallest clock is far enough.

use std::time::Duration;

use matrix::clock::Clock;
use matrix::{ElementType, KeyRun, Matrix, MatrixSpec, OwnedValues};
use rpc::message::{FaultKind, JobId, Message, Pull, Pulled, RequestId};

use crate::job::{DeferredCall, DeferredRequest, Job};
use crate::key_lists::{CachedKeyList, TableId};
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};
use rpc::{WireType, WireValues};

/// Most bytes of values in one answer, before rounding. A single row may have more.
const ANSWER_LIMIT_BYTES: u64 = rpc::CHUNK_BYTES as u64 + (64 << 10);
/// Delay after which a refused pull may be sent again.
const BUSY_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The fields that all read requests have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadHeader {
    pub(crate) request: RequestId,
    pub(crate) job: JobId,
    pub(crate) task: u32,
    pub(crate) clock: Clock,
    pub(crate) matrix: u32,
    pub(crate) wait_ms: u32,
}

impl LaneState {
    pub(crate) fn pull(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        pull: Pull,
        out: &mut Vec<Effect>,
    ) {
        if self.is_of_session(at) {
            return self.pull_of_session(at, pull, out);
        }
        let Pull { request, job, task, clock, matrix, wait_ms, .. } = pull;
        let reading = ReadHeader { request, job, task, clock, matrix, wait_ms };
        match self.missing_clock(at, reading, |spec| check_wire(spec, pull.wire)) {
            Err(refusal) => self.refuse(at, request, refusal, out),
            Ok(None) => self.serve_pull(at, pull, Duration::ZERO, out),
            Ok(Some(needed)) => {
                let message = Message::Pull(pull);
                let bytes = message.frame_bytes();
                let Message::Pull(pull) = message else { return };
                self.defer_pull(now, at, arrival, needed, reading, (DeferredCall::Pull(pull), bytes), out);
            }
        }
    }

    /// Defers a read request until the smallest clock is far enough.
    #[allow(clippy::too_many_arguments, reason = "of a request: where, when, what, and for what it waits")]
    pub(crate) fn defer_pull(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        needed: Clock,
        reading: ReadHeader,
        (what, bytes): (DeferredCall, u64),
        out: &mut Vec<Effect>,
    ) {
        let ReadHeader { request, job, task, clock, matrix, wait_ms } = reading;
        if self.deferred_bytes + bytes > self.config.deferred_limit_bytes {
            let text = format!(
                "{} bytes of requests are deferred on this lane, the limit is {}",
                self.deferred_bytes, self.config.deferred_limit_bytes
            );
            let refusal = Refusal::new(FaultKind::Busy, text).retry_after(BUSY_RETRY_DELAY);
            return self.refuse(at, request, refusal, out);
        }
        self.deferred_bytes += bytes;
        let until = deadline_after(now, wait_ms);
        if let Some(job) = self.jobs.get_mut(&job) {
            let (connection, since) = (at, now);
            let deferred = DeferredRequest {
                connection,
                needed_clock: needed,
                since,
                task_deadline: until,
                task,
                clock,
                request,
                matrix,
                bytes,
                call: what,
            };
            job.deferred_requests.insert(arrival, deferred);
        }
    }

    /// The smallest clock that a read request has to wait for, or `None` if it is reached.
    pub(crate) fn missing_clock(
        &mut self,
        at: ConnectionId,
        reading: ReadHeader,
        check: impl FnOnce(&MatrixSpec) -> Result<(), Refusal>,
    ) -> Result<Option<Clock>, Refusal> {
        let ReadHeader { job, task, clock, .. } = reading;
        self.check_task(at, job, task)?;
        let open = self.job(job)?;
        open.clock_table.clock(task).map_err(|fault| Refusal::from_clock_fault(task, "pull", fault))?;
        let spec = open.matrix(reading.matrix)?.spec();
        check(spec)?;
        let needed = spec.consistency.pull_needs(clock);
        let job = &self.jobs[&job];
        Ok((!self.has_reached(job, needed)).then_some(needed))
    }

    /// Answers a pull when the smallest clock allows it. `waited` is the time for which it was deferred.
    pub(crate) fn serve_pull(
        &mut self,
        at: ConnectionId,
        pull: Pull,
        waited: Duration,
        out: &mut Vec<Effect>,
    ) {
        let Pull { request, job, task, clock, .. } = pull;
        let (Some(connection), Some(open)) = (self.connections.get_mut(&at), self.jobs.get_mut(&job)) else {
            return;
        };
        let place = TableId { job, matrix: pull.matrix, table: pull.table };
        let answer = connection.key_lists.take(pull.runs, pull.keys).and_then(|mut list| {
            let values = open.matrix(place.matrix).and_then(|matrix| read(matrix, place, &mut list, clock));
            connection.key_lists.put(list);
            values
        });
        match answer {
            Err(refusal) => self.refuse(at, request, refusal, out),
            Ok(values) => {
                let values = WireValues::encode(values, pull.wire);
                open.stats.count_pull(clock, open.clock_table.minimum());
                self.stats.value_bytes_out += values.byte_count() as u64;
                let (minimum, applied) = (Job::minimum_or_max(open), open.mark(task));
                let deferred_ns = nanoseconds(waited);
                let pulled = Pulled { request, minimum, deferred_ns, applied, values };
                out.push(Effect::Send { connection: at, message: Message::Pulled(pulled) });
            }
        }
    }
}

/// Refuses rounding of other values than f32, and packing of others than i32.
pub(crate) fn check_wire(spec: &MatrixSpec, wire: WireType) -> Result<(), Refusal> {
    let needed = match wire {
        WireType::F32 => return Ok(()),
        WireType::Bf16 | WireType::Int8 => ElementType::F32,
        WireType::Packed => ElementType::I32,
    };
    if spec.element == needed {
        return Ok(());
    }
    let (name, element, wire) = (&spec.name, spec.element, wire.name());
    let text = format!(
        "values of matrix {name:?} are requested as {wire}, but its elements are {element:?}: only f32 can be rounded \
         and only i32 packed, request them as they are"
    );
    Err(Refusal::new(FaultKind::Invalid, text))
}

/// The time at which the task stops waiting, or `None` for `wait_ms` 0. A request has a length of time, because the
/// clocks of two machines may differ.
pub(crate) fn deadline_after(now: Duration, wait_ms: u32) -> Option<Duration> {
    (wait_ms > 0).then(|| now + Duration::from_millis(u64::from(wait_ms)))
}

/// A length of time as answers have it.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the values of a key list. Each value is written once.
fn read(
    matrix: &mut Matrix,
    place: TableId,
    list: &mut CachedKeyList,
    clock: Clock,
) -> Result<OwnedValues, Refusal> {
    let (element, columns) = (matrix.spec().element, matrix.spec().columns_of_table());
    let (runs, keys, positions) = list.with_positions(place);
    let bytes = (keys.len() as u64).saturating_mul((columns * element.size()) as u64);
    if bytes > ANSWER_LIMIT_BYTES && keys.len() > 1 {
        let text = format!(
            "{} keys of {columns} columns are {bytes} bytes of values, the limit of one answer is \
             {ANSWER_LIMIT_BYTES}: split the request",
            keys.len()
        );
        return Err(Refusal::new(FaultKind::TooLarge, text));
    }
    let mut values = OwnedValues::with_capacity(element, keys.len() * columns);
    let mut start = 0;
    for (run, positions) in runs.iter().zip(positions) {
        let end = start + run.count as usize;
        let part = KeyRun { partition: run.partition, table: place.table, keys: &keys[start..end] };
        matrix.pull(part, positions, clock, &mut values)?;
        start = end;
    }
    Ok(values)
}
