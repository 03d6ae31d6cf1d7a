//! Rows in chunks. A row never moves, memory does not double when the table grows, and a position is valid until the
//! table is cleared.

use std::collections::BTreeSet;

use math::prefetch::prefetch;

use super::before_images::{
    ArrayShape, BeforeImages, PagesOfSnapshot, RowsOfSnapshot, SnapshotId, page_shift,
};
use crate::element::Element;

/// Position of a row that does not exist.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Size of a chunk of a sparse table, in bytes: small compared with a table, and large enough that allocations are
/// cheap.
const CHUNK_BYTES: usize = 64 << 10;

/// Rows of one width, addressed by position.
#[derive(Debug)]
pub(crate) struct RowChunks<E> {
    chunks: Vec<Box<[E]>>,
    width: usize,
    /// Shift from a position to its chunk.
    shift: u32,
    len: u32,
    images: BeforeImages<E>,
}

/// The rows as they were when a snapshot began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotOfRows<'a, E> {
    rows: &'a RowChunks<E>,
    pages: &'a PagesOfSnapshot<E>,
}

impl<E: Element> RowChunks<E> {
    /// Creates an empty list of rows of `width` elements.
    pub(crate) fn new(width: usize) -> Self {
        let rows = (CHUNK_BYTES / (width * size_of::<E>())).max(1);
        Self { chunks: Vec::new(), width, shift: rows.ilog2(), len: 0, images: BeforeImages::default() }
    }

    /// Creates `len` rows of zeros in one chunk. The system allocates its pages when they are first used.
    pub(crate) fn contiguous(width: usize, len: u32) -> Self {
        let chunk = vec![E::ZERO; width * len as usize].into_boxed_slice();
        Self { chunks: vec![chunk], width, shift: u32::BITS - 1, len, images: BeforeImages::default() }
    }

    /// Shift from a position to its page, which lies within a chunk.
    fn page_shift(&self) -> u32 {
        page_shift(self.width * size_of::<E>()).min(self.shift)
    }

    /// Keeps the rows as they are now for a snapshot.
    pub(crate) fn begin_snapshot(&mut self, id: SnapshotId, records_changes: bool) {
        let (item_count, shift) = (self.len as usize, self.page_shift());
        let (page_count, page_len) = (item_count.div_ceil(1 << shift), self.width << shift);
        self.images.begin(id, self.len, ArrayShape { item_count, page_count, page_len }, records_changes);
    }

    pub(crate) fn end_snapshot(&mut self, id: SnapshotId) {
        self.images.end(id);
    }

    pub(crate) fn has_snapshots(&self) -> bool {
        self.images.has_snapshots()
    }

