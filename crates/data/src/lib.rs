//! Files to splits, splits to records, records to batches.

pub mod batch;
pub mod batch_size;
mod distinct;

pub use batch::{Batch, BatchBuilder};
pub use batch_size::BatchSize;
