//! Walks along the fields of a row.

use crate::LineError;
use crate::quotes::Quotes;
use memchr::memchr;
use std::borrow::Cow;

/// Returns all fields of a row, or where its quotes are wrong.
pub(super) fn fields_of(row: &[u8], quotes: Quotes) -> Result<Vec<Cow<'_, [u8]>>, LineError> {
    let mut fields = Fields::new(row, quotes);
    let mut all = Vec::new();
    while let Some((_, field)) = fields.next_field()? {
        all.push(field);
    }
    Ok(all)
}

/// Position and text of a field.
pub(super) type Field<'a> = (usize, Cow<'a, [u8]>);

/// Walks along a row.
pub(super) struct Fields<'a> {
    line: &'a [u8],
    quotes: Quotes,
    at: usize,
    is_done: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a [u8], quotes: Quotes) -> Self {
        let mut fields = Self { line, quotes, at: 0, is_done: false };
        if quotes.delimiter == b' ' {
            fields.skip_blanks();
        }
        fields
    }

    /// Skips blanks: a delimiter of a blank means a run of blanks and tabs.
    fn skip_blanks(&mut self) {
        self.at = super::super::skip_blanks(self.line, self.at);
        self.is_done = self.at >= self.line.len();
    }

    /// Returns the next field and where it begins; `None` at the end.
    #[inline]
    pub(super) fn next_field(&mut self) -> Result<Option<Field<'a>>, LineError> {
        if self.is_done {
            return Ok(None);
        }
        let start = self.at;
        let line: &'a [u8] = self.line;
        let rest = &line[start..];
        if self.quotes.delimiter == b' ' {
            let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
            self.at += end;
            self.skip_blanks();
            return Ok(Some((start, Cow::Borrowed(&rest[..end]))));
        }
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        if rest.get(blanks) == Some(&b'"') {
            return self.quoted_field(start + blanks).map(Some);
        }
        let end = memchr(self.quotes.delimiter, rest);
        self.is_done = end.is_none();
        let end = end.unwrap_or(rest.len());
        self.at += end + 1;
        Ok(Some((start, Cow::Borrowed(rest[..end].trim_ascii()))))
    }

    /// Returns the field whose opening quote is at `start`.
    fn quoted_field(&mut self, start: usize) -> Result<Field<'a>, LineError> {
        let Some(closing) = self.quotes.closing_quote(self.line, start + 1) else {
            let expected = "a closing quote on the same line (line breaks inside quotes are read when one of the first \
                            rows of the first file has them)";
            return Err(LineError::new(start, expected));
        };
        let text = self.unescape(&self.line[start + 1..closing]);
        let at = closing + 1;
        let at = at + self.line[at..].iter().take_while(|byte| **byte == b' ').count();
        match self.line.get(at) {
            None => self.is_done = true,
            Some(byte) if *byte == self.quotes.delimiter => self.at = at + 1,
            Some(_) if self.line[closing - 1] == b'\\' && !self.quotes.backslash => {
                let expected = "the delimiter or the end after a closing quote (\\\" is read as a quote when one of the \
                                first rows of the first file has it)";
                return Err(LineError::new(at, expected));
            }
            Some(_) => return Err(LineError::new(at, "the delimiter or the end after a closing quote")),
        }
        Ok((start, text))
    }

    /// Replaces `""` by one quote in the text between two quotes; with backslashes it also decodes `\"` and `\\`.
    fn unescape(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let escapes = |byte: u8| byte == b'"' || (byte == b'\\' && self.quotes.backslash);
        if !text.iter().any(|byte| escapes(*byte)) {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let next = text.get(at + 1).copied();
            let pair = match byte {
                b'"' => next == Some(b'"'),
                b'\\' => self.quotes.backslash && matches!(next, Some(b'"' | b'\\')),
                _ => false,
            };
            out.push(if pair { next.unwrap_or(byte) } else { byte });
            at += if pair { 2 } else { 1 };
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row, how it is quoted, and its fields with the byte at which each begins.
    type Case = (&'static str, Quotes, &'static [(usize, &'static str)]);

    const PLAIN: Quotes = Quotes { delimiter: b',', backslash: false };
    const SPARK: Quotes = Quotes { delimiter: b',', backslash: true };

    /// The fields with the byte at which each begins.
    fn fields(row: &str, quotes: Quotes) -> Result<Vec<(usize, String)>, LineError> {
        let mut fields = Fields::new(row.as_bytes(), quotes);
        let mut all = Vec::new();
        while let Some((start, field)) = fields.next_field()? {
            all.push((start, String::from_utf8_lossy(&field).into_owned()));
        }
        Ok(all)
    }

    #[test]
    fn quotes_may_stand_between_blanks() {
        let rows: [Case; 7] = [
            ("a,\"b,c\"  ,d", PLAIN, &[(0, "a"), (2, "b,c"), (10, "d")]),
            ("  \"a\" , b ,\"\"", PLAIN, &[(2, "a"), (7, "b"), (11, "")]),
            ("\"say \"\"yes\"\"\"  ", PLAIN, &[(0, "say \"yes\"")]),
            ("5\" pipe,x", PLAIN, &[(0, "5\" pipe"), (8, "x")]),
            ("\"a\\\"b\",c", SPARK, &[(0, "a\"b"), (7, "c")]),
            ("a,,", PLAIN, &[(0, "a"), (2, ""), (3, "")]),
            ("  a \t b", Quotes { delimiter: b' ', ..PLAIN }, &[(2, "a"), (6, "b")]),
        ];
        for (row, quotes, expected) in rows {
            let found = fields(row, quotes).unwrap();
            let found: Vec<(usize, &str)> =
                found.iter().map(|(start, text)| (*start, text.as_str())).collect();
            assert_eq!(found, expected, "{row:?}");
        }
        for (row, at) in [("a,\"b", 2), ("\"a\"  b,c", 5), ("\"a\\\"b\",c", 4)] {
            let error = fields(row, PLAIN).unwrap_err();
            assert_eq!(error.at, at, "{row:?}");
        }
    }

    #[test]
    fn what_follows_a_closing_quote_is_refused_with_a_hint_where_a_backslash_precedes_it() {
        const HINT: &str = "is read as a quote when one of the first rows";
        for (row, quotes, at, has_hint) in [
            ("\"a\\\"b\",c", PLAIN, 4, true),
            ("\"a\"b\",c", PLAIN, 3, false),
            ("\"a\" x,c", SPARK, 4, false),
            ("\"a\\\\\"x,c", SPARK, 5, false),
        ] {
            let error = fields(row, quotes).unwrap_err();
            assert!(error.expected.starts_with("the delimiter or the end after a closing quote"), "{row}");
            assert_eq!((error.at, error.expected.contains(HINT)), (at, has_hint), "{row}");
        }
        assert!(fields("a,\"b", PLAIN).unwrap_err().expected.starts_with("a closing quote on the same line"));
    }
}
