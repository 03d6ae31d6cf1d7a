//! Vowpal Wabbit text.
//!
//! ```text
//! line      = [ label [ importance [ base ] ] ] [ tag ] { "|" [ namespace [ ":" scale ] ] { blank+ feature } }
//! feature   = [ name ] ":" value | name [ ":" text ]  value: a finite number; a text begins with no digit, sign or dot
//! tag       = "'" text, or a text that touches the first bar
//! ```
//! The namespace touches its bar; without one its name is empty. The key of a feature is `named_key(namespace, name)`.
//! Its value (1 when left out) is multiplied by the scale, and a feature that occurs twice in a record is added up, as
//! in Vowpal Wabbit. A feature without a name has its number among those of its namespace, from 0, as its name. With a
//! text as value, `name:text` is the name and the value is 1. The importance is the weight of the record. Base and tag
//! are ignored, with a notice. Blank lines are skipped, and so are lines without a label among lines with one.

use super::dictionary::Dictionary;
use super::{FormatContext, LineFormat, LineParser, OpenFormat, ParsedLine};
use crate::interactions::{ALL, InteractionGenerator, Interactions, push_products};
use crate::key_names::KeyNames;
use crate::number::{parse_f32, parse_f64};
use crate::schema::Schema;
use crate::{BatchBuilder, Error, InputPurpose, LineError};
use math::hash::named_key;
use memchr::memchr;

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let options = context.options;
    let mut leave_out_unlabelled = false;
    if options.has_label && options.purpose != InputPurpose::Prediction {
        for file in context.files {
            let head = file.head()?;
            leave_out_unlabelled = super::text_lines(&head.bytes).into_iter().any(is_labelled);
            if leave_out_unlabelled {
                break;
            }
        }
    }
    let interactions = Interactions::new(&options.interactions)?;
    let notice = interactions.check_groups(context, |group, line| {
        let spaces = line.split(|byte| *byte == b'|').skip(1).map(|part| {
            let end = part.iter().position(|byte| matches!(byte, b' ' | b'\t' | b':')).unwrap_or(part.len());
            &part[..end]
        });
        let mut spaces = spaces;
        spaces.any(|space| is_in_group(space, group.as_bytes()))
    })?;
    Ok(OpenFormat::Lines(Box::new(Vw {
        has_label: options.has_label,
        skip_unlabelled: leave_out_unlabelled,
        interactions,
        notice,
    })))
}

/// Whether a namespace is in a group of an interaction: by its name, by its first letter, or because the group has all.
fn is_in_group(space: &[u8], group: &[u8]) -> bool {
    group == space || (group.len() == 1 && space.starts_with(group)) || group == ALL.as_bytes()
}

/// How certain the format of a file is from its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confidence {
    None,
    /// The lines may also be rows of fields between bars.
    Possible,
    Certain,
}

/// Whether the first lines are certainly Vowpal Wabbit text.
pub(super) fn recognize(head: &[u8]) -> bool {
    confidence(head) == Confidence::Certain
}

/// Whether the first lines may be Vowpal Wabbit text as well as fields between bars, so that the user must decide.
pub(super) fn is_possible(head: &[u8]) -> bool {
    confidence(head) == Confidence::Possible
}

/// Most lines must be possible; the result is certain when one line is, or when their numbers of bars differ.
fn confidence(head: &[u8]) -> Confidence {
    if !super::most_lines(head, |line| line_confidence(line) != Confidence::None) {
        return Confidence::None;
    }
    let lines = super::text_lines(head);
    let bars = |line: &[u8]| memchr::memchr_iter(b'|', line).count();
    let sure =
        lines.iter().any(|line| line_confidence(line) == Confidence::Certain || bars(line) != bars(lines[0]));
    if sure { Confidence::Certain } else { Confidence::Possible }
}

