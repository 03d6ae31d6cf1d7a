//! The distinct keys of a batch, sorted, and the rank of every entry's key among them.
//!
//! Keys that are column numbers are small, so a bitmap over the key range does it without a comparison: set the bit of
//! every key, walk the set bits (which come out sorted), and find ranks by counting the bits below. A summary with one
//! bit for every word of the bitmap keeps the walk from visiting empty words. Keys that stand for strings spread over
//! 62 bits; they go through a hash table and a radix sort. Measured on click data (40 million entries, batches of
//! 4,096 records, one core): 3.5 ns an entry by bitmap, 7.5 by table or by sorting all entries.

use math::sort::sort_pairs;
use multiversion::multiversion;

/// Largest key, exclusive, for which the bitmap is used: 32 MiB of bits and ranks at most, of which a batch touches
/// only the words that it names.
const BITMAP_KEY_LIMIT: u64 = 1 << 27;

/// A free place in the table; no key is that large (keys stay below `1 << 63`).
const FREE: u64 = u64::MAX;

/// Work memory, reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    bitmap: Bitmap,
    table: Table,
}

impl Distinct {
    /// `columns` becomes the sorted distinct keys, `indices` the rank of each key.
    pub(crate) fn index(&mut self, keys: &[u64], columns: &mut Vec<u64>, indices: &mut Vec<u32>) {
        columns.clear();
        indices.clear();
        indices.reserve(keys.len());
        let bound = keys.iter().fold(0, |or, &key| or | key);
        if bound < BITMAP_KEY_LIMIT {
            self.bitmap.index(keys, bound, columns, indices);
        } else {
            self.table.index(keys, columns, indices);
        }
    }
}

#[derive(Debug, Default)]
struct Bitmap {
    /// Bit `key % 64` of word `key / 64`. All zero between batches.
    words: Vec<u64>,
    /// Bit `w % 64` of `summary[w / 64]` is set when `words[w]` is not zero. All zero between batches.
    summary: Vec<u64>,
    /// Number of keys in the words before this one; only of words that are not zero.
    rank: Vec<u32>,
}

impl Bitmap {
    fn index(&mut self, keys: &[u64], bound: u64, columns: &mut Vec<u64>, indices: &mut Vec<u32>) {
        // Whole summary words, so that masks below cannot leave the vectors.
        let word_count = ((bound >> 12) as usize + 1) << 6;
        if self.words.len() < word_count {
            self.words.resize(word_count, 0);
            self.rank.resize(word_count, 0);
            self.summary.resize(word_count >> 6, 0);
        }
        for &key in keys {
            self.words[(key >> 6) as usize] |= 1 << (key & 63);
            self.summary[(key >> 12) as usize] |= 1 << (key >> 6 & 63);
        }
        self.walk(columns);
        ranks(&self.words, &self.rank, keys, indices);
        for &key in columns.iter() {
            self.words[(key >> 6) as usize] = 0;
        }
    }

    /// Writes the set keys in order, and the ranks; clears the summary.
    fn walk(&mut self, columns: &mut Vec<u64>) {
        for (s, summary) in self.summary.iter_mut().enumerate() {
            let mut touched = std::mem::take(summary);
            while touched != 0 {
                let w = s << 6 | touched.trailing_zeros() as usize;
                touched &= touched - 1;
                self.rank[w] = columns.len() as u32;
                let mut bits = self.words[w];
                while bits != 0 {
                    columns.push((w as u64) << 6 | u64::from(bits.trailing_zeros()));
                    bits &= bits - 1;
                }
            }
        }
    }
}

/// For each key, the number of smaller keys in the bitmap.
#[multiversion(targets("x86_64+popcnt+bmi1+bmi2"))]
fn ranks(words: &[u64], rank: &[u32], keys: &[u64], indices: &mut Vec<u32>) {
    indices.extend(keys.iter().map(|&key| {
        let w = (key >> 6) as usize;
        rank[w] + (words[w] & ((1 << (key & 63)) - 1)).count_ones()
    }));
}

/// Open addressing from key to order of first sight, then a sort of the distinct keys.
#[derive(Debug, Default)]
struct Table {
    places: Vec<(u64, u32)>,
    seen: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
    rank: Vec<u32>,
}

impl Table {
    fn index(&mut self, keys: &[u64], columns: &mut Vec<u64>, indices: &mut Vec<u32>) {
        self.seen.clear();
        // Half full when every key is distinct.
        let place_count = (keys.len() * 2).next_power_of_two();
        self.places.clear();
        self.places.resize(place_count, (FREE, 0));
        let shift = u64::BITS - place_count.trailing_zeros();
        for &key in keys {
            let mut place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize;
            let order = loop {
                let entry = &mut self.places[place];
                if entry.0 == key {
                    break entry.1;
                }
                if entry.0 == FREE {
                    *entry = (key, self.seen.len() as u32);
                    self.seen.push(*entry);
                    break entry.1;
                }
                place = (place + 1) & (place_count - 1);
            };
            indices.push(order);
        }
        sort_pairs(&mut self.seen, &mut self.scratch);
        self.rank.clear();
        self.rank.resize(self.seen.len(), 0);
        for (rank, &(key, order)) in (0u32..).zip(&self.seen) {
            columns.push(key);
            self.rank[order as usize] = rank;
        }
        for index in indices {
            *index = self.rank[*index as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: sort, remove repetitions, look every key up.
    fn reference(keys: &[u64]) -> (Vec<u64>, Vec<u32>) {
        let mut columns = keys.to_vec();
        columns.sort_unstable();
        columns.dedup();
        let rank = |key| columns.binary_search(key).expect("every key is a column") as u32;
        let indices = keys.iter().map(rank).collect();
        (columns, indices)
    }

    fn keys() -> impl Strategy<Value = Vec<u64>> {
        let key = prop_oneof![0..200u64, 0..BITMAP_KEY_LIMIT, 0..1u64 << 63];
        prop_oneof![
            proptest::collection::vec(0..5000u64, 0..2000),
            proptest::collection::vec(0..BITMAP_KEY_LIMIT, 0..300),
            proptest::collection::vec(key, 0..300),
        ]
    }

    proptest! {
        #[test]
        fn columns_and_ranks_equal_their_definition(batches in proptest::collection::vec(keys(), 1..4)) {
            let mut distinct = Distinct::default();
            let (mut columns, mut indices) = (vec![7], vec![9]);
            for keys in batches {
                distinct.index(&keys, &mut columns, &mut indices);
                prop_assert_eq!((columns.clone(), indices.clone()), reference(&keys));
            }
        }
    }
}
