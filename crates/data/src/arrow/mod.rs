//! Arrow record batches to records: labels, weights, groups and features, wherever the batches come from.
//!
//! [`layout`] decides from the schema what each column is for, [`RecordColumns`] turns batch after batch into records. Numbers are
//! taken as `f64`: dates and times as seconds (of a timestamp: since 1970, in UTC), decimals as the number they write.
//! A null is a missing value; in a table, a missing number is besides a feature of its own, as in CSV.
//!
//! | layout | feature columns | keys |
//! |---|---|---|
//! | table | numbers; strings (one feature a value) | numbers: position among the feature columns; strings: `named_key(column, value)` |
//! | lists | one list of integers (`indices`), maybe one list of numbers of the same lengths (`values`, else all 1) | as written, below 2^63 |
//! | pairs | one list of structs of an integer and a number, or one map | the integer |
//! | dense vectors | one list of floats | position in the list |
//! | vectors of Spark ML | one struct `type, size, indices, values` | the index, or the position in a dense one |

mod column;
mod kind;
mod label;
mod layout;
mod record_columns;
mod sparse;
mod table;

pub(crate) use label::{LabelScan, check_guess};
pub(crate) use layout::{ArrowTable, Layout, layout};
pub(crate) use record_columns::RecordColumns;

/// What is wrong with a record: number of the column, what was expected, what was found.
pub(crate) type Fault = (usize, String, String);

/// Whether `value` is a whole number whose last digits are lost.
fn loses_digits(value: f64, single: f32) -> bool {
    value.fract() == 0.0 && f64::from(single) != value
}

/// A value that is finite, as a batch needs it; `written` as it stands in the column.
#[inline]
fn finite(value: f32, written: f64, column: usize) -> Result<f32, Fault> {
    if value.is_finite() {
        return Ok(value);
    }
    Err((column, "a finite number that a 32-bit float can hold".to_owned(), written.to_string()))
}
