//! [`PushStaged`]: token, part and chunk are in the header as clock, task and index; meta is the attempt (u64), then
//! that of [`super::keys`]. [`Commit`]: the same header, with the number of chunks as index; meta is the attempt.
//! [`Committed`]: meta is the attempt that counts. [`CloseToken`]: header only.

use super::bytes::MetaReader;
use super::{Out, keys};
use crate::error::Error;
use crate::frame::Frame;
use crate::message::{CloseToken, Commit, Committed, PushStaged};

/// Bytes of an attempt.
const ATTEMPT_BYTES: usize = 8;

impl PushStaged {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
        (header.clock, header.task, header.index) = (self.token, self.part, self.chunk);
        out.meta.extend(self.attempt.to_le_bytes());
        keys::write(self.table, &self.runs, &self.keys, out.meta);
    }

    pub(super) fn get(mut frame: Frame) -> Result<Self, Error> {
        let attempt = MetaReader::new(frame.header.kind, &frame.meta).u64("attempt")?;
        let (table, runs, keys) = keys::read(&mut frame, ATTEMPT_BYTES)?;
        let header = frame.header;
        Ok(Self {
            request: header.request,
            job: header.job,
            token: header.clock,
            part: header.task,
            attempt,
            chunk: header.index,
            matrix: header.matrix,
            table,
            runs,
            keys,
            values: frame.into_exact(),
        })
    }
}

impl Commit {
    pub(super) fn put(self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
        (header.clock, header.task, header.index) = (self.token, self.part, self.chunks);
        out.meta.extend(self.attempt.to_le_bytes());
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        Ok(Self {
            request: header.request,
            job: header.job,
            matrix: header.matrix,
            token: header.clock,
            part: header.task,
            attempt: attempt_of(frame)?,
            chunks: header.index,
        })
    }
}

impl Committed {
    pub(super) fn put(self, out: &mut Out<'_>) {
        out.header.request = self.request;
        out.meta.extend(self.attempt.to_le_bytes());
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        Ok(Self { request: frame.header.request, attempt: attempt_of(frame)? })
    }
}

impl CloseToken {
    pub(super) fn put(self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job) = (self.request, self.job);
        (header.matrix, header.clock) = (self.matrix, self.token);
    }

    pub(super) fn get(frame: &Frame) -> Self {
        let header = &frame.header;
        Self { request: header.request, job: header.job, matrix: header.matrix, token: header.clock }
    }
}

/// Reads the attempt, the only field of meta.
fn attempt_of(frame: &Frame) -> Result<u64, Error> {
    let mut meta = MetaReader::new(frame.header.kind, &frame.meta);
    let attempt = meta.u64("attempt")?;
    meta.end("attempt")?;
    Ok(attempt)
}
