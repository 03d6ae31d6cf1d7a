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
mod tests {
    use crate::format::testing::{Row, bad, check, options, rows};

    /// The entry of a missing number of a column.
    fn missing(column: &[u8]) -> (u64, f32) {
        (math::hash::named_key(column, b"missing"), 1.0)
    }

    fn row(label: f64, entries: &[(u64, f32)]) -> Row {
        Row::new(Some(label), entries)
    }

    #[test]
    fn good_lines() {
        check(
            "dense",
            &options(),
            &[
                ("1 0.5 2", row(1.0, &[(0, 0.5), (1, 2.0)])),
                ("  1   0.5\t2 ", row(1.0, &[(0, 0.5), (1, 2.0)])),
                ("-1,0.5,,NA,3", row(-1.0, &[(0, 0.5), missing(b"2"), missing(b"3"), (3, 3.0)])),
                ("0\t0.5\t\t?\t3", row(0.0, &[(0, 0.5), missing(b"2"), missing(b"3"), (3, 3.0)])),
                ("1 0 7", row(1.0, &[(1, 7.0)])),
            ],
        );
    }

    #[test]
    fn bad_lines_say_where_and_what() {
        bad(
            "dense",
            &options(),
            &[
                ("x 1 2", 1, "label"),
                ("NA 1 2", 1, "label"),
                ("1 x 2", 3, "number in column '1'"),
                ("1,2,inf", 5, "finite"),
            ],
        );
        let error = rows("dense", &options(), "1 2 3\n\n0 1\n").unwrap_err().to_string();
        assert!(
            error.contains("bytes:3:") && error.contains("3 fields") && error.contains("2 fields"),
            "{error}"
        );
    }

    #[test]
    fn the_label_column_can_be_chosen() {
        let mut options = options();
        options.label = Some("2".into());
        assert_eq!(rows("dense", &options, "5 6 1").unwrap()[0], row(1.0, &[(0, 5.0), (1, 6.0)]));
        options.label = Some("3".into());
        assert!(rows("dense", &options, "5 6 1").unwrap_err().to_string().contains("no column '3'"));
    }

    #[test]
    fn zeros_are_kept_on_request() {
        let mut options = options();
        options.keep_zeros = true;
        assert_eq!(rows("dense", &options, "1 0 7").unwrap()[0], row(1.0, &[(0, 0.0), (1, 7.0)]));
    }

    #[test]
    fn a_file_of_blank_lines_has_no_records() {
        assert!(rows("dense", &options(), " \n\r\n").unwrap().is_empty());
        assert!(rows("dense", &options(), "").unwrap().is_empty());
    }

    #[test]
    fn lines_of_numbers_are_recognized_whatever_is_between_them() {
        for (text, expected) in [
            ("1,2\n3,4\n", true),
            ("1  2 3\n 4 5   6 \n", true),
            ("1\t2\n3\t4\n", true),
            ("1, 2\n3 ,4\n", true),
            ("1,,2\n", true),
            ("1\n2\n", false),
            ("1,a\n2,b\n", false),
            ("1 1:2\n", false),
            ("", false),
        ] {
            assert_eq!(super::recognize(text.as_bytes()), expected, "{text:?}");
        }
    }
}
