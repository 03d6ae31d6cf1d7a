//! Writes a model directory into a temporary sibling, which is then renamed, so that the model is complete or absent.
//!
//! Files and folder are synced to disk before the rename, and the rename before the function returns: after a power
//! failure the path has the old model or the new one. [`WriteResult::sync_s`] is the time that this takes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use matrix::{ExportedRows, OwnedValues};
use matrix::{MatrixSpec, Storage};

use super::manifest::{self, FileEntry, Manifest, MatrixEntry};
use super::tensors::{self, Dtype, Tensor};
use super::{DICTIONARY_FILE, OPTIMIZER_FILE, WEIGHTS_FILE};
use crate::error::Error;
use crate::file_identity::{exchange, folder_of};
use crate::temp_output::{OLD, PROBE, TempOutputs, sibling};

/// Buffer size of a file that is being written.
const BUFFER_BYTES: usize = 1 << 20;

/// Size of a key.
const KEY_BYTES: usize = size_of::<u64>();

/// A matrix as the store exported it.
#[derive(Debug)]
pub struct StoredMatrix<'a> {
    pub spec: &'a MatrixSpec,
    pub rows: &'a ExportedRows,
}

/// A file that counts the written bytes and computes their checksum.
struct ChecksumWriter {
    file: BufWriter<File>,
    size_bytes: u64,
    crc32c: u32,
}

impl Write for ChecksumWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all(bytes)?;
        self.size_bytes += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Checks before any work that a model can be written to `path`: the path must be absent, an empty folder or, with
/// `overwrite`, a model without other files. Also checks that the parent is writable and that an empty folder can be
/// replaced (a mount or `.` cannot).
pub fn check_target(path: &Path, overwrite: bool) -> Result<(), Error> {
    let path = &*resolve_link(path);
    if path.exists() {
        let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if !overwrite && !empty {
            return Err(Error::ModelExists { path: path.into() });
        }
        if empty {
            let aside = sibling(path, PROBE);
            std::fs::rename(path, &aside)
                .and_then(|()| std::fs::rename(&aside, path))
                .map_err(Error::io("replace the folder", path))?;
        } else {
            check_replaceable(path)?;
        }
    }
    let trial = sibling(path, PROBE);
    std::fs::create_dir_all(&trial).map_err(Error::io("write to", path))?;
    std::fs::remove_dir(&trial).map_err(Error::io("write to", path))
}

/// Whether a folder is a model, intact or damaged.
pub fn is_model(folder: &Path) -> bool {
    std::fs::read(folder.join(manifest::FILE_NAME)).is_ok_and(|bytes| {
        let name = manifest::FORMAT_NAME.as_bytes();
        bytes.windows(name.len()).any(|window| window == name)
    })
}

/// Checks that the folder has only files of a model, since replacing a model deletes its folder.
fn check_replaceable(path: &Path) -> Result<(), Error> {
    if !is_model(path) {
        return Err(Error::NotReplaceable { path: path.into() });
    }
    let manifest = std::fs::read(path.join(manifest::FILE_NAME)).unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
    let listed = manifest["files"].as_array().into_iter().flatten().filter_map(|file| file["name"].as_str());
    let own = [manifest::FILE_NAME, WEIGHTS_FILE, OPTIMIZER_FILE, DICTIONARY_FILE];
    let own: BTreeSet<&str> = listed.chain(own).collect();
    let entries = std::fs::read_dir(path).map_err(Error::io("list", path))?;
    let mut names: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    names.sort();
    match names.into_iter().find(|name| name.to_str().is_none_or(|name| !own.contains(name))) {
        Some(stranger) => Err(Error::ForeignFileInModel { path: path.into(), file: stranger.into() }),
        None => Ok(()),
    }
}

/// Resolves a link, so that the model is replaced and not the link to it.
fn resolve_link(path: &Path) -> Cow<'_, Path> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => path.canonicalize().map_or(Cow::Borrowed(path), Cow::Owned),
        _ => Cow::Borrowed(path),
    }
}

/// A model that was written to disk.
#[derive(Clone, Debug)]
pub struct WriteResult {
    pub manifest: Manifest,
    /// Seconds of waiting for the disk, summed over all files.
    pub sync_s: f64,
}

