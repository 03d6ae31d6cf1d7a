//! A block: the encoded batch that the block cache stores in memory or on disk.
//!
//! ```text
//! header   48 bytes: magic, checksum of all that follows it, version, widths, flags, counts, first column
//! sections offsets, indices, columns, labels, values?, weights?, groups?, fields?, times?; each begins at a multiple of 8
//! ```
//! All numbers are little-endian. Indices and fields take 1, 2 or 4 bytes each, the least that holds the largest of
//! them. Columns are stored as differences to the column before, of 1, 2, 4 or 8 bytes. A section is left out when it
//! has no information (all values 1, all weights 1, no group, no field, no time). All items of a section have the same width, so
//! that encoding and decoding are plain loops over arrays, which the compiler turns into vector instructions. An
//! encoding of variable length would cost more time than its smaller size saves.

use crate::batch::Batch;

const MAGIC: [u8; 4] = *b"SBLK";
const VERSION: u16 = 2;
const HEADER_BYTES: usize = 48;
/// The checksum covers all bytes from this one on.
const CHECKSUM_START: usize = 8;
/// Sections begin at multiples of this many bytes.
const ALIGN: usize = 8;

const HAS_VALUES: u8 = 1;
const HAS_WEIGHTS: u8 = 2;
const HAS_GROUPS: u8 = 4;
const HAS_TIMES: u8 = 8;
const ALL_FLAGS: u8 = HAS_VALUES | HAS_WEIGHTS | HAS_GROUPS | HAS_TIMES;

/// Why the bytes of a block are not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {actual}, expected {expected}")]
pub struct BlockFault {
    /// The wrong part of the block.
    pub what: &'static str,
    pub actual: u64,
    /// The right value, or the bound that `actual` should be below.
    pub expected: u64,
}

/// The decoded header, which determines where each section begins.
struct Header {
    index_width: u8,
    /// Bytes per field, 0 when there are no fields.
    field_width: u8,
    gap_width: u8,
    flags: u8,
    record_count: u32,
    entry_count: u32,
    column_count: u32,
    first_column: u64,
}

impl Header {
    fn of(batch: &Batch) -> Self {
        let flag = |on: bool, bit| if on { bit } else { 0 };
        Self {
            index_width: width_of(batch.columns.len().saturating_sub(1) as u64),
            field_width: if batch.fields.is_empty() { 0 } else { width_of(max_of(&batch.fields)) },
            gap_width: width_of(batch.columns.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)),
            flags: flag(!batch.values.is_empty(), HAS_VALUES)
                | flag(!batch.weights.is_empty(), HAS_WEIGHTS)
                | flag(!batch.groups.is_empty(), HAS_GROUPS)
                | flag(!batch.times.is_empty(), HAS_TIMES),
            record_count: batch.labels.len() as u32,
            entry_count: batch.indices.len() as u32,
            column_count: batch.columns.len() as u32,
            first_column: batch.columns.first().copied().unwrap_or(0),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[self.index_width, self.field_width, self.gap_width, self.flags, 0, 0]);
        out.extend_from_slice(&self.record_count.to_le_bytes());
        out.extend_from_slice(&self.entry_count.to_le_bytes());
        out.extend_from_slice(&self.column_count.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.first_column.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
    }

    fn read(bytes: &[u8]) -> Result<Self, BlockFault> {
        check(bytes.len() >= HEADER_BYTES, "length of a block in bytes", bytes.len(), HEADER_BYTES)?;
        let magic = u32_at(bytes, 0);
        check(
            magic == u32::from_le_bytes(MAGIC),
            "magic",
            magic as usize,
            u32::from_le_bytes(MAGIC) as usize,
        )?;
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        check(version == VERSION, "version", version as usize, VERSION as usize)?;
        let header = Self {
            index_width: bytes[10],
            field_width: bytes[11],
            gap_width: bytes[12],
            flags: bytes[13],
            record_count: u32_at(bytes, 16),
            entry_count: u32_at(bytes, 20),
            column_count: u32_at(bytes, 24),
            first_column: u64::from(u32_at(bytes, 32)) | u64::from(u32_at(bytes, 36)) << 32,
        };
        check(matches!(header.index_width, 1 | 2 | 4), "width of indices", header.index_width as usize, 4)?;
        check(
            matches!(header.field_width, 0 | 1 | 2 | 4),
            "width of fields",
            header.field_width as usize,
            4,
        )?;
        check(matches!(header.gap_width, 1 | 2 | 4 | 8), "width of columns", header.gap_width as usize, 8)?;
        check(header.flags & !ALL_FLAGS == 0, "flags", header.flags as usize, ALL_FLAGS as usize)?;
        check(
            bytes.len() == header.block_bytes(),
            "length of a block in bytes",
            bytes.len(),
            header.block_bytes(),
        )?;
        Ok(header)
    }

