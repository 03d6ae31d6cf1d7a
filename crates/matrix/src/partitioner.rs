//! From a key to a partition. Only this file decides in which partition a key lies.

use math::hash::mix64;
use serde::{Deserialize, Serialize};

use crate::function::FunctionTable;

/// Maximum number of partitions of a matrix: beyond it, a step spends its time on visiting partitions.
pub const PARTITION_LIMIT: u32 = 1 << 16;

/// Assigns keys to partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Partitioner {
    /// Contiguous ranges of equal length.
    Range {
        /// From 1 to [`PARTITION_LIMIT`].
        partition_count: u32,
    },
    /// The partition is a function of the mixed key (`math::hash::mix64`).
    Hash {
        /// From 1 to [`PARTITION_LIMIT`].
        partition_count: u32,
    },
    /// Ranges that the caller chooses: partition `i` has the keys `starts[i]..starts[i + 1]`, and the last one all keys
    /// from its start on.
    Explicit {
        /// First key of each partition, ascending, beginning with 0.
        starts: Vec<u64>,
    },
    /// A partitioner of the program, for matrices of sparse storage ([`OwnPartitioner`]).
    Own {
        name: String,
        /// From 1 to [`PARTITION_LIMIT`].
        partition_count: u32,
    },
}

/// A partitioner of a program: agents, servers and sessions know it by its name, from their [`FunctionTable`]. Every process
/// of a job must have it.
#[derive(Clone, Copy, Debug)]
pub struct OwnPartitioner {
    pub name: &'static str,
    /// The partition of a key, for this number of partitions. It must be the same in every call and every process. The
    /// remainder by the number of partitions is taken.
    pub partition_of: fn(u64, u32) -> u32,
}

impl OwnPartitioner {
    fn partition(self, key: u64, partition_count: u64) -> usize {
        ((self.partition_of)(key, partition_count as u32) % partition_count as u32) as usize
    }
}

impl Partitioner {
    pub fn partition_count(&self) -> u32 {
        match self {
            Partitioner::Range { partition_count }
            | Partitioner::Hash { partition_count }
            | Partitioner::Own { partition_count, .. } => *partition_count,
            Partitioner::Explicit { starts } => starts.len() as u32,
        }
    }

    /// The same partitioner with one partition: what is left where partitions do not matter.
    #[must_use]
    pub fn whole(&self) -> Self {
        match self {
            Partitioner::Range { .. } => Partitioner::Range { partition_count: 1 },
            Partitioner::Explicit { starts } => Partitioner::Explicit { starts: starts.clone() },
            // Another program may read it, which has no such partitioner.
            Partitioner::Hash { .. } | Partitioner::Own { .. } => Partitioner::Hash { partition_count: 1 },
        }
    }

    /// Returns the placement of the keys below `bound`, if the partitions are ranges.
    pub(crate) fn ranges(&self, bound: u64) -> Option<Placement> {
        let starts = match self {
            Partitioner::Hash { .. } | Partitioner::Own { .. } => return None,
            Partitioner::Explicit { starts } => starts.clone(),
            Partitioner::Range { partition_count } => {
                let (count, wide) = (u128::from(*partition_count), u128::from(bound));
                (0..count).map(|i| (i * wide / count) as u64).collect()
            }
        };
        Some(Placement::Ranges { starts, bound })
    }

    /// Returns the placement of the keys below `bound`, or what is wrong with the settings: the actual and the expected
    /// value. `functions` has the partitioners of the program.
    pub(crate) fn placement(
        &self,
        bound: u64,
        functions: &FunctionTable,
    ) -> Result<Placement, (String, String)> {
        let partition_count = match self {
            Partitioner::Explicit { starts } => starts.len() as u64,
            _ => u64::from(self.partition_count()),
        };
        if partition_count == 0 || partition_count > u64::from(PARTITION_LIMIT) {
            return Err((format!("{partition_count} partitions"), format!("1 to {PARTITION_LIMIT}")));
        }
        match self {
            Partitioner::Range { .. } | Partitioner::Hash { .. } => {}
            Partitioner::Explicit { starts } => check_starts(starts, bound)?,
            Partitioner::Own { name, .. } => {
                let own = functions.partitioners.get(name.as_str()).copied();
                let own = own.ok_or_else(|| unknown(name, functions))?;
                return Ok(Placement::Own { own, partition_count });
            }
        }
        Ok(self.ranges(bound).unwrap_or(Placement::Hash { partition_count }))
    }
}

