//! Words that may not come back, each with the word of the field that stands in its place. The terms themselves are the
//! glossary of ARCHITECTURE.md.

use super::Finding;
use super::rust_text::blank;
use crate::tree::TextFile;

/// A word, and what to write instead of it.
struct Forbidden {
    /// In lower case, without its plural.
    word: &'static str,
    instead: &'static str,
    scope: Scope,
}

/// Where a word is forbidden.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In names, comments, messages and documents: as a word of its own, or as a part of a longer name.
    Everywhere,
    /// As a part of the name of a type, function, module or constant, however long the name.
    InNames,
    /// As the whole name of a type or a module: a longer name says of what.
    AsName,
}

const fn everywhere(word: &'static str, instead: &'static str) -> Forbidden {
    Forbidden { word, instead, scope: Scope::Everywhere }
}

const fn in_names(word: &'static str, instead: &'static str) -> Forbidden {
    Forbidden { word, instead, scope: Scope::InNames }
}

const fn as_name(word: &'static str, instead: &'static str) -> Forbidden {
    Forbidden { word, instead, scope: Scope::AsName }
}

const FORBIDDEN: &[Forbidden] = &[
    everywhere("habit", "prefetch"),
    everywhere("habitual", "prefetch"),
    everywhere("parcel", "outgoing request"),
    everywhere("clerk", "master handle"),
    everywhere("crew", "worker tasks"),
    everywhere("orphan", "job without a master"),
    everywhere("salvage", "checkpoint"),
    everywhere("holdup", "slowest task"),
    in_names("stranger", "unauthenticated"),
    in_names("desk", "master service"),
    in_names("bell", "waker"),
    in_names("meeting", "clock barrier"),
    in_names("guest", "HTTP connection"),
    in_names("door", "HTTP server"),
    in_names("face", "metrics endpoint"),
    in_names("gate", "clock barrier"),
    in_names("living", "alive"),
    as_name("part", "selection, partial, split range"),
    as_name("place", "location, position, slot"),
    as_name("piece", "key run, chunk"),
    as_name("span", "range"),
    as_name("held", "deferred request, or the thing that is owned"),
    as_name("known", "cached key lists, or what is known"),
    as_name("found", "row positions, or what was found"),
    as_name("kept", "reliable queue, block cache"),
    as_name("ask", "pending pull, request"),
    as_name("wish", "status"),
    as_name("what", "kind"),
    as_name("outcome", "the result of what"),
];

/// Most words of the name of an item; the names of tests are sentences.
const LONGEST_NAME: usize = 5;

/// This file, and the history of the project, name the old words.
const EXEMPT: &[&str] = &["xtask/src/tidy/vocabulary.rs", "CHANGELOG.md"];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str())).flat_map(check_file).collect()
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let code = if file.is_rust() { blank(&file.text) } else { String::new() };
    let is_read = file.is_rust() || file.is_markdown();
    let mut findings = Vec::new();
    for forbidden in FORBIDDEN {
        let mut report = |number: usize| {
            let Forbidden { word, instead, .. } = forbidden;
            let place = format!("{}:{}", file.path, number + 1);
            findings.push(Finding::new(place, format!("\"{word}\" is not a word of the project: {instead}")));
        };
        if forbidden.scope == Scope::Everywhere {
            let lines = file.text.lines().enumerate().filter(|_| is_read);
            lines
                .filter(|(_, line)| words(line).any(|word| forbidden.is(&word)))
                .for_each(|(at, _)| report(at));
            continue;
        }
        for (number, line) in code.lines().enumerate() {
            if defined_name(line).is_some_and(|(keyword, name)| forbids(forbidden, keyword, name)) {
                report(number);
            }
        }
    }
    findings
}

impl Forbidden {
    /// Whether a word in lower case is this one, in singular or plural.
    fn is(&self, word: &str) -> bool {
        word.strip_prefix(self.word).is_some_and(|end| end.is_empty() || end == "s")
    }
}

fn forbids(forbidden: &Forbidden, keyword: &str, name: &str) -> bool {
    // A longer name is the sentence that a test proves.
    let is_sentence = words(name).nth(LONGEST_NAME).is_some();
    let mut parts = words(name).filter(|_| !is_sentence);
    match forbidden.scope {
        Scope::Everywhere | Scope::InNames => parts.any(|part| forbidden.is(&part)),
        Scope::AsName if ["fn", "const", "static"].contains(&keyword) => false,
        Scope::AsName => parts.next().is_some_and(|part| forbidden.is(&part)) && parts.next().is_none(),
    }
}

/// Keyword and name of the item that a line of code defines.
fn defined_name(line: &str) -> Option<(&str, &str)> {
    const KEYWORDS: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "mod", "const", "static"];
    const BEFORE: [&str; 4] = ["pub", "async", "unsafe", "extern"];
    let mut tokens = line.split_whitespace().skip_while(|token| {
        BEFORE.contains(token) || token.starts_with("pub(") || token.ends_with("super)") || *token == "\"C\""
    });
    let keyword = tokens.next().filter(|token| KEYWORDS.contains(token))?;
    let name = tokens.next()?;
    let (keyword, name) = if name == "fn" { ("fn", tokens.next()?) } else { (keyword, name) };
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some((keyword, &name[..end]))
}

/// The words of a text or a name, in lower case: `PendingPull` and `pending_pull` are both "pending", "pull".
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|run| {
        let mut words: Vec<String> = Vec::new();
        let mut before = ' ';
        for letter in run.chars() {
            if words.is_empty() || (letter.is_ascii_uppercase() && !before.is_ascii_uppercase()) {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(letter.to_ascii_lowercase());
            }
            before = letter;
        }
        words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&[TextFile { path: path.into(), text: text.into() }])
            .iter()
            .map(|finding| format!("{finding:?}"))
            .collect()
    }

    #[test]
    fn a_forbidden_word_is_refused_with_what_stands_in_its_place() {
        for text in ["pub(crate) struct SentParcels;", "// one parcel for all", "fn f() { \"a parcel\" }"] {
            let found = findings("a.rs", text);
            assert!(found.len() == 1 && found[0].contains("outgoing request"), "{text}: {found:?}");
        }
        assert_eq!(findings("a.md", "Lanes get a parcel.").len(), 1);
        assert_eq!(findings("a.md", "The parcels of `Parcel`.").len(), 1);
    }

    #[test]
    fn a_word_that_is_forbidden_as_a_name_may_be_a_part_of_one_and_stand_in_texts() {
        assert_eq!(findings("a.rs", "struct Part {").len(), 1);
        assert_eq!(findings("a.rs", "pub(crate) mod held;").len(), 1);
        for text in [
            "struct PartHeader;",
            "fn part() {",
            "let part = 1;",
            "// a part",
            "fn partition() {}",
            "impl Part {",
        ] {
            assert_eq!(findings("a.rs", text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_word_that_is_forbidden_in_names_may_stand_in_texts() {
        assert_eq!(findings("a.rs", "enum GateState {").len(), 1);
        for text in ["// the gate", "struct Investigate;", "fn aggregate() {}"] {
            assert_eq!(findings("a.rs", text), Vec::<String>::new(), "{text}");
        }
    }
}