/// Writes a model. `manifest` is complete except for its `matrices` and `files`.
pub fn write(
    path: &Path,
    overwrite: bool,
    mut manifest: Manifest,
    matrices: &[StoredMatrix<'_>],
    keep_optimizer: bool,
    dictionary: &BTreeMap<u64, String>,
    outputs: &TempOutputs,
) -> Result<WriteResult, Error> {
    let path = &*resolve_link(path);
    check_target(path, overwrite)?;
    let unfinished = outputs.temp_output(path);
    let folder = unfinished.path().to_owned();
    let sync = DiskSync::default();
    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let mut weights = Vec::new();
    let mut slots = Vec::new();
    for saved in matrices {
        manifest.matrices.push(tensors_of(saved, keep_optimizer, &mut weights, &mut slots));
    }
    // The two files are written in parallel; the optimizer's file is the larger one.
    let (weights, slots) = std::thread::scope(|scope| {
        let slots = (!slots.is_empty())
            .then(|| scope.spawn(|| write_tensors(&folder, OPTIMIZER_FILE, &slots, &sync)));
        let weights = write_tensors(&folder, WEIGHTS_FILE, &weights, &sync);
        (weights, slots.map(|thread| thread.join().expect("writing a file does not panic")))
    });
    manifest.files.push(weights?);
    manifest.files.extend(slots.transpose()?);
    if !dictionary.is_empty() {
        let text = super::dictionary::to_text(dictionary);
        let fill = |out: &mut ChecksumWriter| out.write_all(text.as_bytes());
        manifest.files.push(write_file(&folder, DICTIONARY_FILE, &sync, fill)?);
    }
    let text = manifest.to_text();
    write_file(&folder, manifest::FILE_NAME, &sync, |out| out.write_all(text.as_bytes()))?;
    sync.folder(&folder)?;
    unfinished.persist(if overwrite { replace } else { move_to_new })?;
    sync.folder(folder_of(path))?;
    Ok(WriteResult { manifest, sync_s: Duration::from_nanos(sync.spent_ns.into_inner()).as_secs_f64() })
}

/// Copies a model.
pub fn copy(from: &Path, to: &Path, overwrite: bool, outputs: &TempOutputs) -> Result<(), Error> {
    let manifest = super::read_manifest(from)?;
    let to = &*resolve_link(to);
    check_target(to, overwrite)?;
    let unfinished = outputs.temp_output(to);
    let folder = unfinished.path().to_owned();
    let sync = DiskSync::default();
    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    for name in manifest.files.iter().map(|file| file.name.as_str()).chain([manifest::FILE_NAME]) {
        let mut source = File::open(from.join(name)).map_err(Error::io("read", &from.join(name)))?;
        write_file(&folder, name, &sync, |out| std::io::copy(&mut source, out).map(drop))?;
    }
    sync.folder(&folder)?;
    unfinished.persist(if overwrite { replace } else { move_to_new })?;
    sync.folder(folder_of(to))
}

/// Returns the entry of a matrix and adds its tensors; zero rows are left out when that takes less space.
fn tensors_of<'a>(
    saved: &StoredMatrix<'a>,
    keep_optimizer: bool,
    weights: &mut Vec<Tensor<'a>>,
    slots: &mut Vec<Tensor<'a>>,
) -> MatrixEntry {
    let (spec, rows) = (saved.spec, saved.rows);
    let columns = spec.columns as usize;
    let stored = stored_rows(spec, rows, columns);
    let (dtype, all) = bytes_of(&rows.values);
    let (keys, bytes) = match &stored {
        Some(positions) => {
            let keys = select(bytemuck::cast_slice(&rows.keys), positions, KEY_BYTES);
            (Some(keys), select(all, positions, columns * dtype.bitsize() / 8))
        }
        None => (None, Cow::Borrowed(all)),
    };
    let stored_rows = stored.as_ref().map_or(rows.keys.len(), Vec::len);
    let keys_name = keys.is_some().then(|| super::keys_tensor(&spec.name));
    if let (Some(name), Some(keys)) = (&keys_name, keys) {
        weights.push(Tensor { name: name.clone(), dtype: Dtype::U64, shape: vec![stored_rows], bytes: keys });
    }
    weights.push(Tensor { name: spec.name.clone(), dtype, shape: vec![stored_rows, columns], bytes });
    let kept: &[(String, OwnedValues)] = if keep_optimizer { &rows.slots } else { &[] };
    if !kept.is_empty() {
        let count = rows.keys.len();
        // The keys are written only if they differ from those of the weights.
        if stored_rows < count || keys_name.is_none() {
            let (name, bytes) =
                (super::keys_tensor(&spec.name), Cow::Borrowed(bytemuck::cast_slice(&rows.keys)));
            slots.push(Tensor { name, dtype: Dtype::U64, shape: vec![count], bytes });
        }
        for (slot, values) in kept {
            let (dtype, bytes) = bytes_of(values);
            let shape = vec![count, bytes.len() * 8 / dtype.bitsize() / count.max(1)];
            slots.push(Tensor { name: format!("{}.{slot}", spec.name), dtype, shape, bytes: bytes.into() });
        }
    }
    MatrixEntry {
        name: spec.name.clone(),
        file: WEIGHTS_FILE.into(),
        keys: keys_name,
        rows: spec.rows,
        columns: spec.columns,
        stored_rows: stored_rows as u64,
        dtype: spec.element,
        storage: spec.storage,
        optimizer_file: (!kept.is_empty()).then(|| OPTIMIZER_FILE.into()),
        slots: kept.iter().map(|(name, _)| name.clone()).collect(),
        spec: spec.clone(),
    }
}