fn check_starts(starts: &[u64], bound: u64) -> Result<(), (String, String)> {
    if starts[0] != 0 {
        return Err((format!("explicit from key {}", starts[0]), "a first range that starts at 0".into()));
    }
    if let Some([before, start]) = starts.array_windows().find(|[before, start]| before >= start) {
        return Err((format!("start {start} after {before}"), "strictly ascending starts".into()));
    }
    let last = starts[starts.len() - 1];
    if last >= bound {
        return Err((format!("start {last}"), format!("starts below the {bound} keys")));
    }
    Ok(())
}

/// What is wrong with a name that the program does not know.
fn unknown(name: &str, functions: &FunctionTable) -> (String, String) {
    let known: Vec<&str> = functions.partitioners.keys().copied().collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let expected = format!(
        "one of this program ({known}): every process of a job registers it, see Tables::with_partitioner"
    );
    (format!("the partitioner {name:?}, which this program does not have"), expected)
}

/// A partitioner for a given number of keys.
#[derive(Clone, Debug)]
pub enum Placement {
    /// The upper half of the mixed key selects the partition; the tables inside partitions use the lower half.
    Hash {
        /// From 1 to [`PARTITION_LIMIT`].
        partition_count: u64,
    },
    /// A partitioner of the program selects it.
    Own {
        own: OwnPartitioner,
        /// From 1 to [`PARTITION_LIMIT`].
        partition_count: u64,
    },
    /// Contiguous ranges.
    Ranges {
        /// First key of each partition, ascending.
        starts: Vec<u64>,
        /// All keys are below this bound.
        bound: u64,
    },
}

impl Placement {
    pub fn partition_count(&self) -> usize {
        match self {
            Placement::Hash { partition_count } | Placement::Own { partition_count, .. } => {
                *partition_count as usize
            }
            Placement::Ranges { starts, .. } => starts.len(),
        }
    }

    /// Returns the partition of `key`.
    #[inline]
    pub fn partition_of(&self, key: u64) -> usize {
        match self {
            Placement::Hash { partition_count } => hash_partition(mix64(key), *partition_count),
            Placement::Own { own, partition_count } => own.partition(key, *partition_count),
            Placement::Ranges { starts, .. } => starts.partition_point(|start| *start <= key) - 1,
        }
    }

    /// Returns the keys of partition `i`, if they are contiguous.
    pub fn range(&self, i: usize) -> Option<std::ops::Range<u64>> {
        match self {
            Placement::Hash { .. } | Placement::Own { .. } => None,
            Placement::Ranges { starts, bound } => {
                Some(starts[i]..starts.get(i + 1).copied().unwrap_or(*bound))
            }
        }
    }
}

