//! One input: a file, a file of a store, bytes in memory, or standard input.

use crate::Error;
use crate::arrays::Arrays;
use crate::compression::{ByteStream, Compression, MAGIC_BYTES, RawReader};
use crate::interruptible::{InterruptibleReader, StopFlag};
use crate::quotes::Quotes;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use store::{FileFacts, Store};

/// Decompressed bytes that are sampled before reading: enough for a thousand wide rows.
pub(crate) const HEAD_BYTES: usize = 4 << 20;
/// The bytes that some editors write before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
/// Name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// One file of the input.
#[derive(Clone)]
pub struct Input {
    name: String,
    location: InputLocation,
    compression: Compression,
    size_bytes: Option<u64>,
    /// Columns and values that the names of its folders give.
    partition: Vec<(String, String)>,
}

#[derive(Clone)]
enum InputLocation {
    File(PathBuf),
    Stored(StoredFile),
    Memory(Arc<[u8]>),
    Arrays(Arrays),
    /// The bytes that were sampled, and the remaining bytes until a reader takes them.
    Stream {
        head: Head,
        remaining: Arc<Mutex<Option<ByteStream>>>,
    },
}

/// A file of a store, as it was when it was opened.
#[derive(Clone)]
pub(crate) struct StoredFile {
    pub(crate) store: Arc<dyn Store>,
    /// The path in the store.
    pub(crate) path: String,
    pub(crate) facts: FileFacts,
}

impl StoredFile {
    /// Reads from byte `offset` on.
    pub(crate) fn open_at(&self, offset: u64) -> Result<RawReader, Error> {
        Ok(self.store.open_range(&self.path, &self.facts, offset..self.facts.size_bytes)?)
    }
}

/// The first bytes of an input, decompressed.
#[derive(Clone, Debug)]
pub struct Head {
    pub bytes: Arc<[u8]>,
    /// Whether these are all bytes of the input.
    pub is_complete: bool,
}

impl Head {
    /// The complete lines, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.bytes);
        let end = match memchr::memrchr(b'\n', bytes) {
            _ if self.is_complete => bytes.len(),
            Some(last) => last,
            None => 0,
        };
        bytes[..end].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl Input {
    /// Opens a file, and determines its size and its compression.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let name = path.display().to_string();
        let mut file = File::open(&path).map_err(|source| Error::io("open", &name, source))?;
        let metadata = file.metadata().map_err(|source| Error::io("inspect", &name, source))?;
        if !metadata.is_file() {
            // A pipe or a device has no size and can be read only once.
            return Self::stream(name, Box::new(file));
        }
        let magic = read_up_to(&mut file, MAGIC_BYTES).map_err(|source| Error::io("read", &name, source))?;
        let compression = Self::compression(&name, &magic)?;
        Ok(Self {
            name,
            location: InputLocation::File(path),
            compression,
            size_bytes: Some(metadata.len()),
            partition: Vec::new(),
        })
    }

    /// Opens a file of a store, and determines its compression.
    pub(crate) fn stored(file: StoredFile) -> Result<Self, Error> {
        let name = format!("{}/{}", file.store.location().trim_end_matches('/'), file.path);
        let head = 0..file.facts.size_bytes.min(MAGIC_BYTES as u64);
        let mut raw = file.store.open_range(&file.path, &file.facts, head)?;
        let magic = read_up_to(&mut raw, MAGIC_BYTES).map_err(|source| Error::io("read", &name, source))?;
        let compression = Self::compression(&name, &magic)?;
        let size_bytes = Some(file.facts.size_bytes);
        let location = InputLocation::Stored(file);
        Ok(Self { name, location, compression, size_bytes, partition: Vec::new() })
    }

