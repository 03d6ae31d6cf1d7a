//! A store on a disk that fills up, is cut off, and loses or changes files when the power fails.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Error as IoError, ErrorKind, Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use math::random::RandomStream;
use store::{Entry, EntryKind, FileFacts, FileWriter, Store};

/// The files, and what may happen to them.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// What the writers have written last to each file.
    pub(super) wanted: BTreeMap<String, Vec<u8>>,
    /// Files that were written since the last power failure.
    fresh: BTreeSet<String>,
    /// Number of bytes and names that can be written until the process is killed, and until the disk is full.
    pub(super) left_until_kill: Option<u64>,
    pub(super) left_until_full: Option<u64>,
    pub(super) is_killed: bool,
}

impl Disk {
    /// Takes part of what is left; an error when it is used up.
    fn use_up(&mut self, amount: u64) -> std::io::Result<()> {
        if self.is_killed {
            return Err(IoError::other("the process was killed"));
        }
        if let Some(left) = &mut self.left_until_kill {
            let Some(rest) = left.checked_sub(amount) else {
                self.is_killed = true;
                return Err(IoError::other("the process was killed"));
            };
            *left = rest;
        }
        if let Some(left) = &mut self.left_until_full {
            *left = left.checked_sub(amount).ok_or(ErrorKind::StorageFull)?;
        }
        Ok(())
    }

    fn put(&mut self, path: &str, bytes: &[u8]) {
        for files in [&mut self.files, &mut self.wanted] {
            files.insert(path.to_owned(), bytes.to_vec());
        }
        self.fresh.insert(path.to_owned());
    }

    /// Damages files that were written lately; returns how many.
    pub(super) fn fail_power(&mut self, random: &mut RandomStream) -> u64 {
        let mut count = 0;
        for path in std::mem::take(&mut self.fresh) {
            let fault = random.below(12);
            let Some(bytes) = self.files.get_mut(&path).filter(|_| fault < 3) else { continue };
            count += 1;
            match fault {
                0 => drop(self.files.remove(&path)),
                1 => bytes.truncate(random.below(bytes.len() as u64) as usize),
                _ => {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                }
            }
        }
        count
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct FaultyStore(Arc<Mutex<Disk>>);

impl FaultyStore {
    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, store::Error> {
        let (location, missing) = (self.location().to_owned(), path.to_owned());
        let bytes = self.disk().files.get(path).cloned();
        bytes.ok_or(store::Error::NotFound { location, path: missing })
    }

    fn use_up(&self, path: &str, amount: u64) -> Result<(), store::Error> {
        let (location, path) = (self.location().to_owned(), path.to_owned());
        let failed = |source| store::Error::Io { action: "write", location, path, source };
        self.disk().use_up(amount).map_err(failed)
    }
}

struct Writing {
    store: FaultyStore,
    path: String,
    bytes: Vec<u8>,
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.store.disk().use_up(bytes.len() as u64)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl FileWriter for Writing {
    fn finish(self: Box<Self>) -> Result<(), store::Error> {
        self.store.use_up(&self.path, 1)?;
        self.store.disk().put(&self.path, &self.bytes);
        Ok(())
    }
}

impl Store for FaultyStore {
    fn location(&self) -> &'static str {
        "disk"
    }

    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, store::Error> {
        self.use_up(path, 1)?;
        Ok(Box::new(Writing { store: self.clone(), path: path.into(), bytes: Vec::new() }))
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool, store::Error> {
        self.use_up(path, 1)?;
        let mut disk = self.disk();
        let is_new = !disk.files.contains_key(path);
        if is_new {
            disk.put(path, bytes);
        }
        Ok(is_new)
    }

    fn facts(&self, path: &str) -> Result<FileFacts, store::Error> {
        let size_bytes = self.bytes(path)?.len() as u64;
        Ok(FileFacts { size_bytes, ..FileFacts::default() })
    }

    fn open_range(
        &self,
        path: &str,
        _facts: &FileFacts,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, store::Error> {
        let bytes = self.bytes(path)?;
        Ok(Box::new(Cursor::new(bytes[range.start as usize..range.end as usize].to_vec())))
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, store::Error> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut entries = BTreeMap::new();
        for (path, bytes) in &self.disk().files {
            match path.strip_prefix(&prefix).map(|rest| rest.split_once('/').ok_or(rest)) {
                Some(Ok((name, _))) => entries.insert(name.to_owned(), EntryKind::Folder),
                Some(Err(name)) => {
                    entries.insert(name.to_owned(), EntryKind::File { size_bytes: bytes.len() as u64 })
                }
                None => None,
            };
        }
        Ok(entries.into_iter().map(|(name, kind)| Entry { name, kind }).collect())
    }

    fn remove(&self, path: &str) -> Result<(), store::Error> {
        let mut disk = self.disk();
        if disk.is_killed {
            return Ok(());
        }
        let below = format!("{path}/");
        disk.files.retain(|other, _| other != path && !other.starts_with(&below));
        Ok(())
    }

    fn remove_unfinished(&self, _folder: &str) -> Result<(), store::Error> {
        Ok(())
    }
}
