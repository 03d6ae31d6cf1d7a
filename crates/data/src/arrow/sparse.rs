//! Features in lists: indices with or without values, pairs, dense vectors, vectors of Spark ML.

use std::ops::{BitOr, Range};

use arrow_array::cast::AsArray;
use arrow_array::types::{self, ArrowPrimitiveType};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, StructArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::column::numbers;
use super::kind::pair;
use crate::batch::BatchBuilder;
use crate::error::LineError;
use crate::rounding::loses_digits;

/// Keys are below this.
const KEY_END: u64 = 1 << 63;

/// The lists of a record batch. Without keys they are dense vectors.
#[derive(Default)]
pub(super) struct Sparse {
    keys: Option<Lists<KeyArray>>,
    values: Option<Lists<ScalarBuffer<f32>>>,
    /// Positions and original values of the items of `values` that lose digits in f32, ascending.
    rounded: Vec<(usize, f64)>,
    /// For vectors of Spark ML: which records have one, and of which type.
    vectors: Option<Vectors>,
}

struct Vectors {
    column: usize,
    nulls: Option<NullBuffer>,
    /// 0 for sparse, 1 for dense.
    types: Vec<f64>,
}

/// The lists of a column: the items of all records, and the range of each record in them.
struct Lists<I> {
    /// Number of the column, for messages.
    column: usize,
    ranges: Vec<Range<usize>>,
    items: I,
    /// The null items, when there are any.
    nulls: Option<NullBuffer>,
}

/// Keys in the width of their column. A negative key is stored in two's complement.
enum KeyArray {
    U32(ScalarBuffer<u32>, Sign),
    U64(ScalarBuffer<u64>, Sign),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Signed,
    Unsigned,
}

/// The type of the keys in a list.
trait Key: Copy + Into<u64> + Default + BitOr<Output = Self> {
    /// The first unsigned value that is negative as a signed one.
    const NEGATIVE: u64;
    fn extend(builder: &mut BatchBuilder, keys: &[Self]);
    /// Returns the key as a signed number.
    fn signed(self) -> i64;
}

impl Key for u32 {
    const NEGATIVE: u64 = 1 << 31;

    #[inline]
    fn extend(builder: &mut BatchBuilder, keys: &[Self]) {
        builder.extend_ones_u32(keys);
    }

    fn signed(self) -> i64 {
        i64::from(self as i32)
    }
}

impl Key for u64 {
    const NEGATIVE: u64 = 1 << 63;

    #[inline]
    fn extend(builder: &mut BatchBuilder, keys: &[Self]) {
        builder.extend_ones(keys);
    }

    fn signed(self) -> i64 {
        self as i64
    }
}

impl Sparse {
    /// Makes lists of a column of indices, maybe with one of values; each comes with its number.
    pub(super) fn lists(indices: (usize, &ArrayRef), values: Option<(usize, &ArrayRef)>) -> Self {
        let lists = |(column, array): (usize, &ArrayRef)| {
            let (ranges, items) = ranges(array);
            (column, ranges, items)
        };
        let (values, rounded) = values.map(|one| values_of(lists(one))).unzip();
        Self { keys: Some(keys(lists(indices))), values, rounded: rounded.unwrap_or_default(), vectors: None }
    }

