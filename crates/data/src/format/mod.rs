//! Formats: each has a file of its own and a row in [`FormatTable`].
//!
//! The `open` function of a row samples the inputs and returns an [`OpenFormat`]. There are two kinds:
//! - [`OpenFormat::Lines`]: one record per line. The format provides a [`LineParser`]; the reader finds lines, and
//!   handles splits, compression, line numbers and bad lines.
//! - [`OpenFormat::RowGroups`]: the format has row groups (Parquet). It provides a [`RecordReader`], which fills a
//!   [`Sink`] as the reader of lines does.

mod abilities;
mod adjacency;
pub mod table;
mod tokens;

#[cfg(feature = "parquet")]
mod arrow_ipc;
mod binary_entries;
mod csv;
mod dense;
pub mod dictionary;
mod edges;
mod libffm;
mod libsvm;
#[cfg(feature = "parquet")]
mod parquet;
mod sample;
mod text;
pub(crate) mod token_features;
pub(crate) mod tokenizer;
mod uci_bags;
mod vw;

#[cfg(test)]
pub(crate) mod testing;

pub use abilities::Abilities;
pub use edges::key_of_node;
use sample::most_lines;
pub(crate) use sample::text_lines;
pub use table::FormatTable;
pub(crate) use tokens::last_entry_of;
use tokens::{label, last_token_of, refuse_duplicates, refuse_label, skip_blanks, value};

use crate::input::Input;
use crate::key_names::KeyNames;
use crate::options::FormatOptions;
use crate::quotes::Quotes;
use crate::schema::{PassthroughColumn, Schema};
use crate::sink::Sink;
use crate::split::{RowGroup, Split};
use crate::{BatchBuilder, Error, LineError};

/// The kind of a parsed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParsedLine {
    /// A record. The parser has pushed its entries; the caller closes it.
    Record {
        /// Label as written; `None` when the input has no labels.
        label: Option<f64>,
        /// Weight, 1 by default.
        weight: f32,
        /// Group, when a group column is set.
        group: Option<u64>,
    },
    /// A blank line or a comment. The parser has pushed nothing.
    Skipped,
    /// A record without a label among records with labels. The parser has pushed nothing; the caller counts it.
    Unlabelled,
}

/// Turns lines into records.
pub trait LineParser: Send {
    /// Pushes the entries of `line` (without its end: no `\n`, no `\r\n`) into `out`. After an error the caller
    /// discards what was pushed.
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError>;

    /// Takes the names of hashed keys that are new since the last call.
    fn take_dictionary(&mut self) -> KeyNames {
        KeyNames::default()
    }

    /// The interactions of which no record so far had a product.
    fn unmet_interactions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the byte at which the label of a line stands. By default it is the first word.
    fn label_at(&self, line: &[u8]) -> usize {
        skip_blanks(line, 0)
    }

    /// Notices for the user, such as "qid is ignored"; each is reported once.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A format of lines, opened on inputs.
pub trait LineFormat: Send + Sync {
    /// The meaning of the columns; the source fills in the name of the format.
    fn schema(&self) -> Schema;
    /// The header, when each file begins with one: the reader then compares the first line of each file with it, and
    /// skips that line.
    fn header(&self) -> Option<&[u8]> {
        None
    }
    /// The passthrough columns, in the requested order; empty in formats without columns.
    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        Vec::new()
    }
    /// How fields are quoted, when quoted fields may have line breaks: each file is then read by one task.
    fn quotes(&self) -> Option<Quotes> {
        None
    }
    /// Notices for the user about the inputs.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// Makes a parser for one task.
    fn parser(&self) -> Box<dyn LineParser>;
}

/// A format with row groups, opened on inputs.
pub trait RowGroupFormat: Send + Sync {
    /// The meaning of the columns; the source fills in the name of the format.
    fn schema(&self) -> Schema;
    /// The passthrough columns, in the requested order; empty in formats without columns.
    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        Vec::new()
    }
    /// Notices for the user about the inputs.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether a file has no row groups, because one task reads it from its beginning to its end.
    fn is_sequence(&self, _file: usize) -> bool {
        false
    }
    /// Returns the row groups of a file, each of which can be read without the others.
    fn row_groups(&self, file: usize) -> Vec<RowGroup>;
    /// Makes a reader of the records of these splits, in this order. Their ranges are `SplitRange::Whole` for sequences,
    /// else `SplitRange::Records`.
    /// `files` are the inputs of the context.
    fn reader(&self, files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error>;
}

/// Fills a sink with records.
pub trait RecordReader: Send {
    /// Reads records until `sink.record_count()` is `record_limit` or no record is left; returns whether records may be
    /// left. For each record it pushes entries into `sink.builder()` and then calls `sink.end_record(..)`.
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error>;

    /// Takes the names of hashed keys that are new since the last call.
    fn take_dictionary(&mut self) -> KeyNames {
        KeyNames::default()
    }

    /// The interactions of which no record so far had a product.
    fn unmet_interactions(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A format opened on inputs.
pub enum OpenFormat {
    /// One record per line.
    Lines(Box<dyn LineFormat>),
    /// Files with row groups.
    RowGroups(Box<dyn RowGroupFormat>),
}

/// The arguments with which a format is opened.
pub struct FormatContext<'a> {
    /// The inputs, at least one.
    pub files: &'a [Input],
    /// Settings. With a trained schema, it fills what the user left open.
    pub options: &'a FormatOptions,
    /// The trained schema, when the input must be read with one.
    pub trained_schema: Option<&'a Schema>,
}

/// A row of the table of formats.
#[derive(Clone, Copy)]
pub struct FormatRow {
    /// Name, as in `--format`.
    pub name: &'static str,
    /// Description in one line.
    pub title: &'static str,
    /// Extensions of file names without the dot; the extension of a compression is removed first.
    pub extensions: &'static [&'static str],
    /// What its records have.
    pub abilities: Abilities,
    /// Whether a file that begins with these (decompressed) bytes, its first 4 MiB at most, is certainly of this
    /// format. The rows are tried in their order.
    pub recognize: fn(head: &[u8]) -> bool,
    /// Samples the inputs and opens the format on them.
    pub open: fn(&FormatContext<'_>) -> Result<OpenFormat, Error>,
}

impl FormatRow {
    /// Whether these bytes are certainly of this format and not text.
    fn is_binary(&self, head: &[u8]) -> bool {
        head.contains(&0) && (self.recognize)(head)
    }
}
