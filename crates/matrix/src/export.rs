//! Exports a matrix from its partitions and imports it again.

use std::panic::resume_unwind;

use math::sort::sort_pairs;

use crate::clock::Clock;
use crate::element::{ElementType, OwnedValues};
use crate::error::Error;
use crate::lists::export::{export_lists, import_lists};
use crate::lists::store::ListCursor;
use crate::partitioner::Placement;
use crate::partitions::{LockedPartitions, Partitions};
use crate::row_block::RowBlock;
use crate::rule::RuleElement;
use crate::spec::{Axis, MatrixSpec};
use crate::storage::rows::ABSENT;
use crate::storage::{PREFETCH_DISTANCE, Share, Table};

/// The rows of an export: those of the smallest keys from `from` on, at most `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportRange {
    pub from: u64,
    pub limit: usize,
}

impl ExportRange {
    /// All rows.
    pub const ALL: Self = Self { from: 0, limit: usize::MAX };

    /// The range from `from` on whose rows take little memory beside a matrix of `row_count` rows. An export in such
    /// ranges visits all keys once for each of them.
    pub fn block(from: u64, row_count: u64, spec: &MatrixSpec) -> Self {
        /// A range has this share of the rows.
        const SHARE: u64 = 32;
        /// And at least as many as have this size.
        const MINIMUM_BYTES: u64 = 16 << 20;
        let row_bytes = size_of::<u64>() as u64 + spec.row_bytes();
        Self { from, limit: (row_count / SHARE).max(MINIMUM_BYTES / row_bytes).max(1) as usize }
    }
}

/// Numbers of rows of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that exist.
    pub rows: u64,
    /// Rows with a value other than 0; slots do not count.
    pub nonzero_rows: u64,
    /// Of lists: the entries of all rows.
    pub entries: u64,
}

/// Maximum number of rows that are imported at a time: they stay in the cache between finding and setting them.
const IMPORT_BLOCK: usize = 1 << 12;

/// Most entries of lists that are exported at a time, unless one row has more.
const LIST_ENTRIES: usize = 1 << 20;

/// Minimum number of rows for which starting a thread pays off.
const MIN_ROWS_PER_THREAD: usize = 1 << 17;

/// Tables, and for each of them the number of positions in the tables before it.
struct RowGatherer<'a, E> {
    tables: &'a [&'a Table<E>],
    starts: &'a [u32],
}

impl<E: RuleElement> RowGatherer<'_, E> {
    /// Does the same as [`Self::gather`], on several cores when there are many rows.
    fn gather_parallel(&self, pairs: &[(u64, u32)], parts: Vec<(&mut Vec<E>, usize)>) {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let share = pairs.len().div_ceil(threads).max(MIN_ROWS_PER_THREAD);
        // Each thread fills its own range of rows in all outputs.
        let mut parts: Vec<_> =
            parts.into_iter().map(|(out, width)| (out.chunks_mut((share * width).max(1)), width)).collect();
        std::thread::scope(|scope| {
            for pairs in pairs.chunks(share) {
                let outs: Vec<(&mut [E], usize)> = parts
                    .iter_mut()
                    .map(|(chunks, width)| (chunks.next().unwrap_or_default(), *width))
                    .collect();
                if pairs.len() < share {
                    self.gather(pairs, outs);
                } else {
                    scope.spawn(|| self.gather(pairs, outs));
                }
            }
        });
    }

    /// Returns the table of a row and its position there, given its position in the concatenation of all tables.
    fn locate(&self, ordinal: u32) -> (&Table<E>, u32) {
        let table = self.starts.partition_point(|start| *start <= ordinal) - 1;
        (self.tables[table], ordinal - self.starts[table])
    }

    /// Copies the rows of `pairs` (n), split into outputs of the given widths, to `outs` (n x width each).
    fn gather(&self, pairs: &[(u64, u32)], mut outs: Vec<(&mut [E], usize)>) {
        for i in 0..pairs.len() {
            if let Some(pair) = pairs.get(i + PREFETCH_DISTANCE) {
                let (table, position) = self.locate(pair.1);
                table.prefetch(position);
            }
            let (table, position) = self.locate(pairs[i].1);
            let mut rest = table.row(position);
            for (out, width) in &mut outs {
                let (own, next) = rest.split_at(*width);
                out[i * *width..(i + 1) * *width].copy_from_slice(own);
                rest = next;
            }
        }
    }
}

