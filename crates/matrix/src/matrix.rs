//! A matrix: all of its partitions in one process, or those that a lane of a server owns. When a read is allowed is
//! decided outside, with [`crate::clock`].

use std::collections::BTreeSet;

use crate::clock::Clock;
use crate::element::{Element, ElementType, OwnedValues, Values, ValuesMut};
use crate::error::Error;
use crate::export::{ExportRange, RowCounts, count_rows, export_rows, import_rows};
use crate::function::FunctionTable;
use crate::key_runs::check_keys;
use crate::lists::export::export_lists;
use crate::lists::store::ListCursor;
use crate::partitioner::Placement;
use crate::partitions::{Partitions, VisitOrder};
use crate::row_block::RowBlock;
use crate::row_positions::{KeyRun, PositionedKeys, RowPositions};
use crate::snapshot::{AnySnapshot, OTHER_MATRIX, Snapshot};
use crate::spec::MatrixSpec;
use crate::staged::{PushId, StagedRun};

/// Some or all partitions of a matrix. The tasks of a process share it; a lane has it for itself.
#[derive(Debug)]
pub struct Matrix {
    spec: MatrixSpec,
    placement: Placement,
    partitions: AnyPartitions,
}

/// Partitions of one of the element types.
#[derive(Debug)]
enum AnyPartitions {
    F32(Partitions<f32>),
    F64(Partitions<f64>),
    I64(Partitions<i64>),
    I32(Partitions<i32>),
    U32(Partitions<u32>),
}

/// Expands to the same expression for the partitions of each element type.
macro_rules! with_partitions {
    ($any:expr, $partitions:ident => $then:expr) => {
        match $any {
            AnyPartitions::F32($partitions) => $then,
            AnyPartitions::F64($partitions) => $then,
            AnyPartitions::I64($partitions) => $then,
            AnyPartitions::I32($partitions) => $then,
            AnyPartitions::U32($partitions) => $then,
        }
    };
}

mod function;

pub use function::{PartialAnswer, merge_partial_answers};

/// Why the values of a call have the element type of the matrix.
const CHECKED: &str = "the element type was checked";

impl Matrix {
    /// Creates the partitions `owned` of a matrix, without rows.
    /// `functions` has the partitioners that the process knows.
    pub fn new(spec: MatrixSpec, owned: &[u32], functions: &FunctionTable) -> Result<Self, Error> {
        let placement = spec.placement(functions)?;
        let count = spec.partitioner.partition_count();
        if let Some(partition) = owned.iter().find(|partition| **partition >= count) {
            return Err(Error::NoSuchPartition { matrix: spec.name, partition: *partition, count });
        }
        let partitions = match spec.element {
            ElementType::F32 => AnyPartitions::F32(Partitions::new(&spec, &placement, owned)),
            ElementType::F64 => AnyPartitions::F64(Partitions::new(&spec, &placement, owned)),
            ElementType::I64 => AnyPartitions::I64(Partitions::new(&spec, &placement, owned)),
            ElementType::I32 => AnyPartitions::I32(Partitions::new(&spec, &placement, owned)),
            ElementType::U32 => AnyPartitions::U32(Partitions::new(&spec, &placement, owned)),
        };
        Ok(Self { spec, placement, partitions })
    }

    /// Creates all partitions of a matrix, without rows.
    pub(crate) fn whole(spec: MatrixSpec, functions: &FunctionTable) -> Result<Self, Error> {
        spec.check(functions)?;
        let all: Vec<u32> = (0..spec.partitioner.partition_count()).collect();
        Self::new(spec, &all, functions)
    }

