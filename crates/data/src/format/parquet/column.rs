//! One column of one row group, a chunk of records at a time.

use std::io::Write;

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type as types;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

use super::layout::has_optional_element;
use super::lists::Lists;

/// A column with its buffers.
pub(super) struct Typed<T: types::DataType> {
    reader: ColumnReaderImpl<T>,
    /// Definition level of a value that is there.
    present: i16,
    optional_element: bool,
    values: Vec<T::T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

/// A column of any type that can be read. Unsigned integers are stored as signed ones of the same bits.
pub(super) enum AnyColumn {
    Bool(Typed<types::BoolType>),
    I32(Typed<types::Int32Type>),
    U32(Typed<types::Int32Type>),
    I64(Typed<types::Int64Type>),
    U64(Typed<types::Int64Type>),
    F32(Typed<types::FloatType>),
    F64(Typed<types::DoubleType>),
    Bytes(Typed<types::ByteArrayType>),
}

/// Strings of a chunk, one after another; `None` for null.
#[derive(Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
}

impl Texts {
    /// The string of record `r` of the chunk.
    pub(super) fn get(&self, r: usize) -> Option<&[u8]> {
        self.spans[r].map(|(start, end)| &self.bytes[start..end])
    }
}

impl AnyColumn {
    /// A column that the layout says is readable.
    pub(super) fn new(reader: ColumnReader, descriptor: &ColumnDescriptor) -> Result<Self, ParquetError> {
        use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
        let unsigned = matches!(descriptor.converted_type(), UINT_8 | UINT_16 | UINT_32 | UINT_64);
        Ok(match reader {
            ColumnReader::BoolColumnReader(reader) => Self::Bool(Typed::new(reader, descriptor)),
            ColumnReader::Int32ColumnReader(reader) if unsigned => Self::U32(Typed::new(reader, descriptor)),
            ColumnReader::Int32ColumnReader(reader) => Self::I32(Typed::new(reader, descriptor)),
            ColumnReader::Int64ColumnReader(reader) if unsigned => Self::U64(Typed::new(reader, descriptor)),
            ColumnReader::Int64ColumnReader(reader) => Self::I64(Typed::new(reader, descriptor)),
            ColumnReader::FloatColumnReader(reader) => Self::F32(Typed::new(reader, descriptor)),
            ColumnReader::DoubleColumnReader(reader) => Self::F64(Typed::new(reader, descriptor)),
            ColumnReader::ByteArrayColumnReader(reader) => Self::Bytes(Typed::new(reader, descriptor)),
            ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
                return Err(ParquetError::NYI(format!("values of {}", descriptor.physical_type())));
            }
        })
    }

    /// Whether the column holds strings.
    pub(super) fn is_text(descriptor: &ColumnDescriptor) -> bool {
        descriptor.physical_type() == Physical::BYTE_ARRAY
    }

    /// The next `count` numbers into `out`, NaN for null.
    pub(super) fn numbers(&mut self, count: usize, out: &mut Vec<f64>) -> Result<(), ParquetError> {
        match self {
            Self::Bool(c) => c.numbers(count, out, |v| f64::from(u8::from(v))),
            Self::I32(c) => c.numbers(count, out, f64::from),
            Self::U32(c) => c.numbers(count, out, |v| f64::from(v as u32)),
            Self::I64(c) => c.numbers(count, out, |v| v as f64),
            Self::U64(c) => c.numbers(count, out, |v| v as u64 as f64),
            Self::F32(c) => c.numbers(count, out, f64::from),
            Self::F64(c) => c.numbers(count, out, |v| v),
            Self::Bytes(_) => Err(ParquetError::General("a string where a number is needed".to_owned())),
        }
    }

    /// The next `count` values as text.
    pub(super) fn texts(&mut self, count: usize, out: &mut Texts) -> Result<(), ParquetError> {
        match self {
            Self::Bool(c) => c.texts(count, out, |v, out| show(v, out)),
            Self::I32(c) => c.texts(count, out, |v, out| show(v, out)),
            Self::U32(c) => c.texts(count, out, |v, out| show(*v as u32, out)),
            Self::I64(c) => c.texts(count, out, |v, out| show(v, out)),
            Self::U64(c) => c.texts(count, out, |v, out| show(*v as u64, out)),
            Self::F32(c) => c.texts(count, out, |v, out| show(v, out)),
            Self::F64(c) => c.texts(count, out, |v, out| show(v, out)),
            Self::Bytes(c) => c.texts(count, out, |v, out| out.extend_from_slice(v.data())),
        }
    }

    /// The next `count` lists of keys. A negative key is answered as its two's complement, so from 2^63 on.
    pub(super) fn key_lists(&mut self, count: usize, out: &mut Lists<u64>) -> Result<(), ParquetError> {
        match self {
            Self::I32(c) => c.lists(count, out, |v| i64::from(v) as u64),
            Self::U32(c) => c.lists(count, out, |v| u64::from(v as u32)),
            Self::I64(c) | Self::U64(c) => c.lists(count, out, |v| v as u64),
            _ => Err(ParquetError::General("no integers where indices are needed".to_owned())),
        }
    }

    /// The next `count` lists of numbers.
    pub(super) fn number_lists(&mut self, count: usize, out: &mut Lists<f32>) -> Result<(), ParquetError> {
        match self {
            Self::I32(c) => c.lists(count, out, |v| v as f32),
            Self::U32(c) => c.lists(count, out, |v| v as u32 as f32),
            Self::I64(c) => c.lists(count, out, |v| v as f32),
            Self::U64(c) => c.lists(count, out, |v| v as u64 as f32),
            Self::F32(c) => c.lists(count, out, |v| v),
            Self::F64(c) => c.lists(count, out, |v| v as f32),
            _ => Err(ParquetError::General("no numbers where values are needed".to_owned())),
        }
    }
}

