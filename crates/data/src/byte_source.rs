//! A file or bytes in memory that can be read at any offset.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use crate::Error;
use crate::input::{Input, StoredFile};

#[derive(Clone)]
pub(crate) enum ByteSource {
    File(Arc<File>),
    Stored(Arc<StoredFile>),
    Memory(Bytes),
}

impl ByteSource {
    /// Opens the bytes of an input; returns also how many there are. `None` if they cannot be read at any offset: a
    /// stream, or a compressed file.
    pub(crate) fn open(input: &Input) -> Result<Option<(Self, u64)>, Error> {
        if let Some(bytes) = input.bytes() {
            let bytes = Bytes::from_owner(Arc::clone(bytes));
            let size = bytes.len() as u64;
            return Ok(Some((Self::Memory(bytes), size)));
        }
        if let Some(file) = input.stored_file().filter(|_| input.splittable_bytes().is_some()) {
            return Ok(Some((Self::Stored(Arc::new(file.clone())), file.facts.size_bytes)));
        }
        let Some(path) = input.path().filter(|_| input.splittable_bytes().is_some()) else { return Ok(None) };
        let file = File::open(path).map_err(|source| Error::io("open", input.name(), source))?;
        let size = file.metadata().map_err(|source| Error::io("inspect", input.name(), source))?.len();
        Ok(Some((Self::File(Arc::new(file)), size)))
    }

    /// Reads a range of a file in a store, which asks for the next bytes while these are used; `None` for other files, of
    /// which each read is cheap.
    pub(crate) fn stored_reader(&self, range: Range<u64>) -> Result<Option<Box<dyn Read + Send>>, String> {
        let Self::Stored(stored) = self else { return Ok(None) };
        let StoredFile { store, path, facts } = &**stored;
        let range = range.start..range.end.min(facts.size_bytes);
        store.open_range(path, facts, range).map(Some).map_err(|error| error.to_string())
    }

    /// Fills `out` from byte `at` on; an error is the reason.
    pub(crate) fn read_at(&self, at: u64, out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::File(file) => file.read_exact_at(out, at).map_err(|source| source.to_string()),
            Self::Stored(_) => {
                let reader = self.stored_reader(at..at.saturating_add(out.len() as u64))?;
                reader.expect("it is stored").read_exact(out).map_err(|source| source.to_string())
            }
            Self::Memory(bytes) => {
                let there = usize::try_from(at).ok().and_then(|at| bytes.get(at..at.checked_add(out.len())?));
                out.copy_from_slice(there.ok_or_else(|| "it ends early".to_owned())?);
                Ok(())
            }
        }
    }
}
