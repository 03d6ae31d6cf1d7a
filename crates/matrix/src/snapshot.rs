//! Snapshots: all rows of a matrix as they were at one moment.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::error::Error;
use crate::lists::store::ListStore;
use crate::partition::Partition;
use crate::partitions::{Partitions, SharedPartition};
use crate::row_block::RowBlock;
use crate::rule::RuleElement;
use crate::spec::MatrixSpec;
use crate::storage::Share;
use crate::storage::before_images::{RowsOfSnapshot, SnapshotId};

/// Target size of the rows of a block, in bytes: it is read and sent in a few milliseconds, for which its
/// partition is locked.
const BLOCK_BYTES: u64 = 1 << 20;

/// About the bytes of an entry of a list. The rows of a snapshot of lists are counted as their entries.
const ENTRY_BYTES: u64 = 16;

/// The panic of a restoration.
pub(crate) const OTHER_MATRIX: &str = "the snapshot is that of another matrix";

/// All rows of the partitions of a matrix that this process or lane has, as they were at one moment. Taking a snapshot
/// copies nothing: what changes while there is a snapshot is copied then, page by page. Clones are the same snapshot.
#[derive(Clone, Debug)]
pub struct Snapshot {
    spec: MatrixSpec,
    partitions: AnySnapshot,
    rows: RowsOfSnapshot,
    /// About the number of these rows in each partition; exact if they are all.
    row_counts: Vec<u64>,
    blocks: Vec<Block>,
}

/// The partitions of a snapshot, in their order.
#[derive(Clone, Debug)]
pub(crate) enum AnySnapshot {
    F32(Arc<SnapshotPartitions<f32>>),
    F64(Arc<SnapshotPartitions<f64>>),
    I64(Arc<SnapshotPartitions<i64>>),
    I32(Arc<SnapshotPartitions<i32>>),
    U32(Arc<SnapshotPartitions<u32>>),
}

/// Expands to the same expression for each element type.
macro_rules! with_partitions {
    ($any:expr, $partitions:ident => $then:expr) => {
        match $any {
            AnySnapshot::F32($partitions) => $then,
            AnySnapshot::F64($partitions) => $then,
            AnySnapshot::I64($partitions) => $then,
            AnySnapshot::I32($partitions) => $then,
            AnySnapshot::U32($partitions) => $then,
        }
    };
}

/// The partitions of a matrix, the name of the snapshot in each, and whether the lists there are those of the snapshot before
/// that recorded changes. They free what they have kept when it is dropped.
#[derive(Debug)]
pub(crate) struct SnapshotPartitions<E: RuleElement>(Vec<(SharedPartition<E>, SnapshotId, bool)>);

/// A share of the rows of each table of a partition.
#[derive(Clone, Copy, Debug)]
struct Block {
    partition: usize,
    share: Share,
}

impl Snapshot {
    pub(crate) fn new(spec: MatrixSpec, partitions: AnySnapshot) -> Self {
        Self::of(spec, partitions, RowsOfSnapshot::All)
    }

    fn of(spec: MatrixSpec, partitions: AnySnapshot, rows: RowsOfSnapshot) -> Self {
        let row_counts = with_partitions!(&partitions, all => all.row_counts(rows));
        let row_bytes =
            if spec.storage.has_lists() { ENTRY_BYTES } else { size_of::<u64>() as u64 + spec.row_bytes() };
        let mut blocks = Vec::new();
        for (partition, row_count) in row_counts.iter().enumerate() {
            let count = (row_count * row_bytes).div_ceil(BLOCK_BYTES);
            blocks.extend((0..count).map(|index| Block { partition, share: Share { index, count } }));
        }
        // Threads that read or import blocks one after the other are at different partitions.
        blocks.sort_by_key(|block| block.share.index);
        Self { spec, partitions, rows, row_counts, blocks }
    }

    /// The rows that may have changed since the snapshot before that recorded changes: at least those that have. All
    /// rows if the changes are not known, as for the first such snapshot.
    #[must_use]
    pub fn changes(&self) -> Self {
        Self::of(self.spec.clone(), self.partitions.clone(), RowsOfSnapshot::Changed)
    }

    pub(crate) fn partitions(&self) -> &AnySnapshot {
        &self.partitions
    }

    pub fn spec(&self) -> &MatrixSpec {
        &self.spec
    }

    /// Number of rows, or of entries of lists; of changes about the number.
    pub fn row_count(&self) -> u64 {
        self.row_counts.iter().sum()
    }

    /// Size of what the snapshot has and the matrix has no more, in bytes. What is in `seen` does not count, and is added
    /// to it.
    pub(crate) fn unseen_bytes(&self, seen: &mut BTreeSet<usize>) -> u64 {
        with_partitions!(&self.partitions, all => all.unseen_bytes(seen))
    }

    /// Number of blocks that together have all rows.
    pub fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the rows of a block. Neither the blocks nor the keys in each are in an order. The partition of the block is
    /// locked meanwhile.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn block(&self, index: u64) -> RowBlock {
        let Block { partition, share } = self.blocks[index as usize];
        with_partitions!(&self.partitions, all => {
            let (locked, id) = all.lock(partition);
            rows_of(&self.spec, &locked, (id, self.rows), share, self.row_counts[partition])
        })
    }
}

