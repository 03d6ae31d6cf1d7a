//! The distinct keys of a batch, sorted, and the rank of the key of each entry among them.
//!
//! Keys that are column numbers are small, so a bitmap over the key range needs no comparisons: the code sets the bit
//! of each key, walks the set bits (which gives sorted keys), and computes a rank by counting the bits below. One byte
//! per cache line of the bitmap lets the walk skip empty lines. Keys of strings spread over 62 bits; they go through a
//! hash table and a radix sort. Measured on click data (40 million entries, batches of 4,096 records, one core): 3.5 ns
//! per entry by bitmap, 7.5 by table or by sorting all entries.

use crate::key_vec::KeyVec;
use math::sort::sort_pairs;
use multiversion::multiversion;

/// Words of 64 bits per cache line.
const WORDS_PER_LINE: usize = 8;
/// Bytes of `touched` that are tested together.
const SCAN_BYTES: usize = 8;
/// Number of keys that the walk may write behind the last one.
const SPARE: usize = 2;

/// An empty slot of the table. No key has this value, because keys are below `1 << 63`.
const FREE_SLOT: u64 = u64::MAX;

/// Collects the keys of records as they are finished, and computes distinct keys and ranks for all of them. The working
/// memory is reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct DistinctKeys {
    bitmap: Bitmap,
    table: HashTable,
}

impl DistinctKeys {
    /// Adds the keys of one record, as long as all keys of the batch are small. Because this happens record by record,
    /// the cache misses of the bitmap overlap with parsing.
    #[inline]
    pub(crate) fn add(&mut self, keys: &[u32]) {
        self.bitmap.mark(keys);
    }

    /// Sets `columns` to the sorted distinct keys and `indices` to the rank of each key. `keys` are those of all
    /// records since the last call; if all are small, each of them must have been passed to [`Self::add`].
    pub(crate) fn index(&mut self, keys: &KeyVec, columns: &mut Vec<u64>, indices: &mut Vec<u32>) {
        columns.clear();
        indices.clear();
        indices.reserve(keys.len());
        if let Some(keys) = keys.small() {
            self.bitmap.collect_keys(keys.len(), columns);
            ranks(&self.bitmap.words, &self.bitmap.rank, keys, indices);
            self.bitmap.clear_collected();
        } else {
            self.table.index(keys.wide(), columns, indices);
            self.bitmap.clear();
        }
    }
}

#[derive(Debug, Default)]
struct Bitmap {
    /// Bit `key % 64` of word `key / 64`. All words are 0 between batches.
    words: Vec<u64>,
    /// Not 0 when one of the 8 words of a cache line is not 0. All bytes are 0 between batches. A byte is stored
    /// without being read, so that nearby keys do not wait for each other.
    touched: Vec<u8>,
    /// Number of keys in the words before this one; valid only for words that are not 0.
    rank: Vec<u32>,
    /// Scratch memory: numbers of the touched lines, and of the words in them that are not 0.
    touched_lines: Vec<u32>,
    line_count: usize,
    nonzero_words: Vec<u32>,
    /// Scratch memory: the keys that the walk collects.
    set_keys: Vec<u64>,
}

impl Bitmap {
    /// Sets the bits of `keys`.
    #[inline]
    fn mark(&mut self, keys: &[u32]) {
        let bound = keys.iter().fold(0, |bits, key| bits | key);
        let line_count = (bound >> 9) as usize + 1;
        if self.touched.len() < line_count {
            self.grow(line_count);
        }
        for &key in keys {
            self.words[(key >> 6) as usize] |= 1 << (key & 63);
            self.touched[(key >> 9) as usize] = 1;
        }
    }

    #[cold]
    fn grow(&mut self, line_count: usize) {
        self.touched.resize(line_count, 0);
        self.words.resize(line_count * WORDS_PER_LINE, 0);
        self.rank.resize(line_count * WORDS_PER_LINE, 0);
    }

    /// Writes the set keys in order, and the ranks of the words.
    fn collect_keys(&mut self, key_count: usize, columns: &mut Vec<u64>) {
        let make_room = |list: &mut Vec<u32>, count: usize| {
            if list.len() < count {
                list.resize(count, 0);
            }
        };
        make_room(&mut self.touched_lines, self.touched.len().min(key_count) + SCAN_BYTES);
        let count = touched_lines(&self.touched, &mut self.touched_lines);
        self.line_count = count;
        make_room(&mut self.nonzero_words, (count * WORDS_PER_LINE).min(key_count) + SCAN_BYTES);
        let count = nonzero_words(&self.words, &self.touched_lines[..count], &mut self.nonzero_words);
        if self.set_keys.len() < key_count + SPARE {
            self.set_keys.resize(key_count + SPARE, 0);
        }
        let count =
            collect_set_keys(&self.words, &self.nonzero_words[..count], &mut self.rank, &mut self.set_keys);
        columns.extend_from_slice(&self.set_keys[..count]);
    }