/// Counts the rows of these partitions, after merging what is staged below `bound`.
pub(crate) fn count_rows<E: RuleElement>(
    spec: &MatrixSpec,
    partitions: &mut LockedPartitions<'_, E>,
    bound: Clock,
) -> Result<RowCounts, Error> {
    let columns = spec.columns_of_table();
    let mut counts = RowCounts::default();
    for (_, partition) in partitions {
        partition.prepare_read(bound)?;
        if let Some(lists) = partition.lists() {
            let lists = lists.sealed()?;
            counts.rows += lists.row_count() as u64;
            counts.nonzero_rows += lists.row_count() as u64;
            counts.entries += lists.entry_count();
        }
        for table in partition.tables() {
            counts.rows += u64::from(table.row_count());
            table.for_each_key(Share::WHOLE, |_, position| {
                let is_nonzero = table.row(position)[..columns].iter().any(|value| *value != E::ZERO);
                counts.nonzero_rows += u64::from(is_nonzero);
            });
        }
    }
    Ok(counts)
}

/// The smallest keys from `range.from` on, with their numbers.
struct SmallestKeys {
    range: ExportRange,
    /// Keys from here on are too large.
    end: u64,
    pairs: Vec<(u64, u32)>,
}

impl SmallestKeys {
    fn new(range: ExportRange, row_count: u64) -> Self {
        let room = range.limit.saturating_mul(2).min(row_count as usize);
        Self { range, end: u64::MAX, pairs: Vec::with_capacity(room) }
    }

    fn add(&mut self, key: u64, number: u32) {
        if key < self.range.from || key >= self.end {
            return;
        }
        self.pairs.push((key, number));
        if self.pairs.len() >= self.range.limit.saturating_mul(2) {
            self.drop_rest();
        }
    }

    /// The smallest keys of both.
    fn merge(mut self, mut other: Self) -> Self {
        self.end = self.end.min(other.end);
        self.pairs.append(&mut other.pairs);
        self
    }

    fn drop_rest(&mut self) {
        if let Some((_, next, _)) = (self.pairs.len() > self.range.limit)
            .then(|| self.pairs.select_nth_unstable_by_key(self.range.limit, |pair| pair.0))
        {
            self.end = next.0;
            self.pairs.truncate(self.range.limit);
        }
    }

    fn sorted(mut self) -> Vec<(u64, u32)> {
        self.drop_rest();
        sort_pairs(&mut self.pairs, &mut Vec::new());
        self.pairs
    }
}