impl<E: RuleElement> SnapshotPartitions<E> {
    /// Locks a partition. A task that panicked in it has left the rows of snapshots whole.
    fn lock(&self, partition: usize) -> (MutexGuard<'_, Partition<E>>, SnapshotId) {
        let (shared, id, _) = &self.0[partition];
        (shared.lock().unwrap_or_else(PoisonError::into_inner), *id)
    }

    fn row_counts(&self, rows: RowsOfSnapshot) -> Vec<u64> {
        let count = |partition| {
            let (locked, id) = self.lock(partition);
            if let Some(lists) = locked.lists() {
                let is_wanted = rows == RowsOfSnapshot::All || !self.0[partition].2;
                return lists.sealed().map_or(0, |lists| if is_wanted { lists.entry_count() } else { 0 });
            }
            let counts = locked.tables().iter().map(|table| match rows {
                RowsOfSnapshot::All => u64::from(table.snapshot_row_count(id)),
                RowsOfSnapshot::Changed => table.changed_row_count(id),
            });
            counts.sum()
        };
        (0..self.0.len()).map(count).collect()
    }

    fn unseen_bytes(&self, seen: &mut BTreeSet<usize>) -> u64 {
        let mut bytes = 0;
        for partition in 0..self.0.len() {
            let (locked, id) = self.lock(partition);
            bytes += locked.tables().iter().map(|table| table.unseen_snapshot_bytes(id, seen)).sum::<u64>();
        }
        bytes
    }
}

impl<E: RuleElement> Drop for SnapshotPartitions<E> {
    fn drop(&mut self) {
        for partition in 0..self.0.len() {
            let (mut locked, id) = self.lock(partition);
            locked.end_snapshot(id);
        }
    }
}

fn rows_of<E: RuleElement>(
    spec: &MatrixSpec,
    partition: &Partition<E>,
    (id, selection): (SnapshotId, RowsOfSnapshot),
    share: Share,
    row_count: u64,
) -> RowBlock {
    if let Some(lists) = partition.lists() {
        return lists.sealed().map_or_else(|_| RowBlock::none(spec), |lists| lists.block(share));
    }
    let room = (row_count / share.count) as usize;
    let columns = spec.columns_of_table();
    let slots = spec.rule.slots();
    let widths = std::iter::once(columns).chain(slots.iter().map(|slot| slot.width(columns)));
    let mut keys = Vec::with_capacity(room);
    let mut parts: Vec<(Vec<E>, usize)> =
        widths.map(|width| (Vec::with_capacity(room * width), width)).collect();
    for (i, table) in partition.tables().iter().enumerate() {
        let offset = spec.key_offset(i);
        table.for_each_snapshot_row(id, selection, share, |key, mut row| {
            keys.push(offset + key);
            for (part, width) in &mut parts {
                let (own, rest) = row.split_at(*width);
                match own {
                    [value] => part.push(*value),
                    values => part.extend_from_slice(values),
                }
                row = rest;
            }
        });
    }
    let mut parts = parts.into_iter().map(|(part, _)| E::owned(part));
    let values = parts.next().expect("a row has values");
    let slots = slots.iter().map(|slot| slot.name.to_owned()).zip(parts).collect();
    RowBlock { slots, ..RowBlock::of_values(keys, values) }
}

impl<E: RuleElement> Partitions<E> {
    /// Merges what is staged below `bound`, and keeps all rows as they are then.
    pub(crate) fn snapshot(
        &self,
        bound: Clock,
        records_changes: bool,
    ) -> Result<Arc<SnapshotPartitions<E>>, Error> {
        let mut locked = self.lock_all()?;
        locked.iter_mut().try_for_each(|(_, partition)| partition.prepare_read(bound))?;
        for (_, partition) in &locked {
            partition.lists().map_or(Ok(()), |lists| lists.sealed().map(drop))?;
        }
        let begin =
            |(shared, (_, partition)): (&SharedPartition<E>, &mut (u32, MutexGuard<'_, Partition<E>>))| {
                let lists = partition.lists_mut().filter(|_| records_changes);
                let is_unchanged = lists.is_some_and(ListStore::record_changes);
                (Arc::clone(shared), partition.begin_snapshot(records_changes), is_unchanged)
            };
        Ok(Arc::new(SnapshotPartitions(self.shared().zip(&mut locked).map(begin).collect())))
    }

    /// Replaces all rows by those of a snapshot of these partitions, and discards what is staged.
    pub(crate) fn restore(&self, snapshot: &SnapshotPartitions<E>) -> Result<(), Error> {
        let is_own =
            |(own, (taken, ..)): (&SharedPartition<E>, &(SharedPartition<E>, _, _))| Arc::ptr_eq(own, taken);
        assert!(self.shared().zip(&snapshot.0).all(is_own), "{OTHER_MATRIX}");
        for ((_, partition), (_, id, _)) in self.lock_all()?.iter_mut().zip(&snapshot.0) {
            partition.restore(*id);
        }
        Ok(())
    }
}
