//! Features as a list of indices a record, with or without a list of values.

use std::ops::BitOr;

use parquet::errors::ParquetError;

use super::fault::{Fault, finite};
use super::list_column::ListColumn;
use super::lists::Lists;
use crate::batch::BatchBuilder;

/// Keys are below this.
const KEY_END: u64 = 1 << 63;

/// The columns of a row group, with the chunk that was decoded last.
pub(super) struct ListFeatures {
    indices: Indices,
    values: Option<ListChunk<f32>>,
}

/// Keys in as many bytes as the file has for them, and where they end.
enum Indices {
    Short(ListChunk<u32>, u64),
    Long(ListChunk<u64>),
}

/// A column of lists and its chunk.
struct ListChunk<T> {
    column: ListColumn,
    /// Number of the column in the file, for messages.
    number: usize,
    chunk: Lists<T>,
}

/// A key as it stands in lists.
trait Key: Copy + Into<u64> + Default + BitOr<Output = Self> {
    fn extend(builder: &mut BatchBuilder, keys: &[Self]);
    /// As it stands in the file.
    fn written(self) -> i64;
}

impl Key for u32 {
    #[inline]
    fn extend(builder: &mut BatchBuilder, keys: &[Self]) {
        builder.extend_short_ones(keys);
    }

    fn written(self) -> i64 {
        i64::from(self as i32)
    }
}

impl Key for u64 {
    #[inline]
    fn extend(builder: &mut BatchBuilder, keys: &[Self]) {
        builder.extend_ones(keys);
    }

    fn written(self) -> i64 {
        self as i64
    }
}

impl ListFeatures {
    /// Of the columns of indices and values, each with its number.
    pub(super) fn new(indices: (ListColumn, usize), values: Option<(ListColumn, usize)>) -> Self {
        let indices = match indices.0.short_key_end() {
            Some(end) => Indices::Short(ListChunk::new(indices), end),
            None => Indices::Long(ListChunk::new(indices)),
        };
        Self { indices, values: values.map(ListChunk::new) }
    }

    /// Decodes the next `count` records.
    pub(super) fn fill(&mut self, count: usize) -> Result<(), ParquetError> {
        match &mut self.indices {
            Indices::Short(lists, _) => lists.column.short_keys(count, &mut lists.chunk)?,
            Indices::Long(lists) => lists.column.keys(count, &mut lists.chunk)?,
        }
        self.values.as_mut().map_or(Ok(()), |values| values.column.numbers(count, &mut values.chunk))
    }

    /// The entries of record `r` of the chunk.
    #[inline]
    pub(super) fn push_record(
        &self,
        r: usize,
        keep_zeros: bool,
        builder: &mut BatchBuilder,
    ) -> Result<(), Fault> {
        match &self.indices {
            Indices::Short(indices, end) => self.push(indices, *end, r, keep_zeros, builder),
            Indices::Long(indices) => self.push(indices, KEY_END, r, keep_zeros, builder),
        }
    }

    #[inline]
    fn push<K: Key>(
        &self,
        indices: &ListChunk<K>,
        end: u64,
        r: usize,
        keep_zeros: bool,
        builder: &mut BatchBuilder,
    ) -> Result<(), Fault> {
        let keys = indices.list(r)?;
        match &self.values {
            None => K::extend(builder, keys),
            Some(values) => {
                let numbers = values.list(r)?;
                if numbers.len() != keys.len() {
                    let expected = format!("{} values, one for each index", keys.len());
                    return Err((values.number, expected, format!("{} values", numbers.len())));
                }
                for (&key, &value) in keys.iter().zip(numbers) {
                    if value != 0.0 || keep_zeros {
                        builder.push(key.into(), finite(value, f64::from(value), values.number)?);
                    }
                }
            }
        }
        // No key is larger than all bits of all keys together.
        if keys.iter().fold(K::default(), |bits, &key| bits | key).into() >= end
            && let Some(key) = keys.iter().find(|&&key| key.into() >= end)
        {
            let expected = "an index from 0 to 2^63 - 1".to_owned();
            return Err((indices.number, expected, key.written().to_string()));
        }
        match builder.duplicate_key() {
            Some(key) => {
                Err((indices.number, "each index once in a record".to_owned(), format!("{key} twice")))
            }
            None => Ok(()),
        }
    }
}

impl<T> ListChunk<T> {
    fn new((column, number): (ListColumn, usize)) -> Self {
        Self { column, number, chunk: Lists::default() }
    }

    /// The list of record `r`. A null in it is found here only when the chunk has one at all.
    #[inline]
    fn list(&self, r: usize) -> Result<&[T], Fault> {
        let chunk = &self.chunk;
        if chunk.null_records.binary_search(&r).is_ok() {
            return Err((self.number, "a list without null".to_owned(), "null".to_owned()));
        }
        Ok(&chunk.items[chunk.offsets[r]..chunk.offsets[r + 1]])
    }
}
