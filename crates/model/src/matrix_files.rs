//! The tensors of a matrix in the files of a model, read block by block.

use std::collections::BTreeMap;
use std::path::Path;

use matrix::{Element, FunctionTable, Lists, RowBlock, with_values};

use super::manifest::{self, MatrixEntry};
use super::matrix_plan::is_zero;
use super::memory::SEARCHED_ROWS;
use super::names::{entries_tensor, keys_tensor, lengths_tensor};
use super::stored_tensors::StoredTensor;
use crate::error::Error;

/// Size of the rows that are read at a time.
const BLOCK_BYTES: u64 = 2 << 20;

pub(crate) fn bad_model(path: &Path, what: impl Into<String>) -> Error {
    Error::BadModel { path: path.into(), what: what.into() }
}

/// The tensors of each file.
pub(crate) struct Tensors(pub(crate) BTreeMap<String, BTreeMap<String, StoredTensor>>);

impl Tensors {
    fn find(&self, file: &str, name: &str) -> Option<&StoredTensor> {
        self.0.get(file)?.get(name)
    }

    fn get(&self, folder: &Path, file: &str, name: &str) -> Result<StoredTensor, Error> {
        let tensor = self.find(file, name).cloned();
        tensor.ok_or_else(|| bad_model(&folder.join(file), format!("tensor {name:?} is missing")))
    }
}

/// Most entries of the lists of a block, unless one row has more.
const BLOCK_ENTRIES: u64 = 1 << 20;

/// The tensors of a matrix, and how far they were read.
#[derive(Debug)]
pub(crate) struct MatrixFiles {
    columns: u64,
    /// Rows in the file of weights.
    stored_rows: u64,
    /// `None`: the keys are the numbers from 0.
    keys: Option<StoredTensor>,
    values: StoredTensor,
    /// The lists of a list matrix.
    lists: Option<ListFiles>,
    optimizer: Option<SlotFiles>,
    /// Rows of a block.
    pub(crate) block_rows: u64,
    /// The smallest key that was not returned.
    next_key: u64,
    /// Rows of the file of weights, and of the optimizer, that were returned.
    weights_read: u64,
    slots_read: u64,
}

/// The tensors of lists, beside the keys of their rows and the values of their entries.
#[derive(Debug)]
struct ListFiles {
    lengths: StoredTensor,
    entries: StoredTensor,
    /// Entries that were returned.
    entries_read: u64,
}

/// The tensors in the file of the optimizer. It has every row of the matrix.
#[derive(Debug)]
struct SlotFiles {
    /// `None`: they are those of the weights.
    keys: Option<StoredTensor>,
    row_count: u64,
    /// Name, tensor, and numbers of a row.
    slots: Vec<(String, StoredTensor, u64)>,
}

impl MatrixFiles {
    pub(crate) fn new(folder: &Path, entry: &MatrixEntry, tensors: &Tensors) -> Result<Self, Error> {
        let manifest_file = folder.join(manifest::FILE_NAME);
        let file = folder.join(&entry.file);
        let values = tensors.get(folder, &entry.file, &entry.name)?;
        values.values(0..0)?;
        let (spec, rows, columns) = (&entry.spec, entry.stored_rows, entry.columns);
        if spec.columns != columns || spec.rows != entry.rows {
            return Err(bad_model(&manifest_file, format!("matrix {:?} has two shapes", entry.name)));
        }
        // Models have no partitioner of a program.
        spec.check(&FunctionTable::builtin())
            .map_err(|error| bad_model(&manifest_file, error.to_string()))?;
        // A manifest may have numbers that do not fit the file beside it.
        let lists =
            spec.storage.has_lists().then(|| ListFiles::new(folder, entry, tensors, &values)).transpose()?;
        if lists.is_none() && (columns == 0 || rows.checked_mul(columns) != Some(values.len)) {
            let what = format!("{rows} rows of {columns} columns but {} values", values.len);
            return Err(bad_model(&file, what));
        }
        let keys = entry.keys.as_ref().map(|name| tensors.get(folder, &entry.file, name)).transpose()?;
        let (count, last) = match &keys {
            Some(keys) => (keys.len, keys.keys(keys.len.saturating_sub(1)..keys.len)?.pop()),
            None => (rows, rows.checked_sub(1)),
        };
        if count != rows || last.is_some_and(|last| last >= entry.rows) {
            let limit = entry.rows;
            let what = format!("{count} keys for {rows} stored rows, all below {limit} expected");
            return Err(bad_model(&file, what));
        }
        let optimizer = match &entry.optimizer_file {
            Some(name) if tensors.0.contains_key(name) => Some(SlotFiles::new(folder, entry, name, tensors)?),
            _ => None,
        };
        let slots = optimizer.iter().flat_map(|optimizer| &optimizer.slots).map(|(_, _, width)| *width);
        let row_bytes = size_of::<u64>() as u64 * (1 + columns + slots.sum::<u64>());
        let block_rows = (BLOCK_BYTES / row_bytes).max(1);
        let (next_key, weights_read, slots_read) = (0, 0, 0);
        Ok(Self {
            columns,
            stored_rows: rows,
            keys,
            values,
            lists,
            optimizer,
            block_rows,
            next_key,
            weights_read,
            slots_read,
        })
    }