fn show(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    write!(out, "{value}").expect("writing to memory does not fail");
}

impl<T: types::DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>, descriptor: &ColumnDescriptor) -> Self {
        Self {
            reader,
            present: descriptor.max_def_level(),
            optional_element: has_optional_element(descriptor),
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
        }
    }

    /// Reads `count` records into the buffers.
    fn read(&mut self, count: usize) -> Result<(), ParquetError> {
        self.values.clear();
        self.definitions.clear();
        self.repetitions.clear();
        let (definitions, repetitions) = (Some(&mut self.definitions), Some(&mut self.repetitions));
        let (records, _, _) = self.reader.read_records(count, definitions, repetitions, &mut self.values)?;
        if records == count {
            return Ok(());
        }
        Err(ParquetError::EOF(format!("a column ends {} records before its row group", count - records)))
    }

    fn numbers(
        &mut self,
        count: usize,
        out: &mut Vec<f64>,
        number: impl Fn(T::T) -> f64,
    ) -> Result<(), ParquetError> {
        self.read(count)?;
        out.clear();
        let mut values = self.values.iter().cloned().map(number);
        if values.len() == count {
            out.extend(values);
            return Ok(());
        }
        let present = self.present;
        let value = |level: &i16| if *level == present { values.next() } else { None };
        out.extend(self.definitions.iter().map(value).map(|value| value.unwrap_or(f64::NAN)));
        Ok(())
    }

    fn texts(
        &mut self,
        count: usize,
        out: &mut Texts,
        write: impl Fn(&T::T, &mut Vec<u8>),
    ) -> Result<(), ParquetError> {
        self.read(count)?;
        out.bytes.clear();
        out.spans.clear();
        let mut values = self.values.iter();
        let all_there = values.len() == count;
        for r in 0..count {
            let value = if all_there || self.definitions[r] == self.present { values.next() } else { None };
            out.spans.push(value.map(|value| {
                let start = out.bytes.len();
                write(value, &mut out.bytes);
                (start, out.bytes.len())
            }));
        }
        Ok(())
    }

    fn lists<U>(
        &mut self,
        count: usize,
        out: &mut Lists<U>,
        item: impl Fn(T::T) -> U,
    ) -> Result<(), ParquetError> {
        self.read(count)?;
        out.clear();
        out.items.extend(self.values.iter().cloned().map(item));
        if self.values.len() == self.repetitions.len() {
            starts(&self.repetitions, &mut out.offsets);
        } else {
            let null = if self.optional_element { self.present - 1 } else { -1 };
            let mut at = 0;
            for (repetition, definition) in self.repetitions.iter().zip(&self.definitions) {
                if *repetition == 0 {
                    out.offsets.push(at);
                }
                at += usize::from(*definition == self.present);
                if *definition == null {
                    out.null_records.push(out.offsets.len() - 1);
                }
            }
        }
        out.offsets.push(out.items.len());
        Ok(())
    }
}

/// Where lists begin, when every level is a value: at each repetition level of 0. Most stretches of a long list have none.
fn starts(repetitions: &[i16], out: &mut Vec<usize>) {
    const STRETCH: usize = 16;
    for (stretch, at) in repetitions.chunks(STRETCH).zip((0..).step_by(STRETCH)) {
        if stretch.iter().fold(0, |zeros, level| zeros + u16::from(*level == 0)) > 0 {
            let zeros = stretch.iter().zip(at..).filter(|(level, _)| **level == 0);
            out.extend(zeros.map(|(_, at)| at));
        }
    }
}
