//! Synthetic data, deterministic and with a known best model.

pub mod bayes;
pub mod ctr;
#[cfg(feature = "parquet")]
mod parquet;
pub mod write;

pub use ctr::{CtrConfig, CtrData};
pub use write::{Format, generate};