    fn weight_keys(&self, range: std::ops::Range<u64>) -> Result<Vec<u64>, Error> {
        match &self.keys {
            Some(keys) => keys.keys(range),
            None => Ok(range.collect()),
        }
    }

    pub(crate) fn key_range(&self) -> Result<Option<(u64, u64)>, Error> {
        let count = self.stored_rows;
        let searched = if self.keys.is_some() { count.min(1) } else { count.min(SEARCHED_ROWS) };
        let columns = self.columns as usize;
        let values = self.values.values(0..searched * self.columns)?;
        let zeros = (0..searched as usize).take_while(|row| is_zero(&values, *row, columns)).count() as u64;
        let first = if zeros < searched { zeros } else { 0 };
        let (first, last) =
            (self.weight_keys(first..count.min(first + 1))?, self.weight_keys(count.max(1) - 1..count)?);
        Ok(first.first().copied().zip(last.first().copied()))
    }

    pub(crate) fn rows_from(&mut self, key: u64) -> Result<RowBlock, Error> {
        if key != self.next_key {
            (self.next_key, self.weights_read, self.slots_read) = (0, 0, 0);
            self.lists.iter_mut().for_each(|lists| lists.entries_read = 0);
        }
        loop {
            let rows = self.next_block()?;
            let Some(last) = rows.keys.last() else { return Ok(rows) };
            self.next_key = last + 1;
            // Only after a restart are there rows before the key.
            let start = rows.keys.partition_point(|other| *other < key);
            match start {
                0 => return Ok(rows),
                start if start < rows.keys.len() => return Ok(rows.slice(start..rows.keys.len())),
                _ => {}
            }
        }
    }

    fn next_block(&mut self) -> Result<RowBlock, Error> {
        let end = self.stored_rows.min(self.weights_read + self.block_rows);
        let range = self.weights_read..end;
        if self.lists.is_some() {
            return self.next_lists(range);
        }
        let mut weight_keys = self.weight_keys(range.clone())?;
        let columns = self.columns;
        let Some(optimizer) = &self.optimizer else {
            self.weights_read = end;
            let values = self.values.values(range.start * columns..range.end * columns)?;
            return Ok(RowBlock::of_values(weight_keys, values));
        };
        let slot_rows = self.slots_read..optimizer.row_count.min(self.slots_read + self.block_rows);
        let keys = match &optimizer.keys {
            Some(keys) => keys.keys(slot_rows.clone())?,
            None => weight_keys.clone(),
        };
        // Weights that are not stored are zero.
        weight_keys.truncate(keys.last().map_or(0, |last| weight_keys.partition_point(|key| key <= last)));
        let range = range.start..range.start + weight_keys.len() as u64;
        let stored = self.values.values(range.start * columns..range.end * columns)?;
        let values = with_values!(stored.as_values(), x => {
            Element::owned(scatter(&weight_keys, x, &keys, columns as usize))
        });
        let slot = |(name, tensor, width): &(String, StoredTensor, u64)| {
            Ok((name.clone(), tensor.values(slot_rows.start * width..slot_rows.end * width)?))
        };
        let slots = optimizer.slots.iter().map(slot).collect::<Result<_, Error>>()?;
        (self.weights_read, self.slots_read) = (range.end, slot_rows.end);
        Ok(RowBlock { keys, lists: None, values, slots })
    }
}

