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
use crate::initializer::FirstValues;
use crate::rule::{PushRule, Ruled, Step};
use dense::DenseRows;
use narrow::{KEY_LIMIT, NarrowRows, is_line};
use rows::ABSENT;
use sparse::SparseRows;

/// No position, and not known whether there is one.
const UNKNOWN: u32 = ABSENT - 1;

/// Keys of a block: as many lines as a core can wait for at once.
const BLOCK: usize = 16;

/// Rows by key. A row has a position, by which it is found again without its key.
pub(crate) trait Store<E> {
    /// Whether [`Self::find_near`] has also touched the row that it found.
    const ROW_STANDS_BY_KEY: bool = false;

    /// Number of rows.
    fn len(&self) -> u32;
    /// All positions are below.
    fn position_bound(&self) -> u32 {
        self.len()
    }
    fn bytes(&self) -> u64;
    /// All keys with the positions of their rows, in the order of the store: sort before use.
    fn each_key(&self, visit: impl FnMut(u64, u32));
    fn hash(&self, key: u64) -> u64;
    /// Asks for the memory that [`Self::find`] reads.
    fn prefetch_key(&self, hash: u64);
    /// The position, or [`ABSENT`].
    fn find(&self, hash: u64, key: u64) -> u32;
    /// As [`Self::find`], but reads only what was asked for: [`UNKNOWN`] when that does not tell, and then the rest has
    /// been asked for.
    fn find_near(&self, hash: u64, key: u64) -> u32;
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
enum Rows<E> {
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
            Rows::Dense($store) => $then,
            Rows::Sparse($store) => $then,
            Rows::One($store) => $then,
            Rows::Two($store) => $then,
            Rows::Three($store) => $then,
        }
    };
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
    rows: Rows<E>,
    birth: Birth,
}

impl<E: Ruled> Table<E> {
    /// A table without rows over arbitrary keys.
    pub(crate) fn sparse(birth: Birth) -> Self {
        let width = birth.rule.row_width(birth.columns);
        let rows = match width {
            1 if is_line::<E, 1, 8>() => Rows::One(NarrowRows::new()),
            2 if is_line::<E, 2, 5>() => Rows::Two(NarrowRows::new()),
            3 if is_line::<E, 3, 4>() => Rows::Three(NarrowRows::new()),
            _ => Rows::Sparse(SparseRows::new(width)),
        };
        Self { rows, birth }
    }

    /// A table with all rows of a range.
    pub(crate) fn dense(range: Range<u64>, birth: Birth) -> Self {
        let len = (range.end - range.start) as u32;
        let mut rows = DenseRows::new(range.start, len, birth.rule.row_width(birth.columns));
        if !birth.first.is_zero() {
            for position in 0..len {
                birth.start(range.start + u64::from(position), rows.row_mut(position));
            }
        }
        Self { rows: Rows::Dense(rows), birth }
    }