    /// The rows as they were when a snapshot began; `None` if it did not begin here.
    pub(crate) fn snapshot(&self, id: SnapshotId) -> Option<SnapshotOfRows<'_, E>> {
        Some(SnapshotOfRows { rows: self, pages: self.images.of(id)? })
    }

    /// About the number of rows of a snapshot that may have changed since the one before.
    pub(crate) fn changed_row_count(&self, id: SnapshotId) -> u64 {
        self.images.of(id).map_or(0, |pages| pages.changed_row_count(1))
    }

    /// Size of what is kept for a snapshot, without what is in `seen`.
    pub(crate) fn unseen_snapshot_bytes(&self, id: SnapshotId, seen: &mut BTreeSet<usize>) -> u64 {
        self.images.of(id).map_or(0, |pages| pages.unseen_bytes(seen))
    }

    /// Keeps the pages of rows that are about to change.
    #[cold]
    #[inline(never)]
    fn preserve(&mut self, position: u32, count: usize) {
        let Some(last) = count.checked_sub(1) else { return };
        (position as usize..position as usize + count).for_each(|item| self.images.record_change(item));
        let shift = self.page_shift();
        for page in position >> shift..=(position + last as u32) >> shift {
            let (chunk, start) = self.chunk_and_offset(page << shift);
            let chunk = &self.chunks[chunk];
            let end = (start + (self.width << shift)).min(chunk.len());
            self.images.preserve(page as usize, &chunk[start..end]);
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| size_of_val::<[E]>(chunk) as u64).sum()
    }

    /// Adds a row of zeros and returns its position.
    pub(crate) fn add(&mut self) -> u32 {
        let position = self.len;
        assert!(position < ABSENT, "a partition holds less than 2^32 rows: use more partitions");
        if (position >> self.shift) as usize == self.chunks.len() {
            self.chunks.push(vec![E::ZERO; self.width << self.shift].into_boxed_slice());
        }
        self.len += 1;
        if !self.images.is_idle() {
            self.preserve(position, 1);
        }
        position
    }

    #[inline]
    fn chunk_and_offset(&self, position: u32) -> (usize, usize) {
        let within = position & ((1 << self.shift) - 1);
        ((position >> self.shift) as usize, within as usize * self.width)
    }

    #[inline]
    pub(crate) fn row(&self, position: u32) -> &[E] {
        let (chunk, start) = self.chunk_and_offset(position);
        &self.chunks[chunk][start..start + self.width]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, position: u32) -> &mut [E] {
        if !self.images.is_idle() {
            self.preserve(position, 1);
        }
        let (chunk, start) = self.chunk_and_offset(position);
        &mut self.chunks[chunk][start..start + self.width]
    }

    /// Returns `count` rows from `position` on as one slice. All of them must be in one chunk.
    pub(crate) fn contiguous_rows(&self, position: u32, count: usize) -> &[E] {
        let (chunk, start) = self.chunk_and_offset(position);
        &self.chunks[chunk][start..start + count * self.width]
    }

    /// Does the same as [`Self::contiguous_rows`], for writing.
    pub(crate) fn contiguous_rows_mut(&mut self, position: u32, count: usize) -> &mut [E] {
        if !self.images.is_idle() {
            self.preserve(position, count);
        }
        let (chunk, start) = self.chunk_and_offset(position);
        &mut self.chunks[chunk][start..start + count * self.width]
    }

    /// Replaces all rows of a list that [`Self::contiguous`] has made, and returns the old ones.
    pub(crate) fn replace_contiguous(&mut self, values: Vec<E>) -> Vec<E> {
        assert_eq!(values.len(), self.width * self.len as usize, "all rows are replaced");
        if !self.images.is_idle() {
            self.preserve(0, self.len as usize);
        }
        std::mem::replace(&mut self.chunks[0], values.into_boxed_slice()).into_vec()
    }

    /// Number of elements of a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Prefetches the first cache line of a row; does nothing for [`ABSENT`].
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        let (chunk, start) = self.chunk_and_offset(position);
        if let Some(chunk) = self.chunks.get(chunk) {
            prefetch(chunk, start);
        }
    }
}

impl<'a, E: Element> SnapshotOfRows<'a, E> {
    pub(crate) fn row_count(self) -> u32 {
        self.pages.row_count()
    }

    /// Whether a row existed and belongs to these.
    #[inline]
    pub(crate) fn has(self, rows: RowsOfSnapshot, position: u32) -> bool {
        position < self.row_count() && self.pages.has(rows, position as usize)
    }

    #[inline]
    pub(crate) fn row(self, position: u32) -> &'a [E] {
        let shift = self.rows.page_shift();
        let Some(page) = self.pages.page((position >> shift) as usize) else {
            return self.rows.row(position);
        };
        let start = (position & ((1 << shift) - 1)) as usize * self.rows.width;
        &page[start..start + self.rows.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_where_they_are_while_the_table_grows() {
        let mut rows = RowChunks::<f32>::new(3);
        for i in 0..20_000u32 {
            assert_eq!(rows.add(), i);
            rows.row_mut(i).copy_from_slice(&[i as f32, 1.0, 2.0]);
        }
        assert!((0..20_000).all(|i| rows.row(i) == [i as f32, 1.0, 2.0]));
        rows.prefetch(ABSENT);
    }

    #[test]
    fn a_row_wider_than_a_chunk_has_a_chunk_of_its_own() {
        let mut rows = RowChunks::<f64>::new(CHUNK_BYTES);
        rows.add();
        rows.add();
        assert_eq!(rows.row(1).len(), CHUNK_BYTES);
    }
}
