//! [`Pull`]: meta is the time to wait in milliseconds (u32) and 0 (u32), then that of [`super::keys`]. Listed keys are
//! in the section of keys; the requested form of the values is the type of values in the header. [`Pulled`]: meta is
//! the smallest clock and the time that the pull was deferred in nanoseconds (u64 each).

use super::bytes::MetaReader;
use super::keys;
use super::{Out, set_watermark, watermark};
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::message::{Pull, Pulled};
use crate::wire::{ValueType, WireType};

/// Bytes of the time to wait and the 0.
const WAIT_BYTES: usize = 8;

impl Pull {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.task) = (self.request, self.job, self.task);
        (header.clock, header.matrix) = (self.clock, self.matrix);
        out.meta.extend(u64::from(self.wait_ms).to_le_bytes());
        keys::write(self.table, &self.runs, &self.keys, out.meta);
    }

    pub(super) fn get(mut frame: Frame) -> Result<Self, Error> {
        let mut meta = MetaReader::new(frame.header.kind, &frame.meta);
        let wait_ms = meta.u32("time to wait")?;
        meta.zero("reserved")?;
        let (table, runs, keys) = keys::read(&mut frame, WAIT_BYTES)?;
        let header = &frame.header;
        let wire = match header.value_type {
            ValueType::F32 => WireType::F32,
            ValueType::Bf16 => WireType::Bf16,
            ValueType::Int8 => WireType::Int8,
            ValueType::Packed => WireType::Packed,
            ValueType::F64 | ValueType::I64 | ValueType::I32 | ValueType::U32 => {
                let code = header.value_type.code();
                return Err(field(header.kind, "type of values", code, "0 exact, 3 bf16, 4 int8, 7 packed"));
            }
        };
        Ok(Self {
            request: header.request,
            job: header.job,
            task: header.task,
            clock: header.clock,
            matrix: header.matrix,
            table,
            wait_ms,
            runs,
            keys,
            wire,
        })
    }
}

impl Pulled {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        out.header.request = self.request;
        set_watermark(&mut out.header, self.applied);
        out.meta.extend(self.minimum.to_le_bytes());
        out.meta.extend(self.deferred_ns.to_le_bytes());
    }

    pub(super) fn get(frame: Frame) -> Result<Self, Error> {
        let mut meta = MetaReader::new(frame.header.kind, &frame.meta);
        let (minimum, deferred_ns) = (meta.u64("minimum")?, meta.u64("time deferred")?);
        meta.end("time deferred")?;
        Ok(Self {
            request: frame.header.request,
            minimum,
            deferred_ns,
            applied: watermark(&frame.header),
            values: frame.values,
        })
    }
}
