//! [`PullFunction`]: meta is the time to wait in milliseconds (u32) and 0 (u32), then a call. [`PushFunction`]: meta is
//! the number of calls (u32) and 0 (u32), then the calls. [`TryFunction`]: the same with the time to wait in place of
//! the 0. [`CommitFunction`]: token and part are in the header as clock and task; meta is the attempt (u64), then the
//! same as for a push. [`PulledFunction`]: meta is the smallest clock and the time that the request was deferred in
//! nanoseconds (u64 each), the number of partial answers (u32) and 0 (u32), then for each partial answer the partition
//! (u32), 0 (u32), the length (u64) and its bytes.
//!
//! A call:
//!
//! | at | field | type |
//! |---|---|---|
//! | 0 | version | u32 |
//! | 4 | length of the name | u32 |
//! | 8 | number of rows read | u32 |
//! | 12 | number of rows written | u32 |
//! | 16 | length of the argument | u64 |
//! | 24 | name, rows read, rows written (u32 each), argument: nothing between them | |

use matrix::{FunctionCall, PartialAnswer};

use super::bytes::MetaReader;
use super::{Out, calls_bytes, parts_bytes, set_watermark, watermark};
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::kind::Kind;
use crate::message::{CommitFunction, PullFunction, PulledFunction, PushFunction, TryFunction};

impl PullFunction {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        (header.clock, header.matrix) = (self.clock, self.matrix);
        out.meta.extend(u64::from(self.wait_ms).to_le_bytes());
        put_call(&self.call, out.meta);
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let wait_ms = meta.u32("time to wait")?;
        meta.zero("reserved")?;
        let call = get_call(header.kind, &mut meta)?;
        meta.end("argument")?;
        let (request, job, task) = (header.request, header.job, header.task);
        Ok(Self { request, job, task, clock: header.clock, matrix: header.matrix, wait_ms, call })
    }
}

impl PushFunction {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        (header.clock, header.index, header.matrix) = (self.clock, self.index, self.matrix);
        put_calls(&self.calls, 0, out.meta);
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let count = meta.u32("number of calls")?;
        meta.zero("reserved")?;
        let calls = get_calls(header.kind, &mut meta, count)?;
        let (request, job, task) = (header.request, header.job, header.task);
        let (clock, index, matrix) = (header.clock, header.index, header.matrix);
        Ok(Self { request, job, task, clock, index, matrix, calls })
    }
}

impl TryFunction {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        (header.clock, header.index, header.matrix) = (self.clock, self.index, self.matrix);
        put_calls(&self.calls, self.wait_ms, out.meta);
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let (count, wait_ms) = (meta.u32("number of calls")?, meta.u32("time to wait")?);
        let calls = get_calls(header.kind, &mut meta, count)?;
        let (request, job, task) = (header.request, header.job, header.task);
        let (clock, index, matrix) = (header.clock, header.index, header.matrix);
        Ok(Self { request, job, task, clock, index, matrix, wait_ms, calls })
    }
}

impl CommitFunction {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
        (header.clock, header.task) = (self.token, self.part);
        out.meta.extend(self.attempt.to_le_bytes());
        put_calls(&self.calls, 0, out.meta);
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let (attempt, count) = (meta.u64("attempt")?, meta.u32("number of calls")?);
        meta.zero("reserved")?;
        let calls = get_calls(header.kind, &mut meta, count)?;
        let (request, job, matrix) = (header.request, header.job, header.matrix);
        Ok(Self { request, job, matrix, token: header.clock, part: header.task, attempt, calls })
    }
}

