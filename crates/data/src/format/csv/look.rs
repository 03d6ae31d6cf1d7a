//! Looks at the first rows: delimiter, header, kinds of columns, names of text labels.

use super::super::FormatContext;
use super::super::columns::{Columns, Found, find, is_missing, is_number};
use super::super::places::is_header_like;
use super::parser::{fields_of, strict_fields_of};
use crate::label::CLASS_LIMIT;
use crate::{BadLine, Error, LabelRule, LineError};
use std::collections::BTreeSet;

/// Rows that are looked at to tell numbers from names.
const LOOK_ROWS: usize = 1000;
/// Names of columns that are the label when nobody says so.
const LABEL_NAMES: [&str; 3] = ["label", "target", "y"];

/// The first of the delimiters that occurs, outside quotes, most often.
pub(super) fn delimiter_of(line: &[u8]) -> Option<u8> {
    let mut best = None;
    for delimiter in [b',', b'\t', b';', b'|'] {
        let mut quoted = false;
        let count = line
            .iter()
            .filter(|byte| {
                quoted ^= **byte == b'"';
                !quoted && **byte == delimiter
            })
            .count();
        if count > best.map_or(0, |(most, _)| most) {
            best = Some((count, delimiter));
        }
    }
    best.map(|(_, delimiter)| delimiter)
}

/// Names, kinds and header of the input.
pub(super) fn look(context: &FormatContext<'_>) -> Result<(Found, Option<Vec<u8>>), Error> {
    let options = context.options;
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for file in context.files {
        let head = file.head()?;
        lines.extend(head.lines().take(LOOK_ROWS + 1).map(<[u8]>::to_vec));
        if lines.iter().any(|line| !line.trim_ascii().is_empty()) {
            break;
        }
        lines.clear();
    }
    let first_is_blank = lines.first().is_some_and(|line| line.trim_ascii().is_empty());
    lines.retain(|line| !line.trim_ascii().is_empty());
    let Some(first_line) = lines.first() else {
        let delimiter = options.delimiter.unwrap_or(b',');
        let found = Found {
            numeric: Vec::new(),
            names: Vec::new(),
            named: false,
            delimiter,
            default_label: 0,
            kept: Vec::new(),
        };
        return Ok((found, None));
    };
    let delimiter = options.delimiter.or_else(|| delimiter_of(first_line)).unwrap_or(b',');
    let first = strict_fields_of(first_line, delimiter).map_err(|error| first_line_error(context, error))?;
    let numeric = numeric_columns(&lines[1..], delimiter, first.len());
    let named = match options.header {
        Some(header) => header,
        None if let Some(schema) = context.like => is_header_like(&first, &numeric, schema),
        None => is_header(&first, &numeric, lines.len() == 1, options.label.as_deref()),
    };
    if named && first_is_blank {
        let file = context.files[0].name().to_owned();
        let reason = "blank lines before the header; delete them".to_owned();
        return Err(Error::BadFile { file, record: None, reason });
    }
    let text = |field: &Vec<u8>| String::from_utf8_lossy(field).into_owned();
    let names: Vec<String> = if named {
        first.iter().map(text).collect()
    } else {
        (0..first.len()).map(|at| at.to_string()).collect()
    };
    let numeric = numeric
        .iter()
        .zip(&first)
        .map(|(rest, first)| rest.is_none_or(|rest| rest) && (named || is_number(first)))
        .collect();
    let default_label = names
        .iter()
        .position(|name| named && LABEL_NAMES.contains(&name.to_lowercase().as_str()))
        .unwrap_or(names.len() - 1);
    Ok((
        Found { names, numeric, named, delimiter, default_label, kept: Vec::new() },
        named.then(|| first_line.clone()),
    ))
}

/// The first row must be readable: it says how many columns there are.
fn first_line_error(context: &FormatContext<'_>, error: LineError) -> Error {
    let file = context.files.first().map_or_else(String::new, |file| file.name().to_owned());
    let found = if error.found.is_empty() { "the first row without it".to_owned() } else { error.found };
    let expected = error.expected.into_owned();
    Error::BadLine(BadLine { file, line: 1, column: error.at as u64 + 1, expected, found })
}

/// For each column: whether all rows are numbers or missing; `None` when all are missing.
fn numeric_columns(lines: &[Vec<u8>], delimiter: u8, count: usize) -> Vec<Option<bool>> {
    let mut numeric = vec![None; count];
    for line in lines {
        for (known, field) in numeric.iter_mut().zip(fields_of(line, delimiter)) {
            if !is_missing(&field) {
                *known = Some(known.unwrap_or(true) && is_number(&field));
            }
        }
    }
    numeric
}

fn is_header(first: &[Vec<u8>], numeric: &[Option<bool>], alone: bool, label: Option<&str>) -> bool {
    let named_label = label.is_some_and(|label| first.iter().any(|field| field == label.as_bytes()));
    let over_numbers =
        first.iter().zip(numeric).any(|(field, rest)| *rest == Some(true) && !is_number(field));
    let only_words = alone && first.iter().all(|field| !is_number(field));
    let known_label = first
        .iter()
        .any(|field| LABEL_NAMES.contains(&String::from_utf8_lossy(field).to_lowercase().as_str()));
    (named_label && label.is_some_and(|label| label.parse::<f64>().is_err()))
        || over_numbers
        || only_words
        || known_label
}

/// Whether the label column holds text, so that its names become class numbers.
pub(super) fn numeric_label(context: &FormatContext<'_>, found: &Found) -> Result<bool, Error> {
    let options = context.options;
    if !options.has_label || found.names.is_empty() {
        return Ok(false);
    }
    let file = context.files[0].name();
    let label = find(file, &found.names, options.label.as_deref())?.unwrap_or(found.default_label);
    let asked = options.text_columns.iter().any(|column| *column == found.names[label]);
    let text = asked || !found.numeric[label];
    if text && context.like.is_none() && options.label_rule == LabelRule::Real {
        let reason = format!(
            "column '{}' of {file} holds names, and numbers are needed; choose another label column, or an algorithm \
             for classes",
            found.names[label]
        );
        return Err(Error::BadOption { option: "label", reason });
    }
    Ok(text)
}

/// The names in the label column of all files, sorted.
pub(super) fn label_names(
    context: &FormatContext<'_>,
    columns: &Columns,
    label: usize,
    header: bool,
) -> Result<Vec<String>, Error> {
    let mut names = BTreeSet::new();
    for file in context.files {
        if !file.can_be_read_again() {
            let reason = format!(
                "column '{}' holds names, which are numbered in a first pass, but {} can be read only once; write it to \
                 a file first, or number the classes",
                columns.names[label],
                file.name()
            );
            return Err(Error::BadOption { option: "label", reason });
        }
        let mut first = true;
        file.for_each_line(|line| {
            if std::mem::take(&mut first) && header || line.trim_ascii().is_empty() {
                return Ok(());
            }
            let fields = fields_of(line, columns.delimiter);
            // A row that is too short is found, with its place, when it is parsed.
            let Some(field) = fields.get(label).filter(|field| !is_missing(field)) else { return Ok(()) };
            if !names.contains(field.as_slice()) {
                names.insert(field.clone());
            }
            if names.len() > CLASS_LIMIT {
                let reason = format!(
                    "column '{}' has more than {CLASS_LIMIT} different names; is it the label?",
                    columns.names[label]
                );
                return Err(Error::BadOption { option: "label", reason });
            }
            Ok(())
        })?;
    }
    Ok(names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
}