/// A possible line has numbers, a tag, then a bar that touches a name or is followed by a blank.
fn line_confidence(line: &[u8]) -> Confidence {
    let Some(bar) = memchr(b'|', line) else { return Confidence::None };
    let front = &line[..bar];
    let is_tagged = |(start, end): &(usize, usize)| front[*start] == b'\'' || *end == front.len();
    let (tags, numbers): (Vec<_>, Vec<_>) = words(front, 0, front.len()).partition(is_tagged);
    let is_number = |&(start, end): &(usize, usize)| parse_f64(&front[start..end]).is_some();
    if tags.len() > 1 || numbers.len() > 3 || !numbers.iter().all(is_number) {
        return Confidence::None;
    }
    let spaces = line[bar + 1..].split(|byte| *byte == b'|');
    let features: Vec<&[u8]> = spaces
        .flat_map(|space| {
            let name_end = space.iter().position(|byte| is_blank(*byte)).unwrap_or(space.len());
            words(space, name_end, space.len()).map(move |(start, end)| &space[start..end])
        })
        .collect();
    let is_quoted = tags.first().is_some_and(|(start, _)| front[*start] == b'\'');
    if is_quoted || (tags.is_empty() && !front.is_empty()) {
        // A quote before the tag, or blanks between the numbers and the bar, never occur in fields.
        Confidence::Certain
    } else if features.is_empty() || (numbers.is_empty() && !tags.is_empty()) {
        Confidence::None
    } else if features.into_iter().any(has_value) {
        Confidence::Certain
    } else {
        Confidence::Possible
    }
}

/// Whether a feature is a name and a number.
fn has_value(word: &[u8]) -> bool {
    memchr(b':', word).is_some_and(|colon| parse_f64(&word[colon + 1..]).is_some())
}

/// Whether a line begins with a number that is not a tag.
fn is_labelled(line: &[u8]) -> bool {
    let front = &line[..memchr(b'|', line).unwrap_or(line.len())];
    words(front, 0, front.len())
        .next()
        .is_some_and(|(start, end)| end < front.len() && parse_f64(&front[start..end]).is_some())
}

struct Vw {
    has_label: bool,
    /// Whether some of the first lines have a label: lines without one are then skipped.
    skip_unlabelled: bool,
    interactions: Interactions,
    /// Notice about groups without a feature in the first lines.
    notice: Option<String>,
}

impl LineFormat for Vw {
    fn notices(&self) -> Vec<String> {
        self.notice.iter().cloned().collect()
    }

    fn schema(&self) -> Schema {
        Schema::default()
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser {
            has_label: self.has_label,
            skip_unlabelled: self.skip_unlabelled,
            base_ignored: false,
            tag_ignored: false,
            dictionary: Dictionary::default(),
            multiplier: InteractionGenerator::new(self.interactions.clone(), false),
        })
    }
}

struct Parser {
    has_label: bool,
    skip_unlabelled: bool,
    base_ignored: bool,
    tag_ignored: bool,
    dictionary: Dictionary,
    multiplier: InteractionGenerator,
}