    /// Makes an input of bytes in memory; messages call it `name`.
    pub fn memory(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Result<Self, Error> {
        let (name, bytes) = (name.into(), bytes.into());
        let compression = Self::compression(&name, &bytes)?;
        let size_bytes = Some(bytes.len() as u64);
        Ok(Self {
            name,
            location: InputLocation::Memory(bytes),
            compression,
            size_bytes,
            partition: Vec::new(),
        })
    }

    /// Makes an input of records in memory.
    pub(crate) fn of_arrays(name: impl Into<String>, arrays: &Arrays) -> Self {
        Self {
            name: name.into(),
            location: InputLocation::Arrays(arrays.clone()),
            compression: Compression::Plain,
            size_bytes: Some(arrays.size_bytes()),
            partition: Vec::new(),
        }
    }

    /// The records, when they are in memory.
    pub(crate) fn arrays(&self) -> Option<&Arrays> {
        match &self.location {
            InputLocation::Arrays(arrays) => Some(arrays),
            _ => None,
        }
    }

    /// Reads the first bytes of standard input now, the remaining ones later and only once. A raised `stop` ends the
    /// input while a reader waits for more.
    pub fn standard_input(stop: &StopFlag) -> Result<Self, Error> {
        Self::stream(
            STANDARD_INPUT.to_owned(),
            Box::new(InterruptibleReader::new(std::io::stdin(), stop.clone())),
        )
    }

    /// Makes an input of bytes that can be read only once, and reads the first of them now.
    pub fn stream(name: String, mut raw: Box<dyn Read + Send>) -> Result<Self, Error> {
        let magic = read_up_to(&mut raw, MAGIC_BYTES).map_err(|source| Error::io("read", &name, source))?;
        let compression = Self::compression(&name, &magic)?;
        let mut stream = ByteStream::new(&name, Box::new(Cursor::new(magic).chain(raw)), compression)?;
        let head = read_head(&mut stream)?;
        let rest = Arc::new(Mutex::new(Some(stream)));
        Ok(Self {
            name,
            location: InputLocation::Stream { head, remaining: rest },
            compression,
            size_bytes: None,
            partition: Vec::new(),
        })
    }

    /// Adds the columns and values that the names of the folders of this file give.
    #[must_use]
    pub fn with_partition(mut self, partition: Vec<(String, String)>) -> Self {
        self.partition = partition;
        self
    }

    /// Columns that the names of its folders give (`day=1/`), from the outer folder to the inner one.
    pub fn partition(&self) -> &[(String, String)] {
        &self.partition
    }

    /// Determines the compression from the first bytes; a compression that is not supported is an error.
    fn compression(name: &str, magic: &[u8]) -> Result<Compression, Error> {
        match Compression::unsupported_kind(name, magic) {
            Some(what) => Err(Error::UnsupportedEncoding { file: name.to_owned(), what }),
            None => Ok(Compression::recognize(magic)),
        }
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path, when it is a file.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            InputLocation::File(path) => Some(path),
            _ => None,
        }
    }

    /// The name of the file in its folder.
    pub(crate) fn file_name(&self) -> Option<&str> {
        match &self.location {
            InputLocation::File(path) => path.file_name()?.to_str(),
            InputLocation::Stored(file) => file.path.rsplit('/').next(),
            _ => None,
        }
    }

    /// The file, when it is one of a store.
    pub(crate) fn stored_file(&self) -> Option<&StoredFile> {
        match &self.location {
            InputLocation::Stored(file) => Some(file),
            _ => None,
        }
    }

    /// A text that is another one after each change of a file of a store.
    pub fn version(&self) -> Option<&str> {
        self.stored_file().map(|file| &*file.facts.version)
    }

