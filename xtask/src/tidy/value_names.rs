//! Words that may not name a value: what `let` and `for` bind, fields, and parameters. Such a word is a mood or a figure of
//! speech; the name says what the value is.
//!
//! Read is product code. `vocabulary.rs` has the words for items.

use super::Finding;
use super::rust_text::product_code;
use crate::tree::TextFile;

/// A whole name, and what to write instead of it.
const FORBIDDEN: &[(&str, &str)] = &[
    ("held", "owned_partitions, deferred"),
    ("held_ns", "deferred_ns"),
    ("heard", "received"),
    ("heard_at", "received_at"),
    ("missed_at", "suspected_at"),
    ("birth", "initializer"),
    ("like", "trained_schema"),
    ("kept", "cached, passthrough, remaining"),
    ("carried", "passthrough_columns, carry"),
    ("found", "detected, actual, position"),
    ("route", "key_runs"),
    ("piece", "lane_keys, part"),
    ("living", "alive"),
    ("orderer", "submitter"),
    ("asker", "requester"),
];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files.iter().filter(|file| file.is_product()).flat_map(check_file).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in product_code(&file.text).lines().enumerate() {
        for (word, instead) in value_names(line).iter().filter_map(|name| forbidden(name)) {
            let place = format!("{}:{}", file.path, number + 1);
            findings.push(Finding::new(place, format!("{word} is a vague name of a value: {instead}")));
        }
    }
    findings
}

fn forbidden(name: &str) -> Option<&(&'static str, &'static str)> {
    FORBIDDEN.iter().find(|(word, _)| *word == name)
}

/// The names of values that a line of code binds or declares.
fn value_names(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    for (keyword, end) in [("let ", "="), ("for ", " in ")] {
        for (at, _) in line.match_indices(keyword).filter(|(at, _)| !line[..*at].ends_with(is_letter)) {
            let pattern = line[at + keyword.len()..].split(end).next().unwrap_or_default();
            names.extend(pattern.split(|c| !is_letter(c)).filter(|word| !word.is_empty()));
        }
    }
    for (at, _) in line.match_indices(": ").filter(|(at, _)| !line[..*at].ends_with(':')) {
        let start = line[..at].rfind(|c| !is_letter(c)).map_or(0, |before| before + 1);
        names.push(&line[start..at]);
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&[TextFile { path: "crates/a/src/lib.rs".into(), text: text.into() }]).len()
    }

    #[test]
    fn a_vague_name_of_a_value_is_refused() {
        for text in [
            "let held = 1;",
            "let (mut route, other) = (1, 2);",
            "if let Some(kept) = &cache {",
            "for piece in pieces {",
            "pub found: usize,",
            "fn open(like: Option<&Schema>) {",
        ] {
            assert_eq!(findings(text), 1, "{text}");
        }
    }

    #[test]
    fn a_longer_name_and_a_word_elsewhere_are_fine() {
        for text in [
            "let held_out = 1;",
            "// held: yes",
            "fn found() {",
            "self.kept()",
            "\"found: {held}\"",
            "found::x",
        ] {
            assert_eq!(findings(text), 0, "{text}");
        }
    }
}
