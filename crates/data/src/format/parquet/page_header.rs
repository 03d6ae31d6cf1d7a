//! The header before each page.
//!
//! ```text
//! PageHeader: 1 type, 2 uncompressed size, 3 compressed size, 4 CRC-32, 5 data page, 7 dictionary page, 8 data page v2
//! ```
//! This module reads it instead of the library, because sizes must be compared with the available bytes before memory
//! is reserved for them.

use parquet::basic::Encoding;
use parquet::errors::ParquetError;

use super::fault;
use super::thrift::{FALSE, ThriftError, ThriftReader};

/// The header of a page. Sizes are in bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct PageHeader {
    pub(super) uncompressed_size: usize,
    pub(super) compressed_size: usize,
    /// CRC-32 of the page as it is in the file.
    pub(super) checksum: Option<u32>,
    /// Size of the header itself.
    pub(super) header_size: usize,
    pub(super) kind: PageKind,
    /// Number of values, nulls included.
    pub(super) num_values: u32,
    encoding: i64,
    definition_encoding: i64,
    repetition_encoding: i64,
    pub(super) num_nulls: u32,
    pub(super) num_rows: u32,
    pub(super) definition_size: u32,
    pub(super) repetition_size: u32,
    pub(super) is_uncompressed: bool,
}

/// The content of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PageKind {
    /// A page that is not read: an index.
    #[default]
    Other,
    Data,
    DataV2,
    Dictionary,
}

impl PageHeader {
    /// Reads the header at the start of `bytes`; returns `None` when more bytes are needed.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, ParquetError> {
        let mut cursor = ThriftReader::new(bytes);
        let mut header = Self::default();
        match header.read(&mut cursor) {
            Ok(()) => {}
            Err(ThriftError::UnexpectedEnd) => return Ok(None),
            Err(ThriftError::Invalid(reason)) => return Err(fault(format!("a page header with {reason}"))),
        }
        header.header_size = cursor.position();
        Ok(Some(header))
    }

    pub(super) fn encoding(&self) -> Result<Encoding, ParquetError> {
        encoding(self.encoding)
    }

    pub(super) fn definition_encoding(&self) -> Result<Encoding, ParquetError> {
        encoding(self.definition_encoding)
    }

    pub(super) fn repetition_encoding(&self) -> Result<Encoding, ParquetError> {
        encoding(self.repetition_encoding)
    }

    fn read(&mut self, cursor: &mut ThriftReader<'_>) -> Result<(), ThriftError> {
        let (mut page_type, mut part) = (None, PageKind::Other);
        cursor.fields(|cursor, number, kind| {
            match number {
                1 => page_type = Some(cursor.integer(kind)?),
                2 => self.uncompressed_size = size(cursor.integer(kind)?)? as usize,
                3 => self.compressed_size = size(cursor.integer(kind)?)? as usize,
                4 => self.checksum = Some(cursor.integer(kind)? as u32),
                5 => (part, ()) = (PageKind::Data, self.data(cursor, kind)?),
                7 => (part, ()) = (PageKind::Dictionary, self.dictionary(cursor, kind)?),
                8 => (part, ()) = (PageKind::DataV2, self.data_v2(cursor, kind)?),
                _ => cursor.skip(kind, 0)?,
            }
            Ok(())
        })?;
        self.kind = match page_type {
            Some(0) => PageKind::Data,
            Some(2) => PageKind::Dictionary,
            Some(3) => PageKind::DataV2,
            Some(_) => PageKind::Other,
            None => return Err(ThriftError::Invalid("no type".to_owned())),
        };
        if self.kind != PageKind::Other && self.kind != part {
            return Err(ThriftError::Invalid(format!("type {page_type:?} without the fields of this type")));
        }
        Ok(())
    }

    fn data(&mut self, cursor: &mut ThriftReader<'_>, kind: u8) -> Result<(), ThriftError> {
        cursor.structure(kind, |cursor, number, kind| {
            match number {
                1 => self.num_values = size(cursor.integer(kind)?)?,
                2 => self.encoding = cursor.integer(kind)?,
                3 => self.definition_encoding = cursor.integer(kind)?,
                4 => self.repetition_encoding = cursor.integer(kind)?,
                _ => cursor.skip(kind, 0)?,
            }
            Ok(())
        })
    }

    fn dictionary(&mut self, cursor: &mut ThriftReader<'_>, kind: u8) -> Result<(), ThriftError> {
        cursor.structure(kind, |cursor, number, kind| {
            match number {
                1 => self.num_values = size(cursor.integer(kind)?)?,
                2 => self.encoding = cursor.integer(kind)?,
                _ => cursor.skip(kind, 0)?,
            }
            Ok(())
        })
    }

    fn data_v2(&mut self, cursor: &mut ThriftReader<'_>, kind: u8) -> Result<(), ThriftError> {
        cursor.structure(kind, |cursor, number, kind| {
            match number {
                1 => self.num_values = size(cursor.integer(kind)?)?,
                2 => self.num_nulls = size(cursor.integer(kind)?)?,
                3 => self.num_rows = size(cursor.integer(kind)?)?,
                4 => self.encoding = cursor.integer(kind)?,
                5 => self.definition_size = size(cursor.integer(kind)?)?,
                6 => self.repetition_size = size(cursor.integer(kind)?)?,
                7 => self.is_uncompressed = kind == FALSE,
                _ => cursor.skip(kind, 0)?,
            }
            Ok(())
        })
    }
}

fn size(number: i64) -> Result<u32, ThriftError> {
    i32::try_from(number)
        .ok()
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| ThriftError::Invalid(format!("a size of {number}")))
}

fn encoding(number: i64) -> Result<Encoding, ParquetError> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        #[expect(deprecated, reason = "old files have levels in it")]
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        other => return Err(fault(format!("the unknown encoding {other}"))),
    })
}

#[cfg(test)]
mod tests;