    /// The bytes, when they are in memory.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match &self.location {
            InputLocation::Memory(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Size on disk in bytes; `None` when it is not known before the end.
    pub fn size_bytes(&self) -> Option<u64> {
        self.size_bytes
    }

    /// Present size on disk in bytes, when it is a file.
    pub(crate) fn current_size_bytes(&self) -> Option<u64> {
        self.path().and_then(|path| path.metadata().ok()).map(|metadata| metadata.len())
    }

    /// Whether it can be read more than once.
    pub fn is_rereadable(&self) -> bool {
        !matches!(self.location, InputLocation::Stream { .. })
    }

    /// Its size, when it can be read from any byte on.
    pub(crate) fn splittable_bytes(&self) -> Option<u64> {
        self.size_bytes.filter(|_| self.compression == Compression::Plain)
    }

    /// Returns the first bytes, decompressed.
    pub fn head(&self) -> Result<Head, Error> {
        match &self.location {
            InputLocation::Stream { head, .. } => Ok(head.clone()),
            InputLocation::File(_) | InputLocation::Stored(_) | InputLocation::Memory(_) => {
                read_head(&mut self.open_at(0)?)
            }
            InputLocation::Arrays(_) => Ok(Head { bytes: Arc::default(), is_complete: true }),
        }
    }

    /// Opens the decompressed bytes from `offset` on; only a plain file can begin elsewhere than at 0.
    pub(crate) fn open_at(&self, offset: u64) -> Result<ByteStream, Error> {
        debug_assert!(offset == 0 || self.splittable_bytes().is_some());
        let raw: RawReader = match &self.location {
            InputLocation::File(path) => {
                let mut file = File::open(path).map_err(|source| Error::io("open", &self.name, source))?;
                file.seek(SeekFrom::Start(offset))
                    .map_err(|source| Error::io("seek in", &self.name, source))?;
                Box::new(file)
            }
            InputLocation::Stored(file) => file.open_at(offset)?,
            InputLocation::Memory(bytes) => {
                let mut cursor = Cursor::new(Arc::clone(bytes));
                cursor.set_position(offset);
                Box::new(cursor)
            }
            InputLocation::Arrays(_) => {
                let reason =
                    "arrays in memory are not bytes of a file; remove the setting of the format".to_owned();
                return Err(Error::BadOption { option: "format", reason });
            }
            InputLocation::Stream { head, remaining: rest } => {
                let mut rest = rest.lock().map_err(|_| Error::StandardInputTaken)?;
                return Ok(rest.take().ok_or(Error::StandardInputTaken)?.with_head(Arc::clone(&head.bytes)));
            }
        };
        ByteStream::new(&self.name, raw, self.compression)
    }

    /// Calls `each` with every line, in order and without its end. With `quotes` it calls `each` with every record,
    /// whose quoted fields may have line breaks. It serves facts that are needed before reading.
    pub(crate) fn for_each_line(
        &self,
        quotes: Option<Quotes>,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        const CHUNK_BYTES: usize = 256 << 10;
        let mut stream = self.open_at(0)?;
        let (mut unread, mut is_first) = (Vec::new(), true);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = stream.read(&mut chunk)?;
            unread.extend_from_slice(&chunk[..count]);
            let at_end = count == 0;
            let mut start = if std::mem::take(&mut is_first) && unread.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            };
            loop {
                let rest = &unread[start..];
                let end = match quotes {
                    Some(quotes) => quotes.record_or_line_end(rest, at_end),
                    None => memchr::memchr(b'\n', rest),
                };
                let Some(end) = end.or_else(|| (at_end && !rest.is_empty()).then_some(rest.len())) else {
                    break;
                };
                each(rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))?;
                start = unread.len().min(start + end + 1);
            }
            if at_end {
                return Ok(());
            }
            unread.drain(..start);
        }
    }
}

fn read_head(stream: &mut ByteStream) -> Result<Head, Error> {
    let mut bytes = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        let count = stream.read(&mut bytes[filled..])?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    let complete = filled < bytes.len();
    bytes.truncate(filled);
    Ok(Head { bytes: bytes.into(), is_complete: complete })
}

fn read_up_to(raw: &mut dyn Read, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    raw.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Lists the names of the first few files for a message, and the number of the others.
pub(crate) fn list_names(files: &[Input]) -> String {
    const SHOWN: usize = 3;
    let text = files.iter().take(SHOWN).map(Input::name).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
