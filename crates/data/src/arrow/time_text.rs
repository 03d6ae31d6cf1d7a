//! Dates and times as text.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_date, as_datetime, as_time};
use arrow_array::types::{self, ArrowPrimitiveType};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

/// Formats a column of dates or times in ISO 8601; `None` for any other column. Seconds have digits behind the point
/// only where these are not 0. A time with a zone is in UTC and ends with `Z`. A value that no calendar has stays a
/// number.
pub(super) fn format_times(array: &ArrayRef) -> Option<Vec<Option<String>>> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    Some(match array.data_type() {
        DataType::Date32 => dates::<types::Date32Type>(array),
        DataType::Date64 => dates::<types::Date64Type>(array),
        DataType::Timestamp(unit, zone) => match (unit, zone.is_some()) {
            (Second, in_zone) => timestamps::<types::TimestampSecondType>(array, in_zone),
            (Millisecond, in_zone) => timestamps::<types::TimestampMillisecondType>(array, in_zone),
            (Microsecond, in_zone) => timestamps::<types::TimestampMicrosecondType>(array, in_zone),
            (Nanosecond, in_zone) => timestamps::<types::TimestampNanosecondType>(array, in_zone),
        },
        DataType::Time32(Second) => times_of_day::<types::Time32SecondType>(array),
        DataType::Time32(_) => times_of_day::<types::Time32MillisecondType>(array),
        DataType::Time64(Microsecond) => times_of_day::<types::Time64MicrosecondType>(array),
        DataType::Time64(_) => times_of_day::<types::Time64NanosecondType>(array),
        _ => return None,
    })
}

fn dates<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> Vec<Option<String>> {
    each::<T>(array, |value| Some(as_date::<T>(value)?.to_string()))
}

fn times_of_day<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> Vec<Option<String>> {
    each::<T>(array, |value| Some(as_time::<T>(value)?.to_string()))
}

fn timestamps<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &dyn Array,
    in_zone: bool,
) -> Vec<Option<String>> {
    each::<T>(array, |value| {
        let at = as_datetime::<T>(value)?;
        Some(if in_zone { format!("{at:?}Z") } else { at.to_string() })
    })
}

fn each<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &dyn Array,
    text: impl Fn(i64) -> Option<String>,
) -> Vec<Option<String>> {
    let format = |value: T::Native| {
        let value = value.into();
        text(value).unwrap_or_else(|| value.to_string())
    };
    array.as_primitive::<T>().iter().map(|value| value.map(format)).collect()
}
