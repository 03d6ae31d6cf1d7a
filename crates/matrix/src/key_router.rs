//! Sorts the keys of a pull or push into runs by partition, for an agent that sends them to servers.

use crate::agent::{Keys, Selection};
use crate::error::Error;
use crate::key_runs::{KeyRuns, check_keys, table_and_keys};
use crate::partitioner::Placement;
use crate::spec::MatrixSpec;

/// The keys of the last pull or push of a matrix, sorted into runs by partition.
#[derive(Debug, Default)]
pub struct KeyRouter {
    runs: KeyRuns,
    range_keys: Vec<u64>,
    table: u32,
}

/// The keys of one partition.
#[derive(Clone, Copy, Debug)]
pub struct RoutedKeys<'a> {
    /// Ascending keys.
    pub keys: &'a [u64],
    /// The index of each key in the list of the caller. Empty when the indices are contiguous from `first` on.
    pub value_indices: &'a [u32],
    /// Index of the first key in the list of the caller, if `value_indices` is empty.
    pub first: usize,
}

/// Returns the keys of a selection, or an error if they do not fit the matrix.
pub fn check_selection<'a>(spec: &MatrixSpec, part: Selection<'a>) -> Result<Keys<'a>, Error> {
    let (_, keys) = table_and_keys(spec, part)?;
    match keys {
        Keys::Sorted(listed) => check_keys(&spec.name, spec.key_bound(), listed)?,
        Keys::Range(_, _) => {}
    }
    Ok(keys)
}

impl KeyRouter {
    /// Sorts the keys of a selection into runs and returns their number. Checks that they fit the matrix.
    pub fn set(
        &mut self,
        spec: &MatrixSpec,
        placement: &Placement,
        part: Selection<'_>,
    ) -> Result<usize, Error> {
        let (table, keys) = table_and_keys(spec, part)?;
        let keys = match keys {
            Keys::Sorted(keys) => keys,
            Keys::Range(start, end) => {
                self.range_keys.clear();
                self.range_keys.extend(start..end);
                &self.range_keys
            }
        };
        self.table = table;
        self.runs.set(&spec.name, placement, spec.key_bound(), table, keys)?;
        Ok(keys.len())
    }

    /// By row: 0. By column: the row.
    pub fn table(&self) -> u32 {
        self.table
    }

    /// Returns the `i`-th key in the list of the caller.
    pub fn key(&self, i: usize) -> u64 {
        self.runs.key(i)
    }

    /// Returns the keys that lie in a partition.
    pub fn run(&self, partition: u32) -> RoutedKeys<'_> {
        let (keys, order, first) = self.runs.keys_of_partition(partition as usize);
        RoutedKeys { keys, value_indices: order, first }
    }
}