    /// Clears all bits; only the lines of the last walk have any.
    fn clear_collected(&mut self) {
        let (lines, _) = self.words.as_chunks_mut::<WORDS_PER_LINE>();
        for &line in &self.touched_lines[..self.line_count] {
            lines[line as usize] = [0; WORDS_PER_LINE];
            self.touched[line as usize] = 0;
        }
    }

    /// Clears all bits when there was no walk.
    fn clear(&mut self) {
        let (lines, _) = self.words.as_chunks_mut::<WORDS_PER_LINE>();
        for (line, touched) in lines.iter_mut().zip(&mut self.touched) {
            if *touched != 0 {
                *line = [0; WORDS_PER_LINE];
                *touched = 0;
            }
        }
    }
}

/// Writes the numbers of the touched lines to `out`, ascending, and returns how many there are. `out` must have space
/// for one more.
///
/// A branch on whether a line is touched would be mispredicted. Each number is therefore written, and overwritten by
/// the next one if its line is not touched.
fn touched_lines(touched: &[u8], out: &mut [u32]) -> usize {
    let mut count = 0;
    for (step, at) in touched.chunks(SCAN_BYTES).zip((0..).step_by(SCAN_BYTES)) {
        if step.iter().fold(0, |any, touched| any | touched) == 0 {
            continue;
        }
        for (line, touched) in (at..).zip(step) {
            out[count] = line;
            count += usize::from(*touched);
        }
    }
    count
}

/// Writes the numbers of the words of `lines` that are not 0 to `out`, ascending, and returns how many there are. `out`
/// must have space for one more.
fn nonzero_words(words: &[u64], lines: &[u32], out: &mut [u32]) -> usize {
    let mut count = 0;
    let (all, _) = words.as_chunks::<WORDS_PER_LINE>();
    for &number in lines {
        for (word, bits) in (number * WORDS_PER_LINE as u32..).zip(all[number as usize]) {
            out[count] = word;
            count += usize::from(bits != 0);
        }
    }
    count
}

/// Writes the keys of the set bits to `found`, ascending, and returns how many there are. For each word of `filled` it
/// writes the number of keys before that word to `rank`. `found` must have space for all keys and [`SPARE`] more.
///
/// A branch on the number of bits of a word would be mispredicted. Two keys are therefore written for each word; the
/// second one is overwritten by the next word if it does not exist.
#[multiversion(targets("x86_64+popcnt+bmi1+bmi2"))]
fn collect_set_keys(words: &[u64], filled: &[u32], rank: &mut [u32], set_keys: &mut [u64]) -> usize {
    let mut count = 0;
    for &number in filled {
        let (first, mut bits) = (u64::from(number) * 64, words[number as usize]);
        rank[number as usize] = count as u32;
        let end = count + bits.count_ones() as usize;
        let out = &mut set_keys[count..end.max(count + 2)];
        out[0] = first | u64::from(bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        out[1] = first | u64::from(bits.trailing_zeros());
        for out in &mut out[2..] {
            bits &= bits.wrapping_sub(1);
            *out = first | u64::from(bits.trailing_zeros());
        }
        count = end;
    }
    count
}

/// Appends, for each key, the number of smaller keys in the bitmap.
#[multiversion(targets("x86_64+popcnt+bmi1+bmi2"))]
fn ranks(words: &[u64], rank: &[u32], keys: &[u32], indices: &mut Vec<u32>) {
    indices.extend(keys.iter().map(|&key| {
        let w = (key >> 6) as usize;
        rank[w] + (words[w] & ((1 << (key & 63)) - 1)).count_ones()
    }));
}

/// An open-addressing table from key to order of first occurrence, followed by a sort of the distinct keys.
#[derive(Debug, Default)]
struct HashTable {
    slots: Vec<(u64, u32)>,
    entries: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
    rank: Vec<u32>,
}

impl HashTable {
    fn index(&mut self, keys: &[u64], columns: &mut Vec<u64>, indices: &mut Vec<u32>) {
        self.entries.clear();
        // The table is half full when all keys are distinct.
        let place_count = (keys.len() * 2).next_power_of_two();
        self.slots.clear();
        self.slots.resize(place_count, (FREE_SLOT, 0));
        let shift = u64::BITS - place_count.trailing_zeros();
        for &key in keys {
            let mut place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize;
            let order = loop {
                let entry = &mut self.slots[place];
                if entry.0 == key {
                    break entry.1;
                }
                if entry.0 == FREE_SLOT {
                    *entry = (key, self.entries.len() as u32);
                    self.entries.push(*entry);
                    break entry.1;
                }
                place = (place + 1) & (place_count - 1);
            };
            indices.push(order);
        }
        sort_pairs(&mut self.entries, &mut self.scratch);
        self.rank.clear();
        self.rank.resize(self.entries.len(), 0);
        for (rank, &(key, order)) in (0u32..).zip(&self.entries) {
            columns.push(key);
            self.rank[order as usize] = rank;
        }
        for index in indices {
            *index = self.rank[*index as usize];
        }
    }
}

#[cfg(test)]
mod tests;
