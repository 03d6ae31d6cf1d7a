//! Files to splits, splits to records, records to batches.

#[cfg(feature = "arrow")]
mod arrow;
pub mod bad_lines;
pub mod batch;
pub mod batch_size;
pub mod block;
mod compression;
mod distinct;
pub mod epochs;
pub mod error;
pub mod format;
mod input;
mod interactions;
pub mod keep;
pub mod key_set;
mod keys;
pub mod label;
mod lines;
mod number;
mod options;
#[cfg(feature = "parquet")]
pub mod parquet_write;
mod quotes;
mod read_ahead;
pub mod reader;
mod regroup;
mod resolve;
pub mod schema;
pub mod sink;
pub mod source;
pub mod split;
mod stoppable;
pub mod stream;
pub mod survey;

pub use bad_lines::{BadLineTotal, BadLines};
pub use batch::{Batch, BatchBuilder, Carried};
pub use batch_size::BatchSize;
pub use epochs::{MemoryStream, Shuffle, TaskData};
pub use error::{BadLine, Error, LineError};
pub use format::{FormatRow, FormatTable};
pub use interactions::parse_interaction;
pub use keep::{Keep, KeepConfig, KeptStats};
pub use key_set::KeySet;
pub use label::{LabelKind, LabelRule, LabelStats};
pub use quotes::Quotes;
pub use read_ahead::ReadAhead;
pub use reader::{ReadSummary, Reader};
pub use resolve::input_paths;
pub use schema::{CarriedColumn, CarriedKind, Column, ColumnKind, Schema};
pub use sink::Rounded;
pub use source::{FormatOptions, Input, Purpose, Source, SourceConfig, read_bytes};
pub use split::{Part, Split, Unit};
pub use stoppable::StopReading;
pub use stream::BatchStream;
pub use survey::Survey;
