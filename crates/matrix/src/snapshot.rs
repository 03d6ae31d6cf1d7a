//! Snapshots: all rows of a matrix as they were at one moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Clock;
use crate::error::Error;
use crate::export::ExportedRows;
use crate::partition::SharedTables;
use crate::partitions::Partitions;
use crate::rule::RuleElement;
use crate::spec::MatrixSpec;
use crate::storage::{Share, Table};

/// Target size of the rows of a block, in bytes: it is read and sent in about a millisecond.
const BLOCK_BYTES: u64 = 1 << 20;

/// All rows of the partitions of a matrix that this process or lane has, as they were at one moment. Taking a snapshot
/// copies nothing: a partition that changes while a snapshot has it is copied then.
#[derive(Clone, Debug)]
pub struct Snapshot {
    spec: MatrixSpec,
    tables: AnyTables,
    blocks: Vec<Block>,
}

/// The tables of each partition, in the order of partitions.
#[derive(Clone, Debug)]
pub(crate) enum AnyTables {
    F32(Vec<SharedTables<f32>>),
    F64(Vec<SharedTables<f64>>),
    I64(Vec<SharedTables<i64>>),
}

/// Expands to the same expression for each element type.
macro_rules! with_tables {
    ($any:expr, $tables:ident => $then:expr) => {
        match $any {
            AnyTables::F32($tables) => $then,
            AnyTables::F64($tables) => $then,
            AnyTables::I64($tables) => $then,
        }
    };
}

/// A share of the rows of each table of a partition.
#[derive(Clone, Copy, Debug)]
struct Block {
    partition: usize,
    share: Share,
}

impl Snapshot {
    pub(crate) fn new(spec: MatrixSpec, tables: AnyTables) -> Self {
        let mut blocks = Vec::new();
        let row_bytes = size_of::<u64>() as u64 + spec.row_bytes();
        for (partition, row_count) in with_tables!(&tables, all => row_counts(all)).into_iter().enumerate() {
            let count = (row_count * row_bytes).div_ceil(BLOCK_BYTES);
            blocks.extend((0..count).map(|index| Block { partition, share: Share { index, count } }));
        }
        // Threads that read or import blocks one after the other are at different partitions.
        blocks.sort_by_key(|block| block.share.index);
        Self { spec, tables, blocks }
    }

    /// The tables, if they are those of a matrix with this spec.
    pub(crate) fn tables_of(&self, spec: &MatrixSpec) -> Option<&AnyTables> {
        (self.spec == *spec).then_some(&self.tables)
    }

    pub fn spec(&self) -> &MatrixSpec {
        &self.spec
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        with_tables!(&self.tables, all => row_counts(all).into_iter().sum())
    }

    /// Adds the tables that are not in `seen` to it, by their addresses. Returns their size in bytes.
    pub(crate) fn unseen_bytes(&self, seen: &mut BTreeSet<usize>) -> u64 {
        with_tables!(&self.tables, all => unseen_bytes(all, seen))
    }

    /// Number of blocks that together have all rows.
    pub fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the rows of a block. Neither the blocks nor the keys in each are in an order.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn block(&self, index: u64) -> ExportedRows {
        let Block { partition, share } = self.blocks[index as usize];
        with_tables!(&self.tables, all => rows_of(&self.spec, &all[partition], share))
    }
}

fn row_counts<E: RuleElement>(partitions: &[SharedTables<E>]) -> Vec<u64> {
    partitions.iter().map(|tables| tables.iter().map(|table| u64::from(table.row_count())).sum()).collect()
}

fn unseen_bytes<E: RuleElement>(partitions: &[SharedTables<E>], seen: &mut BTreeSet<usize>) -> u64 {
    let unseen = partitions.iter().filter(|tables| seen.insert(tables.as_ptr().addr()));
    unseen.flat_map(|tables| tables.iter()).map(Table::bytes).sum()
}

fn rows_of<E: RuleElement>(spec: &MatrixSpec, tables: &[Table<E>], share: Share) -> ExportedRows {
    let row_count: u64 = tables.iter().map(|table| u64::from(table.row_count())).sum();
    let room = (row_count / share.count) as usize;
    let columns = spec.columns_of_table();
    let slots = spec.rule.slots();
    let widths = std::iter::once(columns).chain(slots.iter().map(|slot| slot.width(columns)));
    let mut keys = Vec::with_capacity(room);
    let mut parts: Vec<(Vec<E>, usize)> =
        widths.map(|width| (Vec::with_capacity(room * width), width)).collect();
    for (i, table) in tables.iter().enumerate() {
        let offset = spec.key_offset(i);
        table.for_each_row(share, |key, mut row| {
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
    ExportedRows { keys, values, slots: slots.iter().map(|slot| slot.name.to_owned()).zip(parts).collect() }
}

impl<E: RuleElement> Partitions<E> {
    /// Merges what is staged below `bound`, and returns all tables as they are then.
    pub(crate) fn share_tables(&self, bound: Clock) -> Result<Vec<SharedTables<E>>, Error> {
        let mut locked = self.lock_all()?;
        locked.iter_mut().try_for_each(|(_, partition)| partition.prepare_read(bound))?;
        Ok(locked.iter().map(|(_, partition)| partition.share_tables()).collect())
    }

    /// Replaces all tables, and discards what is staged.
    pub(crate) fn restore(&self, tables: &[SharedTables<E>]) -> Result<(), Error> {
        for ((_, partition), tables) in self.lock_all()?.iter_mut().zip(tables) {
            partition.restore(Arc::clone(tables));
        }
        Ok(())
    }
}
