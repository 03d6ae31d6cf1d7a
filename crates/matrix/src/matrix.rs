//! A matrix of one element type in this process: its partitions and the order in which tasks visit them.

use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::clock::Clock;
use crate::error::Error;
use crate::initializer::InitialValues;
use crate::partition::Partition;
use crate::partitioner::Placement;
use crate::row_positions::{PositionedKeys, PositionedRun};
use crate::rule::RuleElement;
use crate::spec::{Axis, MatrixSpec, Storage};
use crate::staged::PushId;
use crate::stats::{MatrixCounters, MatrixStats};
use crate::storage::{RowInitializer, Table};

/// The partitions of a matrix. Each has its own mutex: a visit holds it for microseconds, and both pulls (which merge
/// what is staged) and pushes write. Tasks start their visits at different partitions, so that they rarely wait for
/// each other.
#[derive(Debug)]
pub(crate) struct Matrix<E> {
    pub(crate) spec: MatrixSpec,
    pub(crate) placement: Placement,
    pub(crate) partitions: Vec<Mutex<Partition<E>>>,
    pub(crate) counters: MatrixCounters,
}

impl<E: RuleElement> Matrix<E> {
    /// Creates the matrix of a checked spec.
    pub(crate) fn new(spec: MatrixSpec) -> Self {
        let placement = spec.partitioner.placement(spec.key_bound());
        let partitions = (0..placement.partition_count())
            .map(|i| Mutex::new(new_partition(&spec, &placement, i)))
            .collect();
        Self { spec, placement, partitions, counters: MatrixCounters::default() }
    }

    /// Reads what a task at `clock` may see of the keys of `route` into `out`.
    pub(crate) fn pull(
        &self,
        walk: VisitOrder,
        route: &mut PositionedKeys,
        clock: Clock,
        out: &mut [E],
    ) -> Result<(), Error> {
        let merges = self.spec.consistency.stages_pushes();
        let mut failure = Ok(());
        self.visit_partitions(walk, route, |partition, mut run| {
            if merges {
                partition.merge_below(clock);
            }
            if let Err(error) = partition.check_staged_failure() {
                failure = Err(error);
            }
            partition.pull(&mut run, out);
        })?;
        failure
    }

    /// Merges `values` for the keys of `route`, at once or when their clock has ended.
    pub(crate) fn push(
        &self,
        walk: VisitOrder,
        route: &mut PositionedKeys,
        name: PushId,
        values: &[E],
    ) -> Result<(), Error> {
        if self.spec.consistency.stages_pushes() {
            return self
                .visit_partitions(walk, route, |partition, mut run| partition.stage(&mut run, name, values));
        }
        self.visit_partitions(walk, route, |partition, run| partition.apply(run, name.clock, values))
    }

    /// Visits the partitions that have keys. A partition that another task has locked is visited last.
    fn visit_partitions(
        &self,
        walk: VisitOrder,
        route: &mut PositionedKeys,
        mut visit: impl FnMut(&mut Partition<E>, PositionedRun<'_>),
    ) -> Result<(), Error> {
        let count = self.partitions.len();
        let start = count * walk.task as usize / walk.task_count.max(1) as usize;
        let mut busy = std::mem::take(&mut route.locked_partitions);
        busy.clear();
        for i in 0..count {
            let p = (start + i) % count;
            if route.runs().indices(p).is_empty() {
                continue;
            }
            match self.partitions[p].try_lock() {
                Ok(mut partition) => visit(&mut partition, route.run(p)),
                Err(TryLockError::WouldBlock) => busy.push(p),
                Err(TryLockError::Poisoned(_)) => return Err(self.panicked()),
            }
        }
        for p in &busy {
            visit(&mut *self.lock(*p)?, route.run(*p));
        }
        route.locked_partitions = busy;
        Ok(())
    }

    pub(crate) fn lock(&self, partition: usize) -> Result<MutexGuard<'_, Partition<E>>, Error> {
        self.partitions[partition].lock().map_err(|_| self.panicked())
    }

    pub(crate) fn stats(&self) -> MatrixStats {
        let (mut rows, mut bytes) = (0, 0);
        for partition in &self.partitions {
            // Counting is safe even after a task panicked inside the partition.
            let partition = partition.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            rows += partition.tables().iter().map(|table| u64::from(table.row_count())).sum::<u64>();
            bytes += partition.size_bytes();
        }
        self.counters.stats(&self.spec.name, rows, bytes)
    }

    fn panicked(&self) -> Error {
        Error::Panicked { what: format!("matrix {:?}", self.spec.name) }
    }
}

/// The task that visits the partitions: tasks start at different ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitOrder {
    pub(crate) task: u32,
    pub(crate) task_count: u32,
}

impl MatrixSpec {
    /// Number of tables in each partition: one by row, and one for each row by column.
    pub fn table_count(&self) -> usize {
        match self.axis {
            Axis::Row => 1,
            Axis::Column => self.rows as usize,
        }
    }

    /// Number of values of a key: the columns by row, one by column.
    pub fn columns_of_table(&self) -> usize {
        match self.axis {
            Axis::Row => self.columns as usize,
            Axis::Column => 1,
        }
    }

    /// The offset that makes a key of a table unique in the matrix.
    pub(crate) fn key_offset(&self, table: usize) -> u64 {
        match self.axis {
            Axis::Row => 0,
            Axis::Column => table as u64 * self.columns,
        }
    }
}

/// Creates partition `i` of a matrix, without rows.
pub(crate) fn new_partition<E: RuleElement>(
    spec: &MatrixSpec,
    placement: &Placement,
    i: usize,
) -> Partition<E> {
    let tables = (0..spec.table_count()).map(|table| new_table(spec, placement, i, table)).collect();
    Partition::new(tables, spec.rule, spec.columns_of_table())
}

fn new_table<E: RuleElement>(
    spec: &MatrixSpec,
    placement: &Placement,
    partition: usize,
    table: usize,
) -> Table<E> {
    let first = InitialValues::new(spec.initializer, spec.seed, &spec.name);
    let key_offset = spec.key_offset(table);
    let birth =
        RowInitializer { rule: spec.rule, columns: spec.columns_of_table(), initial: first, key_offset };
    match (spec.storage, placement.range(partition)) {
        (Storage::Dense, Some(range)) => Table::dense(range, birth),
        (Storage::Dense, None) => unreachable!("MatrixSpec::check refuses dense storage by hash"),
        (Storage::Sparse, _) => Table::sparse(birth),
    }
}