    /// Makes lists of a column that has keys and values: dense vectors, pairs, or vectors of Spark ML.
    pub(super) fn column(column: usize, array: &ArrayRef) -> Self {
        if let DataType::Struct(_) = array.data_type() {
            return Self::vectors(column, array.as_struct());
        }
        let (ranges, items) = ranges(array);
        let fields = match array.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => pair(item),
            DataType::Map(entries, _) => pair(entries),
            _ => None,
        };
        let Some((index, value)) = fields else {
            let (values, rounded) = values_of((column, ranges, items));
            return Self { values: Some(values), rounded, ..Self::default() };
        };
        let pairs = items.as_struct();
        let field = |number: usize| {
            let (field, nulls) = (pairs.column(number), pairs.nulls());
            let nulls = NullBuffer::union(field.logical_nulls().as_ref(), nulls);
            (field, nulls)
        };
        let ((indices, index_nulls), (numbers, value_nulls)) = (field(index), field(value));
        let mut keys = keys((column, ranges.clone(), indices.clone()));
        let (mut values, rounded) = values_of((column, ranges, numbers.clone()));
        (keys.nulls, values.nulls) = (index_nulls, value_nulls);
        Self { keys: Some(keys), values: Some(values), rounded, vectors: None }
    }

    fn vectors(column: usize, array: &StructArray) -> Self {
        let field = |name: &str| array.column_by_name(name).expect("the kind of the column was checked");
        let mut types = Vec::new();
        numbers(field("type"), &mut types);
        let sparse = Self::lists((column, field("indices")), Some((column, field("values"))));
        Self { vectors: Some(Vectors { column, nulls: array.nulls().cloned(), types }), ..sparse }
    }

    /// Notes the values of record `r` that lose digits.
    #[cold]
    fn note_rounding(&self, r: usize, builder: &mut BatchBuilder) {
        let Some(values) = &self.values else { return };
        let range = values.ranges[r].clone();
        let first = self.rounded.partition_point(|(item, _)| *item < range.start);
        for (item, value) in self.rounded[first..].iter().take_while(|(item, _)| *item < range.end) {
            let at = item - range.start;
            let key = self.keys.as_ref().map_or(at as u64, |keys| match &keys.items {
                KeyArray::U32(items, _) => u64::from(items[keys.ranges[r].start + at]),
                KeyArray::U64(items, _) => items[keys.ranges[r].start + at],
            });
            builder.note_rounding(key, values.items[*item], || Some(*value));
        }
    }

    /// Pushes the entries of record `r`.
    #[inline]
    pub(super) fn push(
        &self,
        r: usize,
        keep_zeros: bool,
        builder: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let is_dense = match &self.vectors {
            None => self.keys.is_none(),
            Some(vectors) => match vectors.is_dense(r)? {
                Some(is_dense) => is_dense,
                None => return Ok(()),
            },
        };
        let pushed = match (&self.keys, &self.values) {
            (_, Some(values)) if is_dense => values.push_dense(r, keep_zeros, builder),
            (Some(keys), values) => {
                let (range, nulls) = (keys.range(r)?, values.as_ref());
                match &keys.items {
                    KeyArray::U32(items, sign) => {
                        push(keys.column, &items[range], *sign, nulls, r, keep_zeros, builder)
                    }
                    KeyArray::U64(items, sign) => {
                        push(keys.column, &items[range], *sign, nulls, r, keep_zeros, builder)
                    }
                }
            }
            (None, _) => Ok(()),
        };
        // A list of values may be shorter than that of its indices only where this is an error.
        if pushed.is_ok() && !self.rounded.is_empty() {
            self.note_rounding(r, builder);
        }
        pushed
    }
}

impl Vectors {
    /// Whether the vector of record `r` is dense; `None` when there is no vector.
    fn is_dense(&self, r: usize) -> Result<Option<bool>, LineError> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(r)) {
            return Ok(None);
        }
        match self.types[r] {
            0.0 => Ok(Some(false)),
            1.0 => Ok(Some(true)),
            other => {
                let expected = "a vector of type 0 (sparse) or 1 (dense)";
                Err(LineError::with_actual(self.column, expected, format!("type {other}")))
            }
        }
    }
}

#[inline]
fn push<K: Key>(
    column: usize,
    keys: &[K],
    sign: Sign,
    values: Option<&Lists<ScalarBuffer<f32>>>,
    r: usize,
    keep_zeros: bool,
    builder: &mut BatchBuilder,
) -> Result<(), LineError> {
    match values {
        None => K::extend(builder, keys),
        Some(values) => {
            let numbers = &values.items[values.range(r)?];
            if numbers.len() != keys.len() {
                let expected = format!("{} values, one for each index", keys.len());
                let actual = format!("{} values", numbers.len());
                return Err(LineError::with_actual(values.column, expected, actual));
            }
            for (&key, &value) in keys.iter().zip(numbers) {
                if value != 0.0 || keep_zeros {
                    builder.push(key.into(), finite(value, values.column)?);
                }
            }
        }
    }
    let end = if sign == Sign::Signed { K::NEGATIVE } else { KEY_END };
    // No key exceeds the bitwise or of all keys, so one comparison checks them all.
    if keys.iter().fold(K::default(), |bits, &key| bits | key).into() >= end
        && let Some(&key) = keys.iter().find(|&&key| key.into() >= end)
    {
        let written = if sign == Sign::Signed { key.signed().to_string() } else { key.into().to_string() };
        return Err(LineError::with_actual(column, "an index from 0 to 2^63 - 1", written));
    }
    match builder.duplicate_key() {
        Some(key) => {
            Err(LineError::with_actual(column, "each index once in a record", format!("{key} twice")))
        }
        None => Ok(()),
    }
}

impl<I> Lists<I> {
    /// Returns the range of the list of record `r`; an error when the list has a null.
    #[inline]
    fn range(&self, r: usize) -> Result<Range<usize>, LineError> {
        let range = self.ranges[r].clone();
        if let Some(nulls) = &self.nulls
            && nulls.slice(range.start, range.len()).null_count() > 0
        {
            return Err(LineError::with_actual(self.column, "a list without null", "null"));
        }
        Ok(range)
    }
}

