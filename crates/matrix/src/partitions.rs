//! The partitions of a matrix that this process has, with a lock each, and the order in which tasks visit them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::Error;
use crate::initializer::InitialValues;
use crate::partition::Partition;
use crate::partitioner::Placement;
use crate::row_positions::{PositionedKeys, PositionedRun};
use crate::rule::RuleElement;
use crate::spec::{MatrixSpec, Storage};
use crate::staged::StagedRun;
use crate::storage::{RowInitializer, Table};

/// Partitions of one element type. Each has its own mutex: a visit holds it for microseconds, and both pulls (which
/// merge what is staged) and pushes write. Tasks start their visits at different partitions, so that they rarely wait
/// for each other. Snapshots read from the partitions too.
#[derive(Debug)]
pub(crate) struct Partitions<E> {
    /// Name of the matrix, for errors.
    matrix: String,
    /// By number; `None` where another lane owns the partition.
    partitions: Vec<Option<SharedPartition<E>>>,
}

/// A partition, which snapshots share with the matrix.
pub(crate) type SharedPartition<E> = Arc<Mutex<Partition<E>>>;

/// Locked partitions with their numbers, ascending.
pub(crate) type LockedPartitions<'a, E> = Vec<(u32, MutexGuard<'a, Partition<E>>)>;

/// The task that visits the partitions: tasks start at different ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitOrder {
    pub(crate) task: u32,
    pub(crate) task_count: u32,
}

impl<E: RuleElement> Partitions<E> {
    /// Creates the partitions `owned`, without rows.
    pub(crate) fn new(spec: &MatrixSpec, placement: &Placement, owned: &[u32]) -> Self {
        let mut partitions: Vec<Option<SharedPartition<E>>> = Vec::new();
        partitions.resize_with(placement.partition_count(), || None);
        for &i in owned {
            let table_count = if spec.storage.has_lists() { 0 } else { spec.table_count() };
            let tables = (0..table_count).map(|table| new_table(spec, placement, i as usize, table));
            partitions[i as usize] = Some(Arc::new(Mutex::new(Partition::new(spec, i, tables.collect()))));
        }
        Self { matrix: spec.name.clone(), partitions }
    }

    pub(crate) fn contain(&self, partition: u32) -> bool {
        matches!(self.partitions.get(partition as usize), Some(Some(_)))
    }

    /// Locks a partition for its lane, which waits only while somebody reads a block of a snapshot.
    ///
    /// # Panics
    /// When another lane owns the partition.
    pub(crate) fn lock_own(&self, partition: u32) -> MutexGuard<'_, Partition<E>> {
        let partition = self.partitions[partition as usize].as_ref().expect("the run was checked");
        partition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks one partition after the other, ascending.
    pub(crate) fn lock_each(
        &self,
    ) -> impl Iterator<Item = Result<(u32, MutexGuard<'_, Partition<E>>), Error>> {
        let partitions = (0u32..).zip(&self.partitions);
        partitions.filter_map(|(i, partition)| Some(self.lock(partition.as_ref()?).map(|locked| (i, locked))))
    }

    /// Locks a partition; `None` where another lane owns it.
    pub(crate) fn lock_one(&self, partition: usize) -> Result<Option<MutexGuard<'_, Partition<E>>>, Error> {
        self.partitions[partition].as_ref().map(|partition| self.lock(partition)).transpose()
    }

    /// Locks all partitions, always in ascending order, so that two tasks that lock all of them do not deadlock.
    pub(crate) fn lock_all(&self) -> Result<LockedPartitions<'_, E>, Error> {
        self.lock_each().collect()
    }

    /// Visits the partitions that have keys. A partition that another task has locked is visited last.
    pub(crate) fn visit(
        &self,
        order: VisitOrder,
        keys: &mut PositionedKeys,
        mut visit: impl FnMut(&mut Partition<E>, PositionedRun<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let count = self.partitions.len();
        let start = count * order.task as usize / order.task_count.max(1) as usize;
        let mut busy = std::mem::take(&mut keys.locked_partitions);
        busy.clear();
        for i in 0..count {
            let p = (start + i) % count;
            if keys.runs().indices(p).is_empty() {
                continue;
            }
            match self.partition(p).try_lock() {
                Ok(mut partition) => visit(&mut partition, keys.run(p))?,
                Err(TryLockError::WouldBlock) => busy.push(p),
                Err(TryLockError::Poisoned(_)) => return Err(self.panicked()),
            }
        }
        for p in &busy {
            visit(&mut *self.lock(self.partition(*p))?, keys.run(*p))?;
        }
        keys.locked_partitions = busy;
        Ok(())
    }

    /// Returns the number of rows that exist, and the size of rows, indices and staged pushes in bytes.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        self.partitions.iter().flatten().fold((0, 0), |(rows, bytes), partition| {
            // Counting is safe even after a task panicked inside the partition.
            let partition = partition.lock().unwrap_or_else(PoisonError::into_inner);
            (rows + partition.row_count(), bytes + partition.size_bytes())
        })
    }

    /// The staged pushes of all partitions; `None` while functions are staged or one has failed.
    pub(crate) fn staged_runs(&self) -> Result<Option<Vec<StagedRun>>, Error> {
        let mut runs = Vec::new();
        for locked in self.lock_each() {
            let (partition, locked) = locked?;
            let Some(staged) = locked.staged_pushes() else { return Ok(None) };
            runs.extend(staged.iter().map(|push| {
                let (keys, values) = (push.keys.clone(), E::owned(push.values.clone()));
                StagedRun { partition, table: push.table, id: push.id, keys, values }
            }));
        }
        Ok(Some(runs))
    }

    /// The numbers of the partitions that this process or lane has.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        (0u32..).zip(&self.partitions).filter(|(_, partition)| partition.is_some()).map(|(i, _)| i).collect()
    }

    /// Number of partitions that this process or lane has.
    pub(crate) fn own_count(&self) -> u64 {
        self.partitions.iter().flatten().count() as u64
    }

    /// The partitions that this process or lane has, ascending.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &SharedPartition<E>> {
        self.partitions.iter().flatten()
    }

    fn partition(&self, i: usize) -> &Mutex<Partition<E>> {
        self.partitions[i].as_ref().expect("a store has all partitions of its matrices")
    }

    fn lock<'a>(&self, partition: &'a Mutex<Partition<E>>) -> Result<MutexGuard<'a, Partition<E>>, Error> {
        partition.lock().map_err(|_| self.panicked())
    }

    fn panicked(&self) -> Error {
        Error::Panicked { what: format!("matrix {:?}", self.matrix) }
    }
}

fn new_table<E: RuleElement>(
    spec: &MatrixSpec,
    placement: &Placement,
    partition: usize,
    table: usize,
) -> Table<E> {
    let initial = InitialValues::new(spec.initializer, spec.seed, &spec.name);
    let key_offset = spec.key_offset(table);
    let initializer =
        RowInitializer { rule: spec.rule, columns: spec.columns_of_table(), initial, key_offset };
    match (spec.storage, placement.range(partition)) {
        (Storage::Dense, Some(range)) => Table::dense(range, initializer),
        (Storage::Dense, None) => unreachable!("MatrixSpec::check refuses dense storage by hash"),
        (Storage::Sparse, _) => Table::sparse(initializer),
        (Storage::List | Storage::UniqueList, _) => unreachable!("lists are in no table"),
    }
}
