//! The distinct keys of many batches, with their ranks.
//!
//! Small keys are bits, so that inserting and ranking take a few instructions. Large keys, such as those of named
//! features, are a sorted list. New large keys are collected and merged into it whenever there are as many of them as
//! in the list.

use multiversion::multiversion;

/// Keys below it are bits, which take at most 16 MiB.
const BITMAP_KEY_END: u64 = 1 << 27;
/// Words of 64 bits per stored count: a cache line.
const WORDS_PER_COUNT: usize = 8;
/// Least number of large keys that are collected before a merge.
const MIN_MERGE_KEYS: usize = 1 << 16;

/// A set of keys.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    bits: Vec<u64>,
    /// Number of keys below each group of words; [`Self::seal`] computes it.
    counts: Vec<u32>,
    small_count: usize,
    large: Vec<u64>,
    pending: Vec<u64>,
}

impl KeySet {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `keys`, which must be ascending. [`Self::seal`] must be called before the set is queried.
    pub fn insert(&mut self, keys: &[u64]) {
        let (small, large) = keys.split_at(keys.partition_point(|key| *key < BITMAP_KEY_END));
        if let Some(last) = small.last() {
            let words = (*last / 64 + 1) as usize;
            if self.bits.len() < words {
                self.bits.resize(words, 0);
            }
            for key in small {
                self.bits[(key / 64) as usize] |= 1 << (key % 64);
            }
        }
        self.pending.extend_from_slice(large);
        if self.pending.len() >= MIN_MERGE_KEYS.max(self.large.len()) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.large.append(&mut self.pending);
        self.large.sort_unstable();
        self.large.dedup();
    }

    /// Computes the counts for ranks. It must be called after the last insertion.
    pub fn seal(&mut self) {
        self.merge();
        self.pending = Vec::new();
        self.large.shrink_to_fit();
        self.counts.clear();
        let mut count = 0u32;
        for words in self.bits.chunks(WORDS_PER_COUNT) {
            self.counts.push(count);
            count += words.iter().map(|word| word.count_ones()).sum::<u32>();
        }
        self.small_count = count as usize;
    }

    pub fn len(&self) -> usize {
        self.small_count + self.large.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys below `key`, which must be in the set.
    ///
    /// # Panics
    /// May panic when `key` is not in the set or the set is not sealed; otherwise the result is meaningless then.
    pub fn rank(&self, key: u64) -> usize {
        let mut rank = Vec::with_capacity(1);
        self.ranks(&[key], &mut rank);
        rank[0] as usize
    }

    /// Returns [`Self::rank`] of each of `keys`, which must be ascending and in the set.
    ///
    /// # Panics
    /// As [`Self::rank`].
    pub fn ranks(&self, keys: &[u64], out: &mut Vec<u32>) {
        let (small, large) = keys.split_at(keys.partition_point(|key| *key < BITMAP_KEY_END));
        out.clear();
        small_ranks(&self.bits, &self.counts, small, out);
        let mut from = 0;
        for key in large {
            from += self.large[from..].binary_search(key).expect("the key was inserted");
            out.push((self.small_count + from) as u32);
        }
    }

    /// All keys, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let small =
            self.bits.iter().enumerate().flat_map(|(i, word)| SetBits { word: *word, base: i as u64 * 64 });
        small.chain(self.large.iter().copied())
    }
}

/// Appends the ranks of small keys. It is compiled for the instruction that counts bits, where there is one.
#[multiversion(targets("x86_64+popcnt+bmi1+bmi2", "aarch64+neon"))]
fn small_ranks(bits: &[u64], counts: &[u32], keys: &[u64], out: &mut Vec<u32>) {
    out.extend(keys.iter().map(|key| {
        let word = (key / 64) as usize;
        let group = word / WORDS_PER_COUNT;
        let before: u32 = bits[group * WORDS_PER_COUNT..word].iter().map(|word| word.count_ones()).sum();
        let own = (bits[word] & ((1 << (key % 64)) - 1)).count_ones();
        counts[group] + before + own
    }));
}

/// The keys of a word of bits.
struct SetBits {
    word: u64,
    base: u64,
}

impl Iterator for SetBits {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.word == 0 {
            return None;
        }
        let bit = u64::from(self.word.trailing_zeros());
        self.word &= self.word - 1;
        Some(self.base + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_holds_each_key_once_and_knows_its_rank(
            parts in prop::collection::vec(
                prop::collection::btree_set(
                    prop_oneof![0..2_000u64, BITMAP_KEY_END - 70..BITMAP_KEY_END + 70, (1u64 << 62)..(1 << 62) + 50],
                    0..60,
                ),
                0..12,
            ),
        ) {
            let (mut set, mut expected) = (KeySet::new(), BTreeSet::new());
            for part in &parts {
                set.insert(&part.iter().copied().collect::<Vec<_>>());
                expected.extend(part.iter().copied());
            }
            set.seal();
            prop_assert_eq!(set.len(), expected.len());
            prop_assert!(set.iter().eq(expected.iter().copied()));
            let (keys, mut ranks) = (expected.iter().copied().collect::<Vec<_>>(), Vec::new());
            set.ranks(&keys, &mut ranks);
            prop_assert!(ranks.iter().copied().eq(0..keys.len() as u32));
            for (rank, key) in expected.iter().enumerate() {
                prop_assert_eq!(set.rank(*key), rank);
            }
        }
    }

    #[test]
    fn large_keys_are_merged_on_the_way() {
        let mut set = KeySet::new();
        for round in 0..5 {
            let keys: Vec<u64> =
                (0..MIN_MERGE_KEYS as u64).map(|i| (1 << 62) + i * (round % 2 + 1)).collect();
            set.insert(&keys);
            assert!(set.pending.len() < 2 * MIN_MERGE_KEYS);
        }
        set.seal();
        assert_eq!(set.len(), MIN_MERGE_KEYS + MIN_MERGE_KEYS / 2);
    }

    #[test]
    fn a_set_without_keys_is_empty() {
        let mut set = KeySet::new();
        set.insert(&[]);
        set.seal();
        assert!(set.is_empty() && set.iter().next().is_none());
        let mut set = KeySet::new();
        set.insert(&[1 << 40]);
        set.seal();
        assert!(!set.is_empty() && set.len() == 1);
    }
}
