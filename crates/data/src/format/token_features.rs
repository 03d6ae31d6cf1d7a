//! Texts of tokens between white space, that of Unicode (or of ASCII, in a text that is not UTF-8): each token is a feature
//! of the record. A [`Tokenizer`] may take the words of the texts instead.

use math::hash::named_key;

use super::dictionary::Dictionary;
use super::tokenizer::{Tokenizer, for_each_word};
use crate::batch::BatchBuilder;

/// Turns texts into entries.
#[derive(Debug)]
pub(crate) struct Tokens {
    keeps_order: bool,
    tokenizer: Tokenizer,
    stop_words: Vec<&'static str>,
    /// The keys of the tokens of one text.
    keys: Vec<u64>,
}

impl Tokens {
    pub(crate) fn new(keeps_order: bool, tokenizer: Tokenizer) -> Self {
        Self { keeps_order, tokenizer, stop_words: tokenizer.stop_words(), keys: Vec::new() }
    }

    /// Pushes the tokens of `text`. Their keys are those of values of a text column with the name `space`; without a name
    /// the token alone is the name of its feature.
    pub(crate) fn push(
        &mut self,
        space: &[u8],
        text: &[u8],
        dictionary: &mut Dictionary,
        out: &mut BatchBuilder,
    ) {
        if self.tokenizer != Tokenizer::Blanks {
            self.keys.clear();
            let keys = &mut self.keys;
            let visit = |token: &[u8]| keys.push(add_token(space, token, dictionary));
            for_each_word(text, &self.stop_words, visit);
            return out.push_tokens(&mut self.keys, self.keeps_order);
        }
        match std::str::from_utf8(text) {
            Ok(text) if !text.is_ascii() => {
                let tokens = text.split_whitespace().map(str::as_bytes);
                self.push_each(space, tokens, dictionary, out);
            }
            _ => self.push_each(space, text.split(u8::is_ascii_whitespace), dictionary, out),
        }
    }

    /// Does the same for tokens that are separate already. Empty ones are left out.
    pub(crate) fn push_each<'a>(
        &mut self,
        space: &[u8],
        tokens: impl Iterator<Item = &'a [u8]>,
        dictionary: &mut Dictionary,
        out: &mut BatchBuilder,
    ) {
        self.keys.clear();
        for token in tokens.filter(|token| !token.is_empty()) {
            self.keys.push(add_token(space, token, dictionary));
        }
        out.push_tokens(&mut self.keys, self.keeps_order);
    }
}

/// The key of a token, whose name the dictionary gets.
fn add_token(space: &[u8], token: &[u8], dictionary: &mut Dictionary) -> u64 {
    let key = named_key(space, token);
    if space.is_empty() {
        dictionary.add_named(key, || Some(String::from_utf8_lossy(token).into_owned()));
    } else {
        dictionary.add(key, space, b'=', token);
    }
    key
}
