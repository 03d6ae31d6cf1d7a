//! The partitions of a matrix that a lane of a server owns. There are no locks and no waits: the lane decides with
//! [`crate::clock`] when a read is allowed.

use crate::clock::Clock;
use crate::element::{ElementType, OwnedValues, Values};
use crate::error::Error;
use crate::export::{CheckedImport, ExportedRows, export_tables};
use crate::key_runs::check_keys;
use crate::matrix::new_partition;
use crate::partition::Partition;
use crate::partitioner::Placement;
use crate::routed_keys::ValueOrder;
use crate::row_positions::PositionedRun;
use crate::rule::RuleElement;
use crate::spec::MatrixSpec;

pub use crate::staged::PushId;

/// The known row positions of a list of keys. The caller may keep it for later calls with the same keys.
#[derive(Clone, Debug, Default)]
pub struct RowPositions {
    positions: Vec<u32>,
    generation: u64,
    /// Whether the keys are checked to be ascending and in the range of their partition.
    keys_are_checked: bool,
}

/// Those partitions of one matrix that a lane owns.
#[derive(Debug)]
pub struct LaneMatrix {
    typed: AnyLaneMatrix,
}

#[derive(Debug)]
enum AnyLaneMatrix {
    F32(TypedLaneMatrix<f32>),
    F64(TypedLaneMatrix<f64>),
    I64(TypedLaneMatrix<i64>),
}

macro_rules! with_lane_matrix {
    ($any:expr, $held:ident => $then:expr) => {
        match $any {
            AnyLaneMatrix::F32($held) => $then,
            AnyLaneMatrix::F64($held) => $then,
            AnyLaneMatrix::I64($held) => $then,
        }
    };
}

mod function;

pub use function::{PartialAnswer, merge_partial_answers};

/// The keys of a pull or push that lie in one partition.
#[derive(Clone, Copy, Debug)]
pub struct KeyRun<'a> {
    pub partition: u32,
    /// By row: 0. By column: the row.
    pub table: u32,
    /// Strictly ascending keys, all in this partition.
    pub keys: &'a [u64],
}

impl LaneMatrix {
    /// Creates the partitions `held` of a matrix, without rows.
    pub fn new(spec: MatrixSpec, held: &[u32]) -> Result<Self, Error> {
        spec.check()?;
        let count = spec.partitioner.partition_count();
        if let Some(partition) = held.iter().find(|partition| **partition >= count) {
            return Err(Error::NoSuchPartition { matrix: spec.name, partition: *partition, count });
        }
        let any = match spec.element {
            ElementType::F32 => AnyLaneMatrix::F32(TypedLaneMatrix::new(spec, held)),
            ElementType::F64 => AnyLaneMatrix::F64(TypedLaneMatrix::new(spec, held)),
            ElementType::I64 => AnyLaneMatrix::I64(TypedLaneMatrix::new(spec, held)),
        };
        Ok(Self { typed: any })
    }

    pub fn spec(&self) -> &MatrixSpec {
        with_lane_matrix!(&self.typed, held => &held.spec)
    }

    /// Appends the values of `run` (keys x columns) to `out`, as of `clock`. Under BSP the pushes stamped below it are
    /// merged first.
    pub fn pull(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        clock: Clock,
        out: &mut OwnedValues,
    ) -> Result<(), Error> {
        with_lane_matrix!(&mut self.typed, held => held.pull(run, found, clock, out))
    }

    /// Merges `values` (keys x columns), at once or when their clock has ended.
    pub fn push(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        name: PushId,
        values: Values<'_>,
    ) -> Result<(), Error> {
        with_lane_matrix!(&mut self.typed, held => held.push(run, found, name, values))
    }

    /// Returns the error that [`Self::push`] would return. The caller checks all runs of a push before it merges the
    /// first.
    pub fn check_push(
        &self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        values: Values<'_>,
    ) -> Result<(), Error> {
        with_lane_matrix!(&self.typed, held => held.check_push(&run, found, values).map(drop))
    }

