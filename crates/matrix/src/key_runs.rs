//! The keys of a pull or push, in runs by partition. An agent keeps the last key runs of each matrix: a push that
//! follows a pull of the same keys finds them already sorted, with the positions of their rows.

use math::hash::mix64;

use crate::agent::{Keys, Selection};
use crate::error::Error;
use crate::partition::PositionedRun;
use crate::partitioner::{Placement, hash_partition};
use crate::spec::{Axis, MatrixSpec};
use crate::storage::rows::ABSENT;

/// The keys of the last pull or push of a matrix, sorted into runs.
#[derive(Debug, Default)]
pub(crate) struct KeyRuns {
    table: u32,
    /// The keys in the order of the caller.
    keys: Vec<u64>,
    /// The keys by partition, ascending in each. Empty when the order of the caller is already so.
    run_keys: Vec<u64>,
    /// The index in `keys` of each of `run_keys`.
    value_indices: Vec<u32>,
    /// Partition `p` has the keys `bounds[p]..bounds[p + 1]` of `run_keys`. Empty before the first call of
    /// [`Self::set`].
    bounds: Vec<u32>,
    /// Row positions in the order of runs. They are valid only where the generation equals that of the partition.
    positions: Vec<u32>,
    /// The generation of the positions of each partition.
    generations: Vec<u64>,
    /// Scratch: the partition of each key.
    partition_numbers: PartitionNumbers,
    /// Scratch: partitions that another task had locked.
    pub(crate) locked_partitions: Vec<usize>,
}

/// Number of keys whose offsets are computed before they are used.
const HISTOGRAM_BLOCK: usize = 256;
/// The generation of positions that were never looked up.
const NO_GENERATION: u64 = u64::MAX;

/// Partition numbers of keys, as bytes when they fit, so that they stay in the cache.
#[derive(Debug, Default)]
struct PartitionNumbers {
    bytes: Vec<u8>,
    words: Vec<u32>,
}

/// The output of a sort into runs.
struct RunSorter<'a> {
    keys: &'a [u64],
    run_keys: &'a mut [u64],
    order: &'a mut [u32],
    bounds: &'a mut [u32],
}

impl RunSorter<'_> {
    /// Counting sort by partition. Keys stay ascending in each run.
    fn sort<P: Copy>(
        self,
        partition_count: u64,
        scratch: &mut Vec<P>,
        narrow: impl Fn(usize) -> P,
        wide: impl Fn(P) -> usize,
    ) {
        let Self { keys, run_keys, order, bounds } = self;
        scratch.clear();
        scratch.extend(keys.iter().map(|key| narrow(hash_partition(mix64(*key), partition_count))));
        for partition in scratch.iter() {
            bounds[wide(*partition) + 1] += 1;
        }
        let mut sum = 0;
        for bound in bounds.iter_mut() {
            sum += *bound;
            *bound = sum;
        }
        // After the loop each start has moved to the end of its run, which is the start of the next run, so the list is
        // shifted by one. The offsets of a block are computed before the block is written: a write to an address that
        // depends on a counter would delay the reads of counters after it.
        let mut places = [0u32; HISTOGRAM_BLOCK];
        let blocks = scratch.chunks(HISTOGRAM_BLOCK).zip(keys.chunks(HISTOGRAM_BLOCK));
        for ((partitions, keys), first) in blocks.zip((0u32..).step_by(HISTOGRAM_BLOCK)) {
            for (place, partition) in places.iter_mut().zip(partitions) {
                let next = &mut bounds[wide(*partition)];
                *place = *next;
                *next += 1;
            }
            for ((place, key), i) in places.iter().zip(keys).zip(first..) {
                run_keys[*place as usize] = *key;
                order[*place as usize] = i;
            }
        }
        bounds.rotate_right(1);
        bounds[0] = 0;
    }
}

impl KeyRuns {
    /// Sorts `keys` into runs. Does nothing when the keys are those of the last call.
    pub(crate) fn set(
        &mut self,
        matrix: &str,
        placement: &Placement,
        bound: u64,
        table: u32,
        keys: &[u64],
    ) -> Result<(), Error> {
        if self.table == table && !self.bounds.is_empty() && self.keys == keys {
            return Ok(());
        }
        self.bounds.clear();
        check_keys(matrix, bound, keys)?;
        self.keys.clear();
        self.keys.extend_from_slice(keys);
        self.table = table;
        // No partition has this generation, so the first use of a run looks up all its positions.
        self.positions.resize(keys.len(), ABSENT);
        self.generations.clear();
        self.generations.resize(placement.partition_count(), NO_GENERATION);
        match placement {
            Placement::Ranges { starts, .. } => {
                let ends = starts[1..].iter().map(|start| keys.partition_point(|key| key < start) as u32);
                self.value_indices.clear();
                self.bounds.push(0);
                self.bounds.extend(ends);
                self.bounds.push(keys.len() as u32);
            }
            Placement::Hash { partition_count: 1 } => {
                self.value_indices.clear();
                self.bounds.extend([0, keys.len() as u32]);
            }
            Placement::Hash { partition_count } => self.sort_into_runs(*partition_count),
        }
        Ok(())
    }

    fn sort_into_runs(&mut self, partition_count: u64) {
        let Self { keys, run_keys, value_indices: order, bounds, partition_numbers: partitions, .. } = self;
        bounds.resize(partition_count as usize + 1, 0);
        run_keys.resize(keys.len(), 0);
        order.resize(keys.len(), 0);
        let runs = RunSorter { keys, run_keys, order, bounds };
        if partition_count <= 1 << u8::BITS {
            runs.sort(partition_count, &mut partitions.bytes, |p| p as u8, usize::from);
        } else {
            runs.sort(partition_count, &mut partitions.words, |p| p as u32, |p| p as usize);
        }
    }

