//! Comma-separated values (RFC 4180), also between semicolons, tabs or bars.
//!
//! ```text
//! row   = field { delimiter field }
//! field = text without delimiter, blanks around it taken off | '"' text with '""' for '"' '"'
//! ```
//! - When the first 4 MiB of the first file have line breaks inside quotes, or quotes written as `\"` (Spark), all rows
//!   may have them. With line breaks one task reads the whole file; without them, a row is a line, and splits are cut
//!   between lines.
//! - The first row is a header when it has a word over a column of numbers and no number over one, when it contains the
//!   label that the settings name, or when it has only words, one of which is the name of a label and none of which
//!   occurs in the rows below. When only the name of the label occurs below, the user has to set `header`.
//! - The label is the column of the settings; else the one called label, target or y; else the last.
//! - A column is numeric when most of its first 1,000 values are numbers; otherwise each value is a feature of its own,
//!   `named_key(column, value)`. `text_columns` does the same for a column that looks numeric.
//! - Missing values (the words of pandas, and `?`) have no entry in their column; a missing number is the feature
//!   `COLUMN=missing`. Text labels become class numbers by sorted name.
//! - A first column whose name is empty is an index that pandas or R wrote, and is skipped.
//! - Blank lines are skipped. A row with another number of fields is an error, and so is a header in mid-file.

mod detection;
#[cfg(test)]
mod dialect_tests;
mod fields;
mod parser;
#[cfg(test)]
mod role_tests;
mod sample;
#[cfg(test)]
mod tests;

use super::columns::FileColumns;
use super::{FormatContext, LineFormat, LineParser, OpenFormat};
use crate::Error;
use crate::options::FormatOptions;
use crate::quotes::Quotes;
use crate::schema::{PassthroughColumn, Schema};
pub(super) use sample::Dialect;
use std::sync::Arc;

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let sample = sample::Sample::of(context)?;
    let (mut found, header) = detection::detect_columns(context, &sample)?;
    found.passthrough = super::columns::find_passthrough(context, &found)?;
    let (found, notice) = super::positional_names::assign_names_by_position(context, found)?;
    let mut columns = super::columns::assign_roles(context, &found)?;
    columns.notices.extend(notice);
    let label_names = match (context.trained_schema, columns.label()) {
        (Some(schema), _) => schema.label_names.clone(),
        (None, Some(label)) if detection::has_text_labels(context, &sample, &found, &columns)? => {
            detection::label_names(context, &columns, label, header.as_deref())?
        }
        _ => Vec::new(),
    };
    Ok(OpenFormat::Lines(Box::new(Csv::new(columns, context.options, header, label_names))))
}

/// Whether the first rows have the same number of fields, two at least, and cannot be Vowpal Wabbit text.
pub(super) fn recognize(head: &[u8]) -> bool {
    sample::looks_like_rows(head) && !super::vw::is_possible(head)
}

/// An opened CSV (or dense) input.
pub(super) struct Csv {
    columns: Arc<FileColumns>,
    header: Option<Arc<[u8]>>,
    schema: Schema,
    has_label: bool,
}

impl Csv {
    pub(super) fn new(
        columns: FileColumns,
        options: &FormatOptions,
        header: Option<Vec<u8>>,
        label_names: Vec<String>,
    ) -> Self {
        let schema = Schema { label_names, ..columns.schema(options) };
        let (columns, header) = (Arc::new(columns), header.map(Arc::from));
        Self { columns, header, schema, has_label: options.has_label }
    }
}

impl LineFormat for Csv {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        self.columns.passthrough_columns()
    }

    fn quotes(&self) -> Option<Quotes> {
        let dialect = self.columns.dialect;
        dialect.multi_line.then_some(dialect.quotes)
    }

    fn notices(&self) -> Vec<String> {
        self.columns.notices.clone()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        let (columns, header) = (Arc::clone(&self.columns), self.header.clone());
        Box::new(parser::Parser::new(columns, header, &self.schema, self.has_label))
    }
}
