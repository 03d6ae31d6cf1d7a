//! One column of lists of one row group, a chunk of records at a time.

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::column::page::PageReader;
use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

use super::column::AnyColumn;
use super::lists::Lists;
use super::pages::{ListPages, is_usual};

/// A column of lists of any type that can be read.
pub(super) enum ListColumn {
    I32(ListPages<i32>),
    U32(ListPages<i32>),
    I64(ListPages<i64>),
    U64(ListPages<i64>),
    F32(ListPages<f32>),
    F64(ListPages<f64>),
    /// Encoded in a way that only the general reader knows.
    Other(AnyColumn),
}

impl ListColumn {
    /// A column that the layout says is readable.
    pub(super) fn new(
        pages: Box<dyn PageReader>,
        column: &ColumnChunkMetaData,
    ) -> Result<Self, ParquetError> {
        let descriptor = column.column_descr();
        if !is_usual(column) {
            let reader = get_column_reader(column.column_descr_ptr(), pages);
            return AnyColumn::new(reader, descriptor).map(Self::Other);
        }
        let unsigned = matches!(
            descriptor.converted_type(),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        );
        Ok(match descriptor.physical_type() {
            Physical::INT32 if unsigned => Self::U32(ListPages::new(pages, column)),
            Physical::INT32 => Self::I32(ListPages::new(pages, column)),
            Physical::INT64 if unsigned => Self::U64(ListPages::new(pages, column)),
            Physical::INT64 => Self::I64(ListPages::new(pages, column)),
            Physical::FLOAT => Self::F32(ListPages::new(pages, column)),
            Physical::DOUBLE => Self::F64(ListPages::new(pages, column)),
            other => return Err(ParquetError::NYI(format!("lists of {other}"))),
        })
    }

    /// Whether keys have 32 bits, so that [`Self::short_keys`] reads them; and then, from where on they are negative.
    pub(super) fn short_key_end(&self) -> Option<u64> {
        match self {
            Self::I32(_) => Some(1 << 31),
            Self::U32(_) => Some(1 << 32),
            _ => None,
        }
    }

    /// The next `count` lists of keys of 32 bits. A negative key is answered as its two's complement, so from 2^31 on.
    pub(super) fn short_keys(&mut self, count: usize, out: &mut Lists<u32>) -> Result<(), ParquetError> {
        match self {
            Self::I32(c) | Self::U32(c) => c.lists(count, out, |v| v as u32),
            _ => Err(ParquetError::General("no keys of 32 bits where they were".to_owned())),
        }
    }

    /// The next `count` lists of keys. A negative key is answered as its two's complement, so from 2^63 on.
    pub(super) fn keys(&mut self, count: usize, out: &mut Lists<u64>) -> Result<(), ParquetError> {
        match self {
            Self::I32(c) => c.lists(count, out, |v| i64::from(v) as u64),
            Self::U32(c) => c.lists(count, out, |v| u64::from(v as u32)),
            Self::I64(c) | Self::U64(c) => c.lists(count, out, |v| v as u64),
            Self::F32(_) | Self::F64(_) => {
                Err(ParquetError::General("no integers where indices are needed".to_owned()))
            }
            Self::Other(c) => c.key_lists(count, out),
        }
    }

    /// The next `count` lists of numbers.
    pub(super) fn numbers(&mut self, count: usize, out: &mut Lists<f32>) -> Result<(), ParquetError> {
        match self {
            Self::I32(c) => c.lists(count, out, |v| v as f32),
            Self::U32(c) => c.lists(count, out, |v| v as u32 as f32),
            Self::I64(c) => c.lists(count, out, |v| v as f32),
            Self::U64(c) => c.lists(count, out, |v| v as u64 as f32),
            Self::F32(c) => c.lists(count, out, |v| v),
            Self::F64(c) => c.lists(count, out, |v| v as f32),
            Self::Other(c) => c.number_lists(count, out),
        }
    }
}
