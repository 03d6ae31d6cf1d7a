//! Rows of a contiguous range of keys: the position of a row is its key minus the first key.

use std::collections::BTreeSet;

use crate::element::Element;
use crate::rule::PreparedRule;
use crate::storage::before_images::{RowsOfSnapshot, SnapshotId};
use crate::storage::rows::{RowChunks, SnapshotOfRows};
use crate::storage::{RowStore, Share};

/// All rows of a key range.
#[derive(Debug)]
pub(crate) struct DenseRows<E> {
    /// The key of position 0.
    start: u64,
    rows: RowChunks<E>,
}

impl<E: Element> DenseRows<E> {
    /// Creates `len` rows of zeros, the first for the key `start`.
    pub(crate) fn new(start: u64, len: u32, width: usize) -> Self {
        Self { start, rows: RowChunks::contiguous(width, len) }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Copies the first `columns` elements of the rows of `keys`, which are ascending, to `out`. Returns false without
    /// copying when the keys are not contiguous.
    pub(crate) fn pull_contiguous(&self, keys: &[u64], columns: usize, out: &mut [E]) -> bool {
        let Some(rows) = self.contiguous_rows(keys) else { return false };
        if self.rows.width() == columns {
            out.copy_from_slice(rows);
        } else {
            let rows = rows.chunks_exact(self.rows.width());
            for (row, out) in rows.zip(out.chunks_exact_mut(columns)) {
                out.copy_from_slice(&row[..columns]);
            }
        }
        true
    }

    /// Does the same as [`Self::pull_contiguous`], but appends to `out`.
    pub(crate) fn append_contiguous(&self, keys: &[u64], columns: usize, out: &mut Vec<E>) -> bool {
        let Some(rows) = self.contiguous_rows(keys) else { return false };
        if self.rows.width() == columns {
            out.extend_from_slice(rows);
        } else {
            rows.chunks_exact(self.rows.width()).for_each(|row| out.extend_from_slice(&row[..columns]));
        }
        true
    }

    /// Returns the rows of ascending keys, or `None` when the keys are not contiguous.
    fn contiguous_rows(&self, keys: &[u64]) -> Option<&[E]> {
        Some(self.rows.contiguous_rows(self.first_position(keys)?, keys.len()))
    }

    /// Applies the rule to the rows of `keys`, which are ascending. Returns false without a change when the keys are
    /// not contiguous.
    pub(crate) fn push_contiguous<S: PreparedRule<E>>(
        &mut self,
        keys: &[u64],
        columns: usize,
        values: &[E],
        step: &S,
    ) -> bool {
        let Some(position) = self.first_position(keys) else { return false };
        let width = self.rows.width();
        let rows = self.rows.contiguous_rows_mut(position, keys.len());
        if width == columns {
            // A rule without slots updates each element by itself, so all rows are updated as one long row.
            step.update_row(rows, values);
        } else {
            for (row, change) in rows.chunks_exact_mut(width).zip(values.chunks_exact(columns)) {
                step.update_row(row, change);
            }
        }
        true
    }

    /// Returns the key of the first row and the values of all rows, if each row is one element.
    pub(crate) fn contiguous_values(&self) -> Option<(u64, &[E])> {
        (self.rows.width() == 1).then(|| (self.start, self.rows.contiguous_rows(0, self.rows.len() as usize)))
    }

    /// Replaces the values of all rows, each of which is one element, and returns the old ones.
    pub(crate) fn replace_contiguous_values(&mut self, values: Vec<E>) -> Vec<E> {
        self.rows.replace_contiguous(values)
    }

    /// Does the same as [`Self::contiguous_values`], for writing.
    pub(crate) fn contiguous_values_mut(&mut self) -> Option<&mut [E]> {
        let len = self.rows.len() as usize;
        (self.rows.width() == 1).then(|| self.rows.contiguous_rows_mut(0, len))
    }

    /// Returns the position of the first key if the ascending keys are contiguous.
    fn first_position(&self, keys: &[u64]) -> Option<u32> {
        let (first, last) = (*keys.first()?, *keys.last()?);
        (last - first + 1 == keys.len() as u64).then_some((first - self.start) as u32)
    }
}

impl<E: Element> RowStore<E> for DenseRows<E> {
    fn len(&self) -> u32 {
        self.rows.len()
    }

    fn bytes(&self) -> u64 {
        self.rows.bytes()
    }

    fn for_each_key(&self, share: Share, mut visit: impl FnMut(u64, u32)) {
        let positions = share.range_of(self.rows.len());
        positions.for_each(|position| visit(self.start + u64::from(position), position));
    }

    fn begin_snapshot(&mut self, id: SnapshotId, records_changes: bool) {
        self.rows.begin_snapshot(id, records_changes);
    }

    fn end_snapshot(&mut self, id: SnapshotId) {
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
        let Some(rows) = self.rows.snapshot(id) else { return };
        let positions = share.range_of(rows.row_count());
        for position in positions.filter(|position| rows.has(selection, *position)) {
            visit(self.start + u64::from(position), rows.row(position));
        }
    }

    fn unseen_snapshot_bytes(&self, id: SnapshotId, seen: &mut BTreeSet<usize>) -> u64 {
        self.rows.unseen_snapshot_bytes(id, seen)
    }

    #[inline]
    fn hash(&self, _key: u64) -> u64 {
        0
    }

    #[inline]
    fn prefetch_key(&self, _hash: u64) {}

    #[inline]
    fn find(&self, _hash: u64, key: u64) -> u32 {
        // The partitioner gives a partition only keys of its range, whose length is at most DENSE_ROW_LIMIT.
        (key - self.start) as u32
    }

    #[inline]
    fn probe_prefetched(&self, hash: u64, key: u64) -> u32 {
        self.find(hash, key)
    }

    #[inline]
    fn add(&mut self, hash: u64, key: u64) -> u32 {
        self.find(hash, key)
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
