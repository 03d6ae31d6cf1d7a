//! Reads a model directory. It first verifies the lengths of all files and the checksums of the files that it uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use matrix::{ExportedRows, OwnedValues};

use super::manifest::{self, FORMAT_NAME, Manifest, MatrixEntry};
use super::tensors::{self, SafeTensors, TensorView};
use super::{DICTIONARY_FILE, dictionary, keys_tensor};
use crate::error::Error;

/// A model in memory.
#[derive(Debug)]
pub struct Model {
    /// The model directory.
    pub path: PathBuf,
    pub manifest: Manifest,
    /// The matrices, in the order of the manifest; with slots if they were requested and saved.
    pub matrices: Vec<ExportedRows>,
    /// Names of keys.
    pub dictionary: BTreeMap<u64, String>,
}

impl Model {
    /// Reads a model; with its optimizer slots if `with_slots` is true and they were saved.
    pub fn read(path: &Path, with_slots: bool) -> Result<Self, Error> {
        let manifest = read_manifest(path)?;
        let mut files = BTreeMap::new();
        for entry in &manifest.files {
            let file = path.join(&entry.name);
            let unread = |source: std::io::Error| match source.kind() {
                std::io::ErrorKind::NotFound => {
                    bad_model(&file, "it is listed in model.json, but does not exist")
                }
                _ => Error::Io { action: "read", path: file.clone(), source },
            };
            let actual = std::fs::metadata(&file).map_err(unread)?.len();
            if actual != entry.size_bytes {
                return Err(Error::Length { path: file, expected: entry.size_bytes, actual });
            }
            if !with_slots && entry.name == super::OPTIMIZER_FILE {
                continue;
            }
            let bytes = std::fs::read(&file).map_err(unread)?;
            let actual = crc32c::crc32c(&bytes);
            if actual != entry.crc32c {
                return Err(Error::Checksum { path: file, expected: entry.crc32c, actual });
            }
            files.insert(entry.name.as_str(), bytes);
        }
        let mut tensors = BTreeMap::new();
        for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".safetensors")) {
            let read = SafeTensors::deserialize(bytes);
            tensors.insert(*name, read.map_err(|error| bad_model(&path.join(name), error.to_string()))?);
        }
        let matrices = manifest
            .matrices
            .iter()
            .map(|entry| matrix_of(path, entry, &tensors))
            .collect::<Result<_, _>>()?;
        let dictionary = files.get(DICTIONARY_FILE).map_or(Ok(BTreeMap::new()), |bytes| {
            let file = path.join(DICTIONARY_FILE);
            let text = std::str::from_utf8(bytes).map_err(|e| bad_model(&file, e.to_string()))?;
            dictionary::from_text(text)
                .map_err(|line| bad_model(&file, format!("line {line} is not an entry")))
        })?;
        Ok(Self { path: path.into(), manifest, matrices, dictionary })
    }
}

/// Reads and verifies only the manifest.
pub fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    let file = path.join(manifest::FILE_NAME);
    if !file.is_file() {
        let there = if path.is_dir() { "it contains no model.json" } else { "there is no such directory" };
        return Err(Error::NotAModel { path: path.into(), reason: there.into() });
    }
    let bytes = std::fs::read(&file).map_err(Error::io("read", &file))?;
    let manifest = Manifest::from_bytes(&bytes, &file)?;
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
type Tensors<'a> = BTreeMap<&'a str, SafeTensors<'a>>;

fn tensor<'a>(folder: &Path, file: &str, name: &str, tensors: &Tensors<'a>) -> Result<TensorView<'a>, Error> {
    let tensor = tensors.get(file).and_then(|tensors| tensors.tensor(name).ok());
    tensor.ok_or_else(|| bad_model(&folder.join(file), format!("tensor {name:?} is missing")))
}

fn read_values(folder: &Path, file: &str, name: &str, tensors: &Tensors<'_>) -> Result<OwnedValues, Error> {
    let values = tensors::values(&tensor(folder, file, name, tensors)?);
    let what = || format!("tensor {name:?} must be F32, F64 or I64");
    values.ok_or_else(|| bad_model(&folder.join(file), what()))
}

