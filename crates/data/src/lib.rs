//! Files to splits, splits to records, records to batches.

pub mod arrays;
#[cfg(feature = "arrow")]
mod arrow;
pub mod bad_lines;
pub mod batch;
pub mod batch_size;
pub mod block;
#[cfg(feature = "parquet")]
mod byte_source;
pub mod cache;
mod columns;
mod compression;
mod distinct_keys;
pub mod epochs;
pub mod error;
pub mod format;
mod input;
mod interactions;
mod interruptible;
pub mod key_names;
pub mod key_set;
mod key_vec;
pub mod label;
mod lines;
mod look_ahead;
mod number;
mod options;
#[cfg(feature = "parquet")]
mod panics;
#[cfg(feature = "parquet")]
pub mod parquet_writer;
mod path_rules;
pub mod quantiles;
mod quotes;
pub mod reader;
mod rebatcher;
mod resolve;
mod rounding;
pub mod schema;
pub mod sink;
pub mod source;
pub mod split;
mod stored;
pub mod stream;
pub mod survey;
pub mod time;

pub use bad_lines::{BadLinePolicy, BadLineTotal};
pub use batch::{Batch, BatchBuilder, PassthroughTexts};
pub use batch_size::BatchSize;
pub use cache::{CacheConfig, CacheStats};
pub use columns::NumberForm;
pub use columns::missing::is_missing;
pub use epochs::{MemoryStream, Shuffle, TaskData};
pub use error::{BadLine, Error, LineError, nearest};
pub use format::tokenizer::Tokenizer;
pub use format::{FormatRow, FormatTable};
pub use interactions::parse_interaction;
pub use interruptible::StopFlag;
pub use key_names::{KeyNames, NameCollector};
pub use key_set::KeySet;
pub use label::{LabelKind, LabelRange, LabelRule, LabelStats};
pub use look_ahead::LookAhead;
pub use quantiles::QuantileSketch;
pub use quotes::Quotes;
pub use reader::{ReadSummary, Reader};
pub use resolve::input_paths;
pub use rounding::{RoundedNumbers, RoundingReport};
pub use schema::{Column, ColumnKind, PassthroughColumn, PassthroughKind, Schema};
pub use sink::HoldoutRule;
pub use source::{
    FormatOptions, Input, InputPurpose, KeyLimit, Source, SourceConfig, read_bytes, read_tasks,
};
pub use split::{RowGroup, Split, SplitRange};
pub use stream::BatchStream;
pub use survey::Survey;
pub use time::parse_time;
