//! Edges of a graph, one per line, as SNAP, KONECT and many tools write them.
//!
//! ```text
//! line   = [ node separator node [ separator weight [ separator time ] ] ] | ( "#" | "%" ) anything
//! node   = a number from 0 to 2^62-1, which is its key, or a name
//! weight = a finite number of at least 0, 1 if left out      time = a number or a date
//! ```
//! A separator is a comma, or white space. A record is one edge: an entry of its source in field 0, and one of its target in
//! field 1. The weight of the edge is that of the record. A name has one key, `named_key("", name)`, as source and as
//! target. An edge has no label. Blank lines and comments are skipped, and so is a header: a first line with the names of
//! columns. Matrix Market files, in which a line of sizes precedes the edges, are refused.

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
pub(super) const SOURCE: u32 = 0;
pub(super) const TARGET: u32 = 1;

/// Numbers of nodes are below it.
const NODE_LIMIT: u64 = NAMED_KEY_BIT;

const EXPECTED: &str = "source target [weight [time]]";

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let advice = "give CSV with the columns of the edges and a label";
    refuse_labels("edges", advice, context.options)?;
    let mut edges = Edges { has_times: None, headers: Vec::new() };
    context.files.iter().try_for_each(|file| edges.inspect(file))?;
    Ok(OpenFormat::Lines(Box::new(edges)))
}

/// How a Matrix Market file begins.
const MATRIX_MARKET: &[u8] = b"%%MatrixMarket";
/// Number of edges below a first line that show whether it is a header.
const SAMPLED_EDGES: usize = 20;
/// Names of columns, in lower case, that tools write above the two nodes of an edge.
const NODE_COLUMNS: [[&[u8]; 2]; 11] = [
    [b"source", b"target"],
    [b"src", b"dst"],
    [b"src", b"dest"],
    [b"from", b"to"],
    [b"fromnodeid", b"tonodeid"],
    [b"fromnode", b"tonode"],
    [b"from_id", b"to_id"],
    [b"source_id", b"target_id"],
    [b"node1", b"node2"],
    [b"node_1", b"node_2"],
    [b"id_1", b"id_2"],
];

/// Whether the first line of a file, given as its words, has the names of columns. `edges` are the next lines.
fn is_header(first: &[&[u8]], edges: &[Vec<&[u8]>]) -> bool {
    let [source, target, more @ ..] = first else { return false };
    let is_number = |word: &[u8]| parse_f32(word).is_some();
    let named = [source.to_ascii_lowercase(), target.to_ascii_lowercase()];
    if NODE_COLUMNS.iter().any(|names| named == *names) {
        return true;
    }
    let are_numbers = |columns: std::ops::Range<usize>| {
        !edges.is_empty()
            && edges.iter().all(|edge| {
                edge.get(columns.clone()).is_some_and(|words| words.iter().all(|word| is_number(word)))
            })
    };
    (!is_number(source) && !is_number(target) && are_numbers(0..2))
        || more.first().is_some_and(|word| !is_number(word) && are_numbers(2..3))
}

/// Whether the first word of a line is not that of a comment.
pub(super) fn is_node((_, word): (usize, &[u8])) -> bool {
    !matches!(word[0], b'#' | b'%')
}

struct Edges {
    /// Whether edges have times, as in the first edge of all files.
    has_times: Option<bool>,
    /// First lines of files that name the columns.
    headers: Vec<Vec<u8>>,
}

impl Edges {
    /// Looks at the first lines of a file.
    fn inspect(&mut self, file: &Input) -> Result<(), Error> {
        let head = file.head()?;
        if head.lines().next().is_some_and(|line| line.starts_with(MATRIX_MARKET)) {
            let reason = format!(
                "{} is a Matrix Market file, whose sizes, in the first line after the comments, would be taken for an \
                 edge; write its edges alone, as with: grep -v '^%' FILE | tail -n +2",
                file.name()
            );
            return Err(Error::BadOption { option: "format", reason });
        }
        let mut lines = head.lines().filter(|line| words(line).next().is_some_and(is_node)).peekable();
        let Some(first) = lines.peek().copied() else { return Ok(()) };
        let all: Vec<Vec<&[u8]>> =
            lines.take(1 + SAMPLED_EDGES).map(|line| words(line).map(|(_, word)| word).collect()).collect();
        let has_header = is_header(&all[0], &all[1..]);
        if has_header {
            self.headers.push(first.trim_ascii().to_vec());
        }
        if let (None, Some(edge)) = (self.has_times, all.get(usize::from(has_header))) {
            self.has_times = Some(edge.len() > 3);
        }
        Ok(())
    }
}

impl LineFormat for Edges {
    fn notices(&self) -> Vec<String> {
        let notice = |header: &Vec<u8>| {
            format!(
                "the first line, {}, is taken for the names of columns and not for an edge",
                excerpt(header)
            )
        };
        self.headers.first().map(notice).into_iter().collect()
    }

    fn schema(&self) -> Schema {
        Schema { fields: true, ..Schema::default() }
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser {
            dictionary: Dictionary::default(),
            has_times: self.has_times.unwrap_or(false),
            headers: self.headers.clone(),
        })
    }
}

struct Parser {
    dictionary: Dictionary,
    has_times: bool,
    headers: Vec<Vec<u8>>,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        if self.headers.iter().any(|header| header == line.trim_ascii()) {
            return Ok(ParsedLine::Skipped);
        }
        let mut words = words(line);
        let Some(source) = words.next().filter(|word| is_node(*word)) else {
            return Ok(ParsedLine::Skipped);
        };
        let Some(target) = words.next() else {
            return Err(LineError::with_actual(line.len(), EXPECTED, "one word"));
        };
        let weight = words.next().map_or(Ok(1.0), |(at, word)| weight(at, word))?;
        let time = match words.next() {
            Some((at, word)) if !self.has_times => {
                return Err(LineError::with_actual(at, "no time, as the first edge has none", excerpt(word)));
            }
            None if self.has_times => {
                return Err(LineError::new(line.len(), "a time after the weight, as in the first edge"));
            }
            word => word.map(|(at, word)| time(at, word)).transpose()?,
        };
        if let Some((at, word)) = words.next() {
            return Err(LineError::with_actual(
                at,
                format!("the end of the line after {EXPECTED}"),
                excerpt(word),
            ));
        }
        for (field, (_, word)) in [(SOURCE, source), (TARGET, target)] {
            out.push_with_field(field, node_key(word, &mut self.dictionary), 1.0);
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

/// The key of a node; a name is added to the dictionary.
pub(super) fn node_key(word: &[u8], dictionary: &mut Dictionary) -> u64 {
    let key = key_of_node(word);
    if key >= NODE_LIMIT {
        dictionary.add_named(key, || Some(String::from_utf8_lossy(word).into_owned()));
    }
    key
}

/// The key of a node as the formats `edges` and `adjacency` read it.
pub fn key_of_node(word: &[u8]) -> u64 {
    let (number, end) = parse_digits(word, 0);
    if end == word.len() && number < NODE_LIMIT { number } else { named_key(b"", word) }
}

/// The words of a line, with where they begin.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
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
    value.ok_or_else(|| {
        LineError::with_actual(
            at,
            "a finite weight of at least 0 (the edges of signed networks cannot be read)",
            excerpt(word),
        )
    })
}

fn time(at: usize, word: &[u8]) -> Result<f64, LineError> {
    parse_time(word).ok_or_else(|| {
        LineError::with_actual(at, "a time: a number, or a date as in 2026-01-31", excerpt(word))
    })
}

fn excerpt(word: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(word).escape_debug())
}

#[cfg(test)]
mod tests;
