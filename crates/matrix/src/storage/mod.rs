//! A table: keys and rows in one of three stores. The loops over keys are here.
//!
//! The loops for pull and push prefetch what they need one block of keys later: first the cache line of the key's
//! bucket, then, when that has arrived, the row (which may be in the same line). So the waits for memory overlap.

pub(crate) mod before_images;
mod dense;
mod narrow;
mod row_store;
pub(crate) mod rows;
mod sparse;

use std::ops::Range;

use crate::element::Element;
use crate::initializer::InitialValues;
use crate::rule::{PreparedRule, PushRule, RuleElement};
use dense::DenseRows;
use narrow::{KEY_LIMIT, NarrowRows, is_cache_line};
pub(crate) use row_store::{RowStore, Share};
use rows::ABSENT;
use sparse::SparseRows;

/// The position is not known yet; the row may exist.
const UNKNOWN: u32 = ABSENT - 1;

/// Number of buckets or rows by which prefetching is ahead of a visit to all of them.
pub(crate) const PREFETCH_DISTANCE: usize = 16;

/// Number of keys in a block: as many cache lines as a core can fetch at once.
const BLOCK: usize = 16;

#[derive(Debug)]
enum TableRows<E> {
    Dense(DenseRows<E>),
    Sparse(SparseRows<E>),
    One(NarrowRows<E, 1, 8>),
    Two(NarrowRows<E, 2, 5>),
    Three(NarrowRows<E, 3, 4>),
}

/// Expands to the same expression for each kind of store.
macro_rules! with_store {
    ($rows:expr, $store:ident => $then:expr) => {
        match $rows {
            TableRows::Dense($store) => $then,
            TableRows::Sparse($store) => $then,
            TableRows::One($store) => $then,
            TableRows::Two($store) => $then,
            TableRows::Three($store) => $then,
        }
    };
}

mod snapshots;

/// How new rows are initialized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowInitializer {
    pub(crate) rule: PushRule,
    pub(crate) columns: usize,
    pub(crate) initial: InitialValues,
    /// The offset that is added to the key. By column, each element counts as a row with a number of its own.
    pub(crate) key_offset: u64,
}

impl RowInitializer {
    /// The values of a row that does not exist.
    fn values<E: Element>(&self, key: u64, out: &mut [E]) {
        if self.initial.reads_zero() {
            out.fill(E::ZERO);
        } else {
            self.initial.fill(self.key_offset + key, out);
        }
    }

    /// Initializes a row of zeros.
    #[inline]
    fn init_row<E: RuleElement>(&self, key: u64, row: &mut [E]) {
        if !self.initial.is_zero() {
            self.initial.fill(self.key_offset + key, &mut row[..self.columns]);
            E::init_slots(&self.rule, self.columns, row);
        }
    }
}

/// Rows by key, with the initializer of new rows.
#[derive(Debug)]
pub(crate) struct Table<E> {
    rows: TableRows<E>,
    initializer: RowInitializer,
    /// Rows that were replaced as a whole, for the snapshots that have them.
    earlier: Vec<TableRows<E>>,
}

impl<E: RuleElement> Table<E> {
    /// Creates an empty table for arbitrary keys.
    pub(crate) fn sparse(initializer: RowInitializer) -> Self {
        let width = initializer.rule.row_width(initializer.columns);
        let rows = match width {
            1 if is_cache_line::<E, 1, 8>() => TableRows::One(NarrowRows::new()),
            2 if is_cache_line::<E, 2, 5>() => TableRows::Two(NarrowRows::new()),
            3 if is_cache_line::<E, 3, 4>() => TableRows::Three(NarrowRows::new()),
            _ => TableRows::Sparse(SparseRows::new(width)),
        };
        Self { rows, initializer, earlier: Vec::new() }
    }

    /// Creates a table with all rows of a range.
    pub(crate) fn dense(range: Range<u64>, initializer: RowInitializer) -> Self {
        let len = (range.end - range.start) as u32;
        let mut rows = DenseRows::new(range.start, len, initializer.rule.row_width(initializer.columns));
        if !initializer.initial.is_zero() {
            for position in 0..len {
                initializer.init_row(range.start + u64::from(position), rows.row_mut(position));
            }
        }
        Self { rows: TableRows::Dense(rows), initializer, earlier: Vec::new() }
    }

    /// Resets all rows to their initial values, and makes room for so many.
    pub(crate) fn clear(&mut self, row_count: usize) {
        let cleared = self.new_like(row_count);
        self.replace(cleared.rows);
    }

