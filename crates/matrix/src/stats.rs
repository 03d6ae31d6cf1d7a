//! Counters of the store. A call updates a few atomics; there is no counter for each key.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::clock::Clock;

/// Buckets of the staleness histogram: 0 to 15, and 16 or more.
pub const STALENESS_BUCKETS: usize = 17;

/// Counters of a store since its creation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreStats {
    /// One entry for each matrix, in the order of ids.
    pub matrices: Vec<MatrixStats>,
    pub waits: WaitStats,
}

/// Sizes and counters of one matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MatrixStats {
    pub name: String,
    /// Number of rows that exist; by column, of elements.
    pub rows: u64,
    /// Size of tables, indices and staged pushes, in bytes.
    pub size_bytes: u64,
    pub pull_count: u64,
    /// Total number of keys of all pulls.
    pub pulled_key_count: u64,
    /// Number of accepted pushes.
    pub push_count: u64,
    /// Total number of keys of all accepted pushes.
    pub pushed_key_count: u64,
    /// Number of pushes refused for a NaN or an infinity.
    pub refused_push_count: u64,
    /// Number of pulls by `clock - m`, the number of clocks by which the task was ahead of the slowest task. The last
    /// bucket holds all from 16 on.
    pub staleness: [u64; STALENESS_BUCKETS],
}

/// Waits of tasks for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitStats {
    /// Number of waits.
    pub count: u64,
    /// Total duration of the waits.
    pub nanoseconds: u64,
}

#[derive(Debug, Default)]
pub(crate) struct MatrixCounters {
    pulls: AtomicU64,
    pulled_keys: AtomicU64,
    pushes: AtomicU64,
    pushed_keys: AtomicU64,
    refused_pushes: AtomicU64,
    staleness: [AtomicU64; STALENESS_BUCKETS],
}

impl MatrixCounters {
    /// Records a pull of a task at `clock` when the slowest task was at `minimum`.
    pub(crate) fn record_pull(&self, keys: usize, clock: Clock, minimum: Clock) {
        self.pulls.fetch_add(1, Relaxed);
        self.pulled_keys.fetch_add(keys as u64, Relaxed);
        let bucket = clock.saturating_sub(minimum).min(STALENESS_BUCKETS as u64 - 1);
        self.staleness[bucket as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn record_push(&self, keys: usize) {
        self.pushes.fetch_add(1, Relaxed);
        self.pushed_keys.fetch_add(keys as u64, Relaxed);
    }

    pub(crate) fn record_refused_push(&self) {
        self.refused_pushes.fetch_add(1, Relaxed);
    }

    pub(crate) fn stats(&self, name: &str, rows: u64, size_bytes: u64) -> MatrixStats {
        MatrixStats {
            name: name.to_owned(),
            rows,
            size_bytes,
            pull_count: self.pulls.load(Relaxed),
            pulled_key_count: self.pulled_keys.load(Relaxed),
            push_count: self.pushes.load(Relaxed),
            pushed_key_count: self.pushed_keys.load(Relaxed),
            refused_push_count: self.refused_pushes.load(Relaxed),
            staleness: std::array::from_fn(|i| self.staleness[i].load(Relaxed)),
        }
    }
}
