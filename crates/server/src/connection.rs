//! What a lane remembers of a connection.

use std::collections::VecDeque;

use matrix::FunctionCall;
use rpc::Message;
use rpc::message::{CommitFunction, KeyList, PushFunction, Role, TryFunction};

use crate::key_lists::KeyLists;

/// Bytes that are counted for a message besides its lists.
const MESSAGE_BYTES: u64 = 64;

/// One connection. When `blocked`, its first queued request is a push that is held, and all behind it wait.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) role: Role,
    pub(crate) blocked: bool,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) queued_bytes: u64,
    pub(crate) paused: bool,
    pub(crate) lists: KeyLists,
}

/// A request that waits for those before it.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Counts the messages of the lane.
    pub(crate) arrival: u64,
    pub(crate) message: Message,
    pub(crate) bytes: u64,
}

impl Connection {
    pub(crate) fn new(role: Role, key_list_limit_bytes: u64) -> Self {
        Self {
            role,
            blocked: false,
            queue: VecDeque::new(),
            queued_bytes: 0,
            paused: false,
            lists: KeyLists::new(key_list_limit_bytes),
        }
    }

    pub(crate) fn push_back(&mut self, queued: Queued) {
        self.queued_bytes += queued.bytes;
        self.queue.push_back(queued);
    }

    pub(crate) fn push_front(&mut self, queued: Queued) {
        self.queued_bytes += queued.bytes;
        self.queue.push_front(queued);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Queued> {
        let queued = self.queue.pop_front()?;
        self.queued_bytes -= queued.bytes;
        Some(queued)
    }
}

/// Bytes of a call of a function.
pub(crate) fn call_bytes(call: &FunctionCall) -> usize {
    size_of::<FunctionCall>()
        + call.name.len()
        + 4 * (call.from.len() + call.into.len())
        + call.argument.len()
}

/// Bytes that a message takes while it waits.
pub(crate) fn message_bytes(message: &Message) -> u64 {
    let listed = |keys: &KeyList| match keys {
        KeyList::Listed(keys) => keys.len() * 8,
        KeyList::Range { .. } | KeyList::Known { .. } => 0,
    };
    let bytes = match message {
        Message::Pull(pull) => listed(&pull.keys) + pull.runs.len() * 8,
        Message::Push(push) => listed(&push.keys) + push.runs.len() * 8 + push.values.byte_count(),
        Message::PushStaged(push) => {
            listed(&push.keys) + push.runs.len() * 8 + push.values.len() * push.values.element_type().size()
        }
        Message::Import(import) => {
            import.keys.len() * 8 + import.values.len() * import.values.element_type().size()
        }
        Message::PullFunction(pull) => call_bytes(&pull.call),
        Message::PushFunction(PushFunction { calls, .. })
        | Message::TryFunction(TryFunction { calls, .. })
        | Message::CommitFunction(CommitFunction { calls, .. }) => calls.iter().map(call_bytes).sum(),
        Message::Barrier(barrier) => barrier.part.as_ref().map_or(0, |part| part.len() * 8),
        _ => 0,
    };
    bytes as u64 + MESSAGE_BYTES
}

#[cfg(test)]
mod tests {
    use matrix::OwnedValues;
    use rpc::message::PushStaged;

    use super::*;

    #[test]
    fn what_is_staged_counts_with_its_keys_and_values_while_it_waits() {
        let bytes = |key_count: u64, value_count: usize| {
            let (keys, values) =
                (KeyList::Listed((0..key_count).collect()), OwnedValues::F32(vec![1.0; value_count]));
            let (request, job, token, part) = (1, 1, 1, 0);
            let (attempt, chunk, matrix, table, runs) = (1, 0, 0, 0, Vec::new());
            message_bytes(&Message::PushStaged(PushStaged {
                request,
                job,
                token,
                part,
                attempt,
                chunk,
                matrix,
                table,
                runs,
                keys,
                values,
            }))
        };
        assert_eq!(bytes(1000, 0) - bytes(0, 0), 8000);
        assert_eq!(bytes(0, 1000) - bytes(0, 0), 4000);
    }
}
