//! Plain, gzip (also with several members) and zstd bytes behind one reader. The first bytes of a file decide which it
//! is, not its name.

use crate::Error;
use flate2::bufread::MultiGzDecoder;
use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;

/// How the bytes of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Plain,
    Gzip,
    Zstd,
}

/// Number of bytes that are enough to recognize each compression.
pub(crate) const MAGIC_BYTES: usize = 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of compressions and encodings that are not supported.
const UNSUPPORTED_MAGIC: [(&[u8], &str); 12] = [
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with snappy"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x1f\x9d", "compressed with compress"),
    (b"\x89LZO\x00", "compressed with lzop"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"LZIP", "compressed with lzip"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
];
/// Offset of the magic bytes in a tar archive.
const TAR_MAGIC_OFFSET: usize = 257;
/// Compressed bytes per read.
const BUFFER_BYTES: usize = 128 << 10;

impl Compression {
    pub(crate) fn recognize(head: &[u8]) -> Self {
        if head.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if head.starts_with(&ZSTD_MAGIC) {
            Self::Zstd
        } else {
            Self::Plain
        }
    }

    /// Names the compression or encoding of a file that is not supported. The first bytes decide, or the file name
    /// where a compression has no magic bytes (brotli).
    pub(crate) fn unsupported_kind(name: &str, head: &[u8]) -> Option<&'static str> {
        let known = UNSUPPORTED_MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|row| row.1);
        let is_bzip2 = head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY");
        let is_brotli = name.to_ascii_lowercase().ends_with(".br");
        known
            .or(is_bzip2.then_some("compressed with bzip2"))
            .or(is_brotli.then_some("compressed with brotli"))
            .or(is_utf16_text(head).then_some("text in UTF-16"))
    }

    /// Whether decompressed bytes begin a tar archive.
    pub(crate) fn is_tar(head: &[u8]) -> bool {
        head.get(TAR_MAGIC_OFFSET..).is_some_and(|rest| rest.starts_with(b"ustar"))
    }

    /// Whether decompressed bytes are text without LF in which CR ends the lines.
    pub(crate) fn has_cr_lines(head: &[u8]) -> bool {
        let is_text = head.iter().all(|byte| matches!(byte, b'\t' | b'\r' | b' '..=b'~' | 0x80..));
        // The last CR may belong to a CR LF whose LF comes later.
        is_text && head.iter().rev().skip(1).filter(|byte| **byte == b'\r').count() > 1
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Whether the text is UTF-16 without a byte order mark: its first characters have two bytes each.
fn is_utf16_text(head: &[u8]) -> bool {
    let first = head.get(..8).unwrap_or_default();
    let zeros = |at: usize| first.iter().skip(at).step_by(2).all(|byte| *byte == 0);
    let others = |at: usize| first.iter().skip(at).step_by(2).all(|byte| *byte != 0);
    !first.is_empty() && ((zeros(0) && others(1)) || (zeros(1) && others(0)))
}

/// A source of raw bytes.
pub(crate) type RawReader = Box<dyn Read + Send>;

/// Counts the bytes that are read through it.
struct CountingReader {
    raw: RawReader,
    count: u64,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// The decompressed bytes of one file.
pub(crate) struct ByteStream {
    name: String,
    decoder: Decoder,
    /// Bytes that were sampled before and are read again.
    head: Option<Cursor<Arc<[u8]>>>,
}

enum Decoder {
    Plain(CountingReader),
    Gzip(Box<MultiGzDecoder<BufReader<CountingReader>>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<CountingReader>>),
}

impl ByteStream {
    pub(crate) fn new(name: &str, raw: RawReader, compression: Compression) -> Result<Self, Error> {
        let counted = CountingReader { raw, count: 0 };
        let buffered = |counted| BufReader::with_capacity(BUFFER_BYTES, counted);
        let decoder = match compression {
            Compression::Plain => Decoder::Plain(counted),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(buffered(counted)))),
            Compression::Zstd => Decoder::Zstd(
                zstd::stream::read::Decoder::with_buffer(buffered(counted))
                    .map_err(|source| Error::io("start decompressing", name, source))?,
            ),
        };
        Ok(Self { name: name.to_owned(), decoder, head: None })
    }

    /// Puts `head`, which was read from this stream before, in front of it again.
    pub(crate) fn with_head(mut self, head: Arc<[u8]>) -> Self {
        self.head = Some(Cursor::new(head));
        self
    }

    /// Reads up to `buffer.len()` bytes; returns 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        if let Some(head) = &mut self.head {
            match head.read(buffer) {
                Ok(count) if count > 0 || buffer.is_empty() => return Ok(count),
                _ => self.head = None,
            }
        }
        loop {
            let read = match &mut self.decoder {
                Decoder::Plain(raw) => raw.read(buffer),
                Decoder::Gzip(decoder) => decoder.read(buffer),
                Decoder::Zstd(decoder) => decoder.read(buffer),
            };
            match read {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(error)),
            }
        }
    }

    /// Bytes of the file consumed so far, as they are on disk.
    pub(crate) fn consumed(&self) -> u64 {
        match &self.decoder {
            Decoder::Plain(raw) => raw.count,
            Decoder::Gzip(decoder) => consumed_bytes(decoder.get_ref()),
            Decoder::Zstd(decoder) => consumed_bytes(decoder.get_ref()),
        }
    }

    #[cold]
    fn fault(&self, error: std::io::Error) -> Error {
        let compression = match &self.decoder {
            Decoder::Plain(_) => Compression::Plain,
            Decoder::Gzip(_) => Compression::Gzip,
            Decoder::Zstd(_) => Compression::Zstd,
        };
        if compression == Compression::Plain || error.raw_os_error().is_some() {
            return Error::io("read", &self.name, error);
        }
        let reason = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "it ends early; was it copied completely?".to_owned(),
            _ => error.to_string(),
        };
        Error::DamagedCompression {
            file: self.name.clone(),
            kind: compression.name(),
            offset: self.consumed(),
            reason,
        }
    }
}

fn consumed_bytes(buffered: &BufReader<CountingReader>) -> u64 {
    buffered.get_ref().count - buffered.buffer().len() as u64
}

#[cfg(test)]
mod tests;
