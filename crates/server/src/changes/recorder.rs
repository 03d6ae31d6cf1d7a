//! Records the changes of a lane as frames. It does no I/O.

use std::collections::BTreeMap;

use matrix::OwnedValues;
use rpc::codec::put_frame;
use rpc::message::{JobId, KeyList, OpenJob, Push, PushStaged};
use rpc::{FrameLimits, Message};

use crate::key_lists::CachedKeyList;
use crate::staged_chunks::StagedChunk;

/// A push names its keys by their digest when one of the last so many pushes of its connection has listed them. Whoever
/// reads the log keeps as many lists for each task.
pub(crate) const LIST_COUNT: usize = 128;

/// The frames of changes that are not durable yet.
#[derive(Debug)]
pub(crate) enum Recorder {
    /// For the write-ahead log: the changes of all jobs, in their order.
    Log(Frames),
    /// For the standbys: those of each replicated job.
    Standbys(BTreeMap<JobId, Frames>),
}

/// Frames one after the other.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) bytes: Vec<u8>,
    /// Number of the frames.
    pub(crate) count: u64,
}

impl Frames {
    /// Forgets the frames, and keeps the memory for others.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}

/// Where a recorded frame is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    job: JobId,
    start: usize,
}

impl Recorder {
    pub(crate) fn for_standbys() -> Self {
        Self::Standbys(BTreeMap::new())
    }

    /// Whether it records for a log.
    pub(crate) fn is_log(&self) -> bool {
        matches!(self, Self::Log(_))
    }

    /// The frames for the log since they were [forgotten](Self::clear) last.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Log(frames) => &frames.bytes,
            Self::Standbys(_) => &[],
        }
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        match self {
            Self::Log(frames) => std::mem::take(frames).bytes,
            Self::Standbys(_) => Vec::new(),
        }
    }

    /// Forgets the frames for the log.
    pub(crate) fn clear(&mut self) {
        if let Self::Log(frames) = self {
            frames.clear();
        }
    }

    /// A job with frames for its standby. They are to be [forgotten](Frames::clear) when they are sent.
    pub(crate) fn next_job(&mut self) -> Option<(JobId, &mut Frames)> {
        let Self::Standbys(jobs) = self else { return None };
        jobs.iter_mut().find(|(_, frames)| frames.count > 0).map(|(job, frames)| (*job, frames))
    }

    /// Records no more changes of a job.
    pub(crate) fn forget(&mut self, job: JobId) {
        if let Self::Standbys(jobs) = self {
            jobs.remove(&job);
        }
    }

    /// Records no more changes of other jobs than these.
    pub(crate) fn keep_jobs(&mut self, is_kept: impl Fn(JobId) -> bool) {
        if let Self::Standbys(jobs) = self {
            jobs.retain(|job, _| is_kept(*job));
        }
    }

    /// Where the changes of a job go; none if they are not recorded.
    fn frames_of(&mut self, job: JobId) -> Option<&mut Frames> {
        match self {
            Self::Log(frames) => Some(frames),
            Self::Standbys(jobs) => jobs.get_mut(&job),
        }
    }

    /// Records a message that a lane has accepted, unless the changes of its job are not recorded.
    pub(crate) fn record(&mut self, message: &Message) -> Option<Recorded> {
        let (job, _) = message.request_of_job()?;
        // A file may be damaged.
        let checksum = self.is_log();
        let frames = self.frames_of(job)?;
        let start = frames.bytes.len();
        // The message has arrived in a frame, so it fits in one.
        let recorded = put_frame(message, checksum, &FrameLimits::default(), &mut frames.bytes);
        debug_assert!(recorded.is_ok(), "{recorded:?}");
        frames.count += 1;
        Some(Recorded { job, start })
    }

    /// Records a request that changes a lane as soon as it arrives. None for other
    /// requests.
    pub(crate) fn record_request(&mut self, message: &Message) -> Option<Recorded> {
        if let (Self::Standbys(jobs), Message::OpenJob(OpenJob { job, standby: Some(_), .. })) =
            (&mut *self, message)
        {
            jobs.entry(*job).or_default();
        }
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
        is_change.then(|| self.record(message)).flatten()
    }

    /// Records a push whose keys were taken out; they are `list`. `number` is that of the push among the recorded ones of
    /// its connection; none for a push of a session, of whose connections the log knows nothing.
    pub(crate) fn record_push(
        &mut self,
        push: &mut Push,
        list: &mut CachedKeyList,
        number: Option<u64>,
    ) -> Option<Recorded> {
        self.frames_of(push.job)?;
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
        let recorded = self.record(&message);
        if let Message::Push(message) = message {
            *push = message;
        }
        list.runs = std::mem::take(&mut push.runs);
        if let KeyList::Listed(keys) = std::mem::replace(&mut push.keys, crate::push::NO_KEYS) {
            list.keys = keys;
        }
        recorded
    }

    /// Records a chunk that is to be staged.
    pub(crate) fn record_chunk(&mut self, push: &PushStaged, chunk: &mut StagedChunk) {
        if self.frames_of(push.job).is_none() {
            return;
        }
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

    /// Forgets the last frame of its job: the request was refused.
    pub(crate) fn take_back(&mut self, recorded: Recorded) {
        if let Some(frames) = self.frames_of(recorded.job) {
            frames.bytes.truncate(recorded.start);
            frames.count -= 1;
        }
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
