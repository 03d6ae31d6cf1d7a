//! Files to splits, splits to records, records to batches.

pub mod bad_lines;
pub mod batch;
pub mod block;
pub mod epochs;
pub mod error;
pub mod format;
pub mod keep;
pub mod label;
#[cfg(feature = "parquet")]
pub mod parquet_write;
pub mod reader;
mod regroup;
pub mod schema;
pub mod sink;
pub mod source;
pub mod split;
pub mod stream;

pub use bad_lines::BadLines;
pub use batch::{Batch, BatchBuilder};
pub use epochs::{MemoryStream, Shuffle, TaskData};
pub use error::{BadLine, Error, LineError};
pub use keep::{Keep, KeepConfig, KeptStats};
pub use label::{LabelKind, LabelRule, LabelStats};
pub use reader::{ReadSummary, Reader};
pub use schema::{Column, ColumnKind, Schema};
pub use source::{FormatOptions, SourceConfig};
pub use split::{Part, Split};
pub use stream::BatchStream;
