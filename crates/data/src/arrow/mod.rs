//! Converts Arrow record batches of any origin into records: labels, weights, groups and features.
//!
//! [`layout`] decides from the schema the role of each column, and [`RecordColumns`] turns each batch into records.
//! [`open_dataset`] does both for the batches of several inputs.
//!
//! Numbers become `f64`: dates and times become seconds (timestamps: since 1970, in UTC), and decimals their value. Where
//! a column is read as text, its dates and times are in ISO 8601. A null is a missing value. In a table, a missing number
//! is also a feature of its own, as in CSV.
//!
//! | layout | feature columns | keys |
//! |---|---|---|
//! | table | numbers; strings (a feature per value) | position among the feature columns; `named_key(column, value)` |
//! | lists | integers (`indices`), maybe numbers of the same lengths (`values`, else all 1) | as written, below 2^63 |
//! | pairs | one list of structs of an integer and a number, or one map | the integer |
//! | dense vectors | one list of floats | position in the list |
//! | vectors of Spark ML | one struct `type, size, indices, values` | the index, or the position in a dense one |

mod column;
#[cfg(feature = "parquet")]
mod dataset;
mod kind;
mod label;
mod layout;
mod record_columns;
mod sparse;
mod table;
#[cfg(test)]
#[cfg(feature = "parquet")]
mod tests;
mod time_text;

#[cfg(feature = "parquet")]
pub(crate) use dataset::{
    BatchIterator, BatchSequence, BatchSize, Batches, DatasetInput, IndexedBatches, merged_notices,
    merged_passthrough_columns, open_dataset, pandas_index,
};
pub(crate) use label::{LabelScan, check_guess};
pub(crate) use layout::{ArrowTable, Layout, layout};
pub(crate) use record_columns::RecordColumns;

/// An error in a record: number of the column, what was expected, what was found.
pub(crate) type Fault = (usize, String, String);

/// Whether `value` is an integer that f32 rounds.
fn loses_digits(value: f64, single: f32) -> bool {
    value.fract() == 0.0 && f64::from(single) != value
}

/// Returns `value` when it is finite, else an error with `written`, the value in the column.
#[inline]
fn finite(value: f32, written: f64, column: usize) -> Result<f32, Fault> {
    if value.is_finite() {
        return Ok(value);
    }
    Err((column, "a finite number that a 32-bit float can hold".to_owned(), written.to_string()))
}
