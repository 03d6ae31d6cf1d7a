//! Files to splits, splits to records, records to batches.

pub mod batch;
pub mod block;
pub mod error;
pub mod keep;

pub use batch::{Batch, BatchBuilder};
pub use error::Error;
