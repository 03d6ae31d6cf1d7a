//! The keys of a pull or push, in runs by partition. An agent keeps the last key runs of each matrix: a push that
//! follows a pull of the same keys finds them already sorted.

mod sort;

use std::ops::Range;

use math::hash::mix64;

use crate::agent::{Keys, Selection};
use crate::error::Error;
use crate::partitioner::{Placement, hash_partition};
use crate::routed_keys::{RoutedKeys, ValueOrder};
use crate::spec::{Axis, MatrixSpec};
use sort::{PartitionNumbers, RunSorter};

/// The keys of the last pull or push of a matrix, sorted into runs.
#[derive(Debug, Default)]
pub struct KeyRuns {
    /// By row: 0. By column: the row.
    table: u32,
    /// The keys in the order of the caller, unless they are `range`.
    keys: Vec<u64>,
    /// The keys `start..end`, which are not listed.
    range: Option<(u64, u64)>,
    /// The keys by partition, ascending in each. Empty when the order of the caller is already so.
    run_keys: Vec<u64>,
    /// The index in `keys` of each of `run_keys`.
    value_indices: Vec<u32>,
    /// Partition `p` has the keys with the indices `bounds[p]..bounds[p + 1]` in the order of runs. Empty while no keys
    /// are set.
    bounds: Vec<usize>,
    /// Scratch: the partition of each key.
    partition_numbers: PartitionNumbers,
}

impl KeyRuns {
    /// Sorts the keys of a selection into runs, and checks that they fit the matrix. A range of keys over range
    /// partitions is not listed. Does nothing when the keys are those of the last call.
    pub fn set(
        &mut self,
        spec: &MatrixSpec,
        placement: &Placement,
        selection: Selection<'_>,
    ) -> Result<(), Error> {
        match (table_and_keys(spec, selection)?, placement) {
            ((table, Keys::Range(start, end)), Placement::Ranges { starts, .. }) => {
                self.bounds.clear();
                check_range(spec, start, end)?;
                let end = end.max(start);
                self.table = table;
                self.range = Some((start, end));
                let index = |key: u64| (key.clamp(start, end) - start) as usize;
                self.bounds.extend(starts.iter().map(|first| index(*first)));
                self.bounds.push(index(end));
                Ok(())
            }
            _ => self.set_listed(spec, placement, selection).map(drop),
        }
    }

    /// Does the same as [`Self::set`], and lists the keys also of a range. Returns whether the keys differ from those of
    /// the last call.
    pub(crate) fn set_listed(
        &mut self,
        spec: &MatrixSpec,
        placement: &Placement,
        selection: Selection<'_>,
    ) -> Result<bool, Error> {
        let (table, keys) = table_and_keys(spec, selection)?;
        if self.range.is_none() && self.table == table && self.has_keys(keys) {
            return Ok(false);
        }
        self.bounds.clear();
        match keys {
            Keys::Sorted(keys) => {
                check_keys(spec, keys)?;
                self.keys.clear();
                self.keys.extend_from_slice(keys);
            }
            Keys::Range(start, end) => {
                check_range(spec, start, end)?;
                check_key_count(keys.len());
                self.keys.clear();
                self.keys.extend(start..end);
            }
        }
        self.table = table;
        self.range = None;
        self.value_indices.clear();
        match placement {
            Placement::Ranges { starts, .. } => {
                let keys = &self.keys;
                self.bounds.push(0);
                self.bounds.extend(starts[1..].iter().map(|start| keys.partition_point(|key| key < start)));
                self.bounds.push(keys.len());
            }
            Placement::Hash { partition_count: 1 } | Placement::Own { partition_count: 1, .. } => {
                self.bounds.extend([0, self.keys.len()]);
            }
            Placement::Hash { partition_count } => {
                let count = *partition_count;
                self.sort_into_runs(count, |key| hash_partition(mix64(key), count));
            }
            Placement::Own { partition_count, .. } => {
                self.sort_into_runs(*partition_count, |key| placement.partition_of(key));
            }
        }
        Ok(true)
    }

    fn sort_into_runs(&mut self, partition_count: u64, partition_of: impl Fn(u64) -> usize) {
        let Self { keys, run_keys, value_indices: order, bounds, partition_numbers, .. } = self;
        bounds.resize(partition_count as usize + 1, 0);
        run_keys.resize(keys.len(), 0);
        order.resize(keys.len(), 0);
        RunSorter { keys, run_keys, order, bounds }.sort(partition_numbers, partition_of);
    }

    /// By row: 0. By column: the row.
    pub fn table(&self) -> u32 {
        self.table
    }

    pub fn key_count(&self) -> usize {
        self.bounds.last().copied().unwrap_or(0)
    }

    /// Whether the keys are a range that is not listed.
    pub fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// Returns the `i`-th key in the list of the caller.
    pub fn key(&self, i: usize) -> u64 {
        self.range.map_or_else(|| self.keys[i], |(start, _)| start + i as u64)
    }

    /// Whether these are the keys of a selection.
    pub fn matches(&self, selection: Selection<'_>) -> bool {
        let (table, keys) = match selection {
            Selection::Rows(keys) => (0, keys),
            Selection::Columns { row, keys } => (row, keys),
        };
        self.table == table && self.has_keys(keys)
    }

