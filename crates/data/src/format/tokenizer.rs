//! How a text becomes tokens: at white space, or as words without case and punctuation.

use serde::{Deserialize, Serialize};

/// How a text becomes tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// What stands between white space, as it is.
    #[default]
    Blanks,
    /// Words of at least two letters or digits, in lower case.
    Words,
    /// The same without the stop words of English.
    English,
}

/// Words that English sentences have whatever they are about, ascending. The letters that an apostrophe leaves alone, as in
/// "don't", are among them.
const ENGLISH: &str = include_str!("stop_words/english.txt");

impl Tokenizer {
    /// The names of all, for settings.
    pub const NAMES: &'static [&'static str] = &["blanks", "words", "english"];

    /// The tokenizer with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Blanks, Self::Words, Self::English];
        Self::NAMES.iter().position(|known| *known == name).map(|at| all[at])
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    pub(crate) fn is_blanks(&self) -> bool {
        *self == Self::Blanks
    }

    /// The words that are left out, ascending.
    pub(crate) fn stop_words(self) -> Vec<&'static str> {
        if self == Self::English { ENGLISH.lines().collect() } else { Vec::new() }
    }
}

/// Calls `visit` with the words of a text. What is not UTF-8 separates words.
pub(crate) fn for_each_word(text: &[u8], stop_words: &[&str], mut visit: impl FnMut(&[u8])) {
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if word.chars().nth(1).is_some() && stop_words.binary_search(&word.as_str()).is_err() {
            visit(word.as_bytes());
        }
        word.clear();
    };
    for character in String::from_utf8_lossy(text).chars() {
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        } else {
            end(&mut word);
        }
    }
    end(&mut word);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tokenizer: Tokenizer, text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        let visit = |word: &[u8]| found.push(String::from_utf8(word.to_vec()).unwrap());
        for_each_word(text, &tokenizer.stop_words(), visit);
        found
    }

    #[test]
    fn words_have_neither_case_nor_punctuation() {
        let text = "The GPU's 3 caches (L1, l2); \u{c9}cole -- a naïve x=y test. STRASSE".as_bytes();
        assert_eq!(
            words(Tokenizer::Words, text),
            ["the", "gpu", "caches", "l1", "l2", "\u{e9}cole", "naïve", "test", "strasse"]
        );
        assert_eq!(
            words(Tokenizer::English, b"The cat, which wasn't there, has been with us: and you?"),
            ["cat"]
        );
        assert_eq!(words(Tokenizer::Words, b"caf\xe9 bar \xff\xfe ok"), ["caf", "bar", "ok"]);
        assert_eq!(words(Tokenizer::Words, b" \n .,; a"), [""; 0]);
    }

    #[test]
    fn the_stop_words_ascend_and_names_name_all() {
        assert!(Tokenizer::English.stop_words().is_sorted_by(|a, b| a < b));
        for name in Tokenizer::NAMES {
            let tokenizer = Tokenizer::from_name(name).unwrap();
            assert_eq!(serde_json::to_value(tokenizer).unwrap(), serde_json::json!(name));
        }
        assert_eq!(Tokenizer::from_name("german"), None);
    }
}