/// Returns the rows of these partitions in a range, after merging what is staged below `bound`.
pub(crate) fn export_rows<E: RuleElement>(
    spec: &MatrixSpec,
    partitions: &mut LockedPartitions<'_, E>,
    bound: Clock,
    range: ExportRange,
) -> Result<RowBlock, Error> {
    partitions.iter_mut().try_for_each(|(_, partition)| partition.prepare_read(bound))?;
    if spec.storage.has_lists() {
        let limit = if range == ExportRange::ALL { usize::MAX } else { LIST_ENTRIES };
        let from = ListCursor { row: range.from, skip: 0 };
        return Ok(export_lists(partitions, from, limit, false)?.0);
    }
    let tables: Vec<_> = partitions.iter().flat_map(|(_, partition)| partition.tables()).collect();
    let table_count = spec.table_count();
    let mut starts = Vec::with_capacity(tables.len());
    let row_count: u64 = tables.iter().map(|table| u64::from(table.row_count())).sum();
    let bound: u64 = tables.iter().map(|table| u64::from(table.position_bound())).sum();
    if bound >= u64::from(u32::MAX) {
        return Err(fault(spec, "rows", row_count.to_string(), "less than 2^30, for one export"));
    }
    let mut total = 0u32;
    for table in &tables {
        starts.push(total);
        total += table.position_bound();
    }
    let scan = |first: usize, step: usize| {
        let mut smallest = SmallestKeys::new(range, row_count / step as u64);
        for i in (first..tables.len()).step_by(step) {
            let (offset, start) = (spec.key_offset(i % table_count), starts[i]);
            tables[i]
                .for_each_key(Share::WHOLE, |key, position| smallest.add(offset + key, start + position));
        }
        smallest
    };
    let pairs =
        on_threads(row_count, scan).into_iter().reduce(SmallestKeys::merge).expect("a thread").sorted();
    let columns = spec.columns_of_table();
    let rule_slots = spec.rule.slots();
    let mut values = vec![E::ZERO; pairs.len() * columns];
    let mut slots: Vec<Vec<E>> =
        rule_slots.iter().map(|slot| vec![E::ZERO; pairs.len() * slot.width(columns)]).collect();
    let gather = RowGatherer { tables: &tables, starts: &starts };
    let parts = std::iter::once((&mut values, columns))
        .chain(slots.iter_mut().zip(rule_slots).map(|(out, slot)| (out, slot.width(columns))));
    gather.gather_parallel(&pairs, parts.collect());
    let slots = rule_slots.iter().zip(slots).map(|(slot, out)| (slot.name.to_owned(), E::owned(out)));
    let keys = pairs.iter().map(|pair| pair.0).collect();
    Ok(RowBlock { slots: slots.collect(), ..RowBlock::of_values(keys, E::owned(values)) })
}

/// Sets those of the given rows that lie in these partitions. If `replace` is given, all other rows are removed, and room
/// is made for so many. All rows are checked before any change.
pub(crate) fn import_rows<E: RuleElement>(
    spec: &MatrixSpec,
    placement: &Placement,
    partitions: &Partitions<E>,
    rows: &RowBlock,
    replace: Option<u64>,
) -> Result<(), Error> {
    if spec.storage.has_lists() {
        return import_lists(spec, placement, partitions, rows, replace.is_some());
    }
    let (values, slots) = check_import(spec, rows)?;
    if let Some(row_count) = replace {
        clear(partitions, placement.partition_count(), row_count)?;
    }
    CheckedImport { spec, placement, keys: &rows.keys, values, slots }.set(partitions)
}

/// Removes all rows and makes room for so many, on several cores when that is much memory.
fn clear<E: RuleElement>(
    partitions: &Partitions<E>,
    partition_count: usize,
    row_count: u64,
) -> Result<(), Error> {
    let share = row_count / partition_count as u64;
    let clear_each = |first: usize, step: usize| {
        (first..partition_count).step_by(step).try_for_each(|p| {
            if let Some(mut partition) = partitions.lock_one(p)? {
                partition.clear(share);
            }
            Ok(())
        })
    };
    on_threads(row_count, clear_each).into_iter().collect()
}

/// Runs `work(thread, thread count)` on several cores if there are many rows, and returns the results in order.
fn on_threads<T: Send>(row_count: u64, work: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if row_count < MIN_ROWS_PER_THREAD as u64 || threads == 1 {
        return vec![work(0, 1)];
    }
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread, threads))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Rows that are checked to fit a matrix.
struct CheckedImport<'a, E> {
    spec: &'a MatrixSpec,
    placement: &'a Placement,
    keys: &'a [u64],
    values: &'a [E],
    slots: Vec<&'a [E]>,
}

