//! [`Export`]: meta is the first key, and the number of entries to skip if it is not 0 (u64 each). [`ExportPage`]: meta is the
//! number of rows, the number of rows that are not zero, the next key, or [`NO_KEY`], and the number of entries to skip there
//! if it is not 0 (u64 each). [`Import`]: meta is the flags (u32; bit 0: first, bit 1: with
//! slots), 0 (u32), and the number of rows of the matrix (u64) if it is known. [`ScanRows`]: meta is the number of the block (u64); the
//! number of the snapshot is the index of the header, as in [`KeepRows`], [`RestoreRows`] and [`DropRows`]. At the end of the
//! meta of [`KeepRows`] and [`ScanRows`] may be flags (u64; bit 0: changes). Keys and values are in their sections.

use super::Out;
use super::bytes::MetaReader;
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::kind::Kind;
use crate::message::{DropRows, Export, ExportPage, Import, KeepRows, RestoreRows, ScanRows};

/// No key follows. Keys are below it.
const NO_KEY: u64 = u64::MAX;
const FIRST: u32 = 1;
const WITH_SLOTS: u32 = 2;

impl Export {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
        out.meta.extend(self.from.to_le_bytes());
        if self.skip > 0 {
            out.meta.extend(self.skip.to_le_bytes());
        }
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let from = meta.u64("first key")?;
        let skip = meta.last_u64("entries to skip")?;
        Ok(Self { request: header.request, job: header.job, matrix: header.matrix, from, skip })
    }
}

impl ExportPage {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        out.header.request = self.request;
        for number in [self.row_count, self.nonzero_count, self.next.unwrap_or(NO_KEY)] {
            out.meta.extend(number.to_le_bytes());
        }
        if self.next_skip > 0 {
            out.meta.extend(self.next_skip.to_le_bytes());
        }
    }

    pub(super) fn get(mut frame: Frame) -> Result<Self, Error> {
        let mut meta = MetaReader::new(frame.header.kind, &frame.meta);
        let row_count = meta.u64("number of rows")?;
        let nonzero_count = meta.u64("number of rows that are not zero")?;
        let next = Some(meta.u64("next key")?).filter(|key| *key != NO_KEY);
        let next_skip = meta.last_u64("entries to skip")?;
        let request = frame.header.request;
        let keys = std::mem::take(&mut frame.keys);
        let values = frame.into_exact();
        Ok(Self { request, row_count, nonzero_count, next, next_skip, keys, values })
    }
}

impl Import {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
        let bits = u32::from(self.first) * FIRST + u32::from(self.with_slots) * WITH_SLOTS;
        out.meta.extend(u64::from(bits).to_le_bytes());
        if self.row_count > 0 {
            out.meta.extend(self.row_count.to_le_bytes());
        }
    }

    pub(super) fn get(mut frame: Frame) -> Result<Self, Error> {
        let header = frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let bits = meta.u32("bits")?;
        meta.zero("reserved")?;
        let row_count = meta.last_u64("number of rows")?;
        if bits & !(FIRST | WITH_SLOTS) != 0 {
            return Err(field(header.kind, "bits", bits, "0 to 3"));
        }
        let (first, with_slots) = (bits & FIRST != 0, bits & WITH_SLOTS != 0);
        let (request, job, matrix) = (header.request, header.job, header.matrix);
        let keys = std::mem::take(&mut frame.keys);
        Ok(Self { request, job, matrix, first, row_count, with_slots, keys, values: frame.into_exact() })
    }
}

/// The requests whose only content is the number of a snapshot.
macro_rules! snapshot_requests {
    ($($name:ident)*) => {
        $(impl $name {
            pub(super) fn put(&self, out: &mut Out<'_>) {
                let header = &mut out.header;
                (header.request, header.job, header.index) = (self.request, self.job, self.snapshot);
            }

            pub(super) fn get(frame: &Frame) -> Self {
                let header = &frame.header;
                Self { request: header.request, job: header.job, snapshot: header.index }
            }
        })*
    };
}

snapshot_requests! { RestoreRows DropRows }

/// The only flag of [`KeepRows`] and [`ScanRows`]: changes are recorded, or only they are wanted.
const CHANGES: u64 = 1;

/// The flags at the end of meta.
fn changes(meta: &mut MetaReader<'_>, kind: Kind) -> Result<bool, Error> {
    match meta.last_u64("flags")? {
        0 => Ok(false),
        CHANGES => Ok(true),
        flags => Err(field(kind, "flags", flags, "1, or none")),
    }
}

impl KeepRows {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.index) = (self.request, self.job, self.snapshot);
        if self.records_changes {
            out.meta.extend(CHANGES.to_le_bytes());
        }
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let records_changes = changes(&mut MetaReader::new(header.kind, &frame.meta), header.kind)?;
        Ok(Self { request: header.request, job: header.job, snapshot: header.index, records_changes })
    }
}

impl ScanRows {
    pub(super) fn put(&self, out: &mut Out<'_>) {
        let header = &mut out.header;
        (header.request, header.job, header.matrix) = (self.request, self.job, self.matrix);
        header.index = self.snapshot;
        out.meta.extend(self.block.to_le_bytes());
        if self.only_changed {
            out.meta.extend(CHANGES.to_le_bytes());
        }
    }

    pub(super) fn get(frame: &Frame) -> Result<Self, Error> {
        let header = &frame.header;
        let mut meta = MetaReader::new(header.kind, &frame.meta);
        let block = meta.u64("number of the block")?;
        let only_changed = changes(&mut meta, header.kind)?;
        let (request, job, matrix) = (header.request, header.job, header.matrix);
        Ok(Self { request, job, matrix, snapshot: header.index, block, only_changed })
    }
}
