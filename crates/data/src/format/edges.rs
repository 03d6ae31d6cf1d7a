//! Edges of a graph, one per line, as SNAP, KONECT and many tools write them.
//!
//! ```text
//! line   = [ node separator node [ separator weight [ separator time ] ] ] | ( "#" | "%" ) anything
//! node   = a number from 0 to 2^62-1, which is its key, or a name
//! weight = a finite number of at least 0, 1 if left out      time = a number or a date
//! ```
//! A separator is a comma, or white space. A record is one edge: an entry of its source in field 0, and one of its target in
//! field 1. The weight of the edge is that of the record. A name has one key, `named_key("", name)`, as source and as
//! target. An edge has no label. Blank lines and comments are skipped.

use math::hash::{NAMED_KEY_BIT, named_key};

use super::dictionary::Dictionary;
use super::tokens::refuse_labels;
use super::{FormatContext, LineFormat, LineParser, OpenFormat, ParsedLine};
use crate::input::Input;
use crate::key_names::KeyNames;
use crate::number::{parse_digits, parse_f32};
use crate::schema::Schema;
use crate::time::parse_time;
use crate::{BatchBuilder, Error, LineError};

/// Fields of the two nodes.
const SOURCE: u32 = 0;
const TARGET: u32 = 1;

/// Numbers of nodes are below it.
const NODE_LIMIT: u64 = NAMED_KEY_BIT;

const EXPECTED: &str = "source target [weight [time]]";

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let advice = "give CSV with the columns of the edges and a label";
    refuse_labels("edges", advice, context.options)?;
    Ok(OpenFormat::Lines(Box::new(Edges { has_times: has_times(context.files)? })))
}

/// Whether the first edge has a time.
fn has_times(files: &[Input]) -> Result<bool, Error> {
    for file in files {
        let head = file.head()?;
        if let Some(edge) = head.lines().find(|line| words(line).next().is_some_and(is_node)) {
            return Ok(words(edge).count() > 3);
        }
    }
    Ok(false)
}

/// Whether the first word of a line is not that of a comment.
fn is_node((_, word): (usize, &[u8])) -> bool {
    !matches!(word[0], b'#' | b'%')
}

struct Edges {
    /// Whether edges have times.
    has_times: bool,
}

impl LineFormat for Edges {
    fn schema(&self) -> Schema {
        Schema { fields: true, ..Schema::default() }
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser { dictionary: Dictionary::default(), has_times: self.has_times })
    }
}

struct Parser {
    dictionary: Dictionary,
    has_times: bool,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let mut words = words(line);
        let Some(source) = words.next().filter(|word| is_node(*word)) else {
            return Ok(ParsedLine::Skipped);
        };
        let Some(target) = words.next() else {
            return Err(LineError::with_found(line.len(), EXPECTED, "one word"));
        };
        let weight = words.next().map_or(Ok(1.0), |(at, word)| weight(at, word))?;
        let time = words.next().map(|(at, word)| time(at, word)).transpose()?;
        if let Some((at, word)) = words.next() {
            return Err(LineError::with_found(
                at,
                format!("the end of the line after {EXPECTED}"),
                excerpt(word),
            ));
        }
        if self.has_times != time.is_some() {
            let expected =
                if self.has_times { "a time, as in the first edge" } else { "no time, as in the first edge" };
            return Err(LineError::new(line.len(), expected));
        }
        for (field, (_, word)) in [(SOURCE, source), (TARGET, target)] {
            let key = self.node(word);
            out.push_with_field(field, key, 1.0);
        }
        if let Some(time) = time {
            out.set_time(time);
        }
        Ok(ParsedLine::Record { label: None, weight, group: None })
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
    }
}

impl Parser {
    fn node(&mut self, word: &[u8]) -> u64 {
        let (number, end) = parse_digits(word, 0);
        if end == word.len() && number < NODE_LIMIT {
            return number;
        }
        let key = named_key(b"", word);
        self.dictionary.add_named(key, || Some(String::from_utf8_lossy(word).into_owned()));
        key
    }
}

/// The words of a line, with where they begin.
fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    let parts = line.split(|byte| *byte == b',' || byte.is_ascii_whitespace()).map(move |word| {
        let start = at;
        at += word.len() + 1;
        (start, word)
    });
    parts.filter(|(_, word)| !word.is_empty())
}

fn weight(at: usize, word: &[u8]) -> Result<f32, LineError> {
    let value = parse_f32(word).filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| LineError::with_found(at, "a finite weight of at least 0", excerpt(word)))
}

fn time(at: usize, word: &[u8]) -> Result<f64, LineError> {
    parse_time(word).ok_or_else(|| {
        LineError::with_found(at, "a time: a number, or a date as in 2026-01-31", excerpt(word))
    })
}

fn excerpt(word: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(word).escape_debug())
}

#[cfg(test)]
mod tests {
    use math::hash::named_key;

    use crate::FormatOptions;
    use crate::format::testing::{Row, bad, check, options, rows};
    use crate::source::read_bytes;

    fn graph() -> FormatOptions {
        FormatOptions { uses_labels: false, ..options() }
    }

    fn edge(source: u64, target: u64, weight: f32) -> Row {
        let entries = [(source, 1.0), (target, 1.0)];
        Row { weight, fields: vec![0, 1], ..Row::new(None, &entries) }
    }

    #[test]
    fn good_lines() {
        let name = |text: &str| named_key(b"", text.as_bytes());
        let table = [
            ("1 2", edge(1, 2, 1.0)),
            ("1\t2\t0.5", edge(1, 2, 0.5)),
            (" 7 , 7 , 2", edge(7, 7, 2.0)),
            ("anna bert", edge(name("anna"), name("bert"), 1.0)),
            ("4611686018427387904 1", edge(name("4611686018427387904"), 1, 1.0)),
            ("4611686018427387903 12a", edge(4_611_686_018_427_387_903, name("12a"), 1.0)),
        ];
        check("edges", &graph(), &table);
    }

    #[test]
    fn comments_and_blank_lines_are_skipped_and_times_are_read() {
        let text = "# nodes 3\n% sym\n\n1 2 1 86400\n2 3 0.5 1970-01-03\n";
        let batches = read_bytes("edges", &graph(), text.as_bytes()).unwrap();
        assert_eq!(batches[0].times, [86400.0, 172_800.0]);
        assert_eq!(batches[0].weights, [1.0, 0.5]);
    }

    #[test]
    fn bad_lines_say_where_and_what() {
        let table = [
            ("1", 2, "source target [weight [time]]"),
            ("1 2 x", 5, "a finite weight"),
            ("1 2 -1", 5, "at least 0"),
            ("1 2 1 noon", 7, "a date as in"),
            ("1 2 1 5 6", 9, "the end of the line"),
        ];
        bad("edges", &graph(), &table);
        let error = rows("edges", &graph(), "1 2 1 5\n1 2 1\n").unwrap_err().to_string();
        assert!(error.contains(":2:") && error.contains("a time, as in the first edge"), "{error}");
        let error = rows("edges", &graph(), "1 2 1\n1 2 1 5\n").unwrap_err().to_string();
        assert!(error.contains(":2:") && error.contains("no time, as in the first edge"), "{error}");
    }

    #[test]
    fn an_algorithm_that_needs_labels_is_told_that_there_are_none() {
        let error = rows("edges", &options(), "1 2").unwrap_err().to_string();
        assert!(error.contains("edges have no labels"), "{error}");
    }
}
