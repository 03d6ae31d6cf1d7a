//! Narrow rows beside their keys: open addressing in buckets of one cache line that hold keys and rows, so that finding
//! a key has also fetched its row. It is for keys below 2^32 - 1 and rows of at most three 4-byte elements: a weight
//! with the slots of its optimizer.
//!
//! The price is that rows move when the table grows, which invalidates positions. When a bucket is full, the search
//! continues in the next one. Keys are never removed. The bucket is chosen by multiply-shift from the lower half of the
//! mixed key: it rises with the hash, so that growing reads and writes memory in order.

use std::collections::BTreeSet;

use math::hash::mix64;
use math::prefetch::prefetch;

use crate::element::Element;
use crate::storage::before_images::{
    ArrayShape, BeforeImages, PagesOfSnapshot, RowsOfSnapshot, SnapshotId, page_shift,
};
use crate::storage::rows::ABSENT;
use crate::storage::{PREFETCH_DISTANCE, RowStore, Share, UNKNOWN};

/// Marks a free cell.
const EMPTY: u32 = u32::MAX;
/// Keys must be below this limit.
pub(crate) const KEY_LIMIT: u64 = EMPTY as u64;
const FIRST_BUCKET_COUNT: usize = 4;
/// Fill level, in tenths of the cells, at which the table doubles.
const GROW_AT_TENTHS: usize = 8;

/// `N` keys and their rows of `W` elements. Cells are filled in order.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket<E, const W: usize, const N: usize> {
    keys: [u32; N],
    rows: [[E; W]; N],
}

impl<E: Element, const W: usize, const N: usize> Bucket<E, W, N> {
    const FREE: Self = Self { keys: [EMPTY; N], rows: [[E::ZERO; W]; N] };

    /// Returns the cell of a key, or `N`.
    #[inline]
    fn find(&self, key: u32) -> u32 {
        // One bit for each cell instead of a branch, because the CPU cannot predict in which cell a key is.
        let mut places = 1 << N;
        for (i, k) in self.keys.iter().enumerate() {
            places |= u32::from(*k == key) << i;
        }
        places.trailing_zeros()
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.keys[N - 1] != EMPTY
    }
}

/// Whether a bucket of this shape fills exactly one cache line.
pub(crate) const fn is_cache_line<E, const W: usize, const N: usize>() -> bool {
    size_of::<Bucket<E, W, N>>() == 64
}

/// Keys with rows of `W` elements, in buckets of `N`.
#[derive(Debug)]
pub(crate) struct NarrowRows<E, const W: usize, const N: usize> {
    buckets: Vec<Bucket<E, W, N>>,
    len: u32,
    images: BeforeImages<Bucket<E, W, N>>,
}

impl<E: Element, const W: usize, const N: usize> NarrowRows<E, W, N> {
    /// Number of bits of a position that hold the cell in a bucket.
    const CELL_BITS: u32 = N.next_power_of_two().ilog2();
    /// Shift from a bucket to its page.
    const PAGE_SHIFT: u32 = page_shift(size_of::<Bucket<E, W, N>>());

    pub(crate) fn new() -> Self {
        Self { buckets: vec![Bucket::FREE; FIRST_BUCKET_COUNT], len: 0, images: BeforeImages::default() }
    }

    /// Returns a bucket that is about to change.
    #[inline]
    fn bucket_mut(&mut self, i: usize) -> &mut Bucket<E, W, N> {
        if !self.images.is_idle() {
            self.preserve(i);
        }
        &mut self.buckets[i]
    }

