//! A table: keys and rows in one of three stores. The loops over keys are here.
//!
//! Both loops ask the cache for what they will need one block of keys later: first the line where the key stands, then,
//! when that has arrived, the row (which may be in the same line); so that the waits for memory overlap.

mod dense;
mod narrow;
pub(crate) mod rows;
mod sparse;

use std::ops::Range;

use crate::element::Element;
use crate::initializer::InitialValues;
use crate::rule::{PreparedRule, PushRule, RuleElement};
use dense::DenseRows;
use narrow::{KEY_LIMIT, NarrowRows, is_cache_line};
use rows::ABSENT;
use sparse::SparseRows;

/// No position, and not known whether there is one.
const UNKNOWN: u32 = ABSENT - 1;

/// Keys of a block: as many lines as a core can wait for at once.
const BLOCK: usize = 16;

/// Rows by key. A row has a position, by which it is found again without its key.
pub(crate) trait RowStore<E> {
    /// Whether [`Self::probe_prefetched`] has also touched the row that it found.
    const ROWS_ARE_INLINE: bool = false;

    /// Number of rows.
    fn len(&self) -> u32;
    /// All positions are below.
    fn position_bound(&self) -> u32 {
        self.len()
    }
    fn bytes(&self) -> u64;
    /// All keys with the positions of their rows, in the order of the store: sort before use.
    fn for_each_key(&self, visit: impl FnMut(u64, u32));
    fn hash(&self, key: u64) -> u64;
    /// Asks for the memory that [`Self::locate`] reads.
    fn prefetch_key(&self, hash: u64);
    /// The position, or [`ABSENT`].
    fn find(&self, hash: u64, key: u64) -> u32;
    /// As [`Self::locate`], but reads only what was asked for: [`UNKNOWN`] when that does not tell, and then the rest has
    /// been asked for.
    fn probe_prefetched(&self, hash: u64, key: u64) -> u32;
    /// Whether `count` rows can be added and no row moves.
    #[inline]
    fn has_room(&self, _count: usize) -> bool {
        true
    }
    /// Makes room. Positions found before mean nothing any more.
    fn grow(&mut self) {}
    /// Adds a row of zeros for a key that is not there; its position. There is room.
    fn add(&mut self, hash: u64, key: u64) -> u32;
    fn row(&self, position: u32) -> &[E];
    fn row_mut(&mut self, position: u32) -> &mut [E];
    /// Asks for the first cache line of a row; nothing for [`ABSENT`].
    fn prefetch_row(&self, position: u32);
}

#[derive(Debug)]
enum TableRows<E> {
    Dense(DenseRows<E>),
    Sparse(SparseRows<E>),
    One(NarrowRows<E, 1, 8>),
    Two(NarrowRows<E, 2, 5>),
    Three(NarrowRows<E, 3, 4>),
}

/// The same expression on whichever store the rows lie in.
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

/// How a row comes to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowInitializer {
    pub(crate) rule: PushRule,
    pub(crate) columns: usize,
    pub(crate) initial: InitialValues,
    /// Added to the key: by column, each element is a row with a number of its own.
    pub(crate) key_offset: u64,
}

impl RowInitializer {
    fn values<E: Element>(&self, key: u64, out: &mut [E]) {
        if self.initial.is_zero() {
            out.fill(E::ZERO);
        } else {
            self.initial.fill(self.key_offset + key, out);
        }
    }

    /// Makes a row of zeros a new row.
    #[inline]
    fn init_row<E: RuleElement>(&self, key: u64, row: &mut [E]) {
        if !self.initial.is_zero() {
            self.initial.fill(self.key_offset + key, &mut row[..self.columns]);
            E::init_slots(&self.rule, self.columns, row);
        }
    }
}

/// Keys with rows.
#[derive(Debug)]
pub(crate) struct Table<E> {
    rows: TableRows<E>,
    initializer: RowInitializer,
}