    /// Creates a table as this one was when it was new, with room for so many rows.
    fn new_like(&self, row_count: usize) -> Self {
        if let TableRows::Dense(dense) = &self.rows {
            let range = dense.start()..dense.start() + u64::from(dense.len());
            return Self::dense(range, self.initializer);
        }
        let mut table = Self::sparse(self.initializer);
        with_store!(&mut table.rows, store => store.reserve(row_count));
        table
    }

    fn replace(&mut self, rows: TableRows<E>) {
        let replaced = std::mem::replace(&mut self.rows, rows);
        if with_store!(&replaced, store => store.has_snapshots()) {
            self.earlier.push(replaced);
        }
    }

    pub(crate) fn row_count(&self) -> u32 {
        with_store!(&self.rows, store => store.len())
    }

    /// All positions are below this bound.
    pub(crate) fn position_bound(&self) -> u32 {
        with_store!(&self.rows, store => store.position_bound())
    }

    pub(crate) fn bytes(&self) -> u64 {
        with_store!(&self.rows, store => store.bytes())
    }

    /// Visits the keys of a share with the positions of their rows, in the order of the table.
    pub(crate) fn for_each_key(&self, share: Share, visit: impl FnMut(u64, u32)) {
        with_store!(&self.rows, store => store.for_each_key(share, visit));
    }

    /// Returns the row at a position: values and slots.
    #[inline]
    pub(crate) fn row(&self, position: u32) -> &[E] {
        with_store!(&self.rows, store => store.row(position))
    }

    /// Prefetches a row.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        with_store!(&self.rows, store => store.prefetch_row(position));
    }

    /// Sets the values of the row at a position, and its slots. Without `slots`, the rule computes them from the
    /// values.
    pub(crate) fn set(&mut self, position: u32, values: &[E], slots: Option<&[E]>) {
        let row = with_store!(&mut self.rows, store => store.row_mut(position));
        row[..values.len()].copy_from_slice(values);
        match slots {
            Some(slots) => row[values.len()..].copy_from_slice(slots),
            None => E::init_slots(&self.initializer.rule, self.initializer.columns, row),
        }
    }

    /// Finds the rows of `keys` (n, in any order), creates the missing ones, and writes their positions to `positions` (n).
    pub(crate) fn find_or_add(&mut self, keys: &[u64], positions: &mut [u32]) {
        self.widen(keys.iter().max().copied());
        let Self { rows, initializer, .. } = self;
        with_store!(rows, store => find_or_add_by(store, initializer, keys, positions));
    }

    /// Reads the values of `keys` (n) into `out`, the i-th as row `place(i)` of it. `positions` (n) has the known row
    /// positions ([`ABSENT`] for the others) and receives those that are found.
    pub(crate) fn pull(
        &self,
        keys: &[u64],
        positions: &mut [u32],
        out: &mut [E],
        place: impl Fn(usize) -> usize,
    ) {
        with_store!(&self.rows, store => pull_by(store, &self.initializer, keys, positions, out, place));
    }

    /// Applies the rule to the rows of `keys` (n). The change of the i-th key is row `place(i)` of `values`. Missing
    /// rows are created. `positions` is used as in [`Self::pull`]. Returns whether rows have moved: then `positions` is
    /// valid and all earlier positions are not.
    pub(crate) fn push<S: PreparedRule<E>>(
        &mut self,
        keys: &[u64],
        positions: &mut [u32],
        values: &[E],
        place: impl Fn(usize) -> usize,
        step: &S,
    ) -> bool {
        let widened = self.widen(keys.last().copied());
        if widened {
            positions.fill(ABSENT);
        }
        let Self { rows, initializer, .. } = self;
        with_store!(rows, store => push_by(store, initializer, keys, positions, values, place, step))
            || widened
    }

    /// Does the same as [`Self::pull`] for keys in the caller's order, if the rows are contiguous; returns false when
    /// they are not.
    pub(crate) fn pull_contiguous(&self, keys: &[u64], out: &mut [E]) -> bool {
        matches!(&self.rows, TableRows::Dense(rows) if rows.pull_contiguous(keys, self.initializer.columns, out))
    }

    /// Appends the values of `keys` to `out` if the rows are contiguous; returns false when they are not.
    pub(crate) fn append_contiguous(&self, keys: &[u64], out: &mut Vec<E>) -> bool {
        matches!(&self.rows, TableRows::Dense(rows) if rows.append_contiguous(keys, self.initializer.columns, out))
    }

    /// Does the same as [`Self::push`] for keys in the caller's order, if the rows are contiguous; returns false when
    /// they are not.
    pub(crate) fn push_contiguous<S: PreparedRule<E>>(
        &mut self,
        keys: &[u64],
        values: &[E],
        step: &S,
    ) -> bool {
        match &mut self.rows {
            TableRows::Dense(rows) => rows.push_contiguous(keys, self.initializer.columns, values, step),
            TableRows::Sparse(_) | TableRows::One(_) | TableRows::Two(_) | TableRows::Three(_) => false,
        }
    }

    /// Returns the first key and the values of all rows, if the table is dense and each row is one element: a row of a
    /// matrix partitioned by column.
    pub(crate) fn contiguous_values(&self) -> Option<(u64, &[E])> {
        if let TableRows::Dense(rows) = &self.rows { rows.contiguous_values() } else { None }
    }

    /// Replaces the values of all rows, where [`Self::contiguous_values`] has them, and returns the old ones.
    pub(crate) fn replace_contiguous_values(&mut self, values: Vec<E>) -> Vec<E> {
        match &mut self.rows {
            TableRows::Dense(rows) => rows.replace_contiguous_values(values),
            TableRows::Sparse(_) | TableRows::One(_) | TableRows::Two(_) | TableRows::Three(_) => values,
        }
    }

    /// Does the same as [`Self::contiguous_values`], for writing.
    pub(crate) fn contiguous_values_mut(&mut self) -> Option<&mut [E]> {
        if let TableRows::Dense(rows) = &mut self.rows { rows.contiguous_values_mut() } else { None }
    }

    /// Converts narrow rows to wide ones if the largest of the keys to come is too large for narrow rows. Returns whether
    /// rows have moved.
    fn widen(&mut self, largest: Option<u64>) -> bool {
        let narrow = matches!(self.rows, TableRows::One(_) | TableRows::Two(_) | TableRows::Three(_));
        let widens = narrow && largest.is_some_and(|key| key >= KEY_LIMIT);
        if widens {
            let mut wide = SparseRows::new(self.initializer.rule.row_width(self.initializer.columns));
            wide.reserve(self.row_count() as usize);
            self.for_each_key(Share::WHOLE, |key, position| {
                let at = wide.add(wide.hash(key), key);
                wide.row_mut(at).copy_from_slice(self.row(position));
            });
            self.replace(TableRows::Sparse(wide));
        }
        widens
    }
}