    #[cold]
    #[inline(never)]
    fn preserve(&mut self, bucket: usize) {
        self.images.record_change(bucket);
        let page = bucket >> Self::PAGE_SHIFT;
        let (start, end) = (page << Self::PAGE_SHIFT, (page + 1) << Self::PAGE_SHIFT);
        self.images.preserve(page, &self.buckets[start..end.min(self.buckets.len())]);
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

    #[inline]
    fn position(bucket: usize, place: u32) -> u32 {
        (bucket as u32) << Self::CELL_BITS | place
    }

    #[inline]
    fn bucket_and_cell(position: u32) -> (usize, usize) {
        ((position >> Self::CELL_BITS) as usize, (position & ((1 << Self::CELL_BITS) - 1)) as usize)
    }

    /// Inserts a key that is not in the table. There is always a bucket with a free cell.
    #[inline]
    fn insert(&mut self, hash: u64, key: u32, row: [E; W]) -> u32 {
        let mut i = self.bucket_of(hash);
        while self.buckets[i].is_full() {
            i = self.next(i);
        }
        let bucket = self.bucket_mut(i);
        let place = bucket.find(EMPTY);
        bucket.keys[place as usize] = key;
        bucket.rows[place as usize] = row;
        Self::position(i, place)
    }
}

impl<E: Element, const W: usize, const N: usize> RowStore<E> for NarrowRows<E, W, N> {
    const ROWS_ARE_INLINE: bool = true;

    fn len(&self) -> u32 {
        self.len
    }

    fn position_bound(&self) -> u32 {
        Self::position(self.buckets.len(), 0)
    }

    fn bytes(&self) -> u64 {
        size_of_val::<[_]>(&self.buckets) as u64
    }

    fn for_each_key(&self, share: Share, mut visit: impl FnMut(u64, u32)) {
        let (first, step) = (share.index as usize, share.count as usize);
        for i in (first..self.buckets.len()).step_by(step) {
            prefetch(&self.buckets, i + PREFETCH_DISTANCE * step);
            for (&key, cell) in self.buckets[i].keys.iter().zip(0..).take_while(|(key, _)| **key != EMPTY) {
                visit(u64::from(key), Self::position(i, cell));
            }
        }
    }

    fn begin_snapshot(&mut self, id: SnapshotId, records_changes: bool) {
        let page_len = 1 << Self::PAGE_SHIFT;
        let (item_count, page_count) = (self.buckets.len(), self.buckets.len().div_ceil(page_len));
        self.images.begin(id, self.len, ArrayShape { item_count, page_count, page_len }, records_changes);
    }

    fn end_snapshot(&mut self, id: SnapshotId) {
        self.images.end(id);
    }

    fn has_snapshots(&self) -> bool {
        self.images.has_snapshots()
    }

    fn snapshot_row_count(&self, id: SnapshotId) -> Option<u32> {
        self.images.of(id).map(PagesOfSnapshot::row_count)
    }

    fn changed_row_count(&self, id: SnapshotId) -> u64 {
        self.images.of(id).map_or(0, |snapshot| snapshot.changed_row_count(N))
    }

    fn for_each_snapshot_row(
        &self,
        id: SnapshotId,
        rows: RowsOfSnapshot,
        share: Share,
        mut visit: impl FnMut(u64, &[E]),
    ) {
        let Some(snapshot) = self.images.of(id) else { return };
        let buckets = snapshot.array(&self.buckets);
        let (first, step) = (share.index as usize, share.count as usize);
        for i in (first..buckets.len()).step_by(step) {
            let (page, in_page) = (i >> Self::PAGE_SHIFT, i & ((1 << Self::PAGE_SHIFT) - 1));
            if !snapshot.has(rows, i) {
                continue;
            }
            prefetch(buckets, i + PREFETCH_DISTANCE * step);
            let bucket = snapshot.page(page).map_or(&buckets[i], |page| &page[in_page]);
            for (key, row) in bucket.keys.iter().zip(&bucket.rows).take_while(|(key, _)| **key != EMPTY) {
                visit(u64::from(*key), row);
            }
        }
    }

    fn unseen_snapshot_bytes(&self, id: SnapshotId, seen: &mut BTreeSet<usize>) -> u64 {
        self.images.of(id).map_or(0, |snapshot| snapshot.unseen_bytes(seen))
    }

