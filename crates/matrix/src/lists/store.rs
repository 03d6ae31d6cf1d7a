//! The lists of one partition: first what was appended, then, sealed, sorted lists that do not change any more.

use math::hash::mix64;
use math::sort::sort_pairs;

use crate::element::Element;
use crate::error::Error;
use crate::row_block::{Lists, RowBlock, list_error};
use crate::rule::MergeOp;
use crate::spec::{MatrixSpec, Storage};
use crate::staged::PushId;

/// Salt of the hash that deals rows to tasks: it must not follow the hash that deals them to partitions.
const OWNER_SALT: u64 = 0x6f77_6e65_725f_6f66;

/// The task that owns a row: the same for any partitions and servers.
pub fn owner_of(row: u64, task_count: u32) -> u32 {
    let hash = mix64(mix64(row) ^ OWNER_SALT);
    ((u128::from(hash) * u128::from(task_count.max(1))) >> 64) as u32
}

/// The rows that a read of lists names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSelection<'a> {
    /// These rows, strictly ascending. A row that was never appended to is an empty list.
    Rows(&'a [u64]),
    /// The rows that exist from the first key to below the second.
    Range(u64, u64),
    /// The rows that exist and that a task owns, of so many tasks ([`owner_of`]).
    Owned { task: u32, task_count: u32 },
}

/// Where a read goes on: the key of a row, and the number of its entries that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListCursor {
    pub(crate) row: u64,
    pub(crate) skip: u64,
}

/// The lists of a partition.
#[derive(Debug)]
pub(crate) struct ListStore<E> {
    matrix: String,
    columns: usize,
    merge: MergeOp,
    refuses_equal_keys: bool,
    appended: Vec<Appended<E>>,
    sealed: Option<SealedLists<E>>,
    /// Lists were imported: they are sealed when they are next read.
    is_imported: bool,
    /// Nothing has changed since the last snapshot that recorded changes.
    is_recorded: bool,
}

/// Entries of one append.
#[derive(Debug)]
struct Appended<E> {
    id: PushId,
    /// It was imported, so it comes before what was appended.
    is_import: bool,
    rows: Vec<u64>,
    lists: Lists,
    values: Vec<E>,
}

/// Sorted lists: compressed sparse rows.
#[derive(Debug)]
pub(crate) struct SealedLists<E> {
    /// Strictly ascending keys of rows (n).
    rows: Vec<u64>,
    /// Row i has the entries `starts[i]..starts[i + 1]` (n + 1).
    starts: Vec<u64>,
    /// The keys of the entries, ascending in each row.
    entries: Vec<u64>,
    /// One for each entry, or none.
    values: Vec<E>,
}

impl<E: Element> ListStore<E> {
    pub(crate) fn new(spec: &MatrixSpec) -> Self {
        Self {
            matrix: spec.name.clone(),
            columns: spec.columns as usize,
            merge: spec.rule.merge(),
            refuses_equal_keys: spec.storage == Storage::UniqueList,
            appended: Vec::new(),
            sealed: None,
            is_imported: false,
            is_recorded: false,
        }
    }

    /// Seals what was imported.
    pub(crate) fn prepare_read(&mut self) -> Result<(), Error> {
        if self.is_imported && self.sealed.is_none() { self.seal() } else { Ok(()) }
    }

    /// Begins to record changes. Returns whether nothing has changed since that was done before.
    pub(crate) fn record_changes(&mut self) -> bool {
        std::mem::replace(&mut self.is_recorded, true)
    }

    /// Adds the rows of a block at these positions, which come before all appends. With `replaces`, all others are removed.
    pub(crate) fn import(&mut self, block: &RowBlock, positions: &[(u32, usize)], replaces: bool) {
        if replaces {
            self.appended.clear();
            self.sealed = None;
        }
        if let Some(sealed) = self.sealed.take() {
            self.appended.push(sealed.into_appended());
        }
        self.is_imported = true;
        self.is_recorded = false;
        self.add(PushId::default(), true, block, positions);
    }

    /// Forgets all lists.
    pub(crate) fn clear(&mut self) {
        self.appended.clear();
        self.sealed = None;
        (self.is_imported, self.is_recorded) = (true, false);
    }

    /// The sealed lists.
    pub(crate) fn sealed(&self) -> Result<&SealedLists<E>, Error> {
        let text = "its lists are not sealed: all tasks append, then all seal them (ListMatrix::seal), then they are read";
        self.sealed.as_ref().ok_or_else(|| list_error(&self.matrix, text))
    }

