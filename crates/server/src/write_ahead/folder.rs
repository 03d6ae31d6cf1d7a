//! The folder of a write-ahead log in the file system.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::Error;

/// The file that says to which process the others belong.
pub(super) const IDENTITY: &str = "identity.json";

/// Removes the file without which a folder is no log.
pub(super) fn remove_identity(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(IDENTITY));
}

/// Syncs the names in a folder: without it, a power failure may lose a file whose contents were synced.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(super) fn fault(path: &Path, error: &io::Error) -> Error {
    Error::WriteAheadLog { path: path.to_owned(), problem: error.to_string() }
}
