//! Vowpal Wabbit text.
//!
//! ```text
//! line      = [ label [ importance [ base ] ] ] [ tag ] { "|" [ namespace [ ":" scale ] ] { blank+ feature } }
//! feature   = name [ ":" value ]            value: a finite number, 1 when left out
//! tag       = "'" text, or a text that touches the first bar
//! ```
//! The namespace touches its bar; without one it is the empty name. A feature's key is `named_key(namespace, name)`, its
//! value is multiplied by the scale, and a feature that stands twice in a record is added up, as Vowpal Wabbit does. The
//! importance is the record's weight. Base and tag are ignored, with a notice. Blank lines are skipped.

use super::dictionary::Dictionary;
use super::{FormatContext, LineParser, LinePlan, Parsed, Plan, refuse_columns};
use crate::number::{whole_double, whole_float};
use crate::schema::Schema;
use crate::{BatchBuilder, Error, LineError};
use math::hash::named_key;
use memchr::memchr;
use std::collections::BTreeMap;

/// Opens Vowpal Wabbit inputs.
pub(super) fn open(context: &FormatContext<'_>) -> Result<Plan, Error> {
    let options = context.options;
    refuse_columns("vw", options)?;
    if let Some(group) = &options.group {
        let reason = format!("'{group}': Vowpal Wabbit lines have no group; leave this setting out");
        return Err(Error::BadOption { option: "group", reason });
    }
    Ok(Plan::Lines(Box::new(Vw { has_label: options.has_label, keep_zeros: options.keep_zeros })))
}

/// Whether the first line that says something has numbers, then a bar that touches a name or is followed by a blank.
pub(super) fn recognize(head: &[u8]) -> bool {
    super::first_text_line(head).is_some_and(|line| {
        memchr(b'|', line).is_some_and(|bar| {
            let before = &line[..bar];
            (bar == 0 || before.ends_with(b" ") || before.contains(&b'\''))
                && before
                    .trim_ascii()
                    .split(u8::is_ascii_whitespace)
                    .take(1)
                    .all(|first| first.is_empty() || first[0] == b'\'' || whole_double(first).is_some())
        })
    })
}

struct Vw {
    has_label: bool,
    keep_zeros: bool,
}

impl LinePlan for Vw {
    fn schema(&self) -> Schema {
        Schema { keep_zeros: self.keep_zeros, ..Schema::default() }
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser {
            has_label: self.has_label,
            keep_zeros: self.keep_zeros,
            base_ignored: false,
            tag_ignored: false,
            dictionary: Dictionary::default(),
        })
    }
}

struct Parser {
    has_label: bool,
    keep_zeros: bool,
    base_ignored: bool,
    tag_ignored: bool,
    dictionary: Dictionary,
}

/// Label and weight.
type Front = (Option<f64>, f32);

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<Parsed, LineError> {
        let bar = memchr(b'|', line);
        let front = &line[..bar.unwrap_or(line.len())];
        if bar.is_none() && front.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let (label, weight) = self.front(front, bar.is_some())?;
        let mut at = bar;
        while let Some(bar) = at {
            let end = memchr(b'|', &line[bar + 1..]).map(|length| bar + 1 + length);
            self.namespace(line, bar + 1, end.unwrap_or(line.len()), out)?;
            at = end;
        }
        if out.duplicate_key().is_some() {
            out.add_up_duplicates();
        }
        Ok(Parsed::Record { label, weight, group: None })
    }

    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        self.dictionary.take()
    }

    fn notices(&self) -> Vec<String> {
        let mut notices = self.dictionary.notices();
        if self.tag_ignored {
            notices.push("tags are ignored".to_owned());
        }
        if self.base_ignored {
            notices.push("base values (the third number before the bar) are ignored".to_owned());
        }
        notices
    }
}

impl Parser {
    /// What stands before the first bar.
    fn front(&mut self, front: &[u8], has_bar: bool) -> Result<Front, LineError> {
        let mut numbers = [(0, 0); 3];
        let mut count = 0;
        for (start, end) in words(front, 0, front.len()) {
            let last_touches_bar = has_bar && end == front.len();
            if front[start] == b'\'' || last_touches_bar {
                self.tag_ignored = true;
                continue;
            }
            if count == numbers.len() {
                return Err(LineError::new(start, "at most label, importance and base before the bar"));
            }
            numbers[count] = (start, end);
            count += 1;
        }
        if count > 0 && !self.has_label {
            return Err(LineError::new(numbers[0].0, "'|', as --no-label says that lines have no label"));
        }
        if count == 0 && self.has_label {
            let expected =
                "a label and a blank before '|' (or --no-label when predicting, if this file has none)";
            return Err(LineError::new(0, expected));
        }
        self.base_ignored |= count > 2;
        let mut label = None;
        if count > 0 {
            let (start, end) = numbers[0];
            let value = whole_double(&front[start..end]).filter(|value| value.is_finite());
            label = Some(value.ok_or_else(|| LineError::new(start, "a finite number as the label"))?);
        }
        let mut weight = 1.0;
        if count > 1 {
            let (start, end) = numbers[1];
            let value = whole_float(&front[start..end]).filter(|value| value.is_finite() && *value >= 0.0);
            weight = value.ok_or_else(|| LineError::new(start, "a finite importance of at least 0"))?;
        }
        Ok((label, weight))
    }

