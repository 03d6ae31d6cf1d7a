//! Neighbours of nodes, a node per line, such as the items that a user has chosen.
//!
//! ```text
//! line = [ node { separator node } ] | ( "#" | "%" ) anything
//! node = a number from 0 to 2^62-1, which is its key, or a name
//! ```
//! A separator is a comma, or white space. A record is one line: an entry of the first node in field 0, and one of each of its
//! neighbours in field 1. Keys of nodes are those of the format `edges`. A record has no label. Blank lines and comments are
//! skipped, and so is a node without neighbours.

use super::dictionary::Dictionary;
use super::edges::{SOURCE, TARGET, is_node, node_key, words};
use super::tokens::refuse_labels;
use super::{Abilities, FormatContext, FormatRow, LineFormat, LineParser, OpenFormat, ParsedLine};
use crate::key_names::KeyNames;
use crate::schema::Schema;
use crate::{BatchBuilder, Error, LineError};

/// The row in the table of formats.
pub(super) const ROW: FormatRow = FormatRow {
    name: "adjacency",
    title: "a node per line with its neighbours, or a user with items: node node ...",
    extensions: &["adjacency"],
    abilities: Abilities::NONE,
    recognize: |_| false,
    open,
};

fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let advice = "give CSV with a line for each pair and a column of labels";
    refuse_labels("lists of neighbours", advice, context.options)?;
    Ok(OpenFormat::Lines(Box::new(Adjacency)))
}

struct Adjacency;

impl LineFormat for Adjacency {
    fn schema(&self) -> Schema {
        Schema { fields: true, ..Schema::default() }
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser { dictionary: Dictionary::default() })
    }
}

struct Parser {
    dictionary: Dictionary,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let mut words = words(line);
        let Some((_, source)) = words.next().filter(|word| is_node(*word)) else {
            return Ok(ParsedLine::Skipped);
        };
        let mut words = words.peekable();
        if words.peek().is_none() {
            return Ok(ParsedLine::Skipped);
        }
        out.push_with_field(SOURCE, node_key(source, &mut self.dictionary), 1.0);
        for (_, word) in words {
            out.push_with_field(TARGET, node_key(word, &mut self.dictionary), 1.0);
        }
        Ok(ParsedLine::Record { label: None, weight: 1.0, group: None })
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
    }
}

#[cfg(test)]
mod tests {
    use math::hash::named_key;

    use crate::FormatOptions;
    use crate::format::testing::{Row, check, options, rows};

    fn without_labels() -> FormatOptions {
        FormatOptions { uses_labels: false, ..options() }
    }

    #[test]
    fn a_line_has_a_node_and_its_neighbours() {
        let expected = Row { fields: vec![0, 1, 1], ..Row::new(None, &[(7, 1.0), (3, 1.0), (12, 1.0)]) };
        check("adjacency", &without_labels(), &[("7 3 12", expected.clone()), ("7,3\t12 ", expected)]);
        let key = |name: &str| named_key(b"", name.as_bytes());
        let named = Row { fields: vec![0, 1], ..Row::new(None, &[(key("Ann"), 1.0), (key("tea"), 1.0)]) };
        check("adjacency", &without_labels(), &[("Ann tea", named)]);
    }

    #[test]
    fn blank_lines_comments_and_nodes_without_neighbours_are_no_records() {
        assert_eq!(rows("adjacency", &without_labels(), "# a b\n\n 4 \n1 2\n").unwrap().len(), 1);
    }

    #[test]
    fn a_family_that_needs_labels_is_told_what_to_do() {
        let error = rows("adjacency", &options(), "1 2").unwrap_err().to_string();
        assert!(error.contains("no labels") && error.contains("CSV"), "{error}");
    }
}
