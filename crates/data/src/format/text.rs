//! Plain text: one document per line.
//!
//! ```text
//! line  = { white-space } [ token { white-space token } ]
//! ```
//! White space is that of Unicode, such as no-break and ideographic spaces; case and punctuation are kept, unless a [`Tokenizer`] is asked for. The key of a
//! token is `named_key("", token)`, as that of a feature without a namespace in Vowpal Wabbit. A document has no label.
//! Blank lines are skipped.

use super::dictionary::Dictionary;
use super::token_features::Tokens;
use super::tokenizer::Tokenizer;
use super::tokens::refuse_labels;
use super::{FormatContext, LineFormat, LineParser, OpenFormat, ParsedLine};
use crate::key_names::KeyNames;
use crate::schema::Schema;
use crate::{BatchBuilder, Error, LineError};

pub(super) fn open(context: &FormatContext<'_>) -> Result<OpenFormat, Error> {
    let advice = "give documents with labels as CSV with --token-columns, or as Vowpal Wabbit text";
    refuse_labels("lines of text", advice, context.options)?;
    Ok(OpenFormat::Lines(Box::new(Text {
        keeps_order: context.options.keeps_token_order,
        tokenizer: context.options.tokenizer.unwrap_or_default(),
    })))
}

struct Text {
    keeps_order: bool,
    tokenizer: Tokenizer,
}

impl LineFormat for Text {
    fn schema(&self) -> Schema {
        Schema { token_order: self.keeps_order, tokenizer: self.tokenizer, ..Schema::default() }
    }

    fn parser(&self) -> Box<dyn LineParser> {
        Box::new(Parser {
            tokens: Tokens::new(self.keeps_order, self.tokenizer),
            dictionary: Dictionary::default(),
        })
    }
}

struct Parser {
    tokens: Tokens,
    dictionary: Dictionary,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        let is_blank = |text: &str| text.trim_start().is_empty();
        if line.trim_ascii().is_empty() || std::str::from_utf8(line).is_ok_and(is_blank) {
            return Ok(ParsedLine::Skipped);
        }
        self.tokens.push(b"", line, &mut self.dictionary, out);
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

    fn documents(keeps_token_order: bool) -> FormatOptions {
        FormatOptions { uses_labels: false, keeps_token_order, ..options() }
    }

    fn key(token: &str) -> u64 {
        named_key(b"", token.as_bytes())
    }

    #[test]
    fn a_bag_has_each_token_once_with_its_count() {
        let mut expected = vec![(key("to"), 2.0), (key("be"), 1.0), (key("or"), 1.0)];
        expected.sort_by_key(|entry| entry.0);
        check("text", &documents(false), &[("to\tbe  or to ", Row::new(None, &expected))]);
        let words = "to\u{a0}be\u{3000}or\u{2009}to\u{85}";
        check("text", &documents(false), &[(words, Row::new(None, &expected))]);
        check("text", &documents(false), &[(" Ünï-cödé ", Row::new(None, &[(key("Ünï-cödé"), 1.0)]))]);
    }

    #[test]
    fn a_tokenizer_takes_words_without_case_and_stop_words() {
        let english = FormatOptions { tokenizer: Some(super::Tokenizer::English), ..documents(false) };
        let mut expected = vec![(key("cat"), 2.0), (key("mat"), 1.0)];
        expected.sort_by_key(|entry| entry.0);
        check("text", &english, &[("The Cat was on the MAT: cat!", Row::new(None, &expected))]);
        check("text", &english, &[("It is what it is", Row::new(None, &[]))]);
        let order = FormatOptions { tokenizer: Some(super::Tokenizer::Words), ..documents(true) };
        let expected = ["to", "be", "or", "to"].map(|token| (key(token), 1.0));
        check("text", &order, &[("To be, or TO", Row::new(None, &expected))]);
    }

    #[test]
    fn a_sequence_keeps_the_order_and_repeated_tokens() {
        let expected = ["to", "be", "or", "to"].map(|token| (key(token), 1.0));
        check("text", &documents(true), &[("to be or to", Row::new(None, &expected))]);
    }

    #[test]
    fn blank_lines_are_no_documents() {
        assert_eq!(rows("text", &documents(false), " \n\n\u{a0}\u{3000}\na\r\n").unwrap().len(), 1);
    }

    #[test]
    fn a_family_that_needs_labels_is_told_what_to_do() {
        let error = rows("text", &options(), "a b").unwrap_err().to_string();
        assert!(error.contains("no labels") && error.contains("--token-columns"), "{error}");
    }
}
