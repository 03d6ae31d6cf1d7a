//! Finds the ends of records in text with quoted fields, where a line break inside quotes does not end a record.
//!
//! Whether a line break is inside quotes depends on all bytes before it, so one task reads such a file from its first
//! byte on.

use memchr::{memchr, memchr2};

/// Limit of the length of a record with line breaks. A quote that is not closed by then makes a bad line.
pub(crate) const RECORD_LIMIT_BYTES: usize = 1 << 20;

/// How fields are quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotes {
    /// Byte between fields.
    pub delimiter: u8,
    /// Whether `\"` inside quotes is a quote and `\\` a backslash, as Spark writes them.
    pub backslash: bool,
}

/// Where a record ends, as far as the available bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordEnd {
    /// At this line break.
    At(usize),
    /// Behind the available bytes, outside quotes.
    Open,
    /// Behind the available bytes, inside quotes.
    InQuotes,
}

impl Quotes {
    /// Finds the end of the record that begins with `bytes`.
    pub(crate) fn record_end(self, bytes: &[u8]) -> RecordEnd {
        let mut at = 0;
        loop {
            let blanks = bytes[at..].iter().take_while(|byte| **byte == b' ').count();
            if bytes.get(at + blanks) == Some(&b'"') {
                match self.closing_quote(bytes, at + blanks + 1) {
                    Some(closing) => at = closing + 1,
                    None => return RecordEnd::InQuotes,
                }
            }
            match memchr2(self.delimiter, b'\n', &bytes[at..]) {
                None => return RecordEnd::Open,
                Some(length) if bytes[at + length] == b'\n' => return RecordEnd::At(at + length),
                Some(length) => at += length + 1,
            }
        }
    }

    /// Finds the first quote from `at` on that is not escaped.
    pub(crate) fn closing_quote(self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let distance = if self.backslash {
                memchr2(b'"', b'\\', bytes.get(at..)?)
            } else {
                memchr(b'"', bytes.get(at..)?)
            };
            let quote = at + distance?;
            if bytes[quote] == b'"' && bytes.get(quote + 1) != Some(&b'"') {
                return Some(quote);
            }
            // Skips a backslash and the character that it escapes, or a doubled quote.
            at = quote + 2;
        }
    }

    /// Returns the end of the record that begins with `bytes`, or the end of its first line when its quotes are wrong.
    /// Returns `None` when that end is not in `bytes`; the record ends with `bytes` then if they are `all` that is
    /// left.
    pub(crate) fn record_or_line_end(self, bytes: &[u8], all: bool) -> Option<usize> {
        let line = || memchr(b'\n', bytes);
        match self.record_end(bytes) {
            RecordEnd::At(end) if end > RECORD_LIMIT_BYTES => line(),
            RecordEnd::At(end) => Some(end),
            RecordEnd::Open => None,
            RecordEnd::InQuotes if all || bytes.len() > RECORD_LIMIT_BYTES => line(),
            RecordEnd::InQuotes => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Quotes = Quotes { delimiter: b',', backslash: false };
    const SPARK: Quotes = Quotes { delimiter: b',', backslash: true };

    #[test]
    fn line_breaks_inside_quotes_do_not_end_a_record() {
        for (text, quotes, end) in [
            ("a,b\nc", PLAIN, RecordEnd::At(3)),
            ("a,\"b\nc\"\nd", PLAIN, RecordEnd::At(7)),
            ("a, \"b\"\"\n\"\"c\"  \nd", PLAIN, RecordEnd::At(14)),
            // A quote within a field that does not begin with a quote is an ordinary character.
            ("5\" pipe,x\ny", PLAIN, RecordEnd::At(9)),
            ("a,\"b\\\"\nc\"\nd", SPARK, RecordEnd::At(9)),
            ("a,\"b\\\\\"\nc", SPARK, RecordEnd::At(7)),
            ("a,b", PLAIN, RecordEnd::Open),
            ("a,\"b\nc", PLAIN, RecordEnd::InQuotes),
            ("a,\"b\\", SPARK, RecordEnd::InQuotes),
        ] {
            assert_eq!(quotes.record_end(text.as_bytes()), end, "{text:?}");
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_ends_with_its_line() {
        assert_eq!(PLAIN.record_or_line_end(b"a,\"b\nc", true), Some(4));
        assert_eq!(PLAIN.record_or_line_end(b"a,\"b\nc", false), None);
        let long = [&b"a,\"b\n"[..], &vec![b'x'; RECORD_LIMIT_BYTES]].concat();
        assert_eq!(PLAIN.record_or_line_end(&long, false), Some(4));
    }
}