type LabelAndWeight = (Option<f64>, f32);

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let bar = memchr(b'|', line);
        let front = &line[..bar.unwrap_or(line.len())];
        if bar.is_none() && front.trim_ascii().is_empty() {
            return Ok(ParsedLine::Skipped);
        }
        let (label, weight) = self.parse_label_and_weight(front, bar.is_some())?;
        if self.has_label && label.is_none() {
            return Ok(ParsedLine::Unlabelled);
        }
        self.multiplier.clear();
        let mut at = bar;
        while let Some(bar) = at {
            let end = memchr(b'|', &line[bar + 1..]).map(|length| bar + 1 + length);
            self.namespace(line, bar + 1, end.unwrap_or(line.len()), out)?;
            at = end;
        }
        if !self.multiplier.is_empty() {
            push_products(&self.multiplier, &mut self.dictionary, out)?;
        }
        if out.duplicate_key().is_some() && !out.sum_duplicates() {
            let expected = "features that stay finite when those of the same name are added up";
            return Err(LineError::new(bar.unwrap_or(0), expected));
        }
        Ok(ParsedLine::Record { label, weight, group: None })
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    fn unmet_interactions(&self) -> Vec<String> {
        self.multiplier.unmet()
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
    fn parse_label_and_weight(&mut self, front: &[u8], has_bar: bool) -> Result<LabelAndWeight, LineError> {
        let mut numbers = [(0, 0); 3];
        let mut count = 0;
        for (start, end) in words(front, 0, front.len()) {
            let last_touches_bar = has_bar && end == front.len();
            if front[start] == b'\'' || last_touches_bar {
                self.tag_ignored = true;
                continue;
            }
            if count == numbers.len() || (!has_bar && parse_f32(&front[start..end]).is_none()) {
                let expected = if has_bar {
                    "at most label, importance and base before the bar"
                } else {
                    "'|' before the features"
                };
                return Err(LineError::new(start, expected));
            }
            numbers[count] = (start, end);
            count += 1;
        }
        if !self.has_label {
            return Ok((None, 1.0));
        }
        if count == 0 && self.skip_unlabelled && has_bar {
            return Ok((None, 1.0));
        }
        if count == 0 {
            let expected =
                "a label and a blank before '|' (or --no-label when predicting, if this file has none)";
            return Err(LineError::new(0, expected));
        }
        self.base_ignored |= count > 2;
        let mut label = None;
        if count > 0 {
            let (start, end) = numbers[0];
            let value = parse_f64(&front[start..end]).filter(|value| value.is_finite());
            label = Some(value.ok_or_else(|| LineError::new(start, "a finite number as the label"))?);
        }
        let mut weight = 1.0;
        if count > 1 {
            let (start, end) = numbers[1];
            let value = parse_f32(&front[start..end]).filter(|value| value.is_finite() && *value >= 0.0);
            weight = value.ok_or_else(|| {
                LineError::new(
                    start,
                    "a finite importance of at least 0 (a negative one would unlearn the record)",
                )
            })?;
        }
        Ok((label, weight))
    }

    /// Parses the features between two bars; the namespace begins at `start`.
    fn namespace(
        &mut self,
        line: &[u8],
        start: usize,
        end: usize,
        out: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let name_end = (start..end).find(|at| is_blank(line[*at])).unwrap_or(end);
        let (space, scale) = named_number(line, start, name_end)?;
        let mut unnamed_count = 0u32;
        for (from, to) in words(line, name_end, end) {
            let text_value = has_text_value(&line[from..to]);
            let (name, value) =
                if text_value { (&line[from..to], 1.0) } else { named_number(line, from, to)? };
            out.note_rounding(u64::MAX, value, || {
                memchr(b':', &line[from..to]).and_then(|colon| parse_f64(&line[from + colon + 1..to]))
            });
            let value = value * scale;
            if !value.is_finite() {
                return Err(LineError::new(from, "a value that stays finite when it is scaled"));
            }
            let number;
            let name = if name.is_empty() {
                number = unnamed_count.to_string();
                unnamed_count += 1;
                number.as_bytes()
            } else {
                name
            };
            if value != 0.0 {
                let key = named_key(space, name);
                self.dictionary.add(key, space, b'^', name);
                out.push(key, value);
                if !self.multiplier.is_empty() {
                    self.factor(space, name, key, value);
                }
            }
        }
        Ok(())
    }

    /// Adds a feature to each group that has its namespace.
    fn factor(&mut self, space: &[u8], name: &[u8], key: u64, value: f32) {
        for group in 0..self.multiplier.groups().len() {
            if is_in_group(space, self.multiplier.groups()[group].as_bytes()) {
                let full_name = || String::from_utf8_lossy(&[space, b"^", name].concat()).into_owned();
                self.multiplier.add(group, key, value, full_name);
            }
        }
    }
}

/// Whether a feature has a text as value: the text after its colon cannot begin a number.
fn has_text_value(word: &[u8]) -> bool {
    let Some(colon) = memchr(b':', word).filter(|colon| *colon > 0) else { return false };
    let value = &word[colon + 1..];
    let is_no_number =
        value.first().is_some_and(|byte| !byte.is_ascii_digit() && !matches!(byte, b'+' | b'-' | b'.'));
    // The words nan and inf begin with a letter but are numbers.
    is_no_number && parse_f64(value).is_none()
}

