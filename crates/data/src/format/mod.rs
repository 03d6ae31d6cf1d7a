//! Formats: one file each, one row each in [`FormatTable`].
//!
//! A row's `open` looks at the inputs and answers with a [`OpenFormat`]. There are two kinds:
//! - [`OpenFormat::Lines`]: one record a line. The format gives a [`LineParser`]; finding lines, splits, compression, line
//!   numbers and bad lines are the reader's work.
//! - [`OpenFormat::RowGroups`]: the format knows its own units (Parquet: row groups). It gives a [`RecordReader`], which fills a
//!   [`Sink`] as the reader of lines does.

pub mod table;
mod tokens;

mod binary_entries;
mod columns;
mod csv;
mod dense;
pub mod dictionary;
mod libffm;
mod libsvm;
pub(crate) mod missing;
#[cfg(feature = "parquet")]
mod parquet;
mod positional_names;
pub(crate) mod roles;
mod sample;
mod vw;

#[cfg(test)]
pub(crate) mod testing;

use sample::most_lines;
pub(crate) use sample::text_lines;
pub use table::FormatTable;
pub(crate) use tokens::last_entry_of;
use tokens::{label, last_token_of, refuse_columns, refuse_duplicates, refuse_label, skip_blanks, value};

use crate::input::Input;
use crate::options::FormatOptions;
use crate::quotes::Quotes;
use crate::schema::{PassthroughColumn, Schema};
use crate::sink::Sink;
use crate::split::{RowGroup, Split};
use crate::{BatchBuilder, Error, LineError};
use std::collections::BTreeMap;

/// What a line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParsedLine {
    /// A record. Its entries have been pushed; the caller closes it.
    Record {
        /// Label as written; `None` when the input has none.
        label: Option<f64>,
        /// Weight, 1 by default.
        weight: f32,
        /// Group, when one was asked for.
        group: Option<u64>,
    },
    /// A blank line or a comment. Nothing has been pushed.
    Skipped,
    /// A record without a label among records that have one. Nothing has been pushed; it is counted and left out.
    Unlabelled,
}

/// Turns lines into records.
pub trait LineParser: Send {
    /// Pushes the entries of `line` (without its end: no `\n`, no `\r\n`) into `out`. On an error the caller takes back
    /// what was pushed.
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError>;

    /// Names of hashed keys met since the last call.
    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        BTreeMap::new()
    }

    /// What the user should know, each said once ("qid is ignored").
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A format of lines, opened on inputs.
pub trait LineFormat: Send + Sync {
    /// What the columns mean; the source fills in the format's name.
    fn schema(&self) -> Schema;
    /// The header, when each file begins with one: the first line of a file is then compared with it and skipped.
    fn header(&self) -> Option<&[u8]> {
        None
    }
    /// The columns that are carried along, in the order asked for; none in formats without columns.
    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        Vec::new()
    }
    /// How fields are quoted, when quoted fields may have line breaks: each file then goes to one task whole.
    fn quotes(&self) -> Option<Quotes> {
        None
    }
    /// What the user should know of how the inputs were understood.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// A parser for one task.
    fn parser(&self) -> Box<dyn LineParser>;
}

/// A format of blocks, opened on inputs.
pub trait RowGroupFormat: Send + Sync {
    /// What the columns mean; the source fills in the format's name.
    fn schema(&self) -> Schema;
    /// The columns that are carried along, in the order asked for; none in formats without columns.
    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        Vec::new()
    }
    /// What the user should know of how the inputs were understood.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// The units of a file, each of which can be read without the others.
    fn row_groups(&self, file: usize) -> Vec<RowGroup>;
    /// A reader of records of these units (all parts are `SplitRange::RecordColumns`), in this order. `files` are the inputs of the
    /// context.
    fn reader(&self, files: &[Input], splits: &[Split]) -> Result<Box<dyn RecordReader>, Error>;
}

/// Fills a sink with records, whatever the format.
pub trait RecordReader: Send {
    /// Reads records until `sink.record_count()` is `record_limit` or nothing is left; says whether something may be
    /// left. For each record: push entries into `sink.builder()`, then `sink.end_record(..)`.
    fn read(&mut self, record_limit: usize, sink: &mut Sink) -> Result<bool, Error>;

    /// Names of hashed keys met since the last call.
    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        BTreeMap::new()
    }
}

/// An opened format.
pub enum OpenFormat {
    /// One record a line.
    Lines(Box<dyn LineFormat>),
    /// Units of its own.
    RowGroups(Box<dyn RowGroupFormat>),
}

/// What a format sees when it is opened.
pub struct FormatContext<'a> {
    /// The inputs, at least one.
    pub files: &'a [Input],
    /// Settings. When opened like a schema, what the user left open is filled from the schema.
    pub options: &'a FormatOptions,
    /// The schema of training, when this input must be read like it.
    pub trained_schema: Option<&'a Schema>,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct FormatRow {
    /// Name, as in `--format`.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// File name endings without the dot; a compression ending is taken off first.
    pub extensions: &'static [&'static str],
    /// Whether a file that begins with these (decompressed) bytes, its first 4 MiB at most, is surely of this format. Rows
    /// are asked in order.
    pub recognize: fn(head: &[u8]) -> bool,
    /// Looks at the inputs and plans the reading.
    pub open: fn(&FormatContext<'_>) -> Result<OpenFormat, Error>,
}

impl FormatRow {
    /// Whether these are surely bytes of this format, and no text.
    fn is_binary(&self, head: &[u8]) -> bool {
        head.contains(&0) && (self.recognize)(head)
    }
}
