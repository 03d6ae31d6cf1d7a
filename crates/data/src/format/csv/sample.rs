//! Samples the first rows of the input and determines delimiter, escapes, and whether quoted fields have line breaks.

use super::super::FormatContext;
use super::fields::fields_of;
use crate::Error;
use crate::columns::SAMPLE_ROWS;
use crate::input::Head;
use crate::quotes::Quotes;
use std::borrow::Cow;

/// Limit of the bytes of a first row with line breaks inside quotes.
const FIRST_ROW_BYTES: usize = 64 << 10;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) struct Dialect {
    pub(in crate::format) quotes: Quotes,
    /// Whether fields have line breaks inside quotes.
    pub(in crate::format) multi_line: bool,
}

impl Dialect {
    /// Fields between `delimiter`, one row per line.
    pub(in crate::format) fn plain(delimiter: u8) -> Self {
        Self { quotes: Quotes { delimiter, backslash: false }, multi_line: false }
    }

    /// Returns the complete rows at the front of `bytes`; `all` says that no bytes follow.
    fn rows(self, bytes: &[u8], all: bool) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let end = if self.multi_line {
                self.quotes.record_or_line_end(rest, all)
            } else {
                memchr::memchr(b'\n', rest)
            };
            let end = end.or_else(|| all.then_some(rest.len()))?;
            at += end + 1;
            Some(rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))
        })
    }

    /// Counts, up to `limit`, the rows that do not follow the grammar or have another number of fields than the first
    /// one.
    fn bad_row_count(self, head: &[u8], all: bool, limit: usize) -> usize {
        let mut count = None;
        let is_bad = |row: &[u8]| match fields_of(row, self.quotes) {
            Err(_) => true,
            Ok(fields) => *count.get_or_insert(fields.len()) != fields.len(),
        };
        let filled = self.rows(head, all).filter(|row| !row.trim_ascii().is_empty());
        filled.map(is_bad).filter(|bad| *bad).take(limit).count()
    }
}

/// The first rows of the input.
pub(super) struct Sample {
    pub(super) dialect: Dialect,
    /// Rows that are not blank, with the header if there is one; at most one more than [`SAMPLE_ROWS`].
    rows: Vec<Vec<u8>>,
    /// Whether blank lines precede the first row.
    pub(super) has_leading_blank: bool,
}

impl Sample {
    /// Samples the first file that has rows.
    pub(super) fn of(context: &FormatContext<'_>) -> Result<Self, Error> {
        for file in context.files {
            let head = file.head()?;
            let sample = Self::of_head(context, &head);
            if !sample.rows.is_empty() {
                return Ok(sample);
            }
        }
        let dialect = Dialect::plain(context.options.delimiter.unwrap_or(b','));
        Ok(Self { dialect, rows: Vec::new(), has_leading_blank: false })
    }

    fn of_head(context: &FormatContext<'_>, head: &Head) -> Self {
        let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head.bytes);
        let delimiter = context.options.delimiter.or_else(|| first_row(bytes).and_then(delimiter_of));
        let dialect = dialect(context, bytes, head.is_complete, delimiter.unwrap_or(b','));
        let begins_blank =
            bytes.split(|byte| *byte == b'\n').next().is_some_and(|line| line.trim_ascii().is_empty());
        let filled = dialect.rows(bytes, head.is_complete).filter(|row| !row.trim_ascii().is_empty());
        let rows = filled.take(SAMPLE_ROWS + 1).map(<[u8]>::to_vec).collect();
        Self { dialect, rows, has_leading_blank: begins_blank }
    }

    /// The first row as it is written.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.rows.first().map(Vec::as_slice)
    }

    /// Returns the fields of every row from `start` on; a row with wrong quotes has no fields.
    pub(super) fn rows_from(&self, start: usize) -> impl Iterator<Item = Vec<Cow<'_, [u8]>>> {
        self.rows.iter().skip(start).map(|row| fields_of(row, self.dialect.quotes).unwrap_or_default())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// Returns the dialect with the fewest bad rows; the simplest one among equals.
fn dialect(context: &FormatContext<'_>, bytes: &[u8], all: bool, delimiter: u8) -> Dialect {
    let trained_schema = context.trained_schema;
    let plain = Dialect {
        quotes: Quotes { delimiter, backslash: trained_schema.is_some_and(|schema| schema.backslash) },
        multi_line: trained_schema.is_some_and(|schema| schema.multi_line),
    };
    if memchr::memchr(b'"', bytes).is_none() {
        return plain;
    }
    let (mut best, mut fewest) = (plain, plain.bad_row_count(bytes, all, usize::MAX));
    for (backslash, multi_line) in [(true, false), (false, true), (true, true)] {
        if fewest == 0 {
            break;
        }
        let other = Dialect { quotes: Quotes { delimiter, backslash }, multi_line };
        let count = other.bad_row_count(bytes, all, fewest);
        if count < fewest {
            (best, fewest) = (other, count);
        }
    }
    best
}

/// Returns the first row that is not blank. Its end is found without the delimiter: it is the first line break after an
/// even number of quotes.
fn first_row(bytes: &[u8]) -> Option<&[u8]> {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let bytes = &bytes[start..];
    let line_end = |bytes: &[u8]| memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let mut quoted = false;
    let end = bytes.iter().take(FIRST_ROW_BYTES).position(|byte| {
        quoted ^= *byte == b'"';
        !quoted && *byte == b'\n'
    });
    Some(&bytes[..end.unwrap_or_else(|| line_end(bytes))])
}

/// Returns the delimiter that occurs most often outside quotes; the first one among equals.
fn delimiter_of(row: &[u8]) -> Option<u8> {
    let mut best = None;
    for delimiter in [b',', b'\t', b';', b'|'] {
        let mut quoted = false;
        let count = row
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

/// Whether most rows of the first bytes of a file have as many fields as the first row, at least two.
pub(super) fn looks_like_rows(head: &[u8]) -> bool {
    let bytes = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let Some(delimiter) = first_row(bytes).and_then(delimiter_of) else { return false };
    [false, true].into_iter().any(|multi_line| {
        let dialect = Dialect { multi_line, ..Dialect::plain(delimiter) };
        let all = head.len() < crate::input::HEAD_BYTES;
        let rows: Vec<&[u8]> =
            dialect.rows(bytes, all).filter(|row| !row.trim_ascii().is_empty()).take(SAMPLE_ROWS).collect();
        let counts: Vec<usize> =
            rows.iter().map(|row| fields_of(row, dialect.quotes).map_or(0, |f| f.len())).collect();
        let alike = counts.iter().filter(|count| **count == counts[0]).count();
        !counts.is_empty() && counts[0] != 0 && 2 * alike > counts.len()
    })
}

#[cfg(test)]
mod tests;