impl<E: RuleElement> Table<E> {
    /// A table without rows over arbitrary keys.
    pub(crate) fn sparse(birth: RowInitializer) -> Self {
        let width = birth.rule.row_width(birth.columns);
        let rows = match width {
            1 if is_cache_line::<E, 1, 8>() => TableRows::One(NarrowRows::new()),
            2 if is_cache_line::<E, 2, 5>() => TableRows::Two(NarrowRows::new()),
            3 if is_cache_line::<E, 3, 4>() => TableRows::Three(NarrowRows::new()),
            _ => TableRows::Sparse(SparseRows::new(width)),
        };
        Self { rows, initializer: birth }
    }

    /// A table with all rows of a range.
    pub(crate) fn dense(range: Range<u64>, birth: RowInitializer) -> Self {
        let len = (range.end - range.start) as u32;
        let mut rows = DenseRows::new(range.start, len, birth.rule.row_width(birth.columns));
        if !birth.initial.is_zero() {
            for position in 0..len {
                birth.init_row(range.start + u64::from(position), rows.row_mut(position));
            }
        }
        Self { rows: TableRows::Dense(rows), initializer: birth }
    }

    /// The table as it was when it was new. Positions found before mean nothing any more.
    pub(crate) fn clear(&mut self) {
        *self = match &self.rows {
            TableRows::Dense(dense) => {
                Self::dense(dense.start()..dense.start() + u64::from(dense.len()), self.initializer)
            }
            _ => Self::sparse(self.initializer),
        };
    }

    pub(crate) fn row_count(&self) -> u32 {
        with_store!(&self.rows, store => store.len())
    }

    /// All positions are below.
    pub(crate) fn position_bound(&self) -> u32 {
        with_store!(&self.rows, store => store.position_bound())
    }

    pub(crate) fn bytes(&self) -> u64 {
        with_store!(&self.rows, store => store.bytes())
    }

    /// All keys with the positions of their rows, in the order of the table.
    pub(crate) fn for_each_key(&self, visit: impl FnMut(u64, u32)) {
        with_store!(&self.rows, store => store.for_each_key(visit));
    }

    /// The row at a position, values and slots.
    #[inline]
    pub(crate) fn row(&self, position: u32) -> &[E] {
        with_store!(&self.rows, store => store.row(position))
    }

    /// Asks for a row.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        with_store!(&self.rows, store => store.prefetch_row(position));
    }

    /// Sets the row at a position: values, and its slots or, without them, what the rule makes of the values.
    pub(crate) fn set(&mut self, position: u32, values: &[E], slots: Option<&[E]>) {
        let row = with_store!(&mut self.rows, store => store.row_mut(position));
        row[..values.len()].copy_from_slice(values);
        match slots {
            Some(slots) => row[values.len()..].copy_from_slice(slots),
            None => E::init_slots(&self.initializer.rule, self.initializer.columns, row),
        }
    }

    /// Finds the rows of `keys` (n) and creates those that are not there; their `positions` (n).
    pub(crate) fn find_or_add(&mut self, keys: &[u64], positions: &mut [u32]) {
        self.widen(keys);
        let Self { rows, initializer: birth } = self;
        with_store!(rows, store => find_or_add_by(store, birth, keys, positions));
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
        with_store!(&self.rows, store => pull_by(store, &self.initializer, keys, positions, out, place));
    }

    /// Makes `update_row` on the rows of `keys` (n) with the changes at `place(i)` rows from the start of `values`. Rows that
    /// are not there are created. `positions` as in [`Self::pull`]. Whether rows have moved: then `positions` are right,
    /// and all that were found before mean nothing any more.
    pub(crate) fn push<S: PreparedRule<E>>(
        &mut self,
        keys: &[u64],
        positions: &mut [u32],
        values: &[E],
        place: impl Fn(usize) -> usize,
        step: &S,
    ) -> bool {
        let widened = self.widen(keys);
        if widened {
            positions.fill(ABSENT);
        }
        let Self { rows, initializer: birth } = self;
        with_store!(rows, store => push_by(store, birth, keys, positions, values, place, step)) || widened
    }

    /// As [`Self::pull`] of keys that stand in the caller's order, if the rows lie in one piece; false when they do not.
    pub(crate) fn pull_contiguous(&self, keys: &[u64], out: &mut [E]) -> bool {
        matches!(&self.rows, TableRows::Dense(rows) if rows.pull_contiguous(keys, self.initializer.columns, out))
    }

    /// Puts the values of keys behind what `out` has, if the rows lie in one piece; false when they do not.
    pub(crate) fn append_contiguous(&self, keys: &[u64], out: &mut Vec<E>) -> bool {
        matches!(&self.rows, TableRows::Dense(rows) if rows.append_contiguous(keys, self.initializer.columns, out))
    }

    /// As [`Self::push`] of keys that stand in the caller's order, if the rows lie in one piece; false when they do not.
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

    /// The first key and all rows one behind the other, if the table is dense and its rows are one element each: a row of a
    /// matrix partitioned by column.
    pub(crate) fn contiguous_values(&self) -> Option<(u64, &[E])> {
        if let TableRows::Dense(rows) = &self.rows { rows.contiguous_values() } else { None }
    }

    /// As [`Self::contiguous_values`].
    pub(crate) fn contiguous_values_mut(&mut self) -> Option<&mut [E]> {
        if let TableRows::Dense(rows) = &mut self.rows { rows.contiguous_values_mut() } else { None }
    }

    /// Makes place for `keys` (n, of a run: the largest comes last) that are too large for narrow rows; whether rows have
    /// moved.
    fn widen(&mut self, keys: &[u64]) -> bool {
        let narrow = matches!(self.rows, TableRows::One(_) | TableRows::Two(_) | TableRows::Three(_));
        let widens = narrow && keys.last().is_some_and(|key| *key >= KEY_LIMIT);
        if widens {
            let mut wide = SparseRows::new(self.initializer.rule.row_width(self.initializer.columns));
            self.for_each_key(|key, position| {
                let at = wide.add(wide.hash(key), key);
                wide.row_mut(at).copy_from_slice(self.row(position));
            });
            self.rows = TableRows::Sparse(wide);
        }
        widens
    }
}

