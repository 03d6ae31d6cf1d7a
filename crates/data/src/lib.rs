//! Files to splits, splits to records, records to batches.

pub mod batch;
mod distinct;

pub use batch::{Batch, BatchBuilder};
