//! Reads a model: a directory, of which it first verifies the lengths of all files and the checksums of the files that it
//! uses, or a model in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data::KeyNames;
use matrix::{Element, FunctionTable, Lists, RowBlock, with_values};

use tempfile::TempDir;

use super::dictionary::{self, DictionaryError};
use super::disk_sync::BUFFER_BYTES;
use super::manifest::{self, FORMAT_NAME, FileEntry, Manifest, MatrixEntry};
use super::matrix_plan::is_zero;
use super::memory::{MatrixSource as _, Model, RowsInMemory, SEARCHED_ROWS};
use super::names::{DICTIONARY_FILE, OPTIMIZER_FILE, entries_tensor, keys_tensor, lengths_tensor};
use super::stored;
use super::stored_tensors::{self, StoredTensor};
use crate::error::Error;

/// Size of the rows that are read at a time.
const BLOCK_BYTES: u64 = 2 << 20;

impl Model {
    /// Reads a model; with its optimizer slots if `with_slots` is true and they were saved.
    pub fn read(path: &Path, with_slots: bool) -> Result<Self, Error> {
        let mut reader = ModelReader::open(path, with_slots)?;
        let count = reader.manifest.matrices.len();
        let matrices = (0..count).map(|matrix| reader.read_all(matrix)).collect::<Result<_, _>>()?;
        let dictionary = reader.dictionary()?;
        Ok(Self { manifest: reader.manifest, matrices, dictionary })
    }
}

/// A model whose matrices are read block by block: from files, which are verified, or from memory.
#[derive(Debug)]
pub struct ModelReader {
    /// The model directory, or its address; [`IN_MEMORY`] if there is none.
    pub path: PathBuf,
    pub manifest: Manifest,
    rows: StoredRows,
    /// The copy of a model of a store.
    copy: Option<TempDir>,
}

/// What stands for the path of a model that was not saved.
pub const IN_MEMORY: &str = "(in memory)";

#[derive(Debug)]
enum StoredRows {
    Files(Vec<MatrixFiles>),
    Memory(Arc<Model>),
}

impl ModelReader {
    /// Opens a model; with its optimizer slots if `with_slots` is true and they were saved.
    pub fn open(path: &Path, with_slots: bool) -> Result<Self, Error> {
        let Some(address) = store::address(path) else { return Self::open_folder(path, with_slots) };
        let bytes = stored::manifest(address)?;
        let manifest = checked_manifest(&bytes, path)?;
        let copy = stored::download(address, &manifest, &bytes)?;
        let opened = Self::open_folder(copy.path(), with_slots);
        let opened =
            opened.map_err(|error| Error::Remote { address: address.to_owned(), source: Box::new(error) })?;
        Ok(Self { path: path.into(), copy: Some(copy), ..opened })
    }

    /// The folder of this machine that has the files.
    pub(crate) fn folder(&self) -> &Path {
        self.copy.as_ref().map_or(&self.path, TempDir::path)
    }

    fn open_folder(path: &Path, with_slots: bool) -> Result<Self, Error> {
        let manifest = read_manifest(path)?;
        let mut tensors = BTreeMap::new();
        for entry in &manifest.files {
            let is_used = with_slots || entry.name != OPTIMIZER_FILE;
            let file = path.join(&entry.name);
            verify(&file, entry, is_used)?;
            if is_used && entry.name.ends_with(".safetensors") {
                tensors.insert(entry.name.clone(), stored_tensors::open(&file, entry.size_bytes)?);
            }
        }
        let tensors = Tensors(tensors);
        let matrices = manifest
            .matrices
            .iter()
            .map(|entry| MatrixFiles::new(path, entry, &tensors))
            .collect::<Result<_, _>>()?;
        Ok(Self { path: path.into(), manifest, rows: StoredRows::Files(matrices), copy: None })
    }

    /// Reads a model in memory, without its optimizer slots.
    pub fn of_memory(model: Arc<Model>) -> Self {
        Self {
            path: IN_MEMORY.into(),
            manifest: model.manifest.clone(),
            rows: StoredRows::Memory(model),
            copy: None,
        }
    }

    /// The same model, read from its beginning.
    ///
    /// # Errors
    /// If its files have changed.
    pub fn reopened(&self) -> Result<Self, Error> {
        match &self.rows {
            StoredRows::Files(_) => Self::open(&self.path, false),
            StoredRows::Memory(model) => Ok(Self::of_memory(Arc::clone(model))),
        }
    }

    /// The model in memory, if it has no files.
    pub fn memory(&self) -> Option<&Arc<Model>> {
        match &self.rows {
            StoredRows::Files(_) => None,
            StoredRows::Memory(model) => Some(model),
        }
    }

