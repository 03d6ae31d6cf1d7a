//! The interface of a store.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::ops::Range;

use crate::error::Error;

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

    /// Writes a whole file, in place of an earlier one.
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut file = self.create(path)?;
        file.write_all(bytes).map_err(|source| Error::io("write", self.location(), path, source))?;
        file.finish()
    }

    /// Writes a whole file unless there is one; returns whether it did. Of several that write at once one does.
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool, Error>;

    /// What a file is at present.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for a folder.
    fn facts(&self, path: &str) -> Result<FileFacts, Error>;

    /// Opens these bytes of a file with these facts. Reading fails when the file has other facts by then.
    fn open_range(
        &self,
        path: &str,
        facts: &FileFacts,
        range: Range<u64>,
    ) -> Result<Box<dyn Read + Send>, Error>;

    /// Opens a file for reading from its beginning to its end.
    fn open(&self, path: &str) -> Result<Box<dyn Read + Send>, Error> {
        let facts = self.facts(path)?;
        self.open_range(path, &facts, 0..facts.size_bytes)
    }

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

    /// All files in a folder and below it, by path from the root of the store, with their facts; nothing if there is no such
    /// folder. Unfinished files are not listed.
    fn files(&self, folder: &str) -> Result<Vec<(String, FileFacts)>, Error> {
        let mut files = Vec::new();
        for entry in self.list(folder)? {
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                EntryKind::File { .. } => files.push((path.clone(), self.facts(&path)?)),
                EntryKind::Folder => files.extend(self.files(&path)?),
            }
        }
        Ok(files)
    }

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

/// What a file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    pub size_bytes: u64,
    /// Another text after each change: what the store has for it, or the time of the last change.
    pub version: String,
    /// Milliseconds from 1970 to the last change, if the store has them.
    pub modified_ms: Option<u64>,
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