fn read_keys(folder: &Path, file: &str, name: &str, tensors: &Tensors<'_>) -> Result<Vec<u64>, Error> {
    let Some(keys) = tensors::keys(&tensor(folder, file, name, tensors)?) else {
        return Err(bad_model(&folder.join(file), format!("tensor {name:?} must be U64")));
    };
    if !keys.is_sorted_by(|a, b| a < b) {
        return Err(bad_model(&folder.join(file), format!("keys of tensor {name:?} must ascend")));
    }
    Ok(keys)
}

fn matrix_of(folder: &Path, entry: &MatrixEntry, tensors: &Tensors<'_>) -> Result<ExportedRows, Error> {
    let file = folder.join(&entry.file);
    let values = read_values(folder, &entry.file, &entry.name, tensors)?;
    let spec = &entry.spec;
    if spec.columns != entry.columns || spec.rows != entry.rows {
        return Err(bad_model(
            &folder.join(manifest::FILE_NAME),
            format!("matrix {:?} has two shapes", entry.name),
        ));
    }
    spec.check().map_err(|error| bad_model(&folder.join(manifest::FILE_NAME), error.to_string()))?;
    // This is checked before any allocation: a manifest may have numbers that do not fit the file beside it.
    if entry.columns == 0 || entry.stored_rows.checked_mul(entry.columns) != Some(length(&values) as u64) {
        let (rows, columns) = (entry.stored_rows, entry.columns);
        return Err(bad_model(
            &file,
            format!("{rows} rows of {columns} columns but {} values", length(&values)),
        ));
    }
    let keys = match &entry.keys {
        Some(name) => read_keys(folder, &entry.file, name, tensors)?,
        None => (0..entry.stored_rows).collect(),
    };
    if keys.len() as u64 != entry.stored_rows || keys.last().is_some_and(|last| *last >= entry.rows) {
        let (count, rows) = (keys.len(), entry.rows);
        let what = format!("{count} keys for {} stored rows, all below {rows} expected", entry.stored_rows);
        return Err(bad_model(&file, what));
    }
    let weights = ExportedRows { keys, values, slots: Vec::new() };
    match &entry.optimizer_file {
        Some(optimizer) if tensors.contains_key(optimizer.as_str()) => {
            with_slots(folder, entry, &weights, tensors)
        }
        _ => Ok(weights),
    }
}

/// Returns the rows that the optimizer file has; weights that are not stored are zero.
fn with_slots(
    folder: &Path,
    entry: &MatrixEntry,
    weights: &ExportedRows,
    tensors: &Tensors<'_>,
) -> Result<ExportedRows, Error> {
    let file = entry.optimizer_file.as_deref().expect("the caller has seen it");
    let name = keys_tensor(&entry.name);
    let keys = if tensors.get(file).is_some_and(|tensors| tensors.tensor(&name).is_ok()) {
        read_keys(folder, file, &name, tensors)?
    } else {
        // The optimizer file has no keys when the file of weights has every row.
        weights.keys.clone()
    };
    let columns = entry.columns as usize;
    let values = match &weights.values {
        OwnedValues::F32(x) => OwnedValues::F32(scatter(&weights.keys, x, &keys, columns)),
        OwnedValues::F64(x) => OwnedValues::F64(scatter(&weights.keys, x, &keys, columns)),
        OwnedValues::I64(x) => OwnedValues::I64(scatter(&weights.keys, x, &keys, columns)),
    };
    let mut slots = Vec::new();
    for slot in &entry.slots {
        let name = format!("{}.{slot}", entry.name);
        let values = read_values(folder, file, &name, tensors)?;
        if !length(&values).is_multiple_of(keys.len().max(1)) {
            let what = format!("tensor {name:?}: {} values for {} keys", length(&values), keys.len());
            return Err(bad_model(&folder.join(file), what));
        }
        slots.push((slot.clone(), values));
    }
    Ok(ExportedRows { keys, values, slots })
}

/// Returns the rows of `from` at the keys of `to`, both ascending; zero where `from` has no row.
fn scatter<T: Copy + Default>(from: &[u64], values: &[T], to: &[u64], columns: usize) -> Vec<T> {
    let mut out = vec![T::default(); to.len() * columns];
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

fn length(values: &OwnedValues) -> usize {
    match values {
        OwnedValues::F32(x) => x.len(),
        OwnedValues::F64(x) => x.len(),
        OwnedValues::I64(x) => x.len(),
    }
}
