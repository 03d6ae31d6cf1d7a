//! A store holds files under relative paths: a local folder, or storage that a cluster shares. A file is visible when
//! it is whole, and never before. The same holds for the outputs of a run in the file system of a machine:
//!
//! | module | contents |
//! |---|---|
//! | [`temp_output`] | temporary outputs, which no end of the process leaves behind |
//! | [`file_identity`] | which paths mean the same file; atomic renames |
//! | [`machine`] | the name of the machine, and which processes it has |

mod error;
pub mod file_identity;
mod local;
pub mod machine;
#[cfg(any(feature = "cloud", feature = "hdfs"))]
mod object;
mod path;
pub mod temp_output;

use std::fmt::Debug;
use std::io::{Read, Write};
use std::sync::Arc;

pub use error::Error;
pub use local::LocalFolder;
pub use temp_output::{TempOutput, TempOutputs};

/// Files under relative paths, whose parts are divided by `/`.
pub trait Store: Debug + Send + Sync {
    /// Where the store is, as the user named it.
    fn location(&self) -> &str;

    /// Begins a file. It becomes visible with [`FileWriter::finish`], in place of an earlier one; without it nothing
    /// becomes visible.
    ///
    /// # Errors
    /// Those of the store, as of all functions here.
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, Error>;

    /// Writes a whole file unless there is one; returns whether it did. Of several that write at once one does.
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool, Error>;

    /// Opens a file for reading from its beginning to its end.
    fn open(&self, path: &str) -> Result<Box<dyn Read + Send>, Error>;

    /// Reads a whole file.
    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut file = self.open(path)?;
        file.read_to_end(&mut bytes).map_err(|source| Error::io("read", self.location(), path, source))?;
        Ok(bytes)
    }

    /// What lies directly in a folder (`""`: the root), by name; nothing if there is no such folder. Unfinished files
    /// are not listed.
    fn list(&self, folder: &str) -> Result<Vec<Entry>, Error>;

    /// Removes a file, or a folder with all that it contains (`""`: the root); it may be missing.
    fn remove(&self, path: &str) -> Result<(), Error>;

    /// Removes what writers that were killed have left in a folder and below it.
    fn remove_unfinished(&self, folder: &str) -> Result<(), Error>;
}

/// A file that is being written.
pub trait FileWriter: Write + Send {
    /// Makes the file durable, then visible.
    ///
    /// # Errors
    /// Those of the store. The file is then not visible.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File { size_bytes: u64 },
    Folder,
}

/// The store at a location: a path, `file://` and a path, or with the feature `cloud` `s3://BUCKET/PATH`, `gs://` and `az://`,
/// with the feature `hdfs` `hdfs://HOST:PORT/PATH`.
///
/// # Errors
/// [`Error::UnknownScheme`], and [`Error::Unusable`] for an address or settings that cannot be.
pub fn open(location: &str) -> Result<Arc<dyn Store>, Error> {
    match location.split_once("://") {
        None | Some(("file", _)) => {
            let path = location.strip_prefix("file://").unwrap_or(location);
            Ok(Arc::new(LocalFolder::new(path.into(), location)))
        }
        Some((scheme, _)) => {
            #[cfg(any(feature = "cloud", feature = "hdfs"))]
            if let Some(opened) = object::ObjectFolder::open(scheme, location) {
                return Ok(Arc::new(opened?));
            }
            Err(Error::UnknownScheme { location: location.into(), scheme: scheme.into() })
        }
    }
}
