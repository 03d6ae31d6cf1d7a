//! The cache file of one task: blocks are appended, then read through a memory map.
//!
//! Where the system allows it, the file is unlinked right after it is created. It then disappears with the process,
//! however the process ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::Mmap;

use crate::error::Error;

/// Distinguishes the cache files of one process.
static FILE_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Number of file names that are tried. The names of other running processes never collide; leftover files may.
const NAME_TRIES: u32 = 100;

/// The cache file of one task.
pub(super) struct BlockFile {
    path: PathBuf,
    /// Whether the file still has its name and must be removed at the end.
    has_name: bool,
    file: File,
    writer: Box<dyn Write + Send>,
    size_bytes: u64,
    map: Option<Mmap>,
}

impl std::fmt::Debug for BlockFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskBlocks")
            .field("path", &self.path)
            .field("size_bytes", &self.size_bytes)
            .finish_non_exhaustive()
    }
}

impl BlockFile {
    /// Creates a new file in `folder`.
    pub(super) fn create(folder: &Path, task: u64) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            let number = FILE_NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("seraphim-{}-{task}-{number}.blocks", std::process::id()));
            let fault =
                |reason: io::Error| Error::CacheCreate { folder: folder.into(), reason: reason.to_string() };
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let writer = Box::new(file.try_clone().map_err(fault)?);
                    return Ok(Self::new(path, file, writer));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < NAME_TRIES => tries += 1,
                Err(e) => return Err(fault(e)),
            }
        }
    }

    /// Writes blocks through `writer`, which must write to `file`.
    pub(super) fn new(path: PathBuf, file: File, writer: Box<dyn Write + Send>) -> Self {
        let named = fs::remove_file(&path).is_err();
        Self { path, has_name: named, file, writer, size_bytes: 0, map: None }
    }

    /// Path under which the file was created.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes written.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Appends a block and returns its offset.
    pub(super) fn append(&mut self, block: &[u8]) -> Result<u64, Error> {
        self.writer.write_all(block).map_err(|reason| Error::CacheWrite {
            path: self.path.clone(),
            wanted_bytes: block.len() as u64,
            written_bytes: self.size_bytes,
            reason: reason.to_string(),
        })?;
        let offset = self.size_bytes;
        self.size_bytes += block.len() as u64;
        self.map = None;
        Ok(offset)
    }

    /// Returns the bytes of a block.
    pub(super) fn block(&mut self, offset: u64, size_bytes: usize) -> Result<&[u8], Error> {
        if self.map.is_none() {
            self.map = Some(self.map_file()?);
        }
        let map = self.map.as_ref().expect("mapped above");
        let start = offset as usize;
        map.get(start..start + size_bytes).ok_or_else(|| Error::CacheRead {
            path: self.path.clone(),
            reason: format!("the file has {} bytes, {} were written", map.len(), self.size_bytes),
        })
    }

    #[allow(unsafe_code)]
    fn map_file(&self) -> Result<Mmap, Error> {
        // SAFETY: the bytes of a map must not change while they are borrowed. This process created the file under a
        // name of its own, which is removed at once; `append` drops the map before the next read; and decoding checks a
        // checksum first and then every byte that it relies on.
        unsafe { Mmap::map(&self.file) }
            .map_err(|reason| Error::CacheRead { path: self.path.clone(), reason: reason.to_string() })
    }

    /// Tells the system that the pages of a block are not needed any more. They stay in the page cache but do not count
    /// as memory of this process, which would otherwise grow to the size of the file.
    #[allow(unsafe_code)]
    pub(super) fn release(&mut self, offset: u64, size_bytes: usize) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // SAFETY: the map is read-only and backed by the file, so that pages dropped here are read again from the
            // file on the next access; nothing borrows them, because `self` is borrowed mutably.
            let advised = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset as usize, size_bytes)
            };
            // A failure is harmless: the system then keeps the pages.
            drop(advised);
        }
        #[cfg(not(unix))]
        let _ = (offset, size_bytes);
    }
}

impl Drop for BlockFile {
    fn drop(&mut self) {
        if self.has_name {
            // A destructor cannot return the error; at worst the file stays.
            drop(fs::remove_file(&self.path));
        }
    }
}
