//! What the three stores of rows offer, and the shares in which all rows of one are visited.

use std::collections::BTreeSet;
use std::ops::Range;

use super::before_images::{RowsOfSnapshot, SnapshotId};

/// One of `count` shares of the keys of a table: every key is in one of them. The hashes of a share lie evenly over all
/// hashes, so that a table into which one share after the other is imported fills evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) index: u64,
    pub(crate) count: u64,
}

impl Share {
    pub(crate) const WHOLE: Self = Self { index: 0, count: 1 };

    /// The positions of the share among so many that follow each other.
    pub(crate) fn range_of(self, len: u32) -> Range<u32> {
        let begin = |index: u64| (u64::from(len) * index / self.count) as u32;
        begin(self.index)..begin(self.index + 1)
    }
}

/// Rows by key. A row has a position, which leads to it without its key.
pub(crate) trait RowStore<E> {
    /// Whether [`Self::probe_prefetched`] also reads the cache line of the row that it finds.
    const ROWS_ARE_INLINE: bool = false;

    /// Number of rows.
    fn len(&self) -> u32;
    /// All positions are below this bound.
    fn position_bound(&self) -> u32 {
        self.len()
    }
    fn bytes(&self) -> u64;
    /// Visits the keys of a share with the positions of their rows, in the order of the store, on which no result depends.
    fn for_each_key(&self, share: Share, visit: impl FnMut(u64, u32));
    /// Keeps the rows as they are now for a snapshot, until it ends. `records_changes`: it is to know what has changed
    /// since the one before that did, and changes are recorded for the next one.
    fn begin_snapshot(&mut self, id: SnapshotId, records_changes: bool);
    /// Frees what is kept for a snapshot, if anything is.
    fn end_snapshot(&mut self, id: SnapshotId);
    /// Whether anything is kept for a snapshot.
    fn has_snapshots(&self) -> bool;
    /// Number of rows in a snapshot; `None` if it did not begin with this store.
    fn snapshot_row_count(&self, id: SnapshotId) -> Option<u32>;
    /// About the number of rows of a snapshot that may have changed since the one before.
    fn changed_row_count(&self, id: SnapshotId) -> u64;
    /// Visits the keys of a share of rows of a snapshot with their rows, in the order that the store had. Does nothing if
    /// the snapshot did not begin with this store.
    fn for_each_snapshot_row(
        &self,
        id: SnapshotId,
        rows: RowsOfSnapshot,
        share: Share,
        visit: impl FnMut(u64, &[E]),
    );
    /// Size of what is kept for a snapshot, in bytes, without what is in `seen` by its address, and adds that to it.
    fn unseen_snapshot_bytes(&self, id: SnapshotId, seen: &mut BTreeSet<usize>) -> u64;
    fn hash(&self, key: u64) -> u64;
    /// Prefetches the memory that [`Self::find`] reads.
    fn prefetch_key(&self, hash: u64);
    /// Returns the position of the row, or [`ABSENT`].
    fn find(&self, hash: u64, key: u64) -> u32;
    /// Does the same as [`Self::find`], but reads only prefetched memory. Returns [`UNKNOWN`] when that is not enough,
    /// after prefetching the rest.
    fn probe_prefetched(&self, hash: u64, key: u64) -> u32;
    /// Whether `count` rows can be added without moving a row.
    #[inline]
    fn has_room(&self, _count: usize) -> bool {
        true
    }
    /// Makes room for so many rows. Earlier positions become invalid.
    fn grow(&mut self, _count: usize) {}
    /// Makes room for so many rows, where that saves growing later.
    fn reserve(&mut self, count: usize) {
        if !self.has_room(count) {
            self.grow(count);
        }
    }
    /// Adds a row of zeros for a new key and returns its position. The caller has made sure that there is room.
    fn add(&mut self, hash: u64, key: u64) -> u32;
    fn row(&self, position: u32) -> &[E];
    fn row_mut(&mut self, position: u32) -> &mut [E];
    /// Prefetches the first cache line of a row; does nothing for [`ABSENT`].
    fn prefetch_row(&self, position: u32);
}
