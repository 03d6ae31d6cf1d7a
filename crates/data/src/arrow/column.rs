//! Columns of numbers and of strings.

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::{self, ArrowPrimitiveType, ByteArrayType};
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow_schema::{DataType, TimeUnit};

use super::time_text::format_times;

/// Seconds per day.
const DAY: f64 = 86_400.0;

/// Sets `out` to the numbers of a column, NaN for null; `out` is empty when the column has no numbers.
pub(super) fn numbers(array: &dyn Array, out: &mut Vec<f64>) {
    out.clear();
    match array.data_type() {
        DataType::Null => out.resize(array.len(), f64::NAN),
        DataType::Boolean => {
            let values = array.as_boolean().iter();
            out.extend(values.map(|value| value.map_or(f64::NAN, |value| f64::from(u8::from(value)))));
        }
        DataType::Int8 => each::<types::Int8Type>(array, out, f64::from),
        DataType::Int16 => each::<types::Int16Type>(array, out, f64::from),
        DataType::Int32 => each::<types::Int32Type>(array, out, f64::from),
        DataType::Int64 => each::<types::Int64Type>(array, out, |value| value as f64),
        DataType::UInt8 => each::<types::UInt8Type>(array, out, f64::from),
        DataType::UInt16 => each::<types::UInt16Type>(array, out, f64::from),
        DataType::UInt32 => each::<types::UInt32Type>(array, out, f64::from),
        DataType::UInt64 => each::<types::UInt64Type>(array, out, |value| value as f64),
        DataType::Float16 => each::<types::Float16Type>(array, out, f64::from),
        DataType::Float32 => each::<types::Float32Type>(array, out, f64::from),
        DataType::Float64 => each::<types::Float64Type>(array, out, |value| value),
        DataType::Decimal32(_, scale) => {
            each::<types::Decimal32Type>(array, out, |value| decimal(i128::from(value), *scale));
        }
        DataType::Decimal64(_, scale) => {
            each::<types::Decimal64Type>(array, out, |value| decimal(i128::from(value), *scale));
        }
        DataType::Decimal128(_, scale) => {
            each::<types::Decimal128Type>(array, out, |value| decimal(value, *scale));
        }
        DataType::Decimal256(_, scale) => {
            each::<types::Decimal256Type>(array, out, |value| format_decimal(value, *scale));
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            numbers(dictionary.values(), out);
            let distinct = std::mem::take(out);
            let keys = dictionary.normalized_keys();
            let value = |(r, key): (usize, usize)| if array.is_valid(r) { distinct[key] } else { f64::NAN };
            out.extend(keys.into_iter().enumerate().map(value));
        }
        _ => times(array, out),
    }
}

fn times(array: &dyn Array, out: &mut Vec<f64>) {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match array.data_type() {
        DataType::Date32 => each::<types::Date32Type>(array, out, |days| f64::from(days) * DAY),
        DataType::Date64 => seconds::<types::Date64Type>(array, Millisecond, out),
        DataType::Timestamp(Second, _) => seconds::<types::TimestampSecondType>(array, Second, out),
        DataType::Timestamp(Millisecond, _) => {
            seconds::<types::TimestampMillisecondType>(array, Millisecond, out);
        }
        DataType::Timestamp(Microsecond, _) => {
            seconds::<types::TimestampMicrosecondType>(array, Microsecond, out);
        }
        DataType::Timestamp(Nanosecond, _) => {
            seconds::<types::TimestampNanosecondType>(array, Nanosecond, out);
        }
        DataType::Time32(Second) => each::<types::Time32SecondType>(array, out, f64::from),
        DataType::Time32(_) => {
            each::<types::Time32MillisecondType>(array, out, |value| f64::from(value) / 1e3);
        }
        DataType::Time64(Microsecond) => seconds::<types::Time64MicrosecondType>(array, Microsecond, out),
        DataType::Time64(_) => seconds::<types::Time64NanosecondType>(array, Nanosecond, out),
        DataType::Duration(Second) => seconds::<types::DurationSecondType>(array, Second, out),
        DataType::Duration(Millisecond) => {
            seconds::<types::DurationMillisecondType>(array, Millisecond, out);
        }
        DataType::Duration(Microsecond) => {
            seconds::<types::DurationMicrosecondType>(array, Microsecond, out);
        }
        DataType::Duration(Nanosecond) => seconds::<types::DurationNanosecondType>(array, Nanosecond, out),
        _ => {}
    }
}

