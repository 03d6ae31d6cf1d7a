//! The bytes of a Parquet file, and its metadata.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::thrift::has_field;
use super::{bad_file, checks, fault};
use crate::Error;
use crate::input::Input;

/// The last bytes of a Parquet file, and those of one whose metadata are encrypted.
const FOOTER_MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED_FOOTER_MAGIC: &[u8; 4] = b"PARE";

/// A file, or bytes in memory, that can be read at any offset.
#[derive(Clone)]
pub(super) enum ByteSource {
    File(Arc<File>),
    Memory(Bytes),
}

impl ByteSource {
    /// Opens the bytes of an input; returns also how many there are.
    pub(super) fn open(input: &Input) -> Result<(Self, u64), Error> {
        let refused = |reason: &str| {
            let reason = format!("Parquet is read from its end, so {} must be {reason}", input.name());
            Error::BadOption { option: "format", reason }
        };
        if let Some(bytes) = input.bytes() {
            let bytes = Bytes::from_owner(Arc::clone(bytes));
            let size = bytes.len() as u64;
            return Ok((Self::Memory(bytes), size));
        }
        let path = input.path().ok_or_else(|| refused("a file"))?;
        if input.splittable_bytes().is_none() {
            return Err(refused("decompressed first (Parquet compresses its pages by itself)"));
        }
        let file = File::open(path).map_err(|source| Error::io("open", input.name(), source))?;
        let size = file.metadata().map_err(|source| Error::io("inspect", input.name(), source))?.len();
        Ok((Self::File(Arc::new(file)), size))
    }

    /// Fills `out` from byte `at` on.
    pub(super) fn read_at(&self, at: u64, out: &mut [u8]) -> ParquetResult<()> {
        match self {
            Self::File(file) => file.read_exact_at(out, at).map_err(|source| fault(source.to_string())),
            Self::Memory(bytes) => {
                let there = usize::try_from(at).ok().and_then(|at| bytes.get(at..at + out.len()));
                out.copy_from_slice(there.ok_or_else(|| fault("it ends early"))?);
                Ok(())
            }
        }
    }
}

/// Bytes of the footer: the size of the metadata, and the magic bytes.
const FOOTER_BYTES: u64 = 8;

/// Number of the field of the metadata that says how columns are encrypted.
const ENCRYPTION_FIELD: i64 = 8;

/// Reads the metadata of a file of this size, and checks that their numbers are possible.
pub(super) fn read_metadata(
    input: &Input,
    file: &ByteSource,
    size_bytes: u64,
) -> Result<ParquetMetaData, Error> {
    let name = input.name();
    let cut = |what: &str| {
        bad_file(name, format!("not a complete Parquet file ({what}); was it cut short while written?"))
    };
    let damaged = |reason: ParquetError| {
        bad_file(
            name,
            format!("its metadata cannot be read ({reason}); the file is damaged or was cut short"),
        )
    };
    let mut end = [0; FOOTER_BYTES as usize];
    let Some(start) = size_bytes.checked_sub(FOOTER_BYTES) else {
        return Err(cut(&format!("it has {size_bytes} bytes")));
    };
    file.read_at(start, &mut end).map_err(damaged)?;
    let (length, magic) = end.split_first_chunk::<4>().expect("it has eight bytes");
    if magic == ENCRYPTED_FOOTER_MAGIC {
        return Err(encrypted(name));
    }
    if magic != FOOTER_MAGIC {
        return Err(cut("its end is missing"));
    }
    let length = u64::from(u32::from_le_bytes(*length));
    let Some(start) = start.checked_sub(length) else {
        return Err(cut(&format!("metadata of {length} bytes in a file of {size_bytes}")));
    };
    let mut bytes = vec![0; length as usize];
    file.read_at(start, &mut bytes).map_err(damaged)?;
    if has_field(&bytes, ENCRYPTION_FIELD) {
        return Err(encrypted(name));
    }
    let metadata = checks::catch_panics(|| {
        let metadata = ParquetMetaDataReader::decode_metadata(&bytes)?;
        checks::check_metadata(&metadata, size_bytes).map(|()| metadata)
    });
    metadata.map_err(damaged)
}

fn encrypted(name: &str) -> Error {
    bad_file(name, "it is encrypted, which is not supported; write it without encryption")
}