impl<E: RuleElement> CheckedImport<'_, E> {
    /// Sets those of the rows that lie in these partitions.
    fn set(&self, partitions: &Partitions<E>) -> Result<(), Error> {
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); self.placement.partition_count()];
        let mut start = 0;
        while start < self.keys.len() {
            let table = self.table_of(self.keys[start]);
            let block = start..self.keys.len().min(start + IMPORT_BLOCK);
            let end = block.clone().find(|i| self.table_of(self.keys[*i]) != table).unwrap_or(block.end);
            let offset = self.spec.key_offset(table);
            for i in start..end {
                groups[self.placement.partition_of(self.keys[i] - offset)].push(i as u32);
            }
            for (p, group) in groups.iter_mut().enumerate().filter(|(_, group)| !group.is_empty()) {
                if let Some(mut partition) = partitions.lock_one(p)? {
                    self.set_group(partition.table_mut(table), offset, group);
                    partition.invalidate_positions();
                }
                group.clear();
            }
            start = end;
        }
        Ok(())
    }

    /// Sets the rows with these indices, which belong to one table.
    fn set_group(&self, table: &mut Table<E>, offset: u64, group: &[u32]) {
        let columns = self.spec.columns_of_table();
        let widths: Vec<usize> = self.spec.rule.slots().iter().map(|slot| slot.width(columns)).collect();
        let keys: Vec<u64> = group.iter().map(|i| self.keys[*i as usize] - offset).collect();
        let mut positions = vec![ABSENT; keys.len()];
        table.find_or_add(&keys, &mut positions);
        let mut slots = Vec::new();
        for (i, position) in group.iter().map(|i| *i as usize).zip(positions) {
            slots.clear();
            for (slot, width) in self.slots.iter().zip(&widths) {
                slots.extend_from_slice(&slot[i * width..(i + 1) * width]);
            }
            let known = (self.slots.len() == widths.len()).then_some(&slots[..]);
            table.set(position, &self.values[i * columns..(i + 1) * columns], known);
        }
    }

    fn table_of(&self, key: u64) -> usize {
        match self.spec.axis {
            Axis::Row => 0,
            Axis::Column => (key / self.spec.columns) as usize,
        }
    }
}

fn check_import<'a, E: RuleElement>(
    spec: &MatrixSpec,
    rows: &'a RowBlock,
) -> Result<(&'a [E], Vec<&'a [E]>), Error> {
    let refuse = |what: &str, actual: String, expected: String| Err(fault(spec, what, actual, expected));
    let bound = spec.key_bound() * spec.table_count() as u64;
    if let Some([key, _]) = rows.keys.array_windows().find(|[before, key]| before == key) {
        return refuse("the keys", format!("{key} twice"), "each once".into());
    }
    if let Some(key) = rows.keys.iter().max().filter(|key| **key >= bound) {
        return refuse("the largest key", key.to_string(), format!("below {bound}"));
    }
    let (n, columns) = (rows.keys.len(), spec.columns_of_table());
    let values = check_import_values(spec, "the values", &rows.values, n * columns)?;
    let expected = spec.rule.slots();
    let names: Vec<&str> = rows.slots.iter().map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() && !names.iter().copied().eq(expected.iter().map(|slot| slot.name)) {
        let expected: Vec<_> = expected.iter().map(|slot| slot.name).collect();
        let expected = format!("{expected:?} for rule {}, or none", spec.rule.name());
        return refuse("the list of slots", format!("{names:?}"), expected);
    }
    let mut slots = Vec::new();
    for ((name, part), slot) in rows.slots.iter().zip(expected) {
        slots.push(check_import_values(spec, &format!("slot {name:?}"), part, n * slot.width(columns))?);
    }
    Ok((values, slots))
}

fn check_import_values<'a, E: RuleElement>(
    spec: &MatrixSpec,
    what: &str,
    part: &'a OwnedValues,
    len: usize,
) -> Result<&'a [E], Error> {
    let type_of = |element: ElementType| format!("of type {element:?}");
    let Some(slice) = E::slice(part.as_values()) else {
        return Err(fault(spec, what, type_of(part.element_type()), type_of(E::TYPE)));
    };
    if slice.len() != len {
        return Err(fault(spec, what, format!("{} elements", slice.len()), format!("{len} elements")));
    }
    match E::first_non_finite(slice) {
        Some(at) => Err(fault(spec, what, format!("{:?} at {at}", slice[at]), "finite numbers")),
        None => Ok(slice),
    }
}

fn fault(spec: &MatrixSpec, what: &str, actual: impl Into<String>, expected: impl Into<String>) -> Error {
    let (actual, expected) = (actual.into(), expected.into());
    Error::Import { matrix: spec.name.clone(), what: what.to_owned(), actual, expected }
}