    #[inline]
    fn hash(&self, key: u64) -> u64 {
        mix64(key)
    }

    #[inline]
    fn prefetch_key(&self, hash: u64) {
        prefetch(&self.buckets, self.bucket_of(hash));
    }

    #[inline]
    fn find(&self, hash: u64, key: u64) -> u32 {
        if key >= KEY_LIMIT {
            return ABSENT;
        }
        let mut i = self.bucket_of(hash);
        loop {
            let bucket = &self.buckets[i];
            let place = bucket.find(key as u32);
            if place < N as u32 {
                return Self::position(i, place);
            }
            if !bucket.is_full() {
                return ABSENT;
            }
            i = self.next(i);
        }
    }

    #[inline]
    fn probe_prefetched(&self, hash: u64, key: u64) -> u32 {
        if key >= KEY_LIMIT {
            return ABSENT;
        }
        let i = self.bucket_of(hash);
        let bucket = &self.buckets[i];
        let place = bucket.find(key as u32);
        if place < N as u32 {
            Self::position(i, place)
        } else if bucket.is_full() {
            prefetch(&self.buckets, self.next(i));
            UNKNOWN
        } else {
            ABSENT
        }
    }

    #[inline]
    fn has_room(&self, count: usize) -> bool {
        (self.len as usize + count) * 10 <= self.buckets.len() * N * GROW_AT_TENTHS
    }

    #[cold]
    fn grow(&mut self, row_count: usize) {
        let mut count = self.buckets.len() * 2;
        while (self.len as usize + row_count) * 10 > count * N * GROW_AT_TENTHS {
            count *= 2;
        }
        assert!(
            count < (UNKNOWN >> Self::CELL_BITS) as usize,
            "a partition holds fewer rows than 2^31: use more partitions"
        );
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::FREE; count]);
        // What is inserted below is nothing that a snapshot has.
        let mut images = std::mem::take(&mut self.images);
        for bucket in &old {
            for (&key, row) in bucket.keys.iter().zip(bucket.rows).take_while(|(key, _)| **key != EMPTY) {
                self.insert(mix64(u64::from(key)), key, row);
            }
        }
        images.keep_array(old);
        self.images = images;
    }

    #[inline]
    fn add(&mut self, hash: u64, key: u64) -> u32 {
        self.len += 1;
        self.insert(hash, key as u32, [E::ZERO; W])
    }

    #[inline]
    fn row(&self, position: u32) -> &[E] {
        let (bucket, place) = Self::bucket_and_cell(position);
        &self.buckets[bucket].rows[place]
    }

    #[inline]
    fn row_mut(&mut self, position: u32) -> &mut [E] {
        let (bucket, place) = Self::bucket_and_cell(position);
        &mut self.bucket_mut(bucket).rows[place]
    }

    #[inline]
    fn prefetch_row(&self, position: u32) {
        prefetch(&self.buckets, Self::bucket_and_cell(position).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_four_byte_elements_are_lines() {
        assert!(is_cache_line::<f32, 1, 8>() && is_cache_line::<f32, 2, 5>() && is_cache_line::<f32, 3, 4>());
        assert!(!is_cache_line::<f64, 1, 8>() && !is_cache_line::<i64, 3, 4>());
    }

    #[test]
    fn keys_that_all_fall_into_the_last_bucket_run_over_into_the_first() {
        let mut rows = NarrowRows::<f32, 3, 4>::new();
        for key in 0..12 {
            let position = rows.add(u64::MAX, key);
            rows.row_mut(position)[2] = key as f32;
        }
        assert!((0..12).all(|key| rows.row(rows.find(u64::MAX, key))[2] == key as f32));
        assert_eq!(rows.find(u64::MAX, 99), ABSENT);
        assert!(!rows.has_room(1));
    }
}