fn each<T: ArrowPrimitiveType>(array: &dyn Array, out: &mut Vec<f64>, number: impl Fn(T::Native) -> f64) {
    let array = array.as_primitive::<T>();
    if array.null_count() == 0 {
        out.extend(array.values().iter().map(|&value| number(value)));
    } else {
        out.extend(array.iter().map(|value| value.map_or(f64::NAN, &number)));
    }
}

fn seconds<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array, unit: TimeUnit, out: &mut Vec<f64>) {
    let per_second = match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    };
    each::<T>(array, out, |value| value as f64 / per_second);
}

/// `value / 10^scale`, rounded once.
fn decimal(value: i128, scale: i8) -> f64 {
    /// Integers, and powers of ten, up to this one are exact in f64.
    const EXACT_INTEGER_LIMIT: u128 = 1 << 53;
    const EXACT_POWER: i8 = 22;
    if value.unsigned_abs() <= EXACT_INTEGER_LIMIT && (0..=EXACT_POWER).contains(&scale) {
        return value as f64 / 10f64.powi(i32::from(scale));
    }
    format_decimal(value, scale)
}

fn format_decimal(value: impl Display, scale: i8) -> f64 {
    format!("{value}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}

/// The strings of a column, or its numbers as text.
#[derive(Debug)]
pub(super) enum TextColumn {
    Views(BinaryViewArray),
    Bytes(BinaryArray),
    LargeBytes(LargeBinaryArray),
    /// Positions of the values of the records in a column of distinct values.
    Dictionary(Vec<Option<usize>>, Box<TextColumn>),
    Formatted(Vec<Option<String>>),
}

impl Default for TextColumn {
    fn default() -> Self {
        Self::Formatted(Vec::new())
    }
}

impl TextColumn {
    pub(super) fn of(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::BinaryView => Self::Views(array.as_binary_view().clone()),
            DataType::Utf8View => Self::Views(array.as_string_view().clone().to_binary_view()),
            DataType::Binary => Self::Bytes(array.as_binary().clone()),
            DataType::Utf8 => Self::Bytes(array.as_string::<i32>().clone().into()),
            DataType::LargeBinary => Self::LargeBytes(array.as_binary().clone()),
            DataType::LargeUtf8 => Self::LargeBytes(array.as_string::<i64>().clone().into()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.normalized_keys();
                let keys = keys.into_iter().enumerate().map(|(r, key)| array.is_valid(r).then_some(key));
                Self::Dictionary(keys.collect(), Box::new(Self::of(dictionary.values())))
            }
            _ => Self::Formatted(format_numbers(array)),
        }
    }

    /// Returns the string of record `r`; `None` for null.
    #[inline]
    pub(super) fn get(&self, r: usize) -> Option<&[u8]> {
        match self {
            Self::Views(array) => array.is_valid(r).then(|| array.value(r)),
            Self::Bytes(array) => bytes(array, r),
            Self::LargeBytes(array) => bytes(array, r),
            Self::Dictionary(keys, values) => keys[r].and_then(|key| values.get(key)),
            Self::Formatted(texts) => texts[r].as_deref().map(str::as_bytes),
        }
    }
}

fn bytes<T: ByteArrayType<Native = [u8]>>(
    array: &arrow_array::GenericByteArray<T>,
    r: usize,
) -> Option<&[u8]> {
    array.is_valid(r).then(|| array.value(r))
}

/// Formats numbers with as few digits as they need, 32-bit floats as such, and dates and times in ISO 8601.
fn format_numbers(array: &ArrayRef) -> Vec<Option<String>> {
    fn all<T: ArrowPrimitiveType<Native: Display>>(array: &ArrayRef) -> Vec<Option<String>> {
        array.as_primitive::<T>().iter().map(|value| value.map(|value| value.to_string())).collect()
    }
    match array.data_type() {
        DataType::Boolean => {
            array.as_boolean().iter().map(|value| value.map(|value| value.to_string())).collect()
        }
        DataType::Int64 => all::<types::Int64Type>(array),
        DataType::UInt64 => all::<types::UInt64Type>(array),
        DataType::Float16 => all::<types::Float16Type>(array),
        DataType::Float32 => all::<types::Float32Type>(array),
        _ => format_times(array).unwrap_or_else(|| {
            let mut values = Vec::new();
            numbers(array, &mut values);
            values.into_iter().map(|value| (!value.is_nan()).then(|| value.to_string())).collect()
        }),
    }
}
