//! PS functions of tasks. They are deferred as pulls are, and have push ids as pushes have. The error of a function
//! goes to the task that called it.

use std::sync::Arc;
use std::time::Duration;

use matrix::PartialAnswer;
use rpc::FUNCTION_BYTES;
use rpc::codec::{calls_bytes, parts_bytes};
use rpc::message::{
    FaultKind, Message, PullFunction, PulledFunction, PushFunction, PushPosition, TryFunction,
};
use rpc::service::{ConnectionId, Effect};

use crate::job::DeferredCall;
use crate::pull::{ReadHeader, nanoseconds};
use crate::push::PushHeader;
use crate::refusal::Refusal;
use crate::state::LaneState;

impl LaneState {
    pub(crate) fn pull_function(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        pull: PullFunction,
        out: &mut Vec<Effect>,
    ) {
        if self.is_of_session(at) {
            return self.pull_function_of_session(at, &pull, out);
        }
        let PullFunction { request, job, task, clock, matrix, wait_ms, .. } = pull;
        let reading = ReadHeader { request, job, task, clock, matrix, wait_ms };
        match self.missing_clock(at, reading, |_| Ok(())) {
            Err(refusal) => self.refuse(at, request, refusal, out),
            Ok(None) => self.serve_pull_function(at, &pull, Duration::ZERO, out),
            Ok(Some(needed)) => {
                let message = Message::PullFunction(pull);
                let bytes = message.frame_bytes();
                let Message::PullFunction(pull) = message else { return };
                let what = DeferredCall::PullFunction(pull);
                self.defer_pull(now, at, arrival, needed, reading, (what, bytes), out);
            }
        }
    }

    /// Answers a pull function when the smallest clock allows it. `waited` is the time for which it was deferred.
    pub(crate) fn serve_pull_function(
        &mut self,
        at: ConnectionId,
        pull: &PullFunction,
        waited: Duration,
        out: &mut Vec<Effect>,
    ) {
        let PullFunction { request, job, task, clock, .. } = *pull;
        let Some(open) = self.jobs.get_mut(&job) else { return };
        let functions = open.functions.clone().unwrap_or_else(|| Arc::clone(&self.functions));
        let parts = open
            .matrix(pull.matrix)
            .and_then(|matrix| Ok(matrix.pull_function(&functions, &pull.call, clock)?))
            .and_then(|parts| check_length(&pull.call.name, &parts).map(|bytes| (parts, bytes)));
        match parts {
            Err(refusal) => self.refuse(at, request, refusal, out),
            Ok((parts, bytes)) => {
                open.stats.count_pull(clock, open.clock_table.minimum());
                open.stats.pull_function_count += 1;
                self.stats.value_bytes_out += bytes as u64;
                let (minimum, applied) = (open.minimum_or_max(), open.mark(task));
                let deferred_ns = nanoseconds(waited);
                let pulled = PulledFunction { request, minimum, deferred_ns, applied, parts };
                out.push(Effect::Send { connection: at, message: Message::PulledFunction(pulled) });
            }
        }
    }

    pub(crate) fn try_function(
        &mut self,
        now: Duration,
        at: ConnectionId,
        arrival: u64,
        ask: TryFunction,
        out: &mut Vec<Effect>,
    ) {
        if self.is_of_session(at) {
            return self.try_function_of_session(at, &ask, out);
        }
        let TryFunction { request, job, task, clock, matrix, wait_ms, .. } = ask;
        let reading = ReadHeader { request, job, task, clock, matrix, wait_ms };
        match self.missing_clock(at, reading, |_| Ok(())) {
            Err(refusal) => self.refuse(at, request, refusal, out),
            Ok(None) => self.serve_try_function(at, &ask, out),
            Ok(Some(needed)) => {
                let message = Message::TryFunction(ask);
                let bytes = message.frame_bytes();
                let Message::TryFunction(ask) = message else { return };
                let what = DeferredCall::TryFunction(ask);
                self.defer_pull(now, at, arrival, needed, reading, (what, bytes), out);
            }
        }
    }

