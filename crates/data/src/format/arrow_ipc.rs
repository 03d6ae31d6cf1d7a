//! Arrow IPC: files (also called Feather, version 2) and streams; [`crate::arrow`] describes the possible columns.
//!
//! A file has a footer with the positions of its record batches, so tasks can share it. A stream is read from its
//! beginning to its end by one task, and so is a file on standard input, or one that is compressed as a whole.
//!
//! Files are not trusted: [`decoder`] checks each message, and a panic of the library becomes an error.

mod decoder;
mod file;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use self::file::IpcFile;
use self::stream::IpcStream;
use super::{Abilities, FormatContext, FormatRow, OpenFormat};
use crate::arrow::{Batches, DatasetInput, open_dataset, pandas_index};
use crate::byte_source::ByteSource;
use crate::error::Error;
use crate::input::Input;

/// The first bytes of a file; two bytes of padding follow.
const FILE_MAGIC: &[u8; 6] = b"ARROW1";
/// The continuation indicator: the first bytes of each message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Maximum length of the first message of a stream that is recognized without the name of the format.
const SCHEMA_BYTES_LIMIT: u32 = 16 << 20;

/// The row in the table of formats.
pub(super) const ROW: FormatRow = FormatRow {
    name: "arrow",
    title: "Arrow IPC (Feather), a file or a stream: columns as in Parquet",
    extensions: &["arrow", "arrows", "feather", "ipc"],
    abilities: Abilities { is_numbered: true, ..Abilities::COLUMNS },
    recognize,
    open,
};

fn recognize(head: &[u8]) -> bool {
    let is_stream = || {
        let length = head.strip_prefix(&CONTINUATION)?.first_chunk::<4>()?;
        Some((1..=SCHEMA_BYTES_LIMIT).contains(&u32::from_le_bytes(*length)))
    };
    head.starts_with(FILE_MAGIC) || is_stream() == Some(true)
}

fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let table = |input: &Input| {
        let (schema, batches) = open_input(input)?;
        let description = schema.metadata().get("pandas").map(String::as_str);
        let row_numbers = pandas_index(description);
        Ok(DatasetInput { name: input.name().to_owned(), schema, row_numbers, batches })
    };
    let tables = context.files.iter().map(table).collect::<Result<_, Error>>()?;
    open_dataset(context, tables)
}

fn open_input(input: &Input) -> Result<(SchemaRef, Batches), Error> {
    if let Some((bytes, size)) = ByteSource::open(input)? {
        let mut magic = [0; FILE_MAGIC.len()];
        if size >= magic.len() as u64 {
            bytes.read_at(0, &mut magic).map_err(|reason| damaged(input.name(), &reason))?;
        }
        if magic == *FILE_MAGIC {
            let file = IpcFile::open(input.name(), bytes, size)?;
            return Ok((file.schema(), Batches::Indexed(Arc::new(file))));
        }
    }
    let stream = IpcStream::open(input)?;
    Ok((stream.schema(), Batches::Sequence(Arc::new(stream))))
}

fn damaged(name: &str, reason: &str) -> Error {
    let reason = format!("{reason}; the Arrow data are damaged or were cut short");
    Error::BadFile { file: name.to_owned(), record: None, reason }
}