/// Returns the partition of a mixed key: multiply-shift over its upper half.
#[inline]
pub(crate) fn hash_partition(hash: u64, partition_count: u64) -> usize {
    (((hash >> 32) * partition_count) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks of 10 keys in turn.
    const BLOCKS: OwnPartitioner =
        OwnPartitioner { name: "blocks_of_ten", partition_of: |key, _| (key / 10) as u32 };

    fn functions() -> FunctionTable {
        let mut functions = FunctionTable::builtin();
        functions.add_partitioner(BLOCKS).expect("the name is free");
        functions
    }

    fn own(partition_count: u32) -> Partitioner {
        Partitioner::Own { name: BLOCKS.name.into(), partition_count }
    }

    fn partitioners() -> impl Strategy<Value = (Partitioner, u64)> {
        let bound = prop_oneof![1u64..50, 1_000u64..1_000_000, Just(1u64 << 63)];
        let kind = (0u8..4, 1u32..40, prop::collection::btree_set(1u64..50, 0..10));
        (kind, bound).prop_map(|((kind, partition_count, starts), bound)| {
            let partitioner = match kind {
                0 => Partitioner::Range { partition_count },
                1 => Partitioner::Hash { partition_count },
                2 => own(partition_count),
                _ => Partitioner::Explicit {
                    starts: std::iter::once(0).chain(starts.into_iter().filter(|s| *s < bound)).collect(),
                },
            };
            (partitioner, bound)
        })
    }

    proptest! {
        #[test]
        fn every_key_has_exactly_one_place((partitioner, bound) in partitioners(), picks in prop::collection::vec(any::<u64>(), 50)) {
            let placement = partitioner.placement(bound, &functions()).unwrap();
            for key in picks.into_iter().map(|pick| pick % bound).chain([0, bound - 1]) {
                let place = placement.partition_of(key);
                prop_assert!(place < placement.partition_count());
                let holders = (0..placement.partition_count()).filter(|i| placement.range(*i).is_some_and(|r| r.contains(&key)));
                let holders: Vec<_> = holders.collect();
                prop_assert!(!matches!(placement, Placement::Ranges { .. }) || holders == [place], "{holders:?} {place}");
            }
        }

        #[test]
        fn ranges_cover_all_keys_and_are_even((count, bound) in (1u32..60, 1u64..10_000)) {
            let placement = Partitioner::Range { partition_count: count }.ranges(bound).unwrap();
            let ranges: Vec<_> = (0..count as usize).filter_map(|i| placement.range(i)).collect();
            prop_assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, bound));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let lengths = ranges.iter().map(|range| range.end - range.start);
            prop_assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }
    }

    #[test]
    fn hashing_spreads_neighbouring_keys_evenly() {
        let placement = Partitioner::Hash { partition_count: 7 }.placement(1 << 63, &functions()).unwrap();
        let mut counts = [0u32; 7];
        for key in 0..70_000 {
            counts[placement.partition_of(key)] += 1;
        }
        // The expected count is 10,000 and its standard deviation about 93; the bounds are five deviations away.
        assert!(counts.iter().all(|count| (9_535..10_465).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_partitioner_of_the_program_is_known_by_its_name() {
        let placement = |partitioner: &Partitioner| partitioner.placement(1000, &functions());
        let blocks = placement(&own(3)).unwrap();
        let places: Vec<usize> = [0, 9, 10, 25, 31, 999].map(|key| blocks.partition_of(key)).into();
        assert_eq!(places, [0, 0, 1, 2, 0, 0], "blocks in turn");
        let text = serde_json::to_string(&own(3)).unwrap();
        assert_eq!(text, r#"{"kind":"own","name":"blocks_of_ten","partition_count":3}"#);
        assert_eq!(serde_json::from_str::<Partitioner>(&text).unwrap(), own(3));
        assert!(functions().add_partitioner(BLOCKS).is_err(), "the name is taken");
        let unknown = Partitioner::Own { name: "metis".into(), partition_count: 3 };
        let (actual, expected) = placement(&unknown).unwrap_err();
        assert!(actual.contains("\"metis\"") && expected.contains("blocks_of_ten"), "{actual}, {expected}");
        let (_, expected) = own(3).placement(1000, &FunctionTable::builtin()).unwrap_err();
        assert!(expected.contains("(none)"), "{expected}");
        assert!(placement(&own(0)).is_err() && placement(&own(PARTITION_LIMIT + 1)).is_err());
        assert_eq!(own(3).whole(), Partitioner::Hash { partition_count: 1 });
    }

    #[test]
    fn bad_partitioners_are_refused_with_their_values() {
        let is_refused = |partitioner: Partitioner| partitioner.placement(100, &functions()).is_err();
        assert!(is_refused(Partitioner::Hash { partition_count: 0 }));
        assert!(is_refused(Partitioner::Range { partition_count: PARTITION_LIMIT + 1 }));
        for starts in [vec![], vec![1], vec![0, 5, 5], vec![0, 100]] {
            assert!(is_refused(Partitioner::Explicit { starts: starts.clone() }), "{starts:?}");
        }
    }
}
