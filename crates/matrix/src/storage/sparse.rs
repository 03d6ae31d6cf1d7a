//! Rows of arbitrary keys, in chunks, behind an index: open addressing in buckets of one cache line.
//!
//! A bucket holds five keys and their positions in 64 bytes, so that a search usually reads one cache line. When a
//! bucket is full, the search continues in the next one. Keys are never removed. The bucket is chosen by multiply-shift
//! from the lower half of the mixed key: it rises with the hash, so that growing reads and writes memory in order.

use std::collections::BTreeSet;

use math::hash::mix64;
use math::prefetch::prefetch;

use crate::element::Element;
use crate::storage::before_images::{ArrayShape, BeforeImages, RowsOfSnapshot, SnapshotId};
use crate::storage::rows::{ABSENT, RowChunks, SnapshotOfRows};
use crate::storage::{BLOCK, PREFETCH_DISTANCE, RowStore, Share, UNKNOWN};

const BUCKET_LEN: usize = 5;
/// Marks a free cell; keys are below 2^63.
const EMPTY: u64 = u64::MAX;
const FIRST_BUCKET_COUNT: usize = 4;
/// Number of keys in 4 buckets at which the table grows by half: 14 of 20 cells are used.
const GROW_AT_QUARTER: usize = 14;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    keys: [u64; BUCKET_LEN],
    positions: [u32; BUCKET_LEN],
    len: u32,
}

impl Bucket {
    const FREE: Self = Self { keys: [EMPTY; BUCKET_LEN], positions: [ABSENT; BUCKET_LEN], len: 0 };

    #[inline]
    fn find(&self, key: u64) -> u32 {
        // One bit for each cell instead of a branch, because the CPU cannot predict in which cell a key is.
        let mut places = 1 << BUCKET_LEN;
        for (i, k) in self.keys.iter().enumerate() {
            places |= u32::from(*k == key) << i;
        }
        self.positions.get(places.trailing_zeros() as usize).copied().unwrap_or(ABSENT)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len as usize == BUCKET_LEN
    }

    fn add(&mut self, key: u64, position: u32) {
        self.keys[self.len as usize] = key;
        self.positions[self.len as usize] = position;
        self.len += 1;
    }
}

/// A map from keys to positions.
#[derive(Debug)]
struct SparseIndex {
    buckets: Vec<Bucket>,
    len: usize,
    /// The buckets before the index grew. Pages are not kept: positions show what was added after a snapshot began.
    images: BeforeImages<Bucket>,
}

impl SparseIndex {
    fn new() -> Self {
        Self { buckets: vec![Bucket::FREE; FIRST_BUCKET_COUNT], len: 0, images: BeforeImages::default() }
    }

    /// Visits the keys of a share with their positions, in the order of the table: of every `count`-th cell.
    fn for_each_key(&self, share: Share, visit: impl FnMut(u64, u32)) {
        Self::for_each_key_of(&self.buckets, share, visit);
    }

    /// Does the same as [`Self::for_each_key`], for buckets that the index may have had earlier.
    fn for_each_key_of(buckets: &[Bucket], share: Share, mut visit: impl FnMut(u64, u32)) {
        let (first, step) = (share.index as usize, share.count as usize);
        for cell in (first..buckets.len() * BUCKET_LEN).step_by(step) {
            prefetch(buckets, (cell + PREFETCH_DISTANCE * step) / BUCKET_LEN);
            let (bucket, i) = (&buckets[cell / BUCKET_LEN], cell % BUCKET_LEN);
            if i < bucket.len as usize {
                visit(bucket.keys[i], bucket.positions[i]);
            }
        }
    }

    #[inline]
    fn bucket_of(&self, hash: u64) -> usize {
        (((hash & 0xFFFF_FFFF) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Returns the bucket after `i`; the first follows the last.
    #[inline]
    fn next(&self, i: usize) -> usize {
        if i + 1 == self.buckets.len() { 0 } else { i + 1 }
    }

    /// Inserts a key that is not in the table. There is always a bucket with a free cell.
    fn insert_without_growing(&mut self, hash: u64, key: u64, position: u32) {
        let mut i = self.bucket_of(hash);
        while self.buckets[i].is_full() {
            i = self.next(i);
        }
        self.buckets[i].add(key, position);
    }

    #[inline]
    fn find(&self, hash: u64, key: u64) -> u32 {
        let mut i = self.bucket_of(hash);
        loop {
            let bucket = &self.buckets[i];
            let position = bucket.find(key);
            if position != ABSENT || !bucket.is_full() {
                return position;
            }
            i = self.next(i);
        }
    }

    /// Adds a key that is not in the table.
    #[inline]
    fn add(&mut self, hash: u64, key: u64, position: u32) {
        self.reserve(1);
        self.insert_without_growing(hash, key, position);
        self.len += 1;
    }

    /// Makes room for `count` more keys.
    #[inline]
    fn reserve(&mut self, count: usize) {
        if (self.len + count) * 4 > self.buckets.len() * GROW_AT_QUARTER {
            self.grow(count);
        }
    }

    #[cold]
    fn grow(&mut self, key_count: usize) {
        let needed = ((self.len + key_count) * 4).div_ceil(GROW_AT_QUARTER);
        let count = needed.max(self.buckets.len() + self.buckets.len() / 2);
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::FREE; count]);
        for bucket in &old {
            for i in 0..bucket.len as usize {
                self.insert_without_growing(mix64(bucket.keys[i]), bucket.keys[i], bucket.positions[i]);
            }
        }
        self.images.keep_array(old);
    }
}

/// An index and its rows. Rows never move.
#[derive(Debug)]
pub(crate) struct SparseRows<E> {
    index: SparseIndex,
    rows: RowChunks<E>,
}

impl<E: Element> SparseRows<E> {
    pub(crate) fn new(width: usize) -> Self {
        Self { index: SparseIndex::new(), rows: RowChunks::new(width) }
    }
}

impl<E: Element> RowStore<E> for SparseRows<E> {
    fn len(&self) -> u32 {
        self.rows.len()
    }