    /// The features between two bars; the namespace begins at `start`.
    fn namespace(
        &mut self,
        line: &[u8],
        start: usize,
        end: usize,
        out: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let name_end = (start..end).find(|at| is_blank(line[*at])).unwrap_or(end);
        let (space, scale) = named_number(line, start, name_end)?;
        for (from, to) in words(line, name_end, end) {
            let (name, value) = named_number(line, from, to)?;
            if name.is_empty() {
                return Err(LineError::new(from, "a feature name before ':'"));
            }
            let value = value * scale;
            if !value.is_finite() {
                return Err(LineError::new(from, "a value that stays finite when it is scaled"));
            }
            if value != 0.0 || self.keep_zeros {
                let key = named_key(space, name);
                self.dictionary.add(key, space, b'^', name);
                out.push(key, value);
            }
        }
        Ok(())
    }
}

/// `name[:number]` between two positions; the number is 1 when left out.
fn named_number(line: &[u8], start: usize, end: usize) -> Result<(&[u8], f32), LineError> {
    let word = &line[start..end];
    let Some(colon) = memchr(b':', word) else {
        return Ok((word, 1.0));
    };
    match whole_float(&word[colon + 1..]) {
        Some(value) if value.is_finite() => Ok((&word[..colon], value)),
        Some(_) => Err(LineError::new(start + colon + 1, "a finite number within the range of f32")),
        None => Err(LineError::new(start + colon + 1, "a number after ':'")),
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Where the words between two positions begin and end.
fn words(line: &[u8], mut at: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
    std::iter::from_fn(move || {
        while at < end && is_blank(line[at]) {
            at += 1;
        }
        let start = at;
        while at < end && !is_blank(line[at]) {
            at += 1;
        }
        (start < at).then_some((start, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{Row, bad, options, rows};

    /// The one record of a line, its entries sorted by key.
    fn parsed(line: &str) -> Row {
        let mut row = rows("vw", &options(), line).unwrap().remove(0);
        row.entries.sort_by_key(|entry| entry.0);
        row
    }

    fn row(label: f64, weight: f32, entries: &[(&str, &str, f32)]) -> Row {
        let mut keys: Vec<_> = entries
            .iter()
            .map(|(space, name, value)| (named_key(space.as_bytes(), name.as_bytes()), *value))
            .collect();
        keys.sort_by_key(|entry| entry.0);
        Row { weight, ..Row::new(Some(label), &keys) }
    }

    #[test]
    fn good_lines() {
        for (line, expected) in [
            ("1 | a b:2", row(1.0, 1.0, &[("", "a", 1.0), ("", "b", 2.0)])),
            ("-1 2.5 'tag |n x |m:0.5 x:4", row(-1.0, 2.5, &[("n", "x", 1.0), ("m", "x", 2.0)])),
            ("1 1 0.5 tag| a", row(1.0, 1.0, &[("", "a", 1.0)])),
            ("0.25 |n", row(0.25, 1.0, &[])),
            ("1 | the cat the", row(1.0, 1.0, &[("", "the", 2.0), ("", "cat", 1.0)])),
            ("1 |n a:0 b", row(1.0, 1.0, &[("n", "b", 1.0)])),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn bad_lines_say_where_and_what() {
        bad(
            "vw",
            &options(),
            &[
                ("x | a", 1, "label"),
                ("nan | a", 1, "finite"),
                ("| a", 1, "label"),
                ("1 -1 | a", 3, "at least 0"),
                ("1 1 1 1 | a", 7, "at most"),
                ("1 | a:x", 7, "number"),
                ("1 | a:inf", 7, "finite"),
                ("1 | :2", 5, "name"),
                ("1 |n:x a", 6, "number"),
                ("1 |n:1e30 a:1e30", 11, "finite"),
            ],
        );
    }

    #[test]
    fn names_are_kept_and_what_is_ignored_is_said() {
        let mut parser = Vw { has_label: true, keep_zeros: false }.parser();
        parser.parse(b"1 1 0 'x |city Rome", &mut BatchBuilder::new()).unwrap();
        assert_eq!(
            parser.take_dictionary(),
            BTreeMap::from([(named_key(b"city", b"Rome"), "city^Rome".into())])
        );
        assert_eq!(parser.notices().len(), 2);
    }

    #[test]
    fn blank_lines_are_no_records() {
        assert!(rows("vw", &options(), "\n  \n").unwrap().is_empty());
    }
}