    pub fn spec(&self) -> &MatrixSpec {
        &self.spec
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Appends the values of `run` (keys x columns) to `out`, as of `clock`. Under BSP the pushes stamped below it are
    /// merged first.
    pub fn pull(
        &mut self,
        run: KeyRun<'_>,
        positions: &mut RowPositions,
        clock: Clock,
        out: &mut OwnedValues,
    ) -> Result<(), Error> {
        self.check_run(&run, positions, run.keys.len() * self.spec.columns_of_table())?;
        self.spec.check_element(out.element_type())?;
        with_partitions!(&mut self.partitions, partitions => {
            let mut partition = partitions.lock_own(run.partition);
            partition.prepare_read(clock)?;
            partition.pull_append(&mut positions.run(&run), Element::vec_mut(out).expect(CHECKED));
        });
        Ok(())
    }

    /// Merges `values` (keys x columns), at once or when their clock has ended.
    pub fn push(
        &mut self,
        run: KeyRun<'_>,
        positions: &mut RowPositions,
        id: PushId,
        values: Values<'_>,
    ) -> Result<(), Error> {
        self.check_push(run, positions, values)?;
        self.push_checked(run, positions, id, values);
        Ok(())
    }

    /// Returns the error that [`Self::push`] would return. The caller checks all runs of a push before it merges the
    /// first.
    pub fn check_push(
        &self,
        run: KeyRun<'_>,
        positions: &mut RowPositions,
        values: Values<'_>,
    ) -> Result<(), Error> {
        self.spec.check_element(values.element_type())?;
        self.check_run(&run, positions, values.len())?;
        self.spec.check_finite(values, |i| run.keys[i])
    }

    /// Does the same as [`Self::push`] for a run and values that have passed [`Self::check_push`].
    ///
    /// # Panics
    /// When the run or the values do not fit the matrix.
    pub fn push_checked(
        &mut self,
        run: KeyRun<'_>,
        positions: &mut RowPositions,
        id: PushId,
        values: Values<'_>,
    ) {
        with_partitions!(&mut self.partitions, partitions => {
            let values = Element::slice(values).expect(CHECKED);
            partitions.lock_own(run.partition).push(positions.run(&run), id, values);
        });
    }

    /// Checks that the lane owns the partition of a run, that the keys are ascending and in its range, and that the
    /// number of values fits.
    fn check_run(
        &self,
        run: &KeyRun<'_>,
        positions: &mut RowPositions,
        value_count: usize,
    ) -> Result<(), Error> {
        let (spec, matrix) = (&self.spec, || self.spec.name.clone());
        spec.check_no_lists()?;
        let table_count = spec.table_count() as u64;
        if u64::from(run.table) >= table_count {
            return Err(Error::NoSuchRow { matrix: matrix(), row: run.table, rows: table_count });
        }
        let expected = run.keys.len() * spec.columns_of_table();
        if value_count != expected {
            return Err(Error::ValueCount { matrix: matrix(), expected, actual: value_count });
        }
        let partition = run.partition;
        if !with_partitions!(&self.partitions, partitions => partitions.contain(partition)) {
            let count = self.placement.partition_count() as u32;
            return Err(Error::NoSuchPartition { matrix: matrix(), partition, count });
        }
        if positions.are_checked_for(run) {
            return Ok(());
        }
        check_keys(spec, run.keys)?;
        if let (Some(range), [first, .., last] | [first @ last]) =
            (self.placement.range(partition as usize), run.keys)
            && let Some(&key) = [first, last].into_iter().find(|key| !range.contains(*key))
        {
            let bound = spec.key_bound();
            return Err(Error::KeyOutOfPartition { matrix: matrix(), key, partition, range, bound });
        }
        positions.set_checked(run);
        Ok(())
    }

    /// Reads what a task at `clock` may see of `keys` into `out`, whose element type the caller has checked.
    pub(crate) fn pull_shared(
        &self,
        order: VisitOrder,
        keys: &mut PositionedKeys,
        clock: Clock,
        out: ValuesMut<'_>,
    ) -> Result<(), Error> {
        with_partitions!(&self.partitions, partitions => {
            let out = Element::slice_mut(out).expect(CHECKED);
            partitions.visit(order, keys, |partition, mut run| {
                partition.prepare_read(clock)?;
                partition.pull(&mut run, out);
                Ok(())
            })
        })
    }

    /// Merges `values` for `keys`, at once or when their clock has ended. The caller has checked the values.
    pub(crate) fn push_shared(
        &self,
        order: VisitOrder,
        keys: &mut PositionedKeys,
        id: PushId,
        values: Values<'_>,
    ) -> Result<(), Error> {
        with_partitions!(&self.partitions, partitions => {
            let values = Element::slice(values).expect(CHECKED);
            partitions.visit(order, keys, |partition, run| {
                partition.push(run, id, values);
                Ok(())
            })
        })
    }

    /// Returns all rows that exist, keys ascending, after merging what is staged below `bound`.
    pub fn export(&self, bound: Clock) -> Result<RowBlock, Error> {
        self.export_range(bound, ExportRange::ALL)
    }

    /// Like [`Self::export`], for the rows in a range.
    pub fn export_range(&self, bound: Clock, range: ExportRange) -> Result<RowBlock, Error> {
        with_partitions!(&self.partitions, partitions => {
            export_rows(&self.spec, &mut partitions.lock_all()?, bound, range)
        })
    }

    /// The lists from an entry of a row on, ascending, at most so many entries, and the row and entry where the rest begins. The
    /// last row may be cut.
    pub fn export_lists(
        &self,
        (row, skip): (u64, u64),
        entry_limit: usize,
    ) -> Result<(RowBlock, Option<(u64, u64)>), Error> {
        with_partitions!(&self.partitions, partitions => {
            let mut locked = partitions.lock_all()?;
            locked.iter_mut().try_for_each(|(_, partition)| partition.prepare_read(0))?;
            let (block, next) = export_lists(&locked, ListCursor { row, skip }, entry_limit, true)?;
            Ok((block, next.map(|next| (next.row, next.skip))))
        })
    }

    /// Counts the rows that exist, after merging what is staged below `bound`.
    pub fn count_rows(&self, bound: Clock) -> Result<RowCounts, Error> {
        with_partitions!(&self.partitions, partitions => {
            count_rows(&self.spec, &mut partitions.lock_all()?, bound)
        })
    }

    /// Sets those of the given rows that lie in these partitions. If `replace` is given, all other rows are removed, and
    /// room is made for as many as these partitions have of so many rows of the whole matrix.
    pub fn import(&self, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error> {
        with_partitions!(&self.partitions, partitions => {
            import_rows(&self.spec, &self.placement, partitions, rows, replace)
        })
    }

    /// About the memory for these partitions' share of so many rows of the whole matrix, in bytes.
    pub fn room_bytes(&self, row_count: u64) -> u64 {
        let own_count = with_partitions!(&self.partitions, partitions => partitions.own_count());
        let share = row_count / self.placement.partition_count() as u64;
        share.saturating_mul(own_count).saturating_mul(size_of::<u64>() as u64 + self.spec.row_bytes())
    }

    /// Returns all rows as they are now, after merging what is staged below `bound`.
    pub fn snapshot(&self, bound: Clock) -> Result<Snapshot, Error> {
        self.take_snapshot(bound, false)
    }

    /// Like [`Self::snapshot`], but records what changes from now on: the next such snapshot knows it
    /// ([`Snapshot::changes`]). There is one record for a matrix.
    pub fn snapshot_with_changes(&self, bound: Clock) -> Result<Snapshot, Error> {
        self.take_snapshot(bound, true)
    }

    fn take_snapshot(&self, bound: Clock, records_changes: bool) -> Result<Snapshot, Error> {
        let partitions = match &self.partitions {
            AnyPartitions::F32(partitions) => AnySnapshot::F32(partitions.snapshot(bound, records_changes)?),
            AnyPartitions::F64(partitions) => AnySnapshot::F64(partitions.snapshot(bound, records_changes)?),
            AnyPartitions::I64(partitions) => AnySnapshot::I64(partitions.snapshot(bound, records_changes)?),
            AnyPartitions::I32(partitions) => AnySnapshot::I32(partitions.snapshot(bound, records_changes)?),
            AnyPartitions::U32(partitions) => AnySnapshot::U32(partitions.snapshot(bound, records_changes)?),
        };
        Ok(Snapshot::new(self.spec.clone(), partitions))
    }

    /// The pushes that are staged: what a snapshot does not have. `None` while functions are staged too, or one has failed.
    pub fn staged_runs(&self) -> Result<Option<Vec<StagedRun>>, Error> {
        with_partitions!(&self.partitions, partitions => partitions.staged_runs())
    }

    /// The numbers of these partitions, ascending.
    pub fn partition_numbers(&self) -> Vec<u32> {
        with_partitions!(&self.partitions, partitions => partitions.numbers())
    }

    /// Size of what snapshots of this matrix have and the matrix has no more, in bytes: the memory that is needed for them.
    pub fn snapshot_bytes<'a>(&self, snapshots: impl IntoIterator<Item = &'a Snapshot>) -> u64 {
        let mut seen = BTreeSet::new();
        snapshots.into_iter().map(|snapshot| snapshot.unseen_bytes(&mut seen)).sum()
    }

    /// Replaces all rows by those of a snapshot, and discards what is staged.
    ///
    /// # Panics
    /// When the snapshot is that of another matrix.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        match (&self.partitions, snapshot.partitions()) {
            (AnyPartitions::F32(partitions), AnySnapshot::F32(taken)) => partitions.restore(taken),
            (AnyPartitions::F64(partitions), AnySnapshot::F64(taken)) => partitions.restore(taken),
            (AnyPartitions::I64(partitions), AnySnapshot::I64(taken)) => partitions.restore(taken),
            (AnyPartitions::I32(partitions), AnySnapshot::I32(taken)) => partitions.restore(taken),
            (AnyPartitions::U32(partitions), AnySnapshot::U32(taken)) => partitions.restore(taken),
            _ => panic!("{OTHER_MATRIX}"),
        }
    }

    /// Number of rows that exist.
    pub fn row_count(&self) -> u64 {
        self.sizes().0
    }

    /// Size of rows, indices and staged pushes, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.sizes().1
    }

    pub(crate) fn sizes(&self) -> (u64, u64) {
        with_partitions!(&self.partitions, partitions => partitions.sizes())
    }
}

#[cfg(test)]
mod tests;
