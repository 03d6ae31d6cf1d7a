//! Writes a model directory into a temporary sibling, which is then renamed, so that the model is complete or absent.
//!
//! Files and folder are synced to disk before the rename, and the rename before the function returns: after a power
//! failure the path has the old model or the new one. [`WriteResult::sync_s`] is the time that this takes.
//!
//! Rows are read in ascending blocks ([`MatrixSource`]), from a store or from all lanes, and the size of every tensor is known beforehand, so
//! no process holds a whole matrix twice. Lanes write no files of their own: a server need not see the folder of the model, and the bytes of a
//! model would depend on where it was trained.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use data::KeyNames;
use matrix::{MatrixSpec, RowBlock};
use store::file_identity::{exchange, folder_of, resolve_link};
use store::temp_output::{OLD, PROBE, TempOutputs, remove_stale_siblings, sibling};

use super::disk_sync::{BUFFER_BYTES, DiskSync};
use super::manifest::{self, FileEntry, Manifest};
use super::matrix_plan::MatrixPlan;
use super::memory::{MatrixSource, Model, RowsInMemory};
use super::names::{DICTIONARY_FILE, OPTIMIZER_FILE, WEIGHTS_FILE};
use super::own_files::{check_files, is_manifest};
use super::read::ModelReader;
use super::stored;
use super::tensor_file::TensorFile;
use crate::error::Error;

/// A file that is written from its beginning to its end, with its checksum.
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
    if let Some(address) = store::address(path) {
        return stored::check_target(address, overwrite);
    }
    check_absent(path, overwrite)?;
    remove_stale_siblings(path);
    if path.exists() && is_empty_folder(path) {
        let aside = sibling(path, PROBE);
        std::fs::rename(path, &aside)
            .and_then(|()| std::fs::rename(&aside, path))
            .map_err(Error::io("replace the folder", path))?;
    }
    let trial = sibling(path, PROBE);
    std::fs::create_dir_all(&trial).map_err(Error::io("write to", path))?;
    std::fs::remove_dir(&trial).map_err(Error::io("write to", path))
}

/// Checks without a write that nothing is at `path`, or an empty folder, or with `overwrite` a model without other files.
pub fn check_absent(path: &Path, overwrite: bool) -> Result<(), Error> {
    if let Some(address) = store::address(path) {
        return stored::check_absent(address, overwrite);
    }
    match path.exists() && !is_empty_folder(path) {
        false => Ok(()),
        true if overwrite => check_replaceable(path),
        true => Err(Error::ModelExists { path: path.into() }),
    }
}