    fn bytes(&self) -> u64 {
        size_of_val::<[Bucket]>(&self.index.buckets) as u64 + self.rows.bytes()
    }

    fn for_each_key(&self, share: Share, visit: impl FnMut(u64, u32)) {
        self.index.for_each_key(share, visit);
    }

    fn begin_snapshot(&mut self, id: SnapshotId, records_changes: bool) {
        self.index.images.begin(id, self.len(), ArrayShape::GROWING, false);
        self.rows.begin_snapshot(id, records_changes);
    }

    fn end_snapshot(&mut self, id: SnapshotId) {
        self.index.images.end(id);
        self.rows.end_snapshot(id);
    }

    fn has_snapshots(&self) -> bool {
        self.rows.has_snapshots()
    }

    fn snapshot_row_count(&self, id: SnapshotId) -> Option<u32> {
        self.rows.snapshot(id).map(SnapshotOfRows::row_count)
    }

    fn changed_row_count(&self, id: SnapshotId) -> u64 {
        self.rows.changed_row_count(id)
    }

    fn for_each_snapshot_row(
        &self,
        id: SnapshotId,
        selection: RowsOfSnapshot,
        share: Share,
        mut visit: impl FnMut(u64, &[E]),
    ) {
        let (Some(index), Some(rows)) = (self.index.images.of(id), self.rows.snapshot(id)) else { return };
        // The rows of a block of keys are fetched together.
        let mut block = [(0, ABSENT); BLOCK];
        let mut len = 0;
        SparseIndex::for_each_key_of(index.array(&self.index.buckets), share, |key, position| {
            if !rows.has(selection, position) {
                return;
            }
            self.rows.prefetch(position);
            block[len] = (key, position);
            len += 1;
            if len == BLOCK {
                len = 0;
                for (key, position) in block {
                    visit(key, rows.row(position));
                }
            }
        });
        for (key, position) in &block[..len] {
            visit(*key, rows.row(*position));
        }
    }

    fn unseen_snapshot_bytes(&self, id: SnapshotId, seen: &mut BTreeSet<usize>) -> u64 {
        let index = self.index.images.of(id).map_or(0, |snapshot| snapshot.unseen_bytes(seen));
        index + self.rows.unseen_snapshot_bytes(id, seen)
    }

    fn reserve(&mut self, count: usize) {
        self.index.reserve(count);
    }

    #[inline]
    fn hash(&self, key: u64) -> u64 {
        mix64(key)
    }

    #[inline]
    fn prefetch_key(&self, hash: u64) {
        prefetch(&self.index.buckets, self.index.bucket_of(hash));
    }

    #[inline]
    fn find(&self, hash: u64, key: u64) -> u32 {
        self.index.find(hash, key)
    }

    #[inline]
    fn probe_prefetched(&self, hash: u64, key: u64) -> u32 {
        let i = self.index.bucket_of(hash);
        let position = self.index.buckets[i].find(key);
        if position == ABSENT && self.index.buckets[i].is_full() {
            prefetch(&self.index.buckets, self.index.next(i));
            return UNKNOWN;
        }
        position
    }

    #[inline]
    fn add(&mut self, hash: u64, key: u64) -> u32 {
        let position = self.rows.add();
        self.index.add(hash, key, position);
        position
    }

    #[inline]
    fn row(&self, position: u32) -> &[E] {
        self.rows.row(position)
    }

    #[inline]
    fn row_mut(&mut self, position: u32) -> &mut [E] {
        self.rows.row_mut(position)
    }

    #[inline]
    fn prefetch_row(&self, position: u32) {
        self.rows.prefetch(position);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The index gives the same answers as a map after any sequence of finds and adds, with keys of all sizes.
        #[test]
        fn the_index_is_a_map(keys in prop::collection::vec(prop_oneof![0u64..300, 0..(1u64 << 63)], 0..2_000)) {
            let mut index = SparseIndex::new();
            let mut model = BTreeMap::new();
            for (i, key) in keys.iter().copied().enumerate() {
                let hash = mix64(key);
                prop_assert_eq!(index.find(hash, key), model.get(&key).copied().unwrap_or(ABSENT));
                let next = model.len() as u32;
                if i % 3 != 0 && !model.contains_key(&key) {
                    model.insert(key, next);
                    index.add(hash, key, next);
                }
            }
            let mut all = Vec::new();
            index.for_each_key(Share::WHOLE, |key, position| all.push((key, position)));
            all.sort_unstable();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    }

    #[test]
    fn keys_that_all_fall_into_the_last_bucket_run_over_into_the_first() {
        let mut index = SparseIndex::new();
        for key in 0..12 {
            index.add(u64::MAX, key, key as u32);
        }
        assert!((0..12).all(|key| index.find(u64::MAX, key) == key as u32));
        assert_eq!(index.find(u64::MAX, 99), ABSENT);
    }
}