impl PulledFunction {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        out.header.request = self.request;
        set_watermark(&mut out.header, self.applied);
        out.meta.reserve(24 + parts_bytes(&self.parts));
        out.meta.extend(self.minimum.to_le_bytes());
        out.meta.extend(self.deferred_ns.to_le_bytes());
        out.meta.extend((self.parts.len() as u64).to_le_bytes());
        for part in &self.parts {
            out.meta.extend(u64::from(part.partition).to_le_bytes());
            out.meta.extend((part.bytes.len() as u64).to_le_bytes());
            out.meta.extend(&part.bytes);
        }
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let (request, applied) = (frame.header.request, watermark(&frame.header));
        let mut meta = MetaReader::new(frame.header.kind, &frame.meta);
        let (minimum, deferred_ns) = (meta.u64("minimum")?, meta.u64("time deferred")?);
        let count = meta.u32("number of parts")?;
        meta.zero("reserved")?;
        let mut parts = Vec::new();
        for _ in 0..count {
            let partition = meta.u32("partition")?;
            meta.zero("reserved")?;
            let bytes = get_bytes(&mut meta, "part")?;
            parts.push(PartialAnswer { partition, bytes });
        }
        meta.end("parts")?;
        Ok(Self { request, minimum, deferred_ns, applied, parts })
    }
}

/// Writes the number of calls, `second`, and the calls.
fn put_calls(calls: &[FunctionCall], second: u32, meta: &mut Vec<u8>) {
    meta.reserve(8 + calls_bytes(calls));
    meta.extend((calls.len() as u32).to_le_bytes());
    meta.extend(second.to_le_bytes());
    for call in calls {
        put_call(call, meta);
    }
}

/// Reads `count` calls and checks that nothing follows them.
fn get_calls(kind: Kind, meta: &mut MetaReader<'_>, count: u32) -> Result<Vec<FunctionCall>, Error> {
    // The vector grows with the calls that are read, so that a wrong count cannot allocate memory.
    let mut calls = Vec::new();
    for _ in 0..count {
        calls.push(get_call(kind, meta)?);
    }
    meta.end("calls")?;
    Ok(calls)
}

fn put_call(call: &FunctionCall, meta: &mut Vec<u8>) {
    meta.extend(call.version.to_le_bytes());
    meta.extend((call.name.len() as u32).to_le_bytes());
    meta.extend((call.from.len() as u32).to_le_bytes());
    meta.extend((call.into.len() as u32).to_le_bytes());
    meta.extend((call.argument.len() as u64).to_le_bytes());
    meta.extend(call.name.as_bytes());
    call.from.iter().chain(&call.into).for_each(|row| meta.extend(row.to_le_bytes()));
    meta.extend(&call.argument);
}

fn get_call(kind: Kind, meta: &mut MetaReader<'_>) -> Result<FunctionCall, Error> {
    let (version, name_len) = (meta.u32("version of a function")?, meta.u32("length of its name")?);
    let (from, into) = (meta.u32("number of rows read")?, meta.u32("number of rows written")?);
    let argument_len = meta.u64("length of its argument")?;
    let name = meta.take("name of a function", name_len as usize)?;
    let Ok(name) = std::str::from_utf8(name) else {
        let name = String::from_utf8_lossy(name);
        return Err(field(kind, "name of a function", format!("{name:?}"), "UTF-8"));
    };
    let (from, into) = (get_rows(meta, "rows read", from)?, get_rows(meta, "rows written", into)?);
    let argument = meta.take("argument", usize::try_from(argument_len).unwrap_or(usize::MAX))?;
    Ok(FunctionCall { name: name.to_owned(), version, from, into, argument: argument.to_vec() })
}

fn get_rows(meta: &mut MetaReader<'_>, name: &'static str, count: u32) -> Result<Vec<u32>, Error> {
    let bytes = meta.take(name, (count as usize).saturating_mul(4))?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|row| u32::from_le_bytes(*row)).collect())
}

fn get_bytes(meta: &mut MetaReader<'_>, name: &'static str) -> Result<Vec<u8>, Error> {
    let len = meta.u64("length")?;
    Ok(meta.take(name, usize::try_from(len).unwrap_or(usize::MAX))?.to_vec())
}
