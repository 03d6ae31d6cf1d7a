//! Sorts keys by their partition.

/// Number of keys whose offsets are computed before they are used.
const HISTOGRAM_BLOCK: usize = 256;

/// Partition numbers of keys, as bytes when they fit, so that they stay in the cache.
#[derive(Debug, Default)]
pub(super) struct PartitionNumbers {
    bytes: Vec<u8>,
    words: Vec<u32>,
}

/// The output of a sort into runs.
pub(super) struct RunSorter<'a> {
    pub(super) keys: &'a [u64],
    /// The keys by partition.
    pub(super) run_keys: &'a mut [u64],
    /// The index of each of `run_keys` in `keys`.
    pub(super) order: &'a mut [u32],
    /// Zeros at first, then the bounds of the runs.
    pub(super) bounds: &'a mut [usize],
}

impl RunSorter<'_> {
    /// Sorts the keys. The number of partitions is one less than that of `bounds`.
    pub(super) fn sort(self, numbers: &mut PartitionNumbers, partition_of: impl Fn(u64) -> usize) {
        let partition_count = self.bounds.len() as u64 - 1;
        if partition_count <= 1 << u8::BITS {
            self.sort_by(&mut numbers.bytes, |key| partition_of(key) as u8, usize::from);
        } else {
            self.sort_by(&mut numbers.words, |key| partition_of(key) as u32, |p| p as usize);
        }
    }

    /// Counting sort by partition. Keys stay ascending in each run.
    fn sort_by<P: Copy>(
        self,
        scratch: &mut Vec<P>,
        partition_of: impl Fn(u64) -> P,
        wide: impl Fn(P) -> usize,
    ) {
        let Self { keys, run_keys, order, bounds } = self;
        scratch.clear();
        scratch.extend(keys.iter().map(|key| partition_of(*key)));
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
        let mut places = [0usize; HISTOGRAM_BLOCK];
        let blocks = scratch.chunks(HISTOGRAM_BLOCK).zip(keys.chunks(HISTOGRAM_BLOCK));
        for ((partitions, keys), first) in blocks.zip((0u32..).step_by(HISTOGRAM_BLOCK)) {
            for (place, partition) in places.iter_mut().zip(partitions) {
                let next = &mut bounds[wide(*partition)];
                *place = *next;
                *next += 1;
            }
            for ((place, key), i) in places.iter().zip(keys).zip(first..) {
                run_keys[*place] = *key;
                order[*place] = i;
            }
        }
        bounds.rotate_right(1);
        bounds[0] = 0;
    }
}
