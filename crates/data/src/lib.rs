//! Files to splits, splits to records, records to batches.

pub mod batch;

pub use batch::{Batch, BatchBuilder};