    /// Refuses appends after the seal.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.sealed {
            None => Ok(()),
            Some(_) => Err(list_error(
                &self.matrix,
                "its lists are sealed: nothing can be appended to them any more",
            )),
        }
    }

    /// Appends the rows of a block at these positions.
    pub(crate) fn append(
        &mut self,
        id: PushId,
        block: &RowBlock,
        positions: &[(u32, usize)],
    ) -> Result<(), Error> {
        self.check_open()?;
        self.is_recorded = false;
        self.add(id, false, block, positions);
        Ok(())
    }

    fn add(&mut self, id: PushId, is_import: bool, block: &RowBlock, positions: &[(u32, usize)]) {
        if positions.is_empty() {
            return;
        }
        let values: &[E] = E::slice(block.values.as_values()).expect("the element type was checked");
        let lengths = &block.lists.as_ref().expect("the block was checked").lengths;
        let mut own =
            Appended { id, is_import, rows: Vec::new(), lists: Lists::default(), values: Vec::new() };
        for &(row, start) in positions {
            let length = lengths[row as usize];
            let range = start..start + length as usize;
            own.rows.push(block.keys[row as usize]);
            own.lists.lengths.push(length);
            own.lists.entries.extend_from_slice(&block.entries()[range.clone()]);
            own.values.extend_from_slice(&values[range.start * self.columns..range.end * self.columns]);
        }
        self.appended.push(own);
    }

    /// Sorts what was appended into lists. Of equal keys of a row, in the order of tasks and of the appends of a task, the
    /// rule makes one. An error changes nothing. Sealing again changes nothing.
    pub(crate) fn seal(&mut self) -> Result<(), Error> {
        if self.sealed.is_some() {
            return Ok(());
        }
        self.appended.sort_by_key(|own| (!own.is_import, own.id.task, own.id.clock, own.id.index));
        let sealed = self.sorted()?;
        self.sealed = Some(sealed);
        self.appended = Vec::new();
        Ok(())
    }

    fn sorted(&self) -> Result<SealedLists<E>, Error> {
        // The rows of all appends, and for each the append and its entries there.
        let (mut order, mut all_own_rows) = (Vec::new(), Vec::new());
        for own in &self.appended {
            let mut start = 0;
            for (row, length) in own.rows.iter().zip(&own.lists.lengths) {
                order.push((*row, all_own_rows.len() as u32));
                all_own_rows.push((own, start..start + *length as usize));
                start += *length as usize;
            }
        }
        // Those of one row stay in their order.
        sort_pairs(&mut order, &mut Vec::new());
        let room: usize = self.appended.iter().map(|own| own.lists.entries.len()).sum();
        let mut sealed = SealedLists {
            rows: Vec::new(),
            starts: vec![0],
            entries: Vec::with_capacity(room),
            values: Vec::with_capacity(room * self.columns),
        };
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for row in order.chunk_by(|a, b| a.0 == b.0) {
            keys.clear();
            values.clear();
            let mut imported = 0;
            for &(_, own_rows) in row {
                let (own, range) = &all_own_rows[own_rows as usize];
                let first = keys.len() as u32;
                keys.extend(own.lists.entries[range.clone()].iter().copied().zip(first..));
                values.extend_from_slice(&own.values[range.start * self.columns..range.end * self.columns]);
                imported = if own.is_import { keys.len() as u32 } else { imported };
            }
            // Entries with equal keys stay in their order: what was imported is before what was appended. An import may be
            // repeated after a loss, and counts once.
            keys.sort_unstable();
            keys.dedup_by(|entry, before| entry.0 == before.0 && entry.1 < imported);
            self.merge_row(row[0].0, &keys, &values, &mut sealed)?;
        }
        sealed.shrink();
        Ok(sealed)
    }

    /// Appends a row whose entries have these ascending keys, with the places of their values.
    fn merge_row(
        &self,
        row: u64,
        keys: &[(u64, u32)],
        values: &[E],
        sealed: &mut SealedLists<E>,
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let start = sealed.entries.len();
        for (key, place) in keys {
            let is_equal = sealed.entries.len() > start && sealed.entries.last() == Some(key);
            if is_equal && self.refuses_equal_keys {
                return Err(list_error(&self.matrix, format!("row {row} has the entry {key} twice")));
            }
            let value = (self.columns > 0).then(|| values[*place as usize]);
            match (value, sealed.values.last_mut().filter(|_| is_equal)) {
                (Some(value), Some(into)) => self.merge.merge(into, value),
                (value, _) => sealed.values.extend(value),
            }
            if !is_equal {
                sealed.entries.push(*key);
            }
        }
        if let Some(at) = E::first_non_finite(&sealed.values[start * self.columns..]) {
            let entry = sealed.entries[start + at];
            let element = E::TYPE.name();
            let what = format!("the sum of the entries {entry} of row {row} has left the range of {element}");
            return Err(list_error(&self.matrix, what));
        }
        sealed.rows.push(row);
        sealed.starts.push(sealed.entries.len() as u64);
        Ok(())
    }

    /// Size of everything, in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        let of_lists = |rows: usize, numbers: usize, entries: usize, values: usize| {
            (8 * (rows + numbers + entries) + values * size_of::<E>()) as u64
        };
        let appended = self.appended.iter().map(|own| {
            let (lengths, entries) = (own.lists.lengths.capacity(), own.lists.entries.capacity());
            of_lists(own.rows.capacity(), lengths, entries, own.values.capacity())
        });
        let sealed = self.sealed.iter().map(|lists| {
            let (rows, starts) = (lists.rows.capacity(), lists.starts.capacity());
            of_lists(rows, starts, lists.entries.capacity(), lists.values.capacity())
        });
        appended.chain(sealed).sum()
    }

    /// Number of rows of the sealed lists.
    pub(crate) fn row_count(&self) -> u64 {
        self.sealed.as_ref().map_or(0, |lists| lists.rows.len() as u64)
    }
}

