//! The bytes of a Parquet file, and its metadata.

use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::thrift::has_field;
use super::{bad_file, checks, fault};
use crate::Error;
use crate::byte_source::ByteSource;
use crate::input::Input;

/// The last bytes of a Parquet file, and those of one whose metadata are encrypted.
const FOOTER_MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED_FOOTER_MAGIC: &[u8; 4] = b"PARE";

/// Opens the bytes of an input; returns also how many there are.
pub(super) fn open(input: &Input) -> Result<(ByteSource, u64), Error> {
    ByteSource::open(input)?.ok_or_else(|| {
        let expected = if input.is_rereadable() {
            "decompressed first (Parquet compresses its pages by itself)"
        } else {
            "a file"
        };
        let reason = format!("Parquet is read from its end, so {} must be {expected}", input.name());
        Error::BadOption { option: "format", reason }
    })
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
    file.read_at(start, &mut end).map_err(fault).map_err(damaged)?;
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
    file.read_at(start, &mut bytes).map_err(fault).map_err(damaged)?;
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
