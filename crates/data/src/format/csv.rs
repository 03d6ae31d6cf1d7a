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
//! - A first column whose name is empty is an index that pandas or R wrote, and is skipped; so is a last column without a
//!   name and values.
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

use super::{FormatContext, LineFormat, LineParser, OpenFormat};
use crate::Error;
use crate::columns::{ColumnPlan, Role, TableDescription, assign_names_by_position, plan};
use crate::quotes::Quotes;
use crate::schema::{PassthroughColumn, Schema};
pub(super) use sample::Dialect;
use std::sync::Arc;

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let sample = sample::Sample::of(context)?;
    let (table, header) = detection::describe(context, &sample)?;
    let mut csv = Csv::new(context, table, sample.dialect, header)?;
    if let Some(label) = csv.plan.find(Role::Label).filter(|_| context.trained_schema.is_none()) {
        csv.schema.label_names = detection::label_names(context, &sample, &csv, label)?;
    }
    Ok(OpenFormat::Lines(Box::new(csv)))
}

/// Whether the first rows have the same number of fields, two at least, and cannot be Vowpal Wabbit text.
pub(super) fn recognize(head: &[u8]) -> bool {
    sample::looks_like_rows(head) && !super::vw::is_possible(head)
}

/// An opened CSV (or dense) input.
pub(super) struct Csv {
    plan: Arc<ColumnPlan>,
    dialect: Dialect,
    header: Option<Arc<[u8]>>,
    schema: Schema,
}

impl Csv {
    /// Gives the columns of a table their roles. The names of labels are those of training.
    pub(super) fn new(
        context: &FormatContext<'_>,
        mut table: TableDescription<'_>,
        dialect: Dialect,
        header: Option<Vec<u8>>,
    ) -> Result<Self, Error> {
        let (options, trained) = (context.options, context.trained_schema);
        let notice = assign_names_by_position(&mut table, options, trained)?;
        let mut plan = plan(&table, options, trained)?;
        plan.notices.extend(notice);
        let schema = Schema {
            delimiter: Some(dialect.quotes.delimiter),
            backslash: dialect.quotes.backslash,
            multi_line: dialect.multi_line,
            label_names: trained.map_or_else(Vec::new, |trained| trained.label_names.clone()),
            ..plan.schema.clone()
        };
        Ok(Self { plan: Arc::new(plan), dialect, header: header.map(Arc::from), schema })
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
        self.plan.passthrough.clone()
    }

    fn quotes(&self) -> Option<Quotes> {
        self.dialect.multi_line.then_some(self.dialect.quotes)
    }

    fn notices(&self) -> Vec<String> {
        self.plan.notices.clone()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        let (plan, header) = (Arc::clone(&self.plan), self.header.clone());
        Box::new(parser::Parser::new(plan, self.dialect.quotes, header, &self.schema))
    }
}