impl<E: Element> SealedLists<E> {
    fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.starts.shrink_to_fit();
        self.entries.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn into_appended(self) -> Appended<E> {
        let lengths = self.starts.array_windows().map(|[start, end]| end - start).collect();
        let lists = Lists { lengths, entries: self.entries };
        Appended { id: PushId::default(), is_import: true, rows: self.rows, lists, values: self.values }
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The row that has the entry with this index among all entries.
    pub(crate) fn row_of(&self, entry: usize) -> usize {
        self.starts.partition_point(|start| *start <= entry as u64).max(1) - 1
    }

    /// The key of the i-th row, and the indices of its first entry and of the one after its last, among all entries.
    pub(crate) fn bounds(&self, i: usize) -> (u64, usize, usize) {
        (self.rows[i], self.starts[i] as usize, self.starts[i + 1] as usize)
    }

    /// The keys and the values of the entries of the i-th row.
    pub(crate) fn list(&self, i: usize) -> (&[u64], &[E]) {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        let values = if self.values.is_empty() { &[][..] } else { &self.values[range.clone()] };
        (&self.entries[range], values)
    }

    /// Visits the rows of a selection that exist from a key on, ascending, until `visit` returns false.
    pub(crate) fn visit(
        &self,
        rows: &ListSelection<'_>,
        from: u64,
        mut visit: impl FnMut(u64, usize) -> bool,
    ) {
        let at = |key: u64| self.rows.partition_point(|row| *row < key);
        match rows {
            ListSelection::Rows(keys) => {
                let mut i = at(from);
                for key in &keys[keys.partition_point(|key| *key < from)..] {
                    i += lower_bound(&self.rows[i..], *key);
                    if self.rows.get(i) == Some(key) && !visit(*key, i) {
                        return;
                    }
                }
            }
            ListSelection::Range(start, end) => {
                let range = at(from.max(*start))..at(*end);
                for i in range {
                    if !visit(self.rows[i], i) {
                        return;
                    }
                }
            }
            ListSelection::Owned { task, task_count } => {
                for i in at(from)..self.rows.len() {
                    if owner_of(self.rows[i], *task_count) == *task && !visit(self.rows[i], i) {
                        return;
                    }
                }
            }
        }
    }
}

/// The number of keys below `key` among ascending ones, of which few are: by steps that double.
fn lower_bound(keys: &[u64], key: u64) -> usize {
    let mut step = 1;
    while step < keys.len() && keys[step] < key {
        step *= 2;
    }
    let (start, end) = (step / 2, keys.len().min(step + 1));
    start + keys[start..end].partition_point(|other| *other < key)
}
