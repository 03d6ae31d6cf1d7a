//! The blocks of a file: `MAGIC`, a version, then blocks, each a header and its bytes. A block ends the file whose
//! header says so. All numbers are little-endian.
//!
//! ```text
//! file    "SRPHPART"  version u32   block*   end
//! block   kind u32    length u64    crc u32    bytes
//! ```
//!
//! `crc` is the CRC-32C of kind, length and bytes, so any changed byte of a file is noticed. The end is a block of the
//! kind 0 that has the number of blocks before it.

use std::io::{ErrorKind, Read, Write};

use crate::error::Error;

const MAGIC: [u8; 8] = *b"SRPHPART";
/// The version that is written, and the newest that is read. In version 1 the keys of a block of rows ascend.
pub const VERSION: u32 = 2;
/// The kind of the last block.
const END: u32 = 0;
const HEADER_BYTES: usize = 16;
/// Maximum number of bytes in a block. Writers make much smaller ones, so a larger length is damage.
pub const BLOCK_LIMIT_BYTES: u64 = 1 << 31;
/// Bytes that are read at once, so that a damaged length does not reserve memory that the file cannot fill.
const READ_BYTES: u64 = 1 << 24;

/// Writes the blocks of a file.
#[derive(Debug)]
pub struct BlockWriter<W> {
    out: W,
    block_count: u64,
    size_bytes: u64,
}

/// The header of a block that consists of these parts.
fn header(kind: u32, parts: &[&[u8]]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
    header[..4].copy_from_slice(&kind.to_le_bytes());
    header[4..12].copy_from_slice(&length.to_le_bytes());
    let crc = parts.iter().fold(crc32c::crc32c(&header[..12]), |crc, part| crc32c::crc32c_append(crc, part));
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

impl<W: Write> BlockWriter<W> {
    /// Writes the beginning of a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> std::io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self { out, block_count: 0, size_bytes: (MAGIC.len() + 4) as u64 })
    }

    /// Writes a block of a kind from 1 that consists of these parts.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// If the kind is 0, or the block is larger than [`BLOCK_LIMIT_BYTES`].
    pub fn write(&mut self, kind: u32, parts: &[&[u8]]) -> std::io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        assert!(kind != END && length as u64 <= BLOCK_LIMIT_BYTES, "a block of {length} bytes");
        self.block_count += 1;
        self.put(kind, parts)
    }

    fn put(&mut self, kind: u32, parts: &[&[u8]]) -> std::io::Result<()> {
        self.out.write_all(&header(kind, parts))?;
        self.size_bytes += HEADER_BYTES as u64;
        for part in parts {
            self.out.write_all(part)?;
            self.size_bytes += part.len() as u64;
        }
        Ok(())
    }

    /// Writes the end; returns `out` and the number of bytes of the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> std::io::Result<(W, u64)> {
        let count = self.block_count.to_le_bytes();
        self.put(END, &[&count])?;
        Ok((self.out, self.size_bytes))
    }
}

/// Reads the blocks of a file.
#[derive(Debug)]
pub struct BlockReader<R> {
    input: R,
    location: String,
    path: String,
    offset: u64,
    block_count: u64,
    has_ended: bool,
}

impl<R: Read> BlockReader<R> {
    /// Reads the beginning of a file; `location` and `path` are for errors.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::NewerFormat`].
    pub fn new(input: R, location: &str, path: &str) -> Result<Self, Error> {
        let (location, path) = (location.to_owned(), path.to_owned());
        let mut reader = Self { input, location, path, offset: 0, block_count: 0, has_ended: false };
        let start: [u8; 12] = reader.array("the beginning of the file")?;
        if start[..8] != MAGIC {
            return Err(reader.damaged(0, "it does not begin as a part of a checkpoint does"));
        }
        let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        match version {
            1..=VERSION => Ok(reader),
            0 => Err(reader.damaged(8, "its version is 0")),
            version => Err(Error::NewerFormat {
                location: reader.location,
                path: reader.path,
                version,
                newest: VERSION,
            }),
        }
    }

