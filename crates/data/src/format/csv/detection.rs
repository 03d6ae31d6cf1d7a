//! Detects the header, the types of columns and a usable label from the first rows, and the names of text labels from
//! all rows.

use super::super::FormatContext;
use super::Csv;
use super::fields::fields_of;
use super::sample::Sample;
use crate::columns::missing::is_missing;
use crate::columns::{
    ColumnDescription, LabelFallback, LabelScan, TableDescription, TypeCounts, is_header_like, is_label_name,
    is_number, refuse_guess,
};
use crate::number::parse_f64;
use crate::{BadLine, Error, LineError};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Describes the columns of the input, and returns its header.
pub(super) fn describe<'a>(
    context: &FormatContext<'a>,
    sample: &Sample,
) -> Result<(TableDescription<'a>, Option<Vec<u8>>), Error> {
    let file = context.files[0].name();
    let Some(first_row) = sample.first() else {
        let table = TableDescription::of_text(file, Vec::new(), false, LabelFallback::Last, context.options)?;
        return Ok((table, None));
    };
    let first =
        fields_of(first_row, sample.dialect.quotes).map_err(|error| first_line_error(context, error))?;
    let mut kinds = count_types(sample, first.len());
    let named = match context.options.header {
        Some(header) => header,
        None if let Some(schema) = context.trained_schema => is_header_like(&first, &kinds, schema),
        None => is_header(context, sample, &first, &kinds)?,
    };
    if named && sample.has_leading_blank {
        let reason = "blank lines before the header; delete them".to_owned();
        return Err(Error::BadFile { file: file.to_owned(), record: None, reason });
    }
    if !named {
        kinds.iter_mut().zip(&first).for_each(|(kinds, field)| kinds.add(field));
    }
    let column = |(at, (field, kinds)): (usize, (&Cow<'_, [u8]>, &TypeCounts))| {
        let name = if named { String::from_utf8_lossy(field).into_owned() } else { at.to_string() };
        let skip_notice = (first.len() > 1 && field.is_empty()).then_some(at).and_then(|at| match at {
            0 if named => {
                Some("the first column has no name in the header, as pandas and R write row names: it is skipped")
            }
            // Fields of the first row that are no header have been counted, too.
            at if at + 1 == first.len() && kinds.is_empty() => {
                Some("the last column has no name and no values, as after a delimiter at the end of each line: it is skipped")
            }
            _ => None,
        });
        let skip_notice = skip_notice.map(str::to_owned);
        ColumnDescription { skip_notice, ..kinds.describe(name, sample.dialect.quotes.delimiter) }
    };
    let columns = first.iter().zip(&kinds).enumerate().map(column).collect();
    let table = TableDescription::of_text(file, columns, named, LabelFallback::Last, context.options)?;
    Ok((table, named.then(|| first_row.to_vec())))
}

/// The first row must be readable, because it determines the number of columns.
fn first_line_error(context: &FormatContext<'_>, error: LineError) -> Error {
    let file = context.files.first().map_or_else(String::new, |file| file.name().to_owned());
    let actual = if error.actual.is_empty() { "the first row without it".to_owned() } else { error.actual };
    let expected = error.expected.into_owned();
    Error::BadLine(BadLine { file, line: 1, column: error.at as u64 + 1, expected, actual })
}

/// Counts the types of values in each column below the first row.
fn count_types(sample: &Sample, count: usize) -> Vec<TypeCounts> {
    let mut kinds = vec![TypeCounts::default(); count];
    for row in sample.rows_from(1) {
        kinds.iter_mut().zip(&row).for_each(|(kinds, field)| kinds.add(field));
    }
    kinds
}

/// Whether the first row names the columns. A header has words over numbers, and no number over numbers. Over words, it
/// has the name of the label, and none of its fields occurs in the rows below it. A row with the name of a label, a user or an item that
/// is asked for is one.
fn is_header(
    context: &FormatContext<'_>,
    sample: &Sample,
    first: &[Cow<'_, [u8]>],
    kinds: &[TypeCounts],
) -> Result<bool, Error> {
    let options = context.options;
    let asked = options.label.iter().chain(&options.id_columns).filter(|name| name.parse::<f64>().is_err());
    if asked.clone().any(|name| first.iter().any(|field| **field == *name.as_bytes())) {
        return Ok(true);
    }
    let is_label = |field: &[u8]| std::str::from_utf8(field).is_ok_and(is_label_name);
    let over_numbers = || first.iter().zip(kinds).filter(|(_, kinds)| kinds.has_mostly_numbers());
    let number = over_numbers().find(|(field, _)| parse_f64(field).is_some() && !is_missing(field));
    let word = over_numbers().find(|(field, _)| !is_number(field));
    match (number, word) {
        (_, Some(_)) if over_numbers().any(|(field, _)| is_label(field)) => Ok(true),
        (Some((number, _)), Some((word, _))) => {
            let reason = format!(
                "the first row of {} may name the columns or be a record: '{}' and '{}' are both above numbers; set \
                 --header true or --header false",
                context.files[0].name(),
                String::from_utf8_lossy(number),
                String::from_utf8_lossy(word)
            );
            Err(Error::BadOption { option: "header", reason })
        }
        (Some(_), None) => Ok(false),
        (None, Some(_)) => Ok(true),
        (None, None) if sample.len() == 1 => Ok(first.iter().all(|field| !is_number(field))),
        (None, None) => {
            let Some(label) = first.iter().find(|field| is_label(field)) else { return Ok(false) };
            match repeated_fields(sample, first) {
                RepeatedFields::Nothing => Ok(true),
                RepeatedFields::Fields => Ok(false),
                RepeatedFields::Label => {
                    let reason = format!(
                        "the first row of {} may name the columns or be a record: '{}' is the name of a label, but \
                         also a value in the rows below; set --header true or --header false",
                        context.files[0].name(),
                        String::from_utf8_lossy(label)
                    );
                    Err(Error::BadOption { option: "header", reason })
                }
            }
        }
    }
}

/// Which fields of a row of words occur again in it, or below it in their columns.
enum RepeatedFields {
    Nothing,
    /// Only names of labels.
    Label,
    Fields,
}

/// Finds the fields of the first row that occur again; a header that is repeated as a whole does not count.
fn repeated_fields(sample: &Sample, first: &[Cow<'_, [u8]>]) -> RepeatedFields {
    let distinct: BTreeSet<&[u8]> = first.iter().map(AsRef::as_ref).collect();
    if distinct.len() < first.len() {
        return RepeatedFields::Fields;
    }
    let mut below = RepeatedFields::Nothing;
    for row in sample.rows_from(1).filter(|row| row != first) {
        for (field, _) in first.iter().zip(&row).filter(|(first, field)| first == field && !first.is_empty())
        {
            if !std::str::from_utf8(field).is_ok_and(is_label_name) {
                return RepeatedFields::Fields;
            }
            below = RepeatedFields::Label;
        }
    }
    below
}

/// Returns the sorted names in the label column of all files, which become class numbers; none if labels are numbers.
/// Fails when the column cannot be the label.
pub(super) fn label_names(
    context: &FormatContext<'_>,
    sample: &Sample,
    csv: &Csv,
    label: usize,
) -> Result<Vec<String>, Error> {
    let (options, file) = (context.options, context.files[0].name());
    let name = &csv.plan.columns[label].name;
    let has_names = options.text_columns.contains(name) || csv.plan.label_is_text;
    let scan = LabelScan::new(name, options, has_names.then_some(file))?;
    let named = csv.schema.named;
    if options.label.is_none() && options.label_rule.is_class() {
        let rows: Vec<_> = sample.rows_from(usize::from(named)).collect();
        let fields = rows.iter().filter_map(|row| row.get(label)).filter(|field| !field.is_empty());
        let values = fields.map(AsRef::as_ref).collect();
        refuse_guess(file, name, named && is_label_name(name), &values, rows.len())?;
    }
    if !has_names {
        return Ok(Vec::new());
    }
    scan_labels(context, csv, label, scan)
}

fn scan_labels(
    context: &FormatContext<'_>,
    csv: &Csv,
    label: usize,
    mut scan: LabelScan<'_>,
) -> Result<Vec<String>, Error> {
    let quotes = csv.dialect.quotes;
    for file in context.files {
        if !file.is_rereadable() {
            let reason = format!(
                "column '{}' has names, which are numbered in a first pass, but {} can be read only once; write it to \
                 a file first, or use numbers for the classes",
                csv.plan.columns[label].name,
                file.name()
            );
            return Err(Error::BadOption { option: "label", reason });
        }
        file.for_each_line(csv.dialect.multi_line.then_some(quotes), |line| {
            if Some(line) == csv.header.as_deref() || line.trim_ascii().is_empty() {
                return Ok(());
            }
            // A row that is too short or badly quoted is reported with its position when it is parsed.
            let fields = fields_of(line, quotes).unwrap_or_default();
            fields.get(label).map_or(Ok(()), |field| scan.add(file.name(), field))
        })?;
    }
    scan.finish()
}