#[inline]
fn pull_by<E: RuleElement, R: RowStore<E>>(
    store: &R,
    initializer: &RowInitializer,
    keys: &[u64],
    positions: &mut [u32],
    out: &mut [E],
    place: impl Fn(usize) -> usize,
) {
    let columns = initializer.columns;
    let read = |i: usize, position: u32, out: &mut [E]| {
        let at = place(i);
        if position == ABSENT {
            initializer.values(keys[i], &mut out[at * columns..(at + 1) * columns]);
        } else if columns == 1 {
            out[at] = store.row(position)[0];
        } else {
            out[at * columns..(at + 1) * columns].copy_from_slice(&store.row(position)[..columns]);
        }
    };
    let read_late = |i: usize, positions: &mut [u32], out: &mut [E]| {
        if positions[i] == UNKNOWN {
            positions[i] = store.find(store.hash(keys[i]), keys[i]);
        }
        read(i, positions[i], out);
    };
    let n = keys.len();
    let mut hashes = [0; 2 * BLOCK];
    // A key whose row is still being fetched is read after the next block was looked up.
    let (mut late, mut next_late) = (PendingKeys::default(), PendingKeys::default());
    prefetch_keys(store, keys, positions, 0, &mut hashes);
    for start in (0..n).step_by(BLOCK) {
        prefetch_keys(store, keys, positions, start + BLOCK, &mut hashes);
        for i in start..n.min(start + BLOCK) {
            let looked = positions[i] == ABSENT;
            if looked {
                positions[i] = store.probe_prefetched(hashes[i % (2 * BLOCK)], keys[i]);
            }
            if looked && R::ROWS_ARE_INLINE && positions[i] != UNKNOWN {
                read(i, positions[i], out);
            } else {
                store.prefetch_row(positions[i]);
                next_late.add(i);
            }
        }
        late.drain(|i| read_late(i, positions, out));
        std::mem::swap(&mut late, &mut next_late);
    }
    late.drain(|i| read_late(i, positions, out));
}