    /// Returns the bytes of each section, in their order, without padding.
    fn sections(&self) -> [usize; 9] {
        let (records, entries) = (self.record_count as usize, self.entry_count as usize);
        let if_has = |bit, bytes| if self.flags & bit == 0 { 0 } else { bytes };
        [
            (records + 1) * 4,
            entries * self.index_width as usize,
            (self.column_count as usize).saturating_sub(1) * self.gap_width as usize,
            records * 8,
            if_has(HAS_VALUES, entries * 4),
            if_has(HAS_WEIGHTS, records * 4),
            if_has(HAS_GROUPS, records * 8),
            entries * self.field_width as usize,
            if_has(HAS_TIMES, records * 8),
        ]
    }

    fn block_bytes(&self) -> usize {
        HEADER_BYTES + self.sections().iter().map(|bytes| bytes.next_multiple_of(ALIGN)).sum::<usize>()
    }
}

/// Appends `batch` to `out` as one block.
///
/// # Panics
/// When the arrays of `batch` have lengths that no [`crate::BatchBuilder`] makes.
pub fn encode(batch: &Batch, out: &mut Vec<u8>) {
    assert_eq!(batch.offsets.len(), batch.labels.len() + 1, "encode: offsets and labels do not fit");
    let header = Header::of(batch);
    let start = out.len();
    out.reserve(header.block_bytes());
    header.put(out);
    put(&batch.offsets, out, u32::to_le_bytes);
    put_narrow(&batch.indices, header.index_width, out);
    put_gaps(&batch.columns, header.gap_width, out);
    put(&batch.labels, out, f64::to_le_bytes);
    put(&batch.values, out, f32::to_le_bytes);
    put(&batch.weights, out, f32::to_le_bytes);
    put(&batch.groups, out, u64::to_le_bytes);
    put_narrow(&batch.fields, header.field_width, out);
    put(&batch.times, out, f64::to_le_bytes);
    assert_eq!(out.len() - start, header.block_bytes(), "encode: a section of the batch has a wrong length");
    let sum = crc32c::crc32c(&out[start + CHECKSUM_START..]);
    out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Decodes `bytes`, which must be exactly one block, into `out`, and reuses the memory of `out`. After an error `out`
/// is empty.
///
/// The result is either an error or a batch whose offsets, indices and columns are consistent, whatever the bytes are.
pub fn decode(bytes: &[u8], out: &mut Batch) -> Result<(), BlockFault> {
    out.clear();
    let result = decode_into(bytes, out);
    if result.is_err() {
        out.clear();
    }
    result
}

fn decode_into(bytes: &[u8], out: &mut Batch) -> Result<(), BlockFault> {
    let header = Header::read(bytes)?;
    let (stored, sum) = (u32_at(bytes, 4), crc32c::crc32c(&bytes[CHECKSUM_START..]));
    check(stored == sum, "checksum", sum as usize, stored as usize)?;
    let mut rest = &bytes[HEADER_BYTES..];
    let [offsets, indices, gaps, labels, values, weights, groups, fields, times] =
        header.sections().map(|section| {
            let (head, tail) = rest.split_at(section.next_multiple_of(ALIGN));
            rest = tail;
            &head[..section]
        });
    take(offsets, &mut out.offsets, u32::from_le_bytes);
    take_narrow(indices, header.index_width, &mut out.indices);
    take_gaps(gaps, &header, &mut out.columns);
    take(labels, &mut out.labels, f64::from_le_bytes);
    take(values, &mut out.values, f32::from_le_bytes);
    take(weights, &mut out.weights, f32::from_le_bytes);
    take(groups, &mut out.groups, u64::from_le_bytes);
    take_narrow(fields, header.field_width, &mut out.fields);
    take(times, &mut out.times, f64::from_le_bytes);
    check_offsets(&out.offsets, header.entry_count)?;
    check_indices(&out.indices, header.column_count)?;
    // This loop and the checks below count without a branch: the compiler does not vectorize a loop that may stop
    // early.
    let falls = out.columns.windows(2).fold(0, |falls, pair| falls + usize::from(pair[0] >= pair[1]));
    check(falls == 0, "number of columns that are not above the one before", falls, 0)
}

fn check_offsets(offsets: &[u32], entry_count: u32) -> Result<(), BlockFault> {
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    check(first == 0, "first offset", first as usize, 0)?;
    check(last == entry_count, "last offset", last as usize, entry_count as usize)?;
    let falls = offsets.windows(2).fold(0, |falls, pair| falls + usize::from(pair[0] > pair[1]));
    check(falls == 0, "number of offsets below the one before", falls, 0)
}

fn check_indices(indices: &[u32], column_count: u32) -> Result<(), BlockFault> {
    // Bit 31 of `index | (last - index)` is set exactly when the index is above `last`, as both are below 2^31. Every
    // vector unit has these operations; not every one has a maximum or an unsigned comparison.
    let last = column_count.saturating_sub(1);
    let bits = indices.iter().fold(0, |bits, &index| bits | index | last.wrapping_sub(index));
    if indices.is_empty() || (column_count > 0 && bits >> 31 == 0) {
        return Ok(());
    }
    check(false, "an index", max_of(indices) as usize, column_count as usize)
}

#[inline]
fn check(holds: bool, what: &'static str, actual: usize, expected: usize) -> Result<(), BlockFault> {
    if holds { Ok(()) } else { Err(BlockFault { what, actual: actual as u64, expected: expected as u64 }) }
}

/// Returns the smallest width in bytes that holds `max`.
fn width_of(max: u64) -> u8 {
    match max {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

fn max_of(items: &[u32]) -> u64 {
    u64::from(items.iter().copied().max().unwrap_or(0))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Appends a section of `N` bytes per item, and its padding.
fn put<T: Copy, const N: usize>(items: &[T], out: &mut Vec<u8>, to_bytes: impl Fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + (items.len() * N).next_multiple_of(ALIGN), 0);
    for (place, &item) in out[start..].as_chunks_mut::<N>().0.iter_mut().zip(items) {
        *place = to_bytes(item);
    }
}

fn put_narrow(items: &[u32], width: u8, out: &mut Vec<u8>) {
    match width {
        1 => put(items, out, |item| [item as u8]),
        2 => put(items, out, |item| (item as u16).to_le_bytes()),
        _ => put(items, out, u32::to_le_bytes),
    }
}

fn put_gaps(columns: &[u64], width: u8, out: &mut Vec<u8>) {
    let gaps: Vec<u64> = columns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    match width {
        1 => put(&gaps, out, |gap| [gap as u8]),
        2 => put(&gaps, out, |gap| (gap as u16).to_le_bytes()),
        4 => put(&gaps, out, |gap| (gap as u32).to_le_bytes()),
        _ => put(&gaps, out, u64::to_le_bytes),
    }
}

/// Appends the items of a section of `N` bytes per item.
fn take<T, const N: usize>(section: &[u8], out: &mut Vec<T>, from_bytes: impl Fn([u8; N]) -> T) {
    out.extend(section.as_chunks::<N>().0.iter().map(|&bytes| from_bytes(bytes)));
}

fn take_narrow(section: &[u8], width: u8, out: &mut Vec<u32>) {
    match width {
        1 => take(section, out, |[byte]| u32::from(byte)),
        2 => take(section, out, |bytes| u32::from(u16::from_le_bytes(bytes))),
        _ => take(section, out, u32::from_le_bytes),
    }
}

/// Appends the running sums of the differences. A sum that overflows wraps and thereby breaks the order, which the
/// caller checks afterwards.
fn take_gaps(section: &[u8], header: &Header, out: &mut Vec<u64>) {
    if header.column_count == 0 {
        return;
    }
    let mut column = header.first_column;
    out.reserve(header.column_count as usize);
    out.push(column);
    let mut sum = |gap: u64| {
        column = column.wrapping_add(gap);
        column
    };
    match header.gap_width {
        1 => out.extend(section.iter().map(|&byte| sum(u64::from(byte)))),
        2 => out.extend(chunks(section).map(|bytes| sum(u64::from(u16::from_le_bytes(bytes))))),
        4 => out.extend(chunks(section).map(|bytes| sum(u64::from(u32::from_le_bytes(bytes))))),
        _ => out.extend(chunks(section).map(|bytes| sum(u64::from_le_bytes(bytes)))),
    }
}

fn chunks<const N: usize>(section: &[u8]) -> impl Iterator<Item = [u8; N]> {
    section.as_chunks::<N>().0.iter().copied()
}

#[cfg(test)]
mod tests;
