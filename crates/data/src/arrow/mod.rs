//! Converts Arrow record batches of any origin into records: labels, weights, groups and features.
//!
//! [`describe`] describes the columns by their types, [`crate::columns`] gives them roles, and [`RecordColumns`] turns each
//! batch into records.
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
mod record_columns;
mod sparse;
#[cfg(test)]
#[cfg(feature = "parquet")]
mod tests;
mod time_text;

#[cfg(feature = "parquet")]
pub(crate) use dataset::{
    BatchIterator, BatchSequence, BatchSize, Batches, DatasetInput, IndexedBatches, add_labels, check_guess,
    describe_values, merged_notices, merged_passthrough_columns, open_dataset, pandas_index,
};
pub(crate) use kind::describe;
pub(crate) use record_columns::RecordColumns;
