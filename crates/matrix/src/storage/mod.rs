//! A table: an index from key to position, and rows. The loops over keys are here.
//!
//! Both loops ask the cache for what they will need one block of keys later: first the line of the index, then, when
//! that has arrived, the row; so that the waits for memory overlap.

pub(crate) mod dense;
pub(crate) mod rows;
pub(crate) mod sparse;

use std::ops::Range;

use crate::element::Element;
use crate::initializer::FirstValues;
use crate::rule::{PushRule, Ruled, Step};
use dense::DenseIndex;
use rows::{ABSENT, Rows};
use sparse::SparseIndex;

/// Keys of a block: as many lines as a core can wait for at once.
const BLOCK: usize = 16;

/// From a key to the position of its row.
pub(crate) trait Locate {
    fn hash(&self, key: u64) -> u64;
    fn prefetch(&self, hash: u64);
    /// The position, or [`ABSENT`].
    fn find(&self, hash: u64, key: u64) -> u32;
    /// The position; `add` makes one when there is none.
    fn find_or_add(&mut self, hash: u64, key: u64, add: impl FnOnce() -> u32) -> u32;
}

#[derive(Debug)]
enum Index {
    Dense(DenseIndex),
    Sparse(SparseIndex),
}

/// How a row comes to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) rule: PushRule,
    pub(crate) columns: usize,
    pub(crate) first: FirstValues,
    /// Added to the key: by column, each element is a row with a number of its own.
    pub(crate) key_offset: u64,
}

impl Birth {
    fn values<E: Element>(&self, key: u64, out: &mut [E]) {
        if self.first.is_zero() {
            out.fill(E::ZERO);
        } else {
            self.first.fill(self.key_offset + key, out);
        }
    }

    /// Makes a row of zeros a new row.
    #[inline]
    fn start<E: Ruled>(&self, key: u64, row: &mut [E]) {
        if !self.first.is_zero() {
            self.first.fill(self.key_offset + key, &mut row[..self.columns]);
            E::seat(&self.rule, self.columns, row);
        }
    }
}

/// Keys with rows.
#[derive(Debug)]
pub(crate) struct Table<E> {
    index: Index,
    rows: Rows<E>,
    birth: Birth,
}

impl<E: Ruled> Table<E> {
    /// A table without rows over arbitrary keys.
    pub(crate) fn sparse(birth: Birth) -> Self {
        let rows = Rows::new(birth.rule.row_width(birth.columns));
        Self { index: Index::Sparse(SparseIndex::new()), rows, birth }
    }

    /// A table with all rows of a range.
    pub(crate) fn dense(range: Range<u64>, birth: Birth) -> Self {
        let len = (range.end - range.start) as u32;
        let mut rows = Rows::contiguous(birth.rule.row_width(birth.columns), len);
        if !birth.first.is_zero() {
            for position in 0..len {
                birth.start(range.start + u64::from(position), rows.row_mut(position));
            }
        }
        Self { index: Index::Dense(DenseIndex { start: range.start }), rows, birth }
    }

    /// The table as it was when it was new. Positions found before mean nothing any more.
    pub(crate) fn clear(&mut self) {
        *self = match &self.index {
            Index::Sparse(_) => Self::sparse(self.birth),
            Index::Dense(dense) => {
                Self::dense(dense.start..dense.start + u64::from(self.rows.len()), self.birth)
            }
        };
    }

    pub(crate) fn row_count(&self) -> u32 {
        self.rows.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        let index = match &self.index {
            Index::Sparse(sparse) => sparse.bytes(),
            Index::Dense(_) => 0,
        };
        index + self.rows.bytes()
    }

    /// All keys with the positions of their rows, in the order of the table.
    pub(crate) fn each_key(&self, mut visit: impl FnMut(u64, u32)) {
        match &self.index {
            Index::Sparse(sparse) => sparse.iter().for_each(|(key, position)| visit(key, position)),
            Index::Dense(dense) => {
                (0..self.rows.len()).for_each(|position| visit(dense.start + u64::from(position), position));
            }
        }
    }

    /// The row at a position, values and slots.
    #[inline]
    pub(crate) fn row(&self, position: u32) -> &[E] {
        self.rows.row(position)
    }