    /// The table as it was when it was new. Positions found before mean nothing any more.
    pub(crate) fn clear(&mut self) {
        *self = match &self.rows {
            Rows::Dense(dense) => {
                Self::dense(dense.start()..dense.start() + u64::from(dense.len()), self.birth)
            }
            _ => Self::sparse(self.birth),
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
    pub(crate) fn each_key(&self, visit: impl FnMut(u64, u32)) {
        with_store!(&self.rows, store => store.each_key(visit));
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
            None => E::seat(&self.birth.rule, self.birth.columns, row),
        }
    }

    /// Finds the rows of `keys` (n) and creates those that are not there; their `positions` (n).
    pub(crate) fn find_or_add(&mut self, keys: &[u64], positions: &mut [u32]) {
        self.widen(keys);
        let Self { rows, birth } = self;
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
        with_store!(&self.rows, store => pull_by(store, &self.birth, keys, positions, out, place));
    }

    /// Makes `step` on the rows of `keys` (n) with the changes at `place(i)` rows from the start of `values`. Rows that
    /// are not there are created. `positions` as in [`Self::pull`]. Whether rows have moved: then `positions` are right,
    /// and all that were found before mean nothing any more.
    pub(crate) fn push<S: Step<E>>(
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
        let Self { rows, birth } = self;
        with_store!(rows, store => push_by(store, birth, keys, positions, values, place, step)) || widened
    }

    /// As [`Self::pull`] of keys that stand in the caller's order, if the rows lie in one piece; false when they do not.
    pub(crate) fn pull_together(&self, keys: &[u64], out: &mut [E]) -> bool {
        matches!(&self.rows, Rows::Dense(rows) if rows.pull_together(keys, self.birth.columns, out))
    }

    /// Puts the values of keys behind what `out` has, if the rows lie in one piece; false when they do not.
    pub(crate) fn append_together(&self, keys: &[u64], out: &mut Vec<E>) -> bool {
        matches!(&self.rows, Rows::Dense(rows) if rows.append_together(keys, self.birth.columns, out))
    }

    /// As [`Self::push`] of keys that stand in the caller's order, if the rows lie in one piece; false when they do not.
    pub(crate) fn push_together<S: Step<E>>(&mut self, keys: &[u64], values: &[E], step: &S) -> bool {
        match &mut self.rows {
            Rows::Dense(rows) => rows.push_together(keys, self.birth.columns, values, step),
            Rows::Sparse(_) | Rows::One(_) | Rows::Two(_) | Rows::Three(_) => false,
        }
    }

    /// The first key and all rows one behind the other, if the table is dense and its rows are one element each: a row of a
    /// matrix partitioned by column.
    pub(crate) fn line(&self) -> Option<(u64, &[E])> {
        if let Rows::Dense(rows) = &self.rows { rows.line() } else { None }
    }

    /// As [`Self::line`].
    pub(crate) fn line_mut(&mut self) -> Option<&mut [E]> {
        if let Rows::Dense(rows) = &mut self.rows { rows.line_mut() } else { None }
    }

    /// Makes place for `keys` (n, of a run: the largest comes last) that are too large for narrow rows; whether rows have
    /// moved.
    fn widen(&mut self, keys: &[u64]) -> bool {
        let narrow = matches!(self.rows, Rows::One(_) | Rows::Two(_) | Rows::Three(_));
        let widens = narrow && keys.last().is_some_and(|key| *key >= KEY_LIMIT);
        if widens {
            let mut wide = SparseRows::new(self.birth.rule.row_width(self.birth.columns));
            self.each_key(|key, position| {
                let at = wide.add(wide.hash(key), key);
                wide.row_mut(at).copy_from_slice(self.row(position));
            });
            self.rows = Rows::Sparse(wide);
        }
        widens
    }
}

#[inline]
fn pull_by<E: Ruled, R: Store<E>>(
    store: &R,
    birth: &Birth,
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
    let (mut late, mut next_late) = (Late::default(), Late::default());
    fetch_keys(store, keys, positions, 0, &mut hashes);
    for start in (0..n).step_by(BLOCK) {
        fetch_keys(store, keys, positions, start + BLOCK, &mut hashes);
        for i in start..n.min(start + BLOCK) {
            let looked = positions[i] == ABSENT;
            if looked {
                positions[i] = store.find_near(hashes[i % (2 * BLOCK)], keys[i]);
            }
            if looked && R::ROW_STANDS_BY_KEY && positions[i] != UNKNOWN {
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
struct Late {
    items: [usize; BLOCK],
    len: usize,
}

impl Late {
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
fn push_by<E: Ruled, R: Store<E>, S: Step<E>>(
    store: &mut R,
    birth: &Birth,
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
                step.step(store.row_mut(position), std::slice::from_ref(&values[at]));
            } else {
                step.step(store.row_mut(position), &values[at * columns..(at + 1) * columns]);
            }
        }
    };
    let n = keys.len();
    let mut hashes = [0; 2 * BLOCK];
    let mut near = 0..0;
    fetch_keys(store, keys, positions, 0, &mut hashes);
    for start in (0..n).step_by(BLOCK) {
        fetch_keys(store, keys, positions, start + BLOCK, &mut hashes);
        let block = start..n.min(start + BLOCK);
        look_near(store, keys, positions, block.clone(), &hashes);
        change(store, near, positions);
        near = block;
    }
    change(store, near, positions);
    moved
}

/// Hashes the keys of the block at `start` whose positions are not known, and asks for where they stand.
#[inline]
fn fetch_keys<E, R: Store<E>>(
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
fn look_near<E, R: Store<E>>(
    store: &R,
    keys: &[u64],
    positions: &mut [u32],
    block: Range<usize>,
    hashes: &[u64; 2 * BLOCK],
) {
    for i in block {
        if positions[i] == ABSENT {
            positions[i] = store.find_near(hashes[i % (2 * BLOCK)], keys[i]);
        }
        store.prefetch_row(positions[i]);
    }
}

#[inline]
fn find_or_add<E: Ruled, R: Store<E>>(store: &mut R, birth: &Birth, key: u64) -> u32 {
    let hash = store.hash(key);
    let found = store.find(hash, key);
    if found != ABSENT {
        return found;
    }
    let position = store.add(hash, key);
    birth.start(key, store.row_mut(position));
    position
}

fn find_or_add_by<E: Ruled, R: Store<E>>(store: &mut R, birth: &Birth, keys: &[u64], positions: &mut [u32]) {
    make_room(store, keys.len());
    for (key, position) in keys.iter().zip(positions) {
        *position = find_or_add(store, birth, *key);
    }
}

fn make_room<E, R: Store<E>>(store: &mut R, count: usize) {
    while !store.has_room(count) {
        store.grow();
    }
}

#[cfg(test)]
mod tests;
