//! Comma-separated values (RFC 4180), also between semicolons, tabs or bars.
//!
//! ```text
//! line  = field { delimiter field }
//! field = text without delimiter, blanks around it taken off | '"' text with '""' for '"' '"'
//! ```
//! - A line break inside quotes is an error: lines are what splits are cut at.
//! - The first line is a header when it has a word over a column of numbers, or when it names the label asked for.
//! - The label is the column asked for; else the one called label, target or y; else the last.
//! - A column is numeric when its first 1,000 rows are numbers or missing; otherwise each value is a feature of its own,
//!   `named_key(column, value)`. `text_columns` makes it so for a column that looks numeric.
//! - Missing (nothing, NA, N/A, NaN, nan, null, NULL, ?) has no entry. Text labels become class numbers by sorted name.
//! - Blank lines are skipped. A row with another count of fields is an error.

mod look;
mod parser;
#[cfg(test)]
mod tests;

use super::columns::Columns;
use super::{FormatContext, LineParser, LinePlan, Plan};
use crate::Error;
use crate::options::FormatOptions;
use crate::schema::{CarriedColumn, Schema};
use std::sync::Arc;

/// Opens CSV inputs.
pub(super) fn open(context: &FormatContext<'_>) -> Result<Plan, Error> {
    let (mut found, header) = look::look(context)?;
    found.kept = super::columns::kept(context, &found)?;
    let (found, notice) = super::places::place(context, found)?;
    let text_label = look::numeric_label(context, &found)?;
    let mut columns = super::columns::assign(context, &found)?;
    columns.notices.extend(notice);
    let label_names = match (context.like, columns.label()) {
        (Some(schema), _) => schema.label_names.clone(),
        (None, Some(label)) if text_label => look::label_names(context, &columns, label, header.is_some())?,
        _ => Vec::new(),
    };
    Ok(Plan::Lines(Box::new(Csv::new(columns, context.options, header, label_names))))
}

/// Whether the first line has at least two fields.
pub(super) fn recognize(head: &[u8]) -> bool {
    super::first_text_line(head).is_some_and(|line| look::delimiter_of(line).is_some())
}

/// An opened CSV (or dense) input.
pub(super) struct Csv {
    columns: Arc<Columns>,
    header: Option<Vec<u8>>,
    schema: Schema,
    has_label: bool,
}

impl Csv {
    pub(super) fn new(
        columns: Columns,
        options: &FormatOptions,
        header: Option<Vec<u8>>,
        label_names: Vec<String>,
    ) -> Self {
        let schema = Schema { label_names, ..columns.schema(options) };
        Self { columns: Arc::new(columns), header, schema, has_label: options.has_label }
    }
}

impl LinePlan for Csv {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    fn carried(&self) -> Vec<CarriedColumn> {
        self.columns.carried()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(parser::Parser::new(Arc::clone(&self.columns), &self.schema, self.has_label))
    }
}