/// Indices of keys that are read later; at most one block.
#[derive(Default)]
struct PendingKeys {
    items: [usize; BLOCK],
    len: usize,
}

impl PendingKeys {
    #[inline]
    fn add(&mut self, i: usize) {
        self.items[self.len % BLOCK] = i;
        self.len += 1;
    }

    #[inline]
    fn drain(&mut self, visit: impl FnMut(usize)) {
        self.items[..self.len.min(BLOCK)].iter().copied().for_each(visit);
        self.len = 0;
    }
}

#[inline]
fn push_by<E: RuleElement, R: RowStore<E>, S: PreparedRule<E>>(
    store: &mut R,
    initializer: &RowInitializer,
    keys: &[u64],
    positions: &mut [u32],
    values: &[E],
    place: impl Fn(usize) -> usize,
    step: &S,
) -> bool {
    let columns = initializer.columns;
    let mut moved = false;
    let mut change = |store: &mut R, block: Range<usize>, positions: &mut [u32]| {
        if !store.has_room(block.len()) {
            store.grow(block.len());
            positions.fill(ABSENT);
            moved = true;
        }
        for i in block {
            if positions[i] >= UNKNOWN {
                positions[i] = find_or_add(store, initializer, store.hash(keys[i]), keys[i]);
            }
            let (position, at) = (positions[i], place(i));
            if columns == 1 {
                step.update_row(store.row_mut(position), std::slice::from_ref(&values[at]));
            } else {
                step.update_row(store.row_mut(position), &values[at * columns..(at + 1) * columns]);
            }
        }
    };
    let n = keys.len();
    let mut hashes = [0; 2 * BLOCK];
    let mut near = 0..0;
    prefetch_keys(store, keys, positions, 0, &mut hashes);
    for start in (0..n).step_by(BLOCK) {
        prefetch_keys(store, keys, positions, start + BLOCK, &mut hashes);
        let block = start..n.min(start + BLOCK);
        probe_keys(store, keys, positions, block.clone(), &hashes);
        change(store, near, positions);
        near = block;
    }
    change(store, near, positions);
    moved
}

/// Hashes the keys of the block at `start` whose positions are not known, and prefetches their buckets.
#[inline]
fn prefetch_keys<E, R: RowStore<E>>(
    store: &R,
    keys: &[u64],
    positions: &[u32],
    start: usize,
    hashes: &mut [u64; 2 * BLOCK],
) {
    for i in start..keys.len().min(start + BLOCK) {
        if positions[i] == ABSENT {
            let hash = store.hash(keys[i]);
            hashes[i % (2 * BLOCK)] = hash;
            store.prefetch_key(hash);
        }
    }
}

/// Looks up the keys of a block whose positions are not known, and prefetches their rows.
#[inline]
fn probe_keys<E, R: RowStore<E>>(
    store: &R,
    keys: &[u64],
    positions: &mut [u32],
    block: Range<usize>,
    hashes: &[u64; 2 * BLOCK],
) {
    for i in block {
        if positions[i] == ABSENT {
            positions[i] = store.probe_prefetched(hashes[i % (2 * BLOCK)], keys[i]);
        }
        store.prefetch_row(positions[i]);
    }
}

#[inline]
fn find_or_add<E: RuleElement, R: RowStore<E>>(
    store: &mut R,
    initializer: &RowInitializer,
    hash: u64,
    key: u64,
) -> u32 {
    let position = store.find(hash, key);
    if position != ABSENT {
        return position;
    }
    let position = store.add(hash, key);
    initializer.init_row(key, store.row_mut(position));
    position
}

fn find_or_add_by<E: RuleElement, R: RowStore<E>>(
    store: &mut R,
    initializer: &RowInitializer,
    keys: &[u64],
    positions: &mut [u32],
) {
    store.reserve(keys.len());
    positions.fill(ABSENT);
    let mut hashes = [0; 2 * BLOCK];
    prefetch_keys(store, keys, positions, 0, &mut hashes);
    for start in (0..keys.len()).step_by(BLOCK) {
        prefetch_keys(store, keys, positions, start + BLOCK, &mut hashes);
        for i in start..keys.len().min(start + BLOCK) {
            positions[i] = find_or_add(store, initializer, hashes[i % (2 * BLOCK)], keys[i]);
        }
    }
}

#[cfg(test)]
mod tests;
