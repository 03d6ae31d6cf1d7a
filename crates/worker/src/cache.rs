//! The cache of rows that a task has read. A cached row serves a later pull if it is fresh enough for that pull.
//!
//! [`Consistency::may_reuse`] decides what is fresh enough. A push of the task removes its rows, so that the next read
//! includes the push. A row that is read again replaces the cached one, so that reads never go back. A barrier empties
//! the cache. A full cache evicts the row that it has had longest.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use matrix::{
    Clock, Consistency, Element, ElementType, KeyRuns, MatrixSpec, OwnedValues, Values, ValuesMut,
    with_values,
};

use crate::pending_pull::CachedRows;

/// Approximate bytes of a row beside its values: its slot and its index entry.
const ROW_OVERHEAD_BYTES: u64 = 64;

/// Counts of the caches of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Rows that were served from a cache.
    pub hits: u64,
    /// Rows that were pulled from their lanes.
    pub misses: u64,
    /// Rows that were removed to make room.
    pub evictions: u64,
}

/// Slots by table and key.
type Index = HashMap<(u32, u64), u32, FixedState>;

#[derive(Clone, Copy, Debug)]
struct Slot {
    row: (u32, u64),
    /// The clock of the pull that read the row, and the smallest clock of its answer.
    stamp: Clock,
    minimum: Clock,
}

/// The cache of one matrix. Invariants: `index` maps a row to the slot that has it; the values of slot i begin at `i *
/// columns`.
#[derive(Debug)]
pub(crate) struct Cache {
    consistency: Consistency,
    columns: usize,
    limit: usize,
    index: Index,
    slots: Vec<Slot>,
    values: OwnedValues,
    /// The slot that is replaced next when all slots are used.
    next_slot: usize,
    pub(crate) counts: CacheCounts,
}

impl Cache {
    /// A cache of at most `limit_bytes`. `None` if no row could ever be reused, or no row fits.
    pub(crate) fn new(spec: &MatrixSpec, limit_bytes: u64) -> Option<Self> {
        let columns = spec.columns_of_table();
        let row_bytes = ROW_OVERHEAD_BYTES + (columns * spec.element.size()) as u64;
        let limit = (limit_bytes / row_bytes).min(u64::from(u32::MAX)) as usize;
        if limit == 0 || spec.consistency == Consistency::Asp {
            return None;
        }
        Some(Self {
            consistency: spec.consistency,
            columns,
            limit,
            index: Index::default(),
            slots: Vec::new(),
            values: OwnedValues::zeros(spec.element, 0),
            next_slot: 0,
            counts: CacheCounts::default(),
        })
    }

    fn element(&self) -> ElementType {
        self.values.element_type()
    }

    /// The cached rows of key runs that may serve a pull at `clock`, or `None` if there are none. The simulation sets
    /// `of_any_age` to disable the check of freshness.
    pub(crate) fn lookup(
        &mut self,
        key_runs: &KeyRuns,
        clock: Clock,
        of_any_age: bool,
    ) -> Option<CachedRows> {
        let (table, count) = (key_runs.table(), key_runs.key_count());
        let mut slots: Vec<(u32, u32)> = Vec::new();
        let mut minimum = Clock::MAX;
        let (mut missing, mut keys) = (Vec::new(), Vec::new());
        for i in 0..count {
            let key = key_runs.key(i);
            let slot = self.index.get(&(table, key)).copied().filter(|slot| {
                let slot = &self.slots[*slot as usize];
                of_any_age || self.consistency.may_reuse(slot.stamp, slot.minimum, clock)
            });
            if let Some(slot) = slot {
                minimum = minimum.min(self.slots[slot as usize].minimum);
                slots.push((slot, i as u32));
            } else {
                missing.push(i as u32);
                keys.push(key);
            }
        }
        self.counts.hits += slots.len() as u64;
        self.counts.misses += missing.len() as u64;
        if slots.is_empty() {
            return None;
        }
        let mut values = OwnedValues::zeros(self.element(), count * self.columns);
        let len = values.len();
        copy_values(self.columns, self.values.as_values(), values.slice_mut(0..len), slots.into_iter());
        Some(CachedRows {
            values,
            minimum,
            missing_rows: missing,
            missing_keys: keys,
            all_key_runs: KeyRuns::default(),
        })
    }

    /// Caches rows that were read. `values` are in the order of the keys of the runs.
    pub(crate) fn insert(&mut self, key_runs: &KeyRuns, values: Values<'_>, stamp: Clock, minimum: Clock) {
        let mut places = Vec::with_capacity(key_runs.key_count());
        for i in 0..key_runs.key_count() {
            let slot = self.slot((key_runs.table(), key_runs.key(i)), stamp, minimum);
            places.push((i as u32, slot));
        }
        let len = self.slots.len() * self.columns;
        if self.values.len() < len {
            let more = OwnedValues::zeros(self.element(), len - self.values.len());
            self.values.extend(more.as_values());
        }
        // If two rows got the same slot, the later one stays.
        copy_values(self.columns, values, self.values.slice_mut(0..len), places.into_iter());
    }

    /// The slot for a row: its own, a new one, or the slot that has been in use longest.
    fn slot(&mut self, name: (u32, u64), stamp: Clock, minimum: Clock) -> u32 {
        let slot = Slot { row: name, stamp, minimum };
        if let Some(at) = self.index.get(&name) {
            self.slots[*at as usize] = slot;
            return *at;
        }
        let at = if self.slots.len() < self.limit {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            let at = self.next_slot;
            self.next_slot = (self.next_slot + 1) % self.limit;
            // The old row of this slot may have been removed and cached again in another slot.
            let before = std::mem::replace(&mut self.slots[at], slot).row;
            if self.index.get(&before) == Some(&(at as u32)) {
                self.index.remove(&before);
                self.counts.evictions += 1;
            }
            at
        };
        self.index.insert(name, at as u32);
        at as u32
    }

    /// Removes rows that the task has pushed to.
    pub(crate) fn invalidate(&mut self, key_runs: &KeyRuns) {
        if self.index.is_empty() {
            return;
        }
        for i in 0..key_runs.key_count() {
            self.index.remove(&(key_runs.table(), key_runs.key(i)));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.slots.clear();
        self.next_slot = 0;
    }
}

/// Copies rows. Each pair has the row in `from` and the row in `to`.
pub(crate) fn copy_values(
    columns: usize,
    from: Values<'_>,
    to: ValuesMut<'_>,
    places: impl Iterator<Item = (u32, u32)>,
) {
    let one_type = "values of one matrix have one element type";
    with_values!(from, from => copy_rows(columns, from, Element::slice_mut(to).expect(one_type), places));
}

fn copy_rows<E: Element>(columns: usize, from: &[E], to: &mut [E], places: impl Iterator<Item = (u32, u32)>) {
    for (here, there) in places {
        let (here, there) = (here as usize * columns, there as usize * columns);
        to[there..there + columns].copy_from_slice(&from[here..here + columns]);
    }
}