    /// Asks for a row.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        self.rows.prefetch(position);
    }

    /// Sets the row at a position: values, and its slots or, without them, what the rule makes of the values.
    pub(crate) fn set(&mut self, position: u32, values: &[E], slots: Option<&[E]>) {
        let row = self.rows.row_mut(position);
        row[..values.len()].copy_from_slice(values);
        match slots {
            Some(slots) => row[values.len()..].copy_from_slice(slots),
            None => E::seat(&self.birth.rule, self.birth.columns, row),
        }
    }

    /// Finds the rows of `keys` (n) and creates those that are not there; `positions` (n) as in [`Self::pull`].
    pub(crate) fn find_or_add(&mut self, keys: &[u64], positions: &mut [u32]) {
        let Self { index, rows, birth } = self;
        match index {
            Index::Dense(index) => find_or_add_by(index, rows, birth, keys, positions),
            Index::Sparse(index) => find_or_add_by(index, rows, birth, keys, positions),
        }
    }

    /// Reads the values of `keys` (n) into `out`, the i-th at `place(i)` rows from its start. `positions` (n) gives
    /// what is known of where the rows are ([`ABSENT`]: nothing), and is filled with what is found.
    pub(crate) fn pull(
        &self,
        keys: &[u64],
        positions: &mut [u32],
        out: &mut [E],
        place: impl Fn(usize) -> usize,
    ) {
        match &self.index {
            Index::Dense(index) => self.pull_by(index, keys, positions, out, place),
            Index::Sparse(index) => self.pull_by(index, keys, positions, out, place),
        }
    }

    #[inline]
    fn pull_by<L: Locate>(
        &self,
        index: &L,
        keys: &[u64],
        positions: &mut [u32],
        out: &mut [E],
        place: impl Fn(usize) -> usize,
    ) {
        let columns = self.birth.columns;
        let mut read = |range: Range<usize>, positions: &[u32]| {
            for (i, &position) in range.clone().zip(&positions[range]) {
                let at = place(i);
                if position == ABSENT {
                    self.birth.values(keys[i], &mut out[at * columns..(at + 1) * columns]);
                } else if columns == 1 {
                    out[at] = self.rows.row(position)[0];
                } else {
                    out[at * columns..(at + 1) * columns]
                        .copy_from_slice(&self.rows.row(position)[..columns]);
                }
            }
        };
        let n = keys.len();
        let mut hashes = [0; 2 * BLOCK];
        fetch_index(index, keys, positions, 0, &mut hashes);
        for start in (0..n).step_by(BLOCK) {
            fetch_index(index, keys, positions, start + BLOCK, &mut hashes);
            for i in start..n.min(start + BLOCK) {
                if positions[i] == ABSENT {
                    positions[i] = index.find(hashes[i % (2 * BLOCK)], keys[i]);
                }
                self.rows.prefetch(positions[i]);
            }
            read(start.saturating_sub(BLOCK)..start, positions);
        }
        read(last_block(n)..n, positions);
    }

    /// Makes `step` on the rows of `keys` (n) with the changes at `place(i)` rows from the start of `values`. Rows that
    /// are not there are created. `positions` as in [`Self::pull`].
    pub(crate) fn push<S: Step<E>>(
        &mut self,
        keys: &[u64],
        positions: &mut [u32],
        values: &[E],
        place: impl Fn(usize) -> usize,
        step: &S,
    ) {
        let Self { index, rows, birth } = self;
        match index {
            Index::Dense(index) => push_by(index, rows, birth, keys, positions, values, place, step),
            Index::Sparse(index) => push_by(index, rows, birth, keys, positions, values, place, step),
        }
    }
}

#[inline]
fn push_by<E: Ruled, L: Locate, S: Step<E>>(
    index: &mut L,
    rows: &mut Rows<E>,
    birth: &Birth,
    keys: &[u64],
    positions: &mut [u32],
    values: &[E],
    place: impl Fn(usize) -> usize,
    step: &S,
) {
    let columns = birth.columns;
    let change = |rows: &mut Rows<E>, range: Range<usize>, positions: &[u32]| {
        for (i, &position) in range.clone().zip(&positions[range]) {
            let at = place(i);
            if columns == 1 {
                step.step(rows.row_mut(position), std::slice::from_ref(&values[at]));
            } else {
                step.step(rows.row_mut(position), &values[at * columns..(at + 1) * columns]);
            }
        }
    };
    let n = keys.len();
    let mut hashes = [0; 2 * BLOCK];
    fetch_index(index, keys, positions, 0, &mut hashes);
    for start in (0..n).step_by(BLOCK) {
        fetch_index(index, keys, positions, start + BLOCK, &mut hashes);
        for i in start..n.min(start + BLOCK) {
            if positions[i] == ABSENT {
                positions[i] = find_or_add(index, rows, birth, hashes[i % (2 * BLOCK)], keys[i]);
            }
            rows.prefetch(positions[i]);
        }
        change(rows, start.saturating_sub(BLOCK)..start, positions);
    }
    change(rows, last_block(n)..n, positions);
}

/// Where the last block of `n` keys starts.
fn last_block(n: usize) -> usize {
    n.saturating_sub(1) / BLOCK * BLOCK
}

/// Hashes the keys of the block at `start` whose positions are not known, and asks for their lines of the index.
#[inline]
fn fetch_index<L: Locate>(
    index: &L,
    keys: &[u64],
    positions: &[u32],
    start: usize,
    hashes: &mut [u64; 2 * BLOCK],
) {
    for i in start..keys.len().min(start + BLOCK) {
        if positions[i] == ABSENT {
            let hash = index.hash(keys[i]);
            hashes[i % (2 * BLOCK)] = hash;
            index.prefetch(hash);
        }
    }
}

#[inline]
fn find_or_add<E: Ruled, L: Locate>(
    index: &mut L,
    rows: &mut Rows<E>,
    birth: &Birth,
    hash: u64,
    key: u64,
) -> u32 {
    index.find_or_add(hash, key, || {
        let position = rows.add();
        birth.start(key, rows.row_mut(position));
        position
    })
}

fn find_or_add_by<E: Ruled, L: Locate>(
    index: &mut L,
    rows: &mut Rows<E>,
    birth: &Birth,
    keys: &[u64],
    positions: &mut [u32],
) {
    let mut hashes = [0; 2 * BLOCK];
    fetch_index(index, keys, positions, 0, &mut hashes);
    for start in (0..keys.len()).step_by(BLOCK) {
        fetch_index(index, keys, positions, start + BLOCK, &mut hashes);
        for i in start..keys.len().min(start + BLOCK) {
            if positions[i] == ABSENT {
                positions[i] = find_or_add(index, rows, birth, hashes[i % (2 * BLOCK)], keys[i]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
