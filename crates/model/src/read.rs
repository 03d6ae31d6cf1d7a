//! Reads a model: a directory, of which it first verifies the lengths of all files and the checksums of the files that it
//! uses, or a model in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data::KeyNames;
use matrix::RowBlock;

use tempfile::TempDir;

use super::dictionary::{self, DictionaryError};
use super::disk_sync::BUFFER_BYTES;
use super::manifest::{self, FORMAT_NAME, FileEntry, Manifest};
use super::matrix_files::{MatrixFiles, Tensors, bad_model};
use super::memory::{MatrixSource as _, Model, RowsInMemory};
use super::names::{DICTIONARY_FILE, OPTIMIZER_FILE};
use super::stored;
use super::stored_tensors;
use crate::error::Error;

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
            for matrix in matrices {
                matrix.block_rows = block_rows;
            }
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
