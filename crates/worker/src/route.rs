//! The keys of a call, by partition. A range of keys over range partitions is never expanded.

use matrix::{Error, KeyRouter, Keys, MatrixSpec, Placement, Selection};

/// The keys of one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartitionKeys<'a> {
    /// `count` keys from `start` on. Their values are contiguous from row `first_row` on.
    Range { start: u64, count: usize, first_row: usize },
    /// Ascending keys. `rows` has the row of each in the buffer of the caller; if it is empty, the rows are contiguous
    /// from `first_row` on.
    Listed { keys: &'a [u64], rows: &'a [u32], first_row: usize },
}

impl PartitionKeys<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            PartitionKeys::Range { count, .. } => *count,
            PartitionKeys::Listed { keys, .. } => keys.len(),
        }
    }
}

/// The keys of the last call on a matrix.
#[derive(Debug, Default)]
pub(crate) struct Route {
    router: KeyRouter,
    /// The keys `start..end`, in place of those of the router.
    range: Option<(u64, u64)>,
    table: u32,
    key_count: usize,
}

impl Route {
    /// Checks that `part` fits the matrix, and sets the route to it.
    pub(crate) fn set(
        &mut self,
        spec: &MatrixSpec,
        placement: &Placement,
        part: Selection<'_>,
    ) -> Result<(), Error> {
        self.range = None;
        if let (
            Placement::Ranges { .. },
            Selection::Rows(Keys::Range(start, end))
            | Selection::Columns { keys: Keys::Range(start, end), .. },
        ) = (placement, part)
        {
            self.set_range(spec, placement, part, start, end)?;
        } else {
            self.key_count = self.router.set(spec, placement, part)?;
        }
        self.table = self.router.table();
        Ok(())
    }

    fn set_range(
        &mut self,
        spec: &MatrixSpec,
        placement: &Placement,
        part: Selection<'_>,
        start: u64,
        end: u64,
    ) -> Result<(), Error> {
        // Without keys the router checks only the axis and the row.
        let empty = Keys::Sorted(&[]);
        let empty = match part {
            Selection::Rows(_) => Selection::Rows(empty),
            Selection::Columns { row, .. } => Selection::Columns { row, keys: empty },
        };
        self.router.set(spec, placement, empty)?;
        let bound = spec.key_bound();
        if start < end && end > bound {
            return Err(Error::KeyOutOfRange { matrix: spec.name.clone(), key: end - 1, bound });
        }
        self.key_count = end.saturating_sub(start) as usize;
        self.range = Some((start, end.max(start)));
        Ok(())
    }

    pub(crate) fn table(&self) -> u32 {
        self.table
    }

    pub(crate) fn key_count(&self) -> usize {
        self.key_count
    }

    /// The `i`-th key in the order of the caller.
    pub(crate) fn key(&self, i: usize) -> u64 {
        match self.range {
            Some((start, _)) => start + i as u64,
            None => self.router.key(i),
        }
    }

    /// Whether two routes are known to have no key in common: one has only smaller keys, or another row.
    pub(crate) fn is_disjoint_from(&self, other: &Self) -> bool {
        let ends = |route: &Self| {
            let last = route.key_count.checked_sub(1)?;
            Some((route.key(0), route.key(last)))
        };
        match (ends(self), ends(other)) {
            (Some((first, last)), Some((other_first, other_last))) => {
                self.table != other.table || last < other_first || other_last < first
            }
            _ => true,
        }
    }

    /// The keys that lie in a partition.
    pub(crate) fn partition_keys(&self, placement: &Placement, partition: u32) -> PartitionKeys<'_> {
        let Some((start, end)) = self.range else {
            let run = self.router.run(partition);
            return PartitionKeys::Listed { keys: run.keys, rows: run.value_indices, first_row: run.first };
        };
        let held = placement.range(partition as usize).unwrap_or(0..0);
        let (first, last) = (held.start.max(start), held.end.min(end));
        let count = last.saturating_sub(first) as usize;
        PartitionKeys::Range { start: first, count, first_row: first.saturating_sub(start) as usize }
    }
}
