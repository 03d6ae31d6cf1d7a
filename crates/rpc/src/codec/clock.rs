//! [`Tick`], [`Leave`] and [`Join`] have a header only. [`Barrier`]: meta is the generation (u64), whether the task
//! contributes to the sum (u32, 0 or 1), and the time to wait in milliseconds (u32); the contribution is in the values,
//! as f64. [`Released`]: meta is the time that the answer was deferred, in nanoseconds (u64); the sum is in the values.

use matrix::OwnedValues;

use super::Out;
use super::bytes::MetaReader;
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::message::{Barrier, Join, Joined, Leave, Released, Tick};
use crate::wire::ValueType;

impl Tick {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        header.clock = self.clock;
    }

    pub(super) fn get(frame: &Frame) -> Self {
        let header = &frame.header;
        Self { request: header.request, job: header.job, task: header.task, clock: header.clock }
    }
}

impl Leave {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
    }

    pub(super) fn get(frame: &Frame) -> Self {
        Self { request: frame.header.request, job: frame.header.job, task: frame.header.task }
    }
}

impl Join {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        header.index = self.generation;
    }

    pub(super) fn get(frame: &Frame) -> Self {
        let header = &frame.header;
        Self { request: header.request, job: header.job, task: header.task, generation: header.index }
    }
}

impl Joined {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        (out.header.request, out.header.clock) = (self.request, self.clock);
        out.header.index = self.generation;
    }

    pub(super) fn get(frame: &Frame) -> Self {
        let header = &frame.header;
        Self { request: header.request, clock: header.clock, generation: header.index }
    }
}

impl Barrier {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        (header.clock, header.value_type) = (self.clock, ValueType::F64);
        out.meta.extend(self.generation.to_le_bytes());
        out.meta.extend(u32::from(self.part.is_some()).to_le_bytes());
        out.meta.extend(self.wait_ms.to_le_bytes());
    }

    pub(super) fn get(frame: Frame) -> Result<Self, Error> {
        let header = frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let (generation, given) = (meta.u64("generation")?, meta.u32("whether there is a part")?);
        let wait_ms = meta.u32("time to wait")?;
        meta.end("time to wait")?;
        let part = doubles(frame)?;
        let part = match given {
            0 if part.is_empty() => None,
            1 => Some(part),
            _ => return Err(field(header.kind, "whether there is a part", given, "1, or 0 without values")),
        };
        let (request, job, task, clock) = (header.request, header.job, header.task, header.clock);
        Ok(Self { request, job, task, clock, wait_ms, generation, part })
    }
}

impl Released {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        (out.header.request, out.header.clock) = (self.request, self.clock);
        out.header.value_type = ValueType::F64;
        out.meta.extend(self.deferred_ns.to_le_bytes());
    }

    pub(super) fn get(frame: Frame) -> Result<Self, Error> {
        let (request, clock) = (frame.header.request, frame.header.clock);
        let mut meta = MetaReader::new(frame.header.kind, &frame.meta);
        let deferred_ns = meta.u64("time deferred")?;
        meta.end("time deferred")?;
        Ok(Self { request, clock, deferred_ns, sum: doubles(frame)? })
    }
}

fn doubles(frame: Frame) -> Result<Vec<f64>, Error> {
    let (kind, value_type) = (frame.header.kind, frame.header.value_type);
    match frame.into_exact() {
        OwnedValues::F64(values) => Ok(values),
        _ => Err(field(kind, "type of values", format!("{value_type:?}"), "F64")),
    }
}
