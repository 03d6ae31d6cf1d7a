//! The snapshots of a table: its rows as they were, whatever has become of them since.

use std::collections::BTreeSet;

use super::before_images::{RowsOfSnapshot, SnapshotId};
use super::{RowStore, Share, Table, TableRows};
use crate::rule::RuleElement;

/// Number of rows that are restored at a time.
const RESTORE_BLOCK: usize = 1 << 12;

impl<E: RuleElement> Table<E> {
    /// Keeps the rows as they are now for a snapshot. Copies nothing.
    /// `records_changes`: see [`RowStore::begin_snapshot`].
    pub(crate) fn begin_snapshot(&mut self, id: SnapshotId, records_changes: bool) {
        with_store!(&mut self.rows, store => store.begin_snapshot(id, records_changes));
    }

    /// Frees what is kept for a snapshot.
    pub(crate) fn end_snapshot(&mut self, id: SnapshotId) {
        for rows in self.earlier.iter_mut().chain(std::iter::once(&mut self.rows)) {
            with_store!(rows, store => store.end_snapshot(id));
        }
        self.earlier.retain(|rows| with_store!(rows, store => store.has_snapshots()));
    }

    /// The rows with which a snapshot began.
    fn rows_of(&self, id: SnapshotId) -> Option<&TableRows<E>> {
        let mut all = std::iter::once(&self.rows).chain(&self.earlier);
        all.find(|rows| with_store!(rows, store => store.snapshot_row_count(id).is_some()))
    }

    /// Number of rows of a snapshot.
    pub(crate) fn snapshot_row_count(&self, id: SnapshotId) -> u32 {
        let rows = self.rows_of(id);
        rows.and_then(|rows| with_store!(rows, store => store.snapshot_row_count(id))).unwrap_or(0)
    }

    /// About the number of rows of a snapshot that may have changed since the one before that recorded changes.
    pub(crate) fn changed_row_count(&self, id: SnapshotId) -> u64 {
        self.rows_of(id).map_or(0, |rows| with_store!(rows, store => store.changed_row_count(id)))
    }

    /// Visits the keys of a share of rows of a snapshot with their rows.
    pub(crate) fn for_each_snapshot_row(
        &self,
        id: SnapshotId,
        rows: RowsOfSnapshot,
        share: Share,
        visit: impl FnMut(u64, &[E]),
    ) {
        if let Some(version) = self.rows_of(id) {
            with_store!(version, store => store.for_each_snapshot_row(id, rows, share, visit));
        }
    }

    /// Size of what is kept for a snapshot and is not in `seen`, in bytes.
    pub(crate) fn unseen_snapshot_bytes(&self, id: SnapshotId, seen: &mut BTreeSet<usize>) -> u64 {
        let Some(rows) = self.rows_of(id) else { return 0 };
        let unseen_bytes = with_store!(rows, store => store.unseen_snapshot_bytes(id, seen));
        // Rows that were replaced exist for snapshots alone.
        let is_earlier = !std::ptr::eq(rows, &raw const self.rows);
        let address = std::ptr::from_ref(rows).addr();
        unseen_bytes
            + if is_earlier && seen.insert(address) { with_store!(rows, store => store.bytes()) } else { 0 }
    }

    /// Replaces all rows by those of a snapshot, which shares them from now on.
    pub(crate) fn restore(&mut self, id: SnapshotId) {
        let mut restored = self.new_like(self.snapshot_row_count(id) as usize);
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        self.for_each_snapshot_row(id, RowsOfSnapshot::All, Share::WHOLE, |key, row| {
            keys.push(key);
            rows.extend_from_slice(row);
            if keys.len() == RESTORE_BLOCK {
                restored.set_rows(&mut keys, &mut rows);
            }
        });
        restored.set_rows(&mut keys, &mut rows);
        self.end_snapshot(id);
        restored.begin_snapshot(id, false);
        self.replace(restored.rows);
    }

    /// Sets rows, values and slots, and empties both lists.
    fn set_rows(&mut self, keys: &mut Vec<u64>, rows: &mut Vec<E>) {
        let mut positions = vec![0; keys.len()];
        self.find_or_add(keys, &mut positions);
        let width = rows.len() / keys.len().max(1);
        for (position, row) in positions.iter().zip(rows.chunks_exact(width.max(1))) {
            with_store!(&mut self.rows, store => store.row_mut(*position)).copy_from_slice(row);
        }
        keys.clear();
        rows.clear();
    }
}
