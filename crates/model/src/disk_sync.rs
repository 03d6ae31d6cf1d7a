//! Syncs of files that are written, and their buffers.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::Error;

/// Buffer size of a file that is being written.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Syncs files to disk and measures the time.
#[derive(Debug, Default)]
pub(crate) struct DiskSync {
    pub(crate) spent_ns: AtomicU64,
}

impl DiskSync {
    pub(crate) fn file(&self, file: &File) -> std::io::Result<()> {
        let start = Instant::now();
        let result = file.sync_all();
        self.spent_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    /// Syncs the entries of a folder. Some systems (network folders, Windows) cannot do that; their errors are ignored.
    pub(crate) fn folder(&self, path: &Path) -> Result<(), Error> {
        let Ok(folder) = File::open(path) else { return Ok(()) };
        match self.file(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                Err(Error::io("write", path)(error))
            }
            _ => Ok(()),
        }
    }
}
