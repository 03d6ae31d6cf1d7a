//! Records the changes of a lane as frames. It does no I/O.

use matrix::OwnedValues;
use rpc::codec::put_frame;
use rpc::message::{KeyList, Push, PushStaged};
use rpc::{FrameLimits, Message};

use crate::key_lists::CachedKeyList;
use crate::staged_chunks::StagedChunk;

/// A push names its keys by their digest when one of the last so many pushes of its connection has listed them. Whoever
/// reads the log keeps as many lists for each task.
pub(crate) const LIST_COUNT: usize = 128;

/// The frames that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    bytes: Vec<u8>,
    limits: FrameLimits,
}

impl Recorder {
    /// The frames since they were [forgotten](Self::clear) last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Records a message that a lane has accepted. Returns where its frame begins.
    pub(crate) fn record(&mut self, message: &Message) -> usize {
        let start = self.bytes.len();
        // The message has arrived in a frame, so it fits in one.
        let recorded = put_frame(message, true, &self.limits, &mut self.bytes);
        debug_assert!(recorded.is_ok(), "{recorded:?}");
        start
    }

    /// Records a request that changes a lane as soon as it arrives. Returns where its frame begins; none for other
    /// requests.
    pub(crate) fn record_request(&mut self, message: &Message) -> Option<usize> {
        let is_change = matches!(
            message,
            Message::OpenJob(_)
                | Message::CloseJob(_)
                | Message::Tick(_)
                | Message::Leave(_)
                | Message::Join(_)
                | Message::Barrier(_)
                | Message::Import(_)
                | Message::KeepRows(_)
                | Message::RestoreRows(_)
                | Message::DropRows(_)
                | Message::AddMatrix(_)
                | Message::DropMatrix(_)
                | Message::Commit(_)
                | Message::CommitFunction(_)
                | Message::CloseToken(_)
        );
        is_change.then(|| self.record(message))
    }

    /// Records a push whose keys were taken out; they are `list`. `number` is that of the push among the recorded ones of
    /// its connection; none for a push of a session, of whose connections the log knows nothing. Returns where its frame
    /// begins.
    pub(crate) fn record_push(
        &mut self,
        push: &mut Push,
        list: &mut CachedKeyList,
        number: Option<u64>,
    ) -> usize {
        let last = number.zip(list.recorded_at);
        let is_known = last.is_some_and(|(number, at)| number - at <= LIST_COUNT as u64);
        let count = list.keys.len() as u32;
        push.runs = std::mem::take(&mut list.runs);
        push.keys = match list.range() {
            Some((start, end)) => KeyList::Range { start, end },
            None if is_known => {
                list.runs = std::mem::take(&mut push.runs);
                let digest = list.digest();
                push.runs = std::mem::take(&mut list.runs);
                KeyList::Cached { digest, count }
            }
            None => KeyList::Listed(std::mem::take(&mut list.keys)),
        };
        let message = Message::Push(take(push));
        let start = self.record(&message);
        if let Message::Push(recorded) = message {
            *push = recorded;
        }
        list.runs = std::mem::take(&mut push.runs);
        if let KeyList::Listed(keys) = std::mem::replace(&mut push.keys, crate::push::NO_KEYS) {
            list.keys = keys;
        }
        start
    }

    /// Records a chunk that is to be staged.
    pub(crate) fn record_chunk(&mut self, push: &PushStaged, chunk: &mut StagedChunk) {
        let no_values = OwnedValues::zeros(chunk.values.element_type(), 0);
        let message = Message::PushStaged(PushStaged {
            runs: std::mem::take(&mut chunk.runs),
            keys: KeyList::Listed(std::mem::take(&mut chunk.keys)),
            values: std::mem::replace(&mut chunk.values, no_values),
            request: 0,
            ..push.clone()
        });
        self.record(&message);
        if let Message::PushStaged(PushStaged { runs, keys: KeyList::Listed(keys), values, .. }) = message {
            (chunk.runs, chunk.keys, chunk.values) = (runs, keys, values);
        }
    }

    /// Forgets the frames from `start` on: the request was refused.
    pub(crate) fn take_back(&mut self, start: usize) {
        self.bytes.truncate(start);
    }
}

/// The push, with nothing of it left behind but its numbers.
fn take(push: &mut Push) -> Push {
    let Push { request, job, task, clock, index, matrix, table, .. } = *push;
    Push {
        request,
        job,
        task,
        clock,
        index,
        matrix,
        table,
        runs: std::mem::take(&mut push.runs),
        keys: std::mem::replace(&mut push.keys, crate::push::NO_KEYS),
        values: std::mem::replace(&mut push.values, crate::push::NO_VALUES),
    }
}