    /// Answers whether a push function could run, and undoes its changes.
    pub(crate) fn serve_try_function(&mut self, at: ConnectionId, ask: &TryFunction, out: &mut Vec<Effect>) {
        let head = PushHeader::of_try(ask);
        let Some(open) = self.jobs.get_mut(&head.job) else { return };
        if head.mark() < open.mark(head.task) {
            // An earlier attempt of the task has pushed this function. Tried on the changed rows, it might fail.
            return self.repeat_reply(at, head, out);
        }
        let functions = open.functions.clone().unwrap_or_else(|| Arc::clone(&self.functions));
        let tried =
            open.matrix(head.matrix).and_then(|matrix| Ok(matrix.try_function(&functions, &ask.calls)?));
        match tried {
            Ok(()) => self.reply_done(at, head.request, head.job, out),
            Err(refusal) => {
                if refusal.kind == FaultKind::Function {
                    // The task uses up this push id by an empty push.
                    open.function_faults.insert(head.task, (head.mark(), refusal.clone()));
                    if let Some(recorder) = &mut self.recorder {
                        recorder.record(&Message::TryFunction(ask.clone()));
                    }
                }
                self.refuse(at, head.request, refusal, out);
            }
        }
    }

    /// Runs or stages a push function whose turn has come and whose clock is reached. If it fails and the task waits
    /// for its answer, the push id is used up: the task gets the reason, also when it repeats the request.
    pub(crate) fn serve_push_function(
        &mut self,
        at: ConnectionId,
        push: &PushFunction,
        out: &mut Vec<Effect>,
    ) {
        let head = PushHeader::of_function(push);
        let PushHeader { request, job, task, clock, index, .. } = head;
        let element_count = calls_bytes(&push.calls) / size_of::<f32>();
        let room = self.check_memory(element_count);
        let Some(open) = self.jobs.get_mut(&job) else { return };
        // The master may have removed the task while the push was deferred.
        let live =
            open.clock_table.clock(task).map_err(|fault| Refusal::from_clock_fault(task, "push", fault));
        let functions = open.functions.clone().unwrap_or_else(|| Arc::clone(&self.functions));
        let result = room.and(live).and_then(|_| {
            let matrix = open.matrix(head.matrix)?;
            Ok(matrix.push_function(&functions, &push.calls, head.name())?)
        });
        let has_failed = matches!(&result, Err(refusal) if refusal.kind == FaultKind::Function);
        if result.is_ok() || (has_failed && request != 0) {
            open.marks[task as usize] = open.mark(task).max(PushPosition { clock, index: index + 1 });
            open.stats.push_count += 1;
            open.stats.push_function_count += 1;
            open.invalidate_export(head.matrix);
            self.memory.add_elements(element_count);
            if let Some(recorder) = &mut self.recorder {
                recorder.record(&Message::PushFunction(push.clone()));
            }
        }
        match result {
            Ok(()) => {
                let failed = open.function_faults.get(&task).is_some_and(|(name, _)| *name == head.mark());
                if failed && !push.calls.is_empty() {
                    // An earlier attempt tried this function and failed, before other tasks changed the rows.
                    open.function_faults.remove(&task);
                }
                self.reply_done(at, request, job, out);
            }
            Err(refusal) => {
                if has_failed && request != 0 {
                    open.function_faults.insert(task, (head.mark(), refusal.clone()));
                }
                self.refuse_push(at, head, refusal, out);
            }
        }
    }
}

/// The bytes of an answer, or a refusal if no frame has room for them.
fn check_length(function: &str, parts: &[PartialAnswer]) -> Result<usize, Refusal> {
    let bytes = parts_bytes(parts);
    if bytes <= FUNCTION_BYTES {
        return Ok(bytes);
    }
    let text = format!(
        "function {function:?} answers {bytes} bytes for the partitions of this lane, the limit is {FUNCTION_BYTES}: ask \
         for less, or use more servers"
    );
    Err(Refusal::new(FaultKind::Function, text))
}