/// Returns the positions of the rows to store; none when all rows are stored in order without keys.
fn stored_rows(spec: &MatrixSpec, rows: &ExportedRows, columns: usize) -> Option<Vec<u32>> {
    let complete = rows.keys.len() as u64 == spec.rows && spec.storage == Storage::Dense;
    let zero_is_absent = spec.initializer == matrix::Initializer::Zero;
    let positions: Vec<u32> = (0..rows.keys.len() as u32)
        .filter(|&row| !zero_is_absent || !is_zero(&rows.values, row as usize, columns))
        .collect();
    let width = columns * if spec.element == matrix::ElementType::F32 { 4 } else { 8 };
    let sparse_bytes = positions.len() * (8 + width);
    let dense_bytes = rows.keys.len() * width;
    (!complete || sparse_bytes < dense_bytes).then_some(positions)
}

fn is_zero(values: &OwnedValues, row: usize, columns: usize) -> bool {
    let range = row * columns..(row + 1) * columns;
    match values {
        OwnedValues::F32(x) => x[range].iter().all(|&v| v == 0.0),
        OwnedValues::F64(x) => x[range].iter().all(|&v| v == 0.0),
        OwnedValues::I64(x) => x[range].iter().all(|&v| v == 0),
    }
}

fn bytes_of(values: &OwnedValues) -> (Dtype, &[u8]) {
    match values {
        OwnedValues::F32(x) => (Dtype::F32, bytemuck::cast_slice(x)),
        OwnedValues::F64(x) => (Dtype::F64, bytemuck::cast_slice(x)),
        OwnedValues::I64(x) => (Dtype::I64, bytemuck::cast_slice(x)),
    }
}

/// The rows of `bytes` at these positions; a row has `width` bytes.
fn select<'a>(bytes: &'a [u8], positions: &[u32], width: usize) -> Cow<'a, [u8]> {
    if positions.len() * width == bytes.len() {
        return Cow::Borrowed(bytes);
    }
    let mut selected = Vec::with_capacity(positions.len() * width);
    for &position in positions {
        selected.extend_from_slice(&bytes[position as usize * width..][..width]);
    }
    Cow::Owned(selected)
}

/// Syncs files to disk and measures the time.
#[derive(Debug, Default)]
struct DiskSync {
    spent_ns: AtomicU64,
}

impl DiskSync {
    fn file(&self, file: &File) -> std::io::Result<()> {
        let start = Instant::now();
        let result = file.sync_all();
        self.spent_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    /// Syncs the entries of a folder. Some systems (network folders, Windows) cannot do that; their errors are ignored.
    fn folder(&self, path: &Path) -> Result<(), Error> {
        let Ok(folder) = File::open(path) else { return Ok(()) };
        match self.file(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                Err(Error::io("write", path)(error))
            }
            _ => Ok(()),
        }
    }
}