    /// Does the same as [`Self::push`] for a run and values that have passed [`Self::check_push`].
    ///
    /// # Panics
    /// When the run or the values do not fit the matrix.
    pub fn push_checked(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        name: PushId,
        values: Values<'_>,
    ) {
        with_lane_matrix!(&mut self.typed, held => held.push_checked(run, found, name, values));
    }

    /// Returns all rows that exist, keys ascending, after merging what is staged below `bound`.
    pub fn export(&mut self, bound: Clock) -> Result<ExportedRows, Error> {
        with_lane_matrix!(&mut self.typed, held => held.export(bound))
    }

    /// Sets those of the given rows that lie in these partitions. If `clear`, all other rows are removed.
    pub fn import(&mut self, rows: &ExportedRows, clear: bool) -> Result<(), Error> {
        with_lane_matrix!(&mut self.typed, held => held.import(rows, clear))
    }

    /// Number of rows that exist.
    pub fn row_count(&self) -> u64 {
        with_lane_matrix!(&self.typed, held => held.tables().map(|table| u64::from(table.row_count())).sum())
    }

    /// Size of rows, indices and staged pushes, in bytes.
    pub fn size_bytes(&self) -> u64 {
        with_lane_matrix!(&self.typed, held => held.partitions.iter().flatten().map(Partition::size_bytes).sum())
    }
}

#[derive(Debug)]
struct TypedLaneMatrix<E> {
    spec: MatrixSpec,
    placement: Placement,
    /// By partition number; `None` where another lane owns the partition.
    partitions: Vec<Option<Partition<E>>>,
}

impl<E: RuleElement> TypedLaneMatrix<E> {
    fn new(spec: MatrixSpec, held: &[u32]) -> Self {
        let placement = spec.partitioner.placement(spec.key_bound());
        let mut partitions: Vec<Option<Partition<E>>> = Vec::new();
        partitions.resize_with(placement.partition_count(), || None);
        for &i in held {
            partitions[i as usize] = Some(new_partition(&spec, &placement, i as usize));
        }
        Self { spec, placement, partitions }
    }

    fn tables(&self) -> impl Iterator<Item = &crate::storage::Table<E>> {
        self.partitions.iter().flatten().flat_map(Partition::tables)
    }

    /// Checks that the lane owns the partition of a run, that the keys are ascending and in its range, and that the
    /// number of values fits.
    fn check_run(&self, run: &KeyRun<'_>, found: &mut RowPositions, value_count: usize) -> Result<(), Error> {
        let spec = &self.spec;
        let table_count = spec.table_count() as u64;
        if u64::from(run.table) >= table_count {
            return Err(Error::NoSuchRow { matrix: spec.name.clone(), row: run.table, rows: table_count });
        }
        let expected = run.keys.len() * spec.columns_of_table();
        if value_count != expected {
            return Err(Error::ValueCount { matrix: spec.name.clone(), expected, actual: value_count });
        }
        let i = run.partition as usize;
        if !matches!(self.partitions.get(i), Some(Some(_))) {
            let count = self.partitions.len() as u32;
            let matrix = spec.name.clone();
            return Err(Error::NoSuchPartition { matrix, partition: run.partition, count });
        }
        if found.keys_are_checked && found.positions.len() == run.keys.len() {
            return Ok(());
        }
        check_keys(spec, run.keys)?;
        if let (Some(range), [first, .., last] | [first @ last]) = (self.placement.range(i), run.keys)
            && let Some(&key) = [first, last].into_iter().find(|key| !range.contains(*key))
        {
            let (matrix, bound) = (spec.name.clone(), spec.key_bound());
            return Err(Error::KeyOutOfPartition { matrix, key, partition: run.partition, range, bound });
        }
        found.reset_for(run.keys.len());
        found.keys_are_checked = true;
        Ok(())
    }

