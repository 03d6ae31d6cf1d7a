//! libsvm text (svmlight): one record per line.
//!
//! ```text
//! line  = [ label { blank+ "qid:" number } { blank+ entry } ] [ blank* "#" anything ]
//! entry = index [ ":" value ]          index: 0 .. 2^63-1, value: a finite number, 1 when left out
//! blank = " " | tab
//! ```
//! Indices are the keys, 0- or 1-based, in any order, each at most once in a record. Lines that are blank or only a
//! comment are skipped. `qid` becomes the group when `group = "qid"`; otherwise it is ignored, with a notice. Several
//! labels ("1,2") are an error. Without labels (`has_label = false`) a line begins with its entries.

use super::binary_entries::{EMPTY_KEY_BUFFER, KeyBuffer, parse_ones};
use super::{FormatContext, LineFormat, LineParser, OpenFormat, ParsedLine};
use crate::number::{parse_digits, parse_f64};
use crate::schema::Schema;
use crate::{BatchBuilder, Error, LineError};

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let options = context.options;
    let use_qid = match options.group.as_deref() {
        None => false,
        Some("qid") => true,
        Some(other) => {
            return Err(Error::BadOption {
                option: "group",
                reason: format!("'{other}' is not in libsvm lines; the only group there is 'qid'"),
            });
        }
    };
    Ok(OpenFormat::Lines(Box::new(Libsvm { has_label: options.has_label, use_qid })))
}

/// Whether the first lines are libsvm text.
pub(super) fn recognize(head: &[u8]) -> bool {
    let is_line = |line: &[u8]| {
        let mut tokens = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|token| !token.is_empty());
        let label = tokens.next().is_some_and(|token| parse_f64(token).is_some() || is_entry(token));
        label && tokens.take_while(|token| token[0] != b'#').all(is_entry)
    };
    super::text_lines(head).iter().any(|line| line.contains(&b':')) && super::most_lines(head, is_line)
}

fn is_entry(token: &[u8]) -> bool {
    let token = token.strip_prefix(b"qid:").map_or(token, |_| b"0:0");
    let (_, end) = parse_digits(token, 0);
    end > 0 && token.get(end) == Some(&b':') && parse_f64(&token[end + 1..]).is_some()
}

struct Libsvm {
    has_label: bool,
    use_qid: bool,
}

impl LineFormat for Libsvm {
    fn schema(&self) -> Schema {
        Schema { group: self.use_qid.then(|| "qid".to_owned()), ..Schema::default() }
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser {
            has_label: self.has_label,
            use_qid: self.use_qid,
            is_qid_ignored: false,
            keys: EMPTY_KEY_BUFFER,
        })
    }
}

struct Parser {
    has_label: bool,
    use_qid: bool,
    is_qid_ignored: bool,
    keys: KeyBuffer,
}

const ENTRY: &str = "index:value, with an index from 0 to 2^63-1";

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let mut at = super::skip_blanks(line, 0);
        if matches!(line.get(at), None | Some(b'#')) {
            return Ok(ParsedLine::Skipped);
        }
        let mut label = None;
        if self.has_label {
            let (value, end) = super::label(line, at)?;
            (label, at) = (Some(value), end);
        } else {
            super::refuse_label(line, at)?;
        }
        let group = self.entries(line, at, out)?;
        Ok(ParsedLine::Record { label, weight: 1.0, group })
    }

    fn notices(&self) -> Vec<String> {
        if self.is_qid_ignored {
            vec!["qid is ignored; use it as the group with --group qid".to_owned()]
        } else {
            Vec::new()
        }
    }
}

impl Parser {
    /// Pushes the entries from `at` on; returns the group if there is a qid and it is used.
    #[inline]
    fn entries(
        &mut self,
        line: &[u8],
        mut at: usize,
        out: &mut BatchBuilder,
    ) -> Result<Option<u64>, LineError> {
        let mut group = None;
        let (end_of_ones, mut floor, mut ascending) = parse_ones(line, at, &mut self.keys, out);
        at = end_of_ones;
        loop {
            at = super::skip_blanks(line, at);
            let start = at;
            let (key, end) = parse_digits(line, start);
            if end == start {
                match self.not_an_index(line, start)? {
                    Some((qid, end)) => {
                        group = self.use_qid.then_some(qid);
                        at = end;
                        continue;
                    }
                    None => break,
                }
            }
            if key >= 1 << 63 {
                return Err(LineError::new(start, ENTRY));
            }
            ascending &= key >= floor;
            floor = key + 1;
            at = Self::value(line, key, end, out)?;
        }
        if !ascending {
            super::refuse_duplicates(line, out)?;
        }
        Ok(group)
    }

    /// Pushes the entry whose index ends at `end`; returns where the entry ends.
    #[inline]
    fn value(line: &[u8], key: u64, end: usize, out: &mut BatchBuilder) -> Result<usize, LineError> {
        match line.get(end..) {
            Some([b':', b'1', b' ', ..] | [b':', b'1']) => {
                out.push_one(key);
                Ok(end + 2)
            }
            Some([] | [b' ' | b'\t' | b'#', ..]) => {
                out.push_one(key);
                Ok(end)
            }
            Some([b':', ..]) => {
                let start = end + 1;
                let (value, end) = super::value(line, start)?;
                out.note_rounding(key, value, || parse_f64(&line[start..end]));
                if value != 0.0 {
                    out.push(key, value);
                }
                Ok(end)
            }
            _ => Err(LineError::new(end, "':' or a blank after the index")),
        }
    }

    /// Handles a token that is not an index: returns `None` at the end of the line, the number and the end of a qid, or
    /// an error.
    #[inline(never)]
    fn not_an_index(&mut self, line: &[u8], at: usize) -> Result<Option<(u64, usize)>, LineError> {
        if matches!(line.get(at), None | Some(b'#')) {
            return Ok(None);
        }
        if line[at..].starts_with(b"qid:") {
            let (qid, end) = parse_digits(line, at + 4);
            if end == at + 4 || !matches!(line.get(end), None | Some(b' ' | b'\t' | b'#')) {
                return Err(LineError::new(at, "qid:N with a whole number N"));
            }
            self.is_qid_ignored |= !self.use_qid;
            return Ok(Some((qid, end)));
        }
        Err(LineError::new(at, ENTRY))
    }
}

#[cfg(test)]
mod tests;