    fn has_keys(&self, keys: Keys<'_>) -> bool {
        if self.bounds.is_empty() || keys.len() != self.key_count() {
            return false;
        }
        match (keys, self.range) {
            // The keys are ascending, so that the first one and the number of them decide.
            (Keys::Range(start, end), _) if start < end => {
                (self.key(0), self.key(self.key_count() - 1)) == (start, end - 1)
            }
            (Keys::Range(..), _) => true,
            (Keys::Sorted(keys), None) => self.keys == keys,
            (Keys::Sorted(keys), Some((start, end))) => keys.iter().copied().eq(start..end),
        }
    }

    /// Whether the two have no key in common for certain: one has only smaller keys, or another row.
    pub fn is_disjoint_from(&self, other: &Self) -> bool {
        let ends = |runs: &Self| {
            let last = runs.key_count().checked_sub(1)?;
            Some((runs.key(0), runs.key(last)))
        };
        match (ends(self), ends(other)) {
            (Some((first, last)), Some((other_first, other_last))) => {
                self.table != other.table || last < other_first || other_last < first
            }
            _ => true,
        }
    }

    /// Returns the keys that lie in a partition.
    pub fn run(&self, partition: u32) -> RoutedKeys<'_> {
        let indices = self.indices(partition as usize);
        let (first, count) = (indices.start, indices.len());
        if let Some((start, _)) = self.range {
            let keys = Keys::Range(start + first as u64, start + indices.end as u64);
            return RoutedKeys { keys, order: ValueOrder::Contiguous { first, count } };
        }
        let (keys, order) = self.listed_run(partition as usize);
        RoutedKeys { keys: Keys::Sorted(keys), order }
    }

    /// Does the same as [`Self::run`] for keys that [`Self::set_listed`] has set.
    pub(crate) fn listed_run(&self, partition: usize) -> (&[u64], ValueOrder<'_>) {
        let indices = self.indices(partition);
        if self.value_indices.is_empty() {
            let order = ValueOrder::Contiguous { first: indices.start, count: indices.len() };
            return (&self.keys[indices], order);
        }
        (&self.run_keys[indices.clone()], ValueOrder::Scattered(&self.value_indices[indices]))
    }

    /// Returns the indices of the keys of a partition in the order of runs.
    pub(crate) fn indices(&self, partition: usize) -> Range<usize> {
        self.bounds[partition]..self.bounds[partition + 1]
    }
}

/// Returns the keys of a selection, or an error if they do not fit the matrix.
pub fn check_selection<'a>(spec: &MatrixSpec, selection: Selection<'a>) -> Result<Keys<'a>, Error> {
    let (_, keys) = table_and_keys(spec, selection)?;
    match keys {
        Keys::Sorted(listed) => check_keys(spec, listed)?,
        Keys::Range(start, end) => check_range(spec, start, end)?,
    }
    Ok(keys)
}

/// Returns the table and the keys of a selection.
fn table_and_keys<'a>(spec: &MatrixSpec, selection: Selection<'a>) -> Result<(u32, Keys<'a>), Error> {
    spec.check_no_lists()?;
    let wrong = |axis, asked| Err(Error::WrongAxis { matrix: spec.name.clone(), axis, asked });
    match (selection, spec.axis) {
        (Selection::Rows(keys), Axis::Row) => Ok((0, keys)),
        (Selection::Columns { row, keys }, Axis::Column) if u64::from(row) < spec.rows => Ok((row, keys)),
        (Selection::Columns { row, .. }, Axis::Column) => {
            Err(Error::NoSuchRow { matrix: spec.name.clone(), row, rows: spec.rows })
        }
        (Selection::Rows(_), Axis::Column) => wrong("column", "row"),
        (Selection::Columns { .. }, Axis::Row) => wrong("row", "column"),
    }
}

/// Checks that keys are strictly ascending and in the matrix.
pub(crate) fn check_keys(spec: &MatrixSpec, keys: &[u64]) -> Result<(), Error> {
    check_key_count(keys.len());
    // The loop has no early exit, so that it is vectorized; nearly all lists of keys are ascending.
    let falls = keys.array_windows().map(|[before, key]| u32::from(before >= key)).sum::<u32>();
    if falls > 0
        && let Some(&[before, key]) = keys.array_windows().find(|[before, key]| before >= key)
    {
        return Err(Error::KeysNotAscending { matrix: spec.name.clone(), before, key });
    }
    keys.last().map_or(Ok(()), |key| check_key(spec, *key))
}

fn check_key_count(count: usize) {
    assert!(count < u32::MAX as usize, "a pull or push names less than 2^32 keys: use smaller batches");
}

fn check_range(spec: &MatrixSpec, start: u64, end: u64) -> Result<(), Error> {
    if start < end { check_key(spec, end - 1) } else { Ok(()) }
}

fn check_key(spec: &MatrixSpec, key: u64) -> Result<(), Error> {
    let bound = spec.key_bound();
    if key < bound { Ok(()) } else { Err(Error::KeyOutOfRange { matrix: spec.name.clone(), key, bound }) }
}

#[cfg(test)]
mod tests;