#[inline]
fn pull_by<E: RuleElement, R: RowStore<E>>(
    store: &R,
    birth: &RowInitializer,
    keys: &[u64],
    positions: &mut [u32],
    out: &mut [E],
    place: impl Fn(usize) -> usize,
) {
    let columns = birth.columns;
    let read = |i: usize, position: u32, out: &mut [E]| {
        let at = place(i);
        if position == ABSENT {
            birth.values(keys[i], &mut out[at * columns..(at + 1) * columns]);
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
    // Those whose rows are still on their way are read after the next block was looked for.
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

/// Some of the keys of a block.
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
    birth: &RowInitializer,
    keys: &[u64],
    positions: &mut [u32],
    values: &[E],
    place: impl Fn(usize) -> usize,
    step: &S,
) -> bool {
    let columns = birth.columns;
    let mut moved = false;
    let mut change = |store: &mut R, block: Range<usize>, positions: &mut [u32]| {
        if !store.has_room(block.len()) {
            make_room(store, block.len());
            positions.fill(ABSENT);
            moved = true;
        }
        for i in block {
            if positions[i] >= UNKNOWN {
                positions[i] = find_or_add(store, birth, keys[i]);
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

/// Hashes the keys of the block at `init_row` whose positions are not known, and asks for where they stand.
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

/// Looks for the keys of a block whose positions are not known, and asks for the rows that it finds.
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
fn find_or_add<E: RuleElement, R: RowStore<E>>(store: &mut R, birth: &RowInitializer, key: u64) -> u32 {
    let hash = store.hash(key);
    let found = store.find(hash, key);
    if found != ABSENT {
        return found;
    }
    let position = store.add(hash, key);
    birth.init_row(key, store.row_mut(position));
    position
}

fn find_or_add_by<E: RuleElement, R: RowStore<E>>(
    store: &mut R,
    birth: &RowInitializer,
    keys: &[u64],
    positions: &mut [u32],
) {
    make_room(store, keys.len());
    for (key, position) in keys.iter().zip(positions) {
        *position = find_or_add(store, birth, *key);
    }
}

fn make_room<E, R: RowStore<E>>(store: &mut R, count: usize) {
    while !store.has_room(count) {
        store.grow();
    }
}

#[cfg(test)]
mod tests;