    /// Returns the keys of a partition, their indices in the caller's list, and the first index. The list of indices is
    /// empty when they are contiguous.
    pub(crate) fn keys_of_partition(&self, partition: usize) -> (&[u64], &[u32], usize) {
        let range = self.bounds[partition] as usize..self.bounds[partition + 1] as usize;
        if self.value_indices.is_empty() {
            (&self.keys[range.clone()], &[], range.start)
        } else {
            (&self.run_keys[range.clone()], &self.value_indices[range.clone()], range.start)
        }
    }

    /// Returns the `i`-th key in the list of the caller.
    pub(crate) fn key(&self, i: usize) -> u64 {
        self.keys[i]
    }

    /// Whether no key lies in the partition.
    pub(crate) fn is_empty(&self, partition: usize) -> bool {
        self.bounds[partition] == self.bounds[partition + 1]
    }

    /// Returns the keys of a partition with their positions.
    pub(crate) fn run(&mut self, partition: usize) -> PositionedRun<'_> {
        let range = self.bounds[partition] as usize..self.bounds[partition + 1] as usize;
        let sorted = !self.value_indices.is_empty();
        PositionedRun {
            table: self.table,
            keys: if sorted { &self.run_keys[range.clone()] } else { &self.keys[range.clone()] },
            value_indices: if sorted { &self.value_indices[range.clone()] } else { &[] },
            first: range.start,
            positions: &mut self.positions[range],
            generation: &mut self.generations[partition],
        }
    }
}

/// Returns the table and the keys of a selection.
pub(crate) fn table_and_keys<'a>(spec: &MatrixSpec, part: Selection<'a>) -> Result<(u32, Keys<'a>), Error> {
    let wrong = |axis, asked| Err(Error::WrongAxis { matrix: spec.name.clone(), axis, asked });
    match (part, spec.axis) {
        (Selection::Rows(keys), Axis::Row) => Ok((0, keys)),
        (Selection::Columns { row, keys }, Axis::Column) if u64::from(row) < spec.rows => Ok((row, keys)),
        (Selection::Columns { row, .. }, Axis::Column) => {
            Err(Error::NoSuchRow { matrix: spec.name.clone(), row, rows: spec.rows })
        }
        (Selection::Rows(_), Axis::Column) => wrong("column", "row"),
        (Selection::Columns { .. }, Axis::Row) => wrong("row", "column"),
    }
}

pub(crate) fn check_keys(matrix: &str, bound: u64, keys: &[u64]) -> Result<(), Error> {
    assert!(keys.len() < u32::MAX as usize, "a pull or push names less than 2^32 keys: use smaller batches");
    // The loop has no early exit, so that it is vectorized; nearly all lists of keys are ascending.
    let falls = keys.array_windows().map(|[before, key]| u32::from(before >= key)).sum::<u32>();
    if falls > 0
        && let Some(&[before, key]) = keys.array_windows().find(|[before, key]| before >= key)
    {
        return Err(Error::KeysNotAscending { matrix: matrix.to_owned(), before, key });
    }
    match keys.last() {
        Some(&key) if key >= bound => Err(Error::KeyOutOfRange { matrix: matrix.to_owned(), key, bound }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Partitioner;

    proptest! {
        #[test]
        fn each_key_comes_in_the_run_of_its_partition_with_its_place(
            keys in prop::collection::btree_set(0u64..5_000, 0..300),
            (count, kind) in (1u32..20, 0u8..3),
        ) {
            let partitioner = match kind {
                0 => Partitioner::Hash { partition_count: count },
                1 => Partitioner::Range { partition_count: count },
                _ => Partitioner::Explicit { starts: (0..u64::from(count)).map(|i| i * i).collect() },
            };
            let keys: Vec<u64> = keys.into_iter().collect();
            let placement = partitioner.placement(5_000);
            let mut route = KeyRuns::default();
            for _ in 0..2 {
                route.set("m", &placement, 5_000, 0, &keys).unwrap();
                let mut seen = 0;
                for p in 0..count as usize {
                    let run = route.run(p);
                    for (i, key) in run.keys.iter().enumerate() {
                        prop_assert_eq!(placement.partition_of(*key), p);
                        let place = if run.value_indices.is_empty() { run.first + i } else { run.value_indices[i] as usize };
                        prop_assert_eq!(keys[place], *key);
                    }
                    prop_assert!(run.keys.is_sorted());
                    seen += run.keys.len();
                }
                prop_assert_eq!(seen, keys.len());
            }
        }
    }

    #[test]
    fn bad_keys_are_refused_and_the_route_before_is_forgotten() {
        let placement = Partitioner::Hash { partition_count: 4 }.placement(10);
        let mut route = KeyRuns::default();
        route.set("m", &placement, 10, 0, &[1, 2]).unwrap();
        let error = route.set("m", &placement, 10, 0, &[1, 3, 3]).unwrap_err();
        assert_eq!(error, Error::KeysNotAscending { matrix: "m".into(), before: 3, key: 3 });
        let error = route.set("m", &placement, 10, 0, &[1, 10]).unwrap_err();
        assert_eq!(error, Error::KeyOutOfRange { matrix: "m".into(), key: 10, bound: 10 });
        route.set("m", &placement, 10, 0, &[1, 2]).unwrap();
        assert_eq!((0..4).map(|p| route.run(p).keys.len()).sum::<usize>(), 2);
    }
}