    /// Returns the partition of a run that was checked.
    fn partition(&mut self, run: &KeyRun<'_>) -> &mut Partition<E> {
        self.partitions[run.partition as usize].as_mut().expect("check_run found it")
    }

    /// Checks a push and returns its values.
    fn check_push<'a>(
        &self,
        run: &KeyRun<'_>,
        found: &mut RowPositions,
        values: Values<'a>,
    ) -> Result<&'a [E], Error> {
        let matrix = || self.spec.name.clone();
        let Some(slice) = E::slice(values) else {
            let (expected, actual) = (E::TYPE, values.element_type());
            return Err(Error::ElementType { matrix: matrix(), expected, actual });
        };
        let columns = self.spec.columns_of_table();
        if let Some(at) = E::first_non_finite(slice)
            && let Some(&key) = run.keys.get(at / columns)
        {
            let (column, value) = ((at % columns) as u64, slice[at].to_f64());
            return Err(Error::NonFinite { matrix: matrix(), key, column, value });
        }
        self.check_run(run, found, slice.len())?;
        Ok(slice)
    }

    fn pull(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        clock: Clock,
        out: &mut OwnedValues,
    ) -> Result<(), Error> {
        let (expected, actual) = (E::TYPE, out.element_type());
        let merges = self.spec.consistency.stages_pushes();
        self.check_run(&run, found, run.keys.len() * self.spec.columns_of_table())?;
        let Some(out) = E::vec_mut(out) else {
            return Err(Error::ElementType { matrix: self.spec.name.clone(), expected, actual });
        };
        let partition = self.partition(&run);
        if merges {
            partition.merge_below(clock);
        }
        partition.check_staged_failure()?;
        partition.pull_append(&mut found.run(&run), out);
        Ok(())
    }

    fn push(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        name: PushId,
        values: Values<'_>,
    ) -> Result<(), Error> {
        self.check_push(&run, found, values)?;
        self.push_checked(run, found, name, values);
        Ok(())
    }

    fn push_checked(&mut self, run: KeyRun<'_>, found: &mut RowPositions, name: PushId, values: Values<'_>) {
        let slice = E::slice(values).expect("check_push has seen values of this type");
        let stages = self.spec.consistency.stages_pushes();
        let partition = self.partition(&run);
        let mut located = found.run(&run);
        if stages {
            partition.stage(&mut located, name, slice);
        } else {
            partition.apply(located, name.clock, slice);
        }
    }

    fn export(&mut self, bound: Clock) -> Result<ExportedRows, Error> {
        for partition in self.partitions.iter_mut().flatten() {
            partition.merge_below(bound);
            partition.check_staged_failure()?;
        }
        let tables: Vec<_> = self.tables().collect();
        export_tables(&self.spec, &tables)
    }

    fn import(&mut self, rows: &ExportedRows, clear: bool) -> Result<(), Error> {
        let Self { spec, placement, partitions } = self;
        let import = CheckedImport::check(spec, placement, rows)?;
        let mut held: Vec<_> =
            partitions.iter_mut().enumerate().filter_map(|(i, p)| Some((i, p.as_mut()?))).collect();
        if clear { import.replace(&mut held) } else { import.set(&mut held) }
    }
}

impl RowPositions {
    /// Clears the positions when they belong to another number of keys.
    fn reset_for(&mut self, key_count: usize) {
        if self.positions.len() != key_count {
            self.positions.clear();
            self.positions.resize(key_count, crate::storage::rows::ABSENT);
            self.keys_are_checked = false;
        }
    }

    /// Returns the run with its known row positions.
    fn run<'a>(&'a mut self, run: &KeyRun<'a>) -> PositionedRun<'a> {
        self.reset_for(run.keys.len());
        PositionedRun {
            table: run.table,
            keys: run.keys,
            positions: &mut self.positions,
            order: ValueOrder::Contiguous { first: 0, count: run.keys.len() },
            generation: &mut self.generation,
        }
    }
}

#[cfg(test)]
mod tests;
