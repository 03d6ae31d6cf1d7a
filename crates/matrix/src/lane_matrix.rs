//! Some partitions of a matrix, as a server holds them: one owner, no locks, no waiting. Who may read when is decided
//! by the owner with [`crate::clock`].

use crate::clock::Clock;
use crate::element::{ElementType, OwnedValues, Values};
use crate::error::Error;
use crate::export::{CheckedImport, ExportedRows, export_tables};
use crate::key_runs::check_keys;
use crate::matrix::new_partition;
use crate::partition::{Partition, PositionedRun};
use crate::partitioner::Placement;
use crate::rule::RuleElement;
use crate::spec::MatrixSpec;

pub use crate::staged::PushId;

/// What is known of where the rows of a list of keys are; it may be kept from call to call with the same keys.
#[derive(Clone, Debug, Default)]
pub struct RowPositions {
    positions: Vec<u32>,
    generation: u64,
    /// The keys were found to be in order and in the range of their partition.
    keys_are_checked: bool,
}

/// Some partitions of a matrix.
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

/// The keys of one partition in a pull or push.
#[derive(Clone, Copy, Debug)]
pub struct KeyRun<'a> {
    /// The partition.
    pub partition: u32,
    /// By row: 0. By column: the row.
    pub table: u32,
    /// Strictly ascending, all of this partition.
    pub keys: &'a [u64],
}

impl LaneMatrix {
    /// The partitions `lane_matrix` of a matrix, without rows.
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

    /// Its declared structure.
    pub fn spec(&self) -> &MatrixSpec {
        with_lane_matrix!(&self.typed, held => &held.spec)
    }

    /// Puts the values of `run` (keys x columns) behind those of `out`, as of `clock`: under BSP, what is stamped below it is
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

    /// Merges `values` (keys x columns), now or when their clock is over.
    pub fn push(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        name: PushId,
        values: Values<'_>,
    ) -> Result<(), Error> {
        with_lane_matrix!(&mut self.typed, held => held.push(run, found, name, values))
    }

    /// What [`Self::push`] would refuse. To be asked for each run of a push with several before the first is merged.
    pub fn check_push(
        &self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        values: Values<'_>,
    ) -> Result<(), Error> {
        with_lane_matrix!(&self.typed, held => held.check_push(&run, found, values).map(drop))
    }

    /// As [`Self::push`], of a run and values that [`Self::check_push`] has passed.
    ///
    /// # Panics
    /// When they cannot be merged at all.
    pub fn push_checked(
        &mut self,
        run: KeyRun<'_>,
        found: &mut RowPositions,
        name: PushId,
        values: Values<'_>,
    ) {
        with_lane_matrix!(&mut self.typed, held => held.push_checked(run, found, name, values));
    }

    /// All rows that exist, keys ascending, after merging what is staged below `bound`.
    pub fn export(&mut self, bound: Clock) -> Result<ExportedRows, Error> {
        with_lane_matrix!(&mut self.typed, held => held.export(bound))
    }

    /// Sets the rows that are given and lie in these partitions, after dropping all others if `clear`.
    pub fn import(&mut self, rows: &ExportedRows, clear: bool) -> Result<(), Error> {
        with_lane_matrix!(&mut self.typed, held => held.import(rows, clear))
    }

    /// Number of rows that exist.
    pub fn row_count(&self) -> u64 {
        with_lane_matrix!(&self.typed, held => held.tables().map(|table| u64::from(table.row_count())).sum())
    }

    /// Bytes of rows and of what is staged.
    pub fn size_bytes(&self) -> u64 {
        with_lane_matrix!(&self.typed, held => held.partitions.iter().flatten().map(Partition::size_bytes).sum())
    }
}

#[derive(Debug)]
struct TypedLaneMatrix<E> {
    spec: MatrixSpec,
    placement: Placement,
    /// By number; `None`: held elsewhere.
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

    /// Whether the keys of a run are in order and in the range of its partition, which is held here, and its values have
    /// the right shape.
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
        check_keys(&spec.name, spec.key_bound(), run.keys)?;
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

    /// The partition of a run that was checked.
    fn partition(&mut self, run: &KeyRun<'_>) -> &mut Partition<E> {
        self.partitions[run.partition as usize].as_mut().expect("check_run found it")
    }

    /// The values of a push that can be merged.
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
    /// Knows nothing when it was of another number of keys.
    fn reset_for(&mut self, key_count: usize) {
        if self.positions.len() != key_count {
            self.positions.clear();
            self.positions.resize(key_count, crate::storage::rows::ABSENT);
            self.keys_are_checked = false;
        }
    }

    /// The run of one partition, with what is known of its rows.
    fn run<'a>(&'a mut self, run: &KeyRun<'a>) -> PositionedRun<'a> {
        self.reset_for(run.keys.len());
        PositionedRun {
            table: run.table,
            keys: run.keys,
            positions: &mut self.positions,
            value_indices: &[],
            first: 0,
            generation: &mut self.generation,
        }
    }
}

#[cfg(test)]
mod tests;