fn is_empty_folder(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a folder is a model, intact or damaged.
pub fn is_model(folder: &Path) -> bool {
    std::fs::read(folder.join(manifest::FILE_NAME)).is_ok_and(|bytes| is_manifest(&bytes))
}

/// Checks that the folder has only files of a model, since replacing a model deletes its folder.
fn check_replaceable(path: &Path) -> Result<(), Error> {
    if !is_model(path) {
        return Err(Error::NotReplaceable { path: path.into() });
    }
    let manifest = std::fs::read(path.join(manifest::FILE_NAME)).unwrap_or_default();
    let entries = std::fs::read_dir(path).map_err(Error::io("list", path))?;
    check_files(path, &manifest, entries.filter_map(Result::ok).map(|entry| entry.file_name()))
}

/// A model that was written to disk.
#[derive(Clone, Debug)]
pub struct WriteResult {
    pub manifest: Manifest,
    /// Seconds of waiting for the disk, summed over all files.
    pub sync_s: f64,
}

/// Writes a model. `manifest` is complete except for its `matrices` and `files`. Of the dictionary, the names of rows
/// that exist are written.
pub fn write<E: From<Error>>(
    path: &Path,
    overwrite: bool,
    mut manifest: Manifest,
    (specs, source): (&[MatrixSpec], &mut dyn MatrixSource<E>),
    keep_optimizer: bool,
    dictionary: &KeyNames,
    outputs: &TempOutputs,
) -> Result<WriteResult, E> {
    let path = &*resolve_link(path);
    check_target(path, overwrite)?;
    let unfinished = outputs.temp_output(path);
    let folder = unfinished.path().to_owned();
    let sync = DiskSync::default();
    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let mut plans = Vec::new();
    for (i, spec) in specs.iter().enumerate() {
        plans.push(MatrixPlan::new(spec, source.count_rows(i)?, keep_optimizer));
    }
    let tensors = plans.iter().flat_map(MatrixPlan::weights).collect();
    let mut weights = TensorFile::create(&folder, WEIGHTS_FILE, tensors, &sync)?;
    let tensors: Vec<_> = plans.iter().flat_map(MatrixPlan::optimizer).collect();
    let mut slots = (!tensors.is_empty())
        .then(|| TensorFile::create(&folder, OPTIMIZER_FILE, tensors, &sync))
        .transpose()?;
    let mut names = NameFilter::new(dictionary);
    write_rows(source, plans.len(), |i, rows| {
        check_finite(&specs[i], &rows, keep_optimizer)?;
        names.add(&rows.keys);
        plans[i].write(&rows, &mut weights, slots.as_mut())
    })?;
    manifest.matrices.extend(plans.iter().map(MatrixPlan::entry));
    manifest.files.push(weights.finish()?);
    manifest.files.extend(slots.map(TensorFile::finish).transpose()?);
    if names.is_any_used() {
        let fill = |out: &mut ChecksumWriter| super::dictionary::write(names.used(), out);
        manifest.files.push(write_file(&folder, DICTIONARY_FILE, &sync, fill)?);
    }
    let text = manifest.to_text();
    write_file(&folder, manifest::FILE_NAME, &sync, |out| out.write_all(text.as_bytes()))?;
    sync.folder(&folder)?;
    unfinished.persist(put(overwrite))?;
    sync.folder(folder_of(path))?;
    Ok(WriteResult { manifest, sync_s: Duration::from_nanos(sync.spent_ns.into_inner()).as_secs_f64() })
}

/// Gives all rows of all matrices to `write`, block by block: a block is written while the next one is read.
fn write_rows<E: From<Error>>(
    source: &mut dyn MatrixSource<E>,
    matrix_count: usize,
    mut write: impl FnMut(usize, RowBlock) -> Result<(), Error> + Send,
) -> Result<(), E> {
    std::thread::scope(|scope| {
        let (sender, blocks) = sync_channel(0);
        let writing = scope.spawn(move || blocks.into_iter().try_for_each(|(i, rows)| write(i, rows)));
        let mut send_all = |i: usize| {
            let mut from = 0;
            loop {
                let rows = source.rows_from(i, from)?;
                let Some(last) = rows.keys.last() else { return Ok(()) };
                from = last + 1;
                if sender.send((i, rows)).is_err() {
                    // The writer has ended with an error.
                    return Ok(());
                }
            }
        };
        let read = (0..matrix_count).try_for_each(&mut send_all);
        drop(sender);
        writing.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        read
    })
}

/// Refuses rows that cannot be read again: their values, and what the push rule keeps if it is written, must be finite.
fn check_finite(spec: &MatrixSpec, rows: &RowBlock, with_slots: bool) -> Result<(), Error> {
    match rows.first_non_finite(with_slots) {
        None => Ok(()),
        Some((key, column, value)) => Err(Error::NotFinite { matrix: spec.name.clone(), key, column, value }),
    }
}

impl Model {
    /// Collects a model in memory: what [`write()`] would write into a folder, with the same checks.
    ///
    /// # Errors
    /// Those of the source; [`Error::NotFinite`].
    pub fn collect<E: From<Error>>(
        mut manifest: Manifest,
        (specs, source): (&[MatrixSpec], &mut dyn MatrixSource<E>),
        keep_optimizer: bool,
        dictionary: &KeyNames,
    ) -> Result<Self, E> {
        let (mut matrices, mut names) = (Vec::new(), NameFilter::new(dictionary));
        for (number, spec) in specs.iter().enumerate() {
            let plan = MatrixPlan::new(spec, source.count_rows(number)?, keep_optimizer);
            manifest.matrices.push(plan.entry());
            let (mut all, mut key) = (RowBlock::none(spec), 0);
            loop {
                let mut rows = source.rows_from(number, key)?;
                let Some(last) = rows.keys.last() else { break };
                key = last + 1;
                check_finite(spec, &rows, keep_optimizer)?;
                names.add(&rows.keys);
                if !keep_optimizer {
                    rows.slots.clear();
                    all.slots.clear();
                }
                all.append(&rows);
            }
            matrices.push(all);
        }
        let dictionary = names.used().collect();
        Ok(Self { manifest, matrices, dictionary })
    }

    /// Writes the model into a folder, with the bytes that [`write()`] would have written at once.
    ///
    /// # Errors
    /// Those of [`write()`].
    pub fn write(&self, path: &Path, overwrite: bool, outputs: &TempOutputs) -> Result<WriteResult, Error> {
        let entries = &self.manifest.matrices;
        let specs: Vec<MatrixSpec> = entries.iter().map(|entry| entry.spec.clone()).collect();
        let manifest = Manifest { matrices: Vec::new(), files: Vec::new(), ..self.manifest.clone() };
        let has_slots = entries.iter().any(|entry| entry.optimizer_file.is_some());
        let matrices = (&*specs, &mut RowsInMemory(&self.matrices) as &mut dyn MatrixSource<Error>);
        write(path, overwrite, manifest, matrices, has_slots, &self.dictionary, outputs)
    }
}

impl ModelReader {
    /// Writes the model into another folder: its files, or what is in memory.
    ///
    /// # Errors
    /// Those of [`copy`] and [`Model::write`].
    pub fn save(&self, path: &Path, overwrite: bool, outputs: &TempOutputs) -> Result<(), Error> {
        match self.memory() {
            None => copy(self.folder(), path, overwrite, outputs),
            Some(model) => model.write(path, overwrite, outputs).map(drop),
        }
    }
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
    unfinished.persist(put(overwrite))?;
    sync.folder(folder_of(to))
}

/// The names whose keys rows have.
struct NameFilter<'a> {
    names: &'a KeyNames,
    /// For each name, whether a row has its key.
    is_used: Vec<bool>,
}

impl<'a> NameFilter<'a> {
    fn new(names: &'a KeyNames) -> Self {
        Self { names, is_used: vec![false; names.len()] }
    }

    /// Adds the keys of rows, which ascend.
    fn add(&mut self, keys: &[u64]) {
        let Some(first) = keys.first() else { return };
        let mut position = self.names.position(*first);
        let mut named = self.names.iter_from(position).map(|(key, _)| key).peekable();
        for key in keys {
            while named.next_if(|named| named < key).is_some() {
                position += 1;
            }
            if named.next_if_eq(key).is_some() {
                self.is_used[position] = true;
                position += 1;
            }
        }
    }

    fn is_any_used(&self) -> bool {
        self.is_used.contains(&true)
    }

    fn used(&self) -> impl Iterator<Item = (u64, &str)> {
        self.names.iter().zip(&self.is_used).filter_map(|(name, is_used)| is_used.then_some(name))
    }
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

/// What takes the finished folder to its path, or to its address.
fn put(overwrite: bool) -> impl FnOnce(&Path, &Path) -> Result<(), Error> {
    move |folder, path| match store::address(path) {
        Some(address) => stored::upload(folder, address, overwrite),
        None if overwrite => replace(folder, path),
        None => move_to_new(folder, path),
    }
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