fn write_tensors(
    folder: &Path,
    name: &str,
    tensors: &[Tensor<'_>],
    sync: &DiskSync,
) -> Result<FileEntry, Error> {
    write_file(folder, name, sync, |out| tensors::write(tensors, out))
}

fn write_file(
    folder: &Path,
    name: &str,
    sync: &DiskSync,
    fill: impl FnOnce(&mut ChecksumWriter) -> std::io::Result<()>,
) -> Result<FileEntry, Error> {
    let path = folder.join(name);
    let file = File::create(&path).map_err(Error::io("create", &path))?;
    let mut out =
        ChecksumWriter { file: BufWriter::with_capacity(BUFFER_BYTES, file), size_bytes: 0, crc32c: 0 };
    fill(&mut out)
        .and_then(|()| out.flush())
        .and_then(|()| sync.file(out.file.get_ref()))
        .map_err(Error::io("write", &path))?;
    Ok(FileEntry { name: name.into(), size_bytes: out.size_bytes, crc32c: out.crc32c })
}

/// Moves the finished folder to a path where nothing or an empty folder is; anything else that has appeared there
/// stays.
fn move_to_new(folder: &Path, path: &Path) -> Result<(), Error> {
    std::fs::rename(folder, path).map_err(|error| {
        let is_taken =
            path.is_file() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken { Error::ModelExists { path: path.into() } } else { Error::io("create", path)(error) }
    })
}

/// Moves the finished folder to its path. It exchanges the names of the old and the new folder, so that a model is at
/// the path at every moment, and deletes the old one last. Where the system cannot do that, the old folder is renamed
/// first; if the process then dies, the next process that writes to the path moves the old folder back.
fn replace(folder: &Path, path: &Path) -> Result<(), Error> {
    let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if !path.exists() || is_empty {
        return std::fs::rename(folder, path).map_err(Error::io("create", path));
    }
    // Another process may have put a file there in the meantime.
    check_replaceable(path)?;
    if exchange(folder, path).map_err(Error::io("replace", path))? {
        // The new model is at its path; the next writer removes what remains of the old one.
        let _ = std::fs::remove_dir_all(folder);
        return Ok(());
    }
    replace_in_two_steps(folder, path)
}

fn replace_in_two_steps(folder: &Path, path: &Path) -> Result<(), Error> {
    let aside = sibling(path, OLD);
    std::fs::rename(path, &aside).map_err(Error::io("replace", path))?;
    if let Err(error) = std::fs::rename(folder, path) {
        let _ = std::fs::rename(&aside, path);
        return Err(Error::io("create", path)(error));
    }
    let _ = std::fs::remove_dir_all(&aside);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_to_the_place_while_a_model_is_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (made, place) = (folder.path().join("made"), folder.path().join("place"));
        std::fs::create_dir(&made).unwrap();
        std::fs::write(made.join("file"), "new").unwrap();
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("file"), "old").unwrap();
        assert!(matches!(move_to_new(&made, &place), Err(Error::ModelExists { .. })));
        assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "old");
        std::fs::remove_file(place.join("file")).unwrap();
        move_to_new(&made, &place).unwrap();
        assert_eq!(
            std::fs::read_to_string(place.join("file")).unwrap(),
            "new",
            "an empty folder is no obstacle"
        );
    }

    fn model_in(path: &Path, content: &str) {
        std::fs::create_dir(path).unwrap();
        std::fs::write(
            path.join(manifest::FILE_NAME),
            format!("{{\"format\": \"{}\"}}", manifest::FORMAT_NAME),
        )
        .unwrap();
        std::fs::write(path.join(WEIGHTS_FILE), content).unwrap();
    }

    #[test]
    fn a_model_is_replaced_in_one_step_or_two() {
        for put in [replace, replace_in_two_steps] {
            let folder = tempfile::tempdir().unwrap();
            let (made, place) = (folder.path().join("made"), folder.path().join("place"));
            model_in(&made, "new");
            model_in(&place, "old");
            put(&made, &place).unwrap();
            assert_eq!(std::fs::read_to_string(place.join(WEIGHTS_FILE)).unwrap(), "new");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        }
    }

    #[test]
    fn a_file_that_is_no_part_of_the_model_is_named_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (made, place) = (folder.path().join("made"), folder.path().join("place"));
        model_in(&made, "new");
        model_in(&place, "old");
        std::fs::write(place.join("thesis.txt"), "years of work").unwrap();
        for refused in [check_target(&place, true), replace(&made, &place)] {
            assert!(refused.unwrap_err().to_string().contains("thesis.txt"));
        }
        assert_eq!(std::fs::read_to_string(place.join("thesis.txt")).unwrap(), "years of work");
        assert_eq!(std::fs::read_to_string(place.join(WEIGHTS_FILE)).unwrap(), "old");
    }

    #[test]
    fn a_model_that_cannot_be_replaced_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        model_in(&place, "old");
        // The folder `made` does not exist, so the new model cannot be moved to the path.
        for put in [replace, replace_in_two_steps] {
            assert!(put(&folder.path().join("made"), &place).is_err());
            assert_eq!(std::fs::read_to_string(place.join(WEIGHTS_FILE)).unwrap(), "old");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left aside");
        }
    }

    /// A device accepts all bytes but cannot sync them, and reports that when it is asked to.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_is_written_when_the_disk_says_so() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join("file")).unwrap();
        let error = write_file(folder.path(), "file", &DiskSync::default(), |out| out.write_all(b"text"))
            .unwrap_err();
        assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
    }
}