/// Parses `name[:number]` between two positions; the number is 1 when left out.
fn named_number(line: &[u8], start: usize, end: usize) -> Result<(&[u8], f32), LineError> {
    let word = &line[start..end];
    let Some(colon) = memchr(b':', word) else {
        return Ok((word, 1.0));
    };
    match parse_f32(&word[colon + 1..]) {
        Some(value) if value.is_finite() => Ok((&word[..colon], value)),
        Some(_) => Err(LineError::new(start + colon + 1, "a finite number within the range of f32")),
        None => Err(LineError::new(start + colon + 1, "a number after ':'")),
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns where the words between two positions begin and end.
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
    use crate::options::FormatOptions;

    /// Returns the one record of a line, with its entries sorted by key.
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
            ("1 tag|f a:2", row(1.0, 1.0, &[("f", "a", 2.0)])),
            ("1 |n :2 b :3", row(1.0, 1.0, &[("n", "0", 2.0), ("n", "b", 1.0), ("n", "1", 3.0)])),
            ("1 |n:2 a:b c:d:e", row(1.0, 1.0, &[("n", "a:b", 2.0), ("n", "c:d:e", 2.0)])),
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
                ("1 -1 | a", 3, "at least 0 (a negative one"),
                ("1 1 1 1 | a", 7, "at most"),
                ("1 a:2 b", 3, "'|' before the features"),
                ("1 | a:1x", 7, "number"),
                ("1 | a:-x", 7, "number"),
                ("1 | a:", 7, "number"),
                ("1 | a:3e38 a:3e38", 3, "finite"),
                ("1 | a:inf", 7, "finite"),
                ("1 | :x", 6, "number"),
                ("1 |n:x a", 6, "number"),
                ("1 |n:1e30 a:1e30", 11, "finite"),
            ],
        );
    }

    #[test]
    fn names_are_kept_and_what_is_ignored_is_said() {
        let mut parser = Vw {
            has_label: true,
            skip_unlabelled: false,
            interactions: Interactions::default(),
            notice: None,
        }
        .parser();
        parser.parse(b"1 1 0 'x |city Rome", &mut BatchBuilder::new()).unwrap();
        assert_eq!(
            parser.take_dictionary(),
            [(named_key(b"city", b"Rome"), "city^Rome")].into_iter().collect()
        );
        assert_eq!(parser.notices().len(), 2);
    }

    #[test]
    fn lines_without_a_label_are_left_out_among_lines_that_have_one() {
        let text = "| a\n1 |n b\n'tag |n c\n-1 |n d\n";
        let labels = |options: &FormatOptions, text| {
            Ok::<_, Error>(rows("vw", options, text)?.iter().map(|row| row.label).collect::<Vec<_>>())
        };
        assert_eq!(labels(&options(), text).unwrap(), [1.0, -1.0]);
        let every = FormatOptions { purpose: InputPurpose::Prediction, ..options() };
        assert!(labels(&every, text).unwrap_err().to_string().contains("a label and a blank before '|'"));
        let none = FormatOptions { has_label: false, ..options() };
        assert_eq!(labels(&none, text).unwrap().len(), 4, "labels are not looked at");
    }

    #[test]
    fn fields_between_bars_are_not_taken_for_it() {
        for (text, expected) in [
            ("1 tag|f a:1 b\n-1 |f c\n", Confidence::Certain),
            ("1 first|f a:1\n", Confidence::Certain),
            ("1 1 0.5 t|f a b\n0 u|f c |g d e\n", Confidence::Certain),
            ("|f a b\n|f c d\n", Confidence::Possible),
            ("|f a:1 b\n|f c d\n", Confidence::Certain),
            ("'t|f a\n", Confidence::Certain),
            ("1 |\n", Confidence::Certain),
            ("5 apples|green tea|1\n6 pears|x y|0\n", Confidence::Possible),
            ("name|kind|y\n5 apples|green tea|1\n", Confidence::None),
            ("1|2|3\n4|5|6\n", Confidence::None),
            ("|a|b\n0|1|2\n", Confidence::None),
            ("New York|big city|1\n", Confidence::None),
            ("12:30|5|1\n12:40|6|0\n", Confidence::None),
        ] {
            assert_eq!(confidence(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn blank_lines_are_no_records() {
        assert!(rows("vw", &options(), "\n  \n").unwrap().is_empty());
    }
}