    /// Reads the next block into `bytes`, in place of what they are; returns its kind, or `None` after the last one.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a byte has changed or the file ends early, or goes on behind its end.
    pub fn read(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u32>, Error> {
        if self.has_ended {
            return Ok(None);
        }
        let start = self.offset;
        let actual: [u8; HEADER_BYTES] = self.array("a block")?;
        let kind = u32::from_le_bytes([actual[0], actual[1], actual[2], actual[3]]);
        let length = actual[4..12].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        if length > BLOCK_LIMIT_BYTES {
            return Err(self.damaged(start, "a block has an impossible length"));
        }
        self.read_bytes(length, bytes)?;
        if header(kind, &[bytes]) != actual {
            return Err(self.damaged(start, "the checksum of a block does not fit its bytes"));
        }
        if kind != END {
            self.block_count += 1;
            return Ok(Some(kind));
        }
        self.has_ended = true;
        if *bytes != self.block_count.to_le_bytes() {
            return Err(self.damaged(start, "its number of blocks does not fit"));
        }
        match Read::read(&mut self.input, &mut [0]) {
            Ok(0) => Ok(None),
            Ok(_) => Err(self.damaged(self.offset, "bytes follow its end")),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// The error that the bytes of the file from `offset` on are not as they were written.
    pub(crate) fn damaged(&self, offset: u64, what: &str) -> Error {
        let (location, path) = (self.location.clone(), self.path.clone());
        Error::Damaged { location, path, offset, what: what.to_owned() }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    fn unreadable(&self, error: &std::io::Error) -> Error {
        let what = match error.kind() {
            ErrorKind::UnexpectedEof => "the file ends here".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        self.damaged(self.offset, &what)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged(self.offset, &format!("the file ends before {what}")),
            _ => self.unreadable(&error),
        })?;
        self.offset += N as u64;
        Ok(bytes)
    }

    fn read_bytes(&mut self, length: u64, bytes: &mut Vec<u8>) -> Result<(), Error> {
        bytes.clear();
        while (bytes.len() as u64) < length {
            let count = READ_BYTES.min(length - bytes.len() as u64);
            bytes.reserve(count as usize);
            let read = (&mut self.input).take(count).read_to_end(bytes);
            if read.map_err(|error| self.unreadable(&error))? as u64 != count {
                return Err(self.unreadable(&ErrorKind::UnexpectedEof.into()));
            }
        }
        self.offset += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(blocks: &[(u32, &[u8])]) -> Vec<u8> {
        let mut writer = BlockWriter::new(Vec::new()).unwrap();
        for (kind, bytes) in blocks {
            writer.write(*kind, &[bytes]).unwrap();
        }
        let (bytes, size) = writer.finish().unwrap();
        assert_eq!(bytes.len() as u64, size);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, Error> {
        let mut reader = BlockReader::new(bytes, "folder", "part")?;
        let (mut blocks, mut bytes) = (Vec::new(), vec![9; 200]);
        while let Some(kind) = reader.read(&mut bytes)? {
            blocks.push((kind, bytes.clone()));
        }
        Ok(blocks)
    }

    #[test]
    fn blocks_come_back() {
        let blocks: [(u32, &[u8]); 3] = [(1, b"abc"), (7, b""), (2, &[0; 100])];
        let back = read(&file(&blocks)).unwrap();
        let back: Vec<(u32, &[u8])> = back.iter().map(|(kind, bytes)| (*kind, bytes.as_slice())).collect();
        assert_eq!(back, blocks);
        assert_eq!(read(&file(&[])).unwrap(), []);
    }

    #[test]
    fn files_of_version_1_stay_readable() {
        let golden = b"SRPHPART\x01\0\0\0\
            \x03\0\0\0\x02\0\0\0\0\0\0\0\x90\xe7\xde\x1dhi\
            \0\0\0\0\x08\0\0\0\0\0\0\0\x3e\x04\x1c\x7c\x01\0\0\0\0\0\0\0";
        assert_eq!(read(golden).unwrap(), [(3, b"hi".to_vec())]);
        let mut newest = *golden;
        newest[8] = 2;
        assert_eq!(file(&[(3, b"hi")]), newest);
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let whole = file(&[(1, b"some bytes"), (2, b""), (3, &[9; 40])]);
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut changed = whole.clone();
                changed[at] ^= bit;
                assert!(read(&changed).is_err(), "byte {at}");
            }
            assert!(read(&whole[..at]).is_err(), "cut at {at}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(read(&longer).unwrap_err().to_string().contains("bytes follow its end"));
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut newer = file(&[]);
        newer[8] = 3;
        let text = read(&newer).unwrap_err().to_string();
        assert!(text.contains("folder/part has version 3") && text.contains("up to 2"), "{text}");
    }

    #[test]
    fn a_damaged_length_reserves_no_memory() {
        let mut bytes = file(&[(1, b"abc")]);
        bytes[12 + 4..12 + 12].copy_from_slice(&(1u64 << 31).to_le_bytes());
        assert!(read(&bytes).unwrap_err().to_string().contains("the file ends here"));
        bytes[12 + 4..12 + 12].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(read(&bytes).unwrap_err().to_string().contains("impossible length"));
    }
}
