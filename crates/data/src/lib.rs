//! Files to splits, splits to records, records to batches.

pub mod bad_lines;
pub mod batch;
pub mod error;
pub mod format;
pub mod label;
pub mod reader;
pub mod schema;
pub mod sink;
pub mod source;
pub mod split;
pub mod stream;

pub use bad_lines::BadLines;
pub use batch::{Batch, BatchBuilder};
pub use error::{BadLine, Error, LineError};
pub use label::{LabelKind, LabelRule, LabelStats};
pub use reader::{ReadSummary, Reader};
pub use schema::{Column, ColumnKind, Schema};
pub use source::{FormatOptions, SourceConfig};
pub use split::{Part, Split};
pub use stream::BatchStream;