impl MatrixFiles {
    /// The lists of the first of these rows: as many as have few entries, and at least one.
    fn next_lists(&mut self, mut rows: std::ops::Range<u64>) -> Result<RowBlock, Error> {
        let lists = self.lists.as_mut().expect("a list matrix");
        let mut lengths = lists.lengths.numbers(rows.clone())?;
        let (mut count, mut end) = (0, lists.entries_read);
        for length in &lengths {
            let next = end.saturating_add(*length);
            if count > 0 && next - lists.entries_read > BLOCK_ENTRIES {
                break;
            }
            (count, end) = (count + 1, next);
        }
        if end > lists.entries.len {
            let what = format!("the lists have {end} entries, and {} are stored", lists.entries.len);
            return Err(bad_model(self.values.path(), what));
        }
        lengths.truncate(count);
        rows.end = rows.start + count as u64;
        let range = std::mem::replace(&mut lists.entries_read, end)..end;
        let (entries, columns) = (lists.entries.numbers(range.clone())?, self.columns);
        let values = self.values.values(range.start * columns..range.end * columns)?;
        let keys = self.weight_keys(rows.clone())?;
        self.weights_read = rows.end;
        Ok(RowBlock { lists: Some(Lists { lengths, entries }), ..RowBlock::of_values(keys, values) })
    }
}

impl ListFiles {
    fn new(
        folder: &Path,
        entry: &MatrixEntry,
        tensors: &Tensors,
        values: &StoredTensor,
    ) -> Result<Self, Error> {
        let lengths = tensors.get(folder, &entry.file, &lengths_tensor(&entry.name))?;
        let entries = tensors.get(folder, &entry.file, &entries_tensor(&entry.name))?;
        // The type of their elements.
        lengths.numbers(0..0)?;
        entries.numbers(0..0)?;
        if lengths.len != entry.stored_rows || entries.len.checked_mul(entry.columns) != Some(values.len) {
            let what = format!(
                "matrix {:?}: {} lengths for {} rows, and {} values for {} entries",
                entry.name, lengths.len, entry.stored_rows, values.len, entries.len
            );
            return Err(bad_model(&folder.join(&entry.file), what));
        }
        Ok(Self { lengths, entries, entries_read: 0 })
    }
}

impl SlotFiles {
    fn new(folder: &Path, entry: &MatrixEntry, file: &str, tensors: &Tensors) -> Result<Self, Error> {
        let keys = tensors.find(file, &keys_tensor(&entry.name)).cloned();
        let row_count = keys.as_ref().map_or(entry.stored_rows, |keys| keys.len);
        if let Some(keys) = &keys {
            keys.keys(0..0)?;
        }
        let mut slots = Vec::new();
        for slot in &entry.slots {
            let name = format!("{}.{slot}", entry.name);
            let tensor = tensors.get(folder, file, &name)?;
            tensor.values(0..0)?;
            if !tensor.len.is_multiple_of(row_count.max(1)) || (row_count == 0 && tensor.len > 0) {
                let what = format!("tensor {name:?}: {} values for {row_count} keys", tensor.len);
                return Err(bad_model(&folder.join(file), what));
            }
            let width = tensor.len / row_count.max(1);
            slots.push((slot.clone(), tensor, width));
        }
        Ok(Self { keys, row_count, slots })
    }
}

/// Returns the rows of `from` at the keys of `to`, both ascending; zero where `from` has no row.
fn scatter<T: Element>(from: &[u64], values: &[T], to: &[u64], columns: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; to.len() * columns];
    let mut next = 0;
    for (row, key) in out.chunks_mut(columns).zip(to) {
        while next < from.len() && from[next] < *key {
            next += 1;
        }
        if next < from.len() && from[next] == *key {
            row.copy_from_slice(&values[next * columns..][..columns]);
        }
    }
    out
}