impl Lists<ScalarBuffer<f32>> {
    /// Pushes a dense vector. A value that is null or NaN is missing.
    fn push_dense(&self, r: usize, keep_zeros: bool, builder: &mut BatchBuilder) -> Result<(), LineError> {
        let range = self.ranges[r].clone();
        for (key, at) in (0..).zip(range) {
            let value = self.items[at];
            let is_missing = value.is_nan() || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
            if !is_missing && (value != 0.0 || keep_zeros) {
                builder.push(key, finite(value, self.column)?);
            }
        }
        Ok(())
    }
}

/// Returns the range of the list of each record, and the items. A null is an empty list. A part of a column has the
/// items of all records of the column: those of other parts are left out, so that they are not converted again.
pub(super) fn ranges(array: &ArrayRef) -> (Vec<Range<usize>>, ArrayRef) {
    fn by_offsets<O: OffsetSizeTrait>(offsets: &[O], items: &dyn Array) -> (Vec<Range<usize>>, ArrayRef) {
        let (start, end) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
        let ranges = offsets.windows(2).map(|pair| pair[0].as_usize() - start..pair[1].as_usize() - start);
        (ranges.collect(), items.slice(start, end - start))
    }
    let (mut ranges, items) = match array.data_type() {
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            by_offsets(lists.value_offsets(), lists.values())
        }
        DataType::FixedSizeList(_, size) => {
            let (lists, size) = (array.as_fixed_size_list(), *size as usize);
            ((0..lists.len()).map(|r| r * size..(r + 1) * size).collect(), lists.values().clone())
        }
        DataType::Map(..) => {
            let maps = array.as_map();
            by_offsets(maps.value_offsets(), maps.entries())
        }
        _ => {
            let lists = array.as_list::<i32>();
            by_offsets(lists.value_offsets(), lists.values())
        }
    };
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        ranges.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(range, _)| *range = 0..0);
    }
    (ranges, items)
}

type ListColumn = (usize, Vec<Range<usize>>, ArrayRef);

fn keys((column, ranges, array): ListColumn) -> Lists<KeyArray> {
    use Sign::{Signed, Unsigned};
    fn wide<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> ScalarBuffer<u32> {
        array.as_primitive::<T>().values().iter().map(|&value| value.into() as u32).collect()
    }
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let items = match array.data_type() {
        DataType::Int8 => KeyArray::U32(wide::<types::Int8Type>(&array), Signed),
        DataType::Int16 => KeyArray::U32(wide::<types::Int16Type>(&array), Signed),
        DataType::UInt8 => KeyArray::U32(wide::<types::UInt8Type>(&array), Unsigned),
        DataType::UInt16 => KeyArray::U32(wide::<types::UInt16Type>(&array), Unsigned),
        DataType::Int32 => {
            let values = array.as_primitive::<types::Int32Type>().values();
            KeyArray::U32(ScalarBuffer::new(values.inner().clone(), 0, values.len()), Signed)
        }
        DataType::UInt32 => {
            KeyArray::U32(array.as_primitive::<types::UInt32Type>().values().clone(), Unsigned)
        }
        DataType::UInt64 => {
            KeyArray::U64(array.as_primitive::<types::UInt64Type>().values().clone(), Unsigned)
        }
        _ => {
            let values = array.as_primitive::<types::Int64Type>().values();
            KeyArray::U64(ScalarBuffer::new(values.inner().clone(), 0, values.len()), Signed)
        }
    };
    Lists { column, ranges, items, nulls }
}

/// Returns the values as f32, and those of them that lose digits, with their positions.
fn values_of((column, ranges, array): ListColumn) -> (Lists<ScalarBuffer<f32>>, Vec<(usize, f64)>) {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let mut rounded = Vec::new();
    let items = if let DataType::Float32 = array.data_type() {
        array.as_primitive::<types::Float32Type>().values().clone()
    } else {
        let mut wide = Vec::new();
        numbers(&array, &mut wide);
        let items: ScalarBuffer<f32> = wide.iter().map(|&value| value as f32).collect();
        let pairs = wide.iter().zip(&items).enumerate();
        let lost = pairs.filter(|(_, (value, single))| loses_digits(**value, **single));
        rounded.extend(lost.map(|(at, (value, _))| (at, *value)));
        items
    };
    (Lists { column, ranges, items, nulls }, rounded)
}

/// Returns `value` when it is finite.
#[inline]
fn finite(value: f32, column: usize) -> Result<f32, LineError> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(LineError::with_actual(column, "a finite number that a 32-bit float can hold", value.to_string()))
}
