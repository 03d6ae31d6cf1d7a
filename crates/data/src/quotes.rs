//! Where records end in text whose fields may be quoted: a line break inside quotes does not end one.
//!
//! Whether a line break stands inside quotes depends on everything before it, so a file with such records is read from
//! its first byte on, by one task.

use memchr::{memchr, memchr2};

/// The longest record with line breaks. A quote that is not closed by then is taken for a bad line, not for a field.
pub(crate) const RECORD_LIMIT_BYTES: usize = 1 << 20;

/// How fields are quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotes {
    /// Byte between fields.
    pub delimiter: u8,
    /// Whether `\"` inside quotes is a quote and `\\` a backslash, as Spark writes them.
    pub backslash: bool,
}

/// Where a record ends, as far as the bytes at hand say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordEnd {
    /// At this line break.
    At(usize),
    /// Behind the bytes at hand, outside quotes.
    Open,
    /// Behind the bytes at hand, inside quotes.
    InQuotes,
}

impl Quotes {
    /// Where the record ends that begins with `bytes`.
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

    /// The first quote from `at` on that is not escaped.
    pub(crate) fn closing_quote(self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let found = if self.backslash {
                memchr2(b'"', b'\\', bytes.get(at..)?)
            } else {
                memchr(b'"', bytes.get(at..)?)
            };
            let quote = at + found?;
            if bytes[quote] == b'"' && bytes.get(quote + 1) != Some(&b'"') {
                return Some(quote);
            }
            // A backslash and what it escapes, or a quote twice.
            at = quote + 2;
        }
    }

    /// Where the record or, when its quotes are wrong, the line ends that begins with `bytes`; `None` when more bytes
    /// are needed, which there are not when these are `all`.
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
            // A quote within a field that does not begin with one is an ordinary character.
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
