//! Dense text: one record of numbers per line, the same number of fields in each.
//!
//! ```text
//! line  = field { separator field }       separator: a comma, a tab, or a run of blanks; by the first line
//! field = number | missing                missing: nothing (between commas or tabs), a word of pandas such as NA, or ?
//! ```
//! The first column is the label unless `label` names another one (0-based). The other columns are numbered from 0 in
//! their order: these numbers are the keys. A missing value has no entry. Blank lines are skipped. The format is CSV
//! without names, header and quotes.

use super::csv::{Csv, Dialect};
use super::{FormatContext, OpenFormat};
use crate::Error;
use crate::columns::{
    ColumnDescription, LabelFallback, NumberSample, SAMPLE_ROWS, TableDescription, ValueKind, is_number,
};
use crate::number::parse_f64;

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let options = context.options;
    let refused = [
        (options.header == Some(true), "header"),
        (!options.text_columns.is_empty(), "text_columns"),
        (!options.token_columns.is_empty(), "token_columns"),
    ];
    if let Some((_, option)) = refused.into_iter().find(|(is_set, _)| *is_set) {
        let reason = "dense text has only numbers and no header; use format = csv".to_owned();
        return Err(Error::BadOption { option, reason });
    }
    let mut lines = Vec::new();
    for file in context.files {
        if !lines.is_empty() {
            break;
        }
        let head = file.head()?;
        let filled = head.lines().filter(|line| !line.trim_ascii().is_empty()).take(SAMPLE_ROWS);
        lines.extend(filled.map(<[u8]>::to_vec));
    }
    let first = lines.first().map_or(&b""[..], Vec::as_slice);
    let delimiter = options.delimiter.unwrap_or_else(|| separator(first));
    let rows: Vec<Vec<&[u8]>> = lines.iter().map(|line| fields(line, delimiter)).collect();
    let column = |at: usize| {
        let numbers = rows.iter().filter_map(|row| parse_f64(row.get(at)?.trim_ascii()));
        let origin = NumberSample::of(numbers).origin();
        ColumnDescription { origin, ..ColumnDescription::new(at.to_string(), ValueKind::Number) }
    };
    let count = rows.first().map_or(0, Vec::len);
    let (columns, file) = ((0..count).map(column).collect(), context.files[0].name());
    let table = TableDescription::of_text(file, columns, false, LabelFallback::First, options)?;
    Ok(OpenFormat::Lines(Box::new(Csv::new(context, table, Dialect::plain(delimiter), None)?)))
}

/// Whether the first lines have at least two numbers each.
pub(super) fn recognize(head: &[u8]) -> bool {
    let Some(delimiter) = super::text_lines(head).first().map(|line| separator(line)) else { return false };
    super::most_lines(head, |line| {
        let fields = fields(line, delimiter);
        fields.len() > 1 && fields.iter().all(|field| is_number(field.trim_ascii()))
    })
}

/// Returns a comma if there is one, else a tab when there are tabs and no blanks, else a blank, which means runs of
/// blanks and tabs.
fn separator(line: &[u8]) -> u8 {
    let line = line.trim_ascii();
    if line.contains(&b',') {
        b','
    } else if line.contains(&b'\t') && !line.contains(&b' ') {
        b'\t'
    } else {
        b' '
    }
}

fn fields(line: &[u8], delimiter: u8) -> Vec<&[u8]> {
    if delimiter == b' ' {
        line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect()
    } else {
        line.split(|byte| *byte == delimiter).collect()
    }
}

#[cfg(test)]
mod tests;
