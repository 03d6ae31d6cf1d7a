//! Meta of a pull or push, and the digest of a list of keys.
//!
//! | at | field | type |
//! |---|---|---|
//! | 0 | table | u32 |
//! | 4 | form of the keys: 0 listed, 1 range, 2 cached | u32 |
//! | 8 | number of runs | u32 |
//! | 12 | cached: number of keys; else 0 | u32 |
//! | 16 | range: start and end; cached: the digest; listed: nothing | 2 x u64, u128 |
//! | then | runs: partition, number of keys | 2 x u32 each |

use xxhash_rust::xxh3::Xxh3;

use super::bytes::MetaReader;
use crate::error::Error;
use crate::frame::Frame;
use crate::header::field;
use crate::message::{KeyList, PartitionRun};

const LISTED: u32 = 0;
const RANGE: u32 = 1;
const CACHED: u32 = 2;

impl KeyList {
    /// The digest that names a list: xxh3-128 (seed 0) of the number of runs (u64), each run (partition u32, count
    /// u32), and the keys (u64), all little-endian.
    pub fn digest(runs: &[PartitionRun], keys: &[u64]) -> u128 {
        Self::digest_of_slices(runs, std::iter::once(keys))
    }

    /// The digest of keys that lie in several slices, one after the other.
    pub fn digest_of_slices<'a>(runs: &[PartitionRun], slices: impl Iterator<Item = &'a [u64]>) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(&(runs.len() as u64).to_le_bytes());
        for run in runs {
            hash.update(&run_bytes(*run));
        }
        for keys in slices {
            hash.update(bytemuck::cast_slice(keys));
        }
        hash.digest128()
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        match self {
            KeyList::Listed(keys) => keys.len() as u64,
            KeyList::Range { start, end } => end.saturating_sub(*start),
            KeyList::Cached { count, .. } => u64::from(*count),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn run_bytes(run: PartitionRun) -> [u8; 8] {
    (u64::from(run.partition) | u64::from(run.count) << 32).to_le_bytes()
}

/// The keys that go into the section of keys.
pub(super) fn section(keys: &KeyList) -> &[u64] {
    match keys {
        KeyList::Listed(keys) => keys,
        KeyList::Range { .. } | KeyList::Cached { .. } => &[],
    }
}

pub(super) fn write(table: u32, runs: &[PartitionRun], keys: &KeyList, meta: &mut Vec<u8>) {
    let (form, count) = match keys {
        KeyList::Listed(_) => (LISTED, 0),
        KeyList::Range { .. } => (RANGE, 0),
        KeyList::Cached { count, .. } => (CACHED, *count),
    };
    for value in [table, form, runs.len() as u32, count] {
        meta.extend(value.to_le_bytes());
    }
    match keys {
        KeyList::Listed(_) => {}
        KeyList::Range { start, end } => {
            meta.extend(start.to_le_bytes());
            meta.extend(end.to_le_bytes());
        }
        KeyList::Cached { digest, .. } => meta.extend(digest.to_le_bytes()),
    }
    meta.extend(runs.iter().flat_map(|run| run_bytes(*run)));
}

/// Reads table, runs and keys of a pull or push, from byte `at` of its meta on. Moves the keys out of the frame.
pub(super) fn read(frame: &mut Frame, at: usize) -> Result<(u32, Vec<PartitionRun>, KeyList), Error> {
    let kind = frame.header.kind;
    let mut meta = MetaReader::new(kind, &frame.meta);
    meta.take("the bytes before the keys", at)?;
    let (table, form) = (meta.u32("table")?, meta.u32("form of keys")?);
    let (run_count, count) = (meta.u32("number of runs")?, meta.u32("number of keys")?);
    let keys = match form {
        LISTED => KeyList::Listed(std::mem::take(&mut frame.keys)),
        RANGE => KeyList::Range { start: meta.u64("start")?, end: meta.u64("end")? },
        CACHED => KeyList::Cached { digest: meta.u128("digest")?, count },
        _ => return Err(field(kind, "form of keys", form, "0 listed, 1 range, 2 cached")),
    };
    if form != CACHED && count != 0 {
        return Err(field(kind, "number of keys", count, "0: only a cached list has its count here"));
    }
    if !frame.keys.is_empty() {
        return Err(field(kind, "length of keys", frame.keys.len(), "0: only a listed form has keys"));
    }
    if let KeyList::Range { start, end } = keys
        && end < start
    {
        return Err(field(kind, "end", end, format!("at least the start {start}")));
    }
    let bytes = meta.take("runs", run_count as usize * 8)?;
    meta.end("runs")?;
    let runs: Vec<PartitionRun> = bytes.chunks_exact(8).map(run_of_bytes).collect();
    let total: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    if total != keys.len() {
        return Err(field(kind, "sum of the runs", total, format!("{}, the number of keys", keys.len())));
    }
    Ok((table, runs, keys))
}

fn run_of_bytes(bytes: &[u8]) -> PartitionRun {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    PartitionRun { partition: word(0), count: word(4) }
}