    /// Reads the names of keys.
    pub fn dictionary(&self) -> Result<KeyNames, Error> {
        if let StoredRows::Memory(model) = &self.rows {
            return Ok(model.dictionary.clone());
        }
        if !self.manifest.files.iter().any(|entry| entry.name == DICTIONARY_FILE) {
            return Ok(KeyNames::default());
        }
        let path = self.folder().join(DICTIONARY_FILE);
        let file = File::open(&path).map_err(Error::io("read", &path))?;
        dictionary::read(BufReader::with_capacity(BUFFER_BYTES, file)).map_err(|error| match error {
            DictionaryError::Io(source) => Error::io("read", &path)(source),
            error => bad_model(&path, error.to_string()),
        })
    }

    /// The rows of a matrix from a key on, as many as take little memory. No rows: there are none from this key on.
    pub fn rows_from(&mut self, matrix: usize, key: u64) -> Result<RowBlock, Error> {
        match &mut self.rows {
            StoredRows::Files(matrices) => matrices[matrix].rows_from(key),
            StoredRows::Memory(model) => {
                let rows: Result<RowBlock, Error> = RowsInMemory(&model.matrices).rows_from(matrix, key);
                let mut rows = rows?;
                rows.slots.clear();
                Ok(rows)
            }
        }
    }

    /// The smallest and the largest key whose row is not zero; none if there is no row. Of a matrix without keys, whose rows
    /// are all stored, only the first rows are searched.
    pub fn key_range(&self, matrix: usize) -> Result<Option<(u64, u64)>, Error> {
        match &self.rows {
            StoredRows::Files(matrices) => matrices[matrix].key_range(),
            StoredRows::Memory(model) => Ok(model.key_range(matrix)),
        }
    }

    /// The same model, of which this many rows are read at a time.
    #[cfg(test)]
    pub(crate) fn with_block_rows(mut self, block_rows: u64) -> Self {
        if let StoredRows::Files(matrices) = &mut self.rows {
            matrices.iter_mut().for_each(|matrix| matrix.block_rows = block_rows);
        }
        self
    }

    /// All rows of a matrix.
    pub fn read_all(&mut self, matrix: usize) -> Result<RowBlock, Error> {
        let mut rows = self.rows_from(matrix, 0)?;
        while let Some(last) = rows.keys.last() {
            let more = self.rows_from(matrix, last + 1)?;
            if more.keys.is_empty() {
                break;
            }
            rows.append(&more);
        }
        Ok(rows)
    }
}

/// Checks the length of a file, and if it is used its checksum.
fn verify(file: &Path, entry: &FileEntry, is_used: bool) -> Result<(), Error> {
    let unread = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => bad_model(file, "it is listed in model.json, but does not exist"),
        _ => Error::Io { action: "read", path: file.into(), source },
    };
    let actual = std::fs::metadata(file).map_err(unread)?.len();
    if actual != entry.size_bytes {
        return Err(Error::Length { path: file.into(), expected: entry.size_bytes, actual });
    }
    if !is_used {
        return Ok(());
    }
    let mut bytes = vec![0; BUFFER_BYTES.min(actual as usize + 1)];
    let mut reader = File::open(file).map_err(unread)?;
    let mut actual = 0;
    loop {
        match reader.read(&mut bytes).map_err(unread)? {
            0 => break,
            count => actual = crc32c::crc32c_append(actual, &bytes[..count]),
        }
    }
    if actual != entry.crc32c {
        return Err(Error::Checksum { path: file.into(), expected: entry.crc32c, actual });
    }
    Ok(())
}

/// Reads and verifies only the manifest.
pub fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    if let Some(address) = store::address(path) {
        return checked_manifest(&stored::manifest(address)?, path);
    }
    let file = path.join(manifest::FILE_NAME);
    if !file.is_file() {
        let there = if path.is_dir() {
            "it contains no model.json"
        } else if path.exists() {
            "it is a file and no directory"
        } else {
            "there is no such directory"
        };
        return Err(Error::NotAModel { path: path.into(), reason: there.into() });
    }
    let bytes = std::fs::read(&file).map_err(Error::io("read", &file))?;
    checked_manifest(&bytes, path)
}

fn checked_manifest(bytes: &[u8], path: &Path) -> Result<Manifest, Error> {
    let manifest = Manifest::from_bytes(bytes, &path.join(manifest::FILE_NAME))?;
    if manifest.format != FORMAT_NAME {
        return Err(Error::NotAModel {
            path: path.into(),
            reason: format!("model.json has the format {:?}", manifest.format),
        });
    }
    Ok(manifest)
}

fn bad_model(path: &Path, what: impl Into<String>) -> Error {
    Error::BadModel { path: path.into(), what: what.into() }
}

/// The tensors of each file.
struct Tensors(BTreeMap<String, BTreeMap<String, StoredTensor>>);

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
struct MatrixFiles {
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
    block_rows: u64,
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
    fn new(folder: &Path, entry: &MatrixEntry, tensors: &Tensors) -> Result<Self, Error> {
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

    fn key_range(&self) -> Result<Option<(u64, u64)>, Error> {
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

    fn rows_from(&mut self, key: u64) -> Result<RowBlock, Error> {
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
