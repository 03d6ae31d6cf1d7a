//! Lengths of frames, computed without writing them: for limits of memory, for counters, and for gathering small frames
//! in one write.

use matrix::{FunctionCall, PartialAnswer};

use super::body::Body;
use crate::frame::padding;
use crate::header::HEADER_BYTES;
use crate::message::{KeyList, Message, PartitionRun};

impl Message {
    /// Number of bytes of the frame. Exact for messages that carry keys, values, functions or other messages; for
    /// messages in JSON and those without a body, only the header.
    pub fn frame_bytes(&self) -> u64 {
        let meta = match self {
            Message::Pull(pull) => 8 + key_meta_bytes(&pull.runs, &pull.keys),
            Message::Push(push) => key_meta_bytes(&push.runs, &push.keys),
            Message::PushStaged(push) => 8 + key_meta_bytes(&push.runs, &push.keys),
            Message::Pulled(_) | Message::Barrier(_) => 16,
            Message::Released(_) => 8,
            Message::PullFunction(pull) => 8 + calls_bytes(std::slice::from_ref(&pull.call)),
            Message::PushFunction(push) => 8 + calls_bytes(&push.calls),
            Message::TryFunction(attempt) => 8 + calls_bytes(&attempt.calls),
            Message::CommitFunction(commit) => 16 + calls_bytes(&commit.calls),
            Message::PulledFunction(pulled) => 24 + parts_bytes(&pulled.parts),
            Message::Batch(batch) => batch.messages.iter().map(Self::frame_bytes).sum::<u64>() as usize,
            _ => 0,
        };
        (HEADER_BYTES + meta + padding(meta) + Body::of(self).len()) as u64
    }
}

/// Number of bytes of function calls in a frame.
pub fn calls_bytes(calls: &[FunctionCall]) -> usize {
    let of = |call: &FunctionCall| {
        24 + call.name.len() + 4 * (call.from.len() + call.into.len()) + call.argument.len()
    };
    calls.iter().map(of).sum()
}

/// Number of bytes of the partial answers in a frame.
pub fn parts_bytes(parts: &[PartialAnswer]) -> usize {
    parts.iter().map(|part| 16 + part.bytes.len()).sum()
}

fn key_meta_bytes(runs: &[PartitionRun], keys: &KeyList) -> usize {
    let form = match keys {
        KeyList::Listed(_) => 16,
        KeyList::Range { .. } | KeyList::Cached { .. } => 32,
    };
    form + 8 * runs.len()
}
