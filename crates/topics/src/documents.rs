//! The documents of a task: which words they have, and the tokens in the order in which they are sampled.
//!
//! Tokens are sampled group by group. A group has the tokens of a block of documents in a slice of the vocabulary. Blocks and
//! slices follow from the numbers of the documents and from the keys of the words, so they are the same for any number of
//! tasks. In a group the tokens of a word follow one another, in the order of documents.

use std::collections::HashMap;

use data::{Batch, BatchStream};
use math::hash::mix64;

use algo::error::Error;

/// Largest count of a word in a document: single precision holds whole numbers up to it.
const COUNT_LIMIT: f32 = 16_777_216.0;

/// The number of documents in which a word occurs.
pub(super) type WordDocuments = Vec<i64>;

/// A word in a document.
#[derive(Clone, Copy, Debug)]
struct Entry {
    word: u32,
    document: u32,
    count: u32,
}

/// The documents as bags of words.
pub(super) struct Bags {
    /// The keys of the words, ascending.
    pub(super) keys: Vec<u64>,
    entries: Vec<Entry>,
    pub(super) document_count: u32,
}

impl Bags {
    /// Reads all documents. Those with the weight 0 are left out.
    pub(super) fn read(data: &mut dyn BatchStream) -> Result<Self, Error> {
        let (mut words, mut entries, mut document_count) = (HashMap::new(), Vec::new(), 0u32);
        data.start_epoch(0)?;
        while let Some(batch) = data.next()? {
            let numbers: Vec<u32> = batch
                .columns
                .iter()
                .map(|&key| {
                    let next = words.len() as u32;
                    *words.entry(key).or_insert(next)
                })
                .collect();
            for r in 0..batch.record_count() {
                if !has_weight(batch, r)? {
                    continue;
                }
                for i in batch.entries(r) {
                    let at = batch.indices[i] as usize;
                    if let Some(count) = count(batch, i)? {
                        entries.push(Entry { word: numbers[at], document: document_count, count });
                    }
                }
                document_count += 1;
            }
        }
        data.release_cache();
        let mut by_key: Vec<(u64, u32)> = words.into_iter().collect();
        by_key.sort_unstable();
        let mut places = vec![0; by_key.len()];
        (0..).zip(&by_key).for_each(|(place, (_, word))| places[*word as usize] = place);
        for entry in &mut entries {
            entry.word = places[entry.word as usize];
        }
        let keys = by_key.into_iter().map(|(key, _)| key).collect();
        Ok(Self { keys, entries, document_count })
    }

    /// The number of documents of each word.
    pub(super) fn documents_of_words(&self) -> WordDocuments {
        let mut counts = vec![0; self.keys.len()];
        self.entries.iter().for_each(|entry| counts[entry.word as usize] += 1);
        counts
    }
}

/// Whether the record is a document.
pub(super) fn has_weight(batch: &Batch, r: usize) -> Result<bool, Error> {
    match batch.weight(r) {
        0.0 => Ok(false),
        1.0 => Ok(true),
        weight => Err(Error::unsuitable(format!(
            "a document has the weight {weight}: lda counts words, so a weight is 0 or 1. Repeat a document that shall count \
             several times"
        ))),
    }
}

/// The count of an entry; `None` if it is 0.
pub(super) fn count(batch: &Batch, i: usize) -> Result<Option<u32>, Error> {
    let value = batch.values.get(i).copied().unwrap_or(1.0);
    if value == 0.0 {
        return Ok(None);
    }
    if value > 0.0 && value <= COUNT_LIMIT && value.fract() == 0.0 {
        return Ok(Some(value as u32));
    }
    let key = batch.columns[batch.indices[i] as usize];
    Err(Error::unsuitable(format!(
        "the word with the key {key} has the count {value} in a document; expected a whole number from 0 to {COUNT_LIMIT}. \
         Give counts of words, not weights such as tf-idf"
    )))
}

/// The tokens of a word in a group.
#[derive(Clone, Debug)]
pub(super) struct WordTokens {
    /// The position of its key.
    pub(super) word: u32,
    /// The first token, and the end.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The documents of a task, without the words that are not in the vocabulary.
pub(super) struct Documents {
    /// The keys of the words: slice by slice, ascending in each.
    pub(super) keys: Vec<u64>,
    /// Number of documents of the tasks before this one.
    pub(super) before: u64,
    /// Number of tokens of each document.
    pub(super) lengths: Vec<u32>,
    /// The document of each token.
    pub(super) of_tokens: Vec<u32>,
    /// The words of each group, in the order in which groups are sampled, which is that of the tokens.
    pub(super) groups: Vec<Vec<WordTokens>>,
}

/// How the tokens of all tasks are divided into groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    pub(super) blocks: u64,
    pub(super) slices: u64,
}

impl Division {
    fn slice(self, key: u64) -> u64 {
        ((u128::from(mix64(key)) * u128::from(self.slices)) >> 64) as u64
    }
}

impl Documents {
    /// `is_word` says which words are in the vocabulary.
    pub(super) fn new(bags: &Bags, is_word: &[bool], before: u64, division: Division) -> Self {
        let in_vocabulary = bags.keys.iter().zip(is_word).enumerate().filter(|(_, (_, is_word))| **is_word);
        let mut words: Vec<(u64, u64, u32)> =
            in_vocabulary.map(|(old, (&key, _))| (division.slice(key), key, old as u32)).collect();
        words.sort_unstable();
        let mut places = vec![u32::MAX; bags.keys.len()];
        (0..).zip(&words).for_each(|(place, (_, _, old))| places[*old as usize] = place);
        let mut lengths = vec![0; bags.document_count as usize];
        let mut entries: Vec<(u64, Entry)> = Vec::new();
        for entry in bags.entries.iter().filter(|entry| is_word[entry.word as usize]) {
            lengths[entry.document as usize] += entry.count;
            let word = places[entry.word as usize];
            let block = (before + u64::from(entry.document)) % division.blocks;
            let group = block * division.slices + words[word as usize].0;
            entries.push((group, Entry { word, ..*entry }));
        }
        entries.sort_unstable_by_key(|(group, entry)| (*group, entry.word, entry.document));
        let mut groups = vec![Vec::new(); (division.blocks * division.slices) as usize];
        let mut of_tokens = Vec::new();
        for of_word in entries.chunk_by(|a, b| (a.0, a.1.word) == (b.0, b.1.word)) {
            let start = of_tokens.len();
            for (_, entry) in of_word {
                of_tokens.extend(std::iter::repeat_n(entry.document, entry.count as usize));
            }
            let (group, Entry { word, .. }) = of_word[0];
            groups[group as usize].push(WordTokens { word, start, end: of_tokens.len() });
        }
        let keys = words.into_iter().map(|(_, key, _)| key).collect();
        Self { keys, before, lengths, of_tokens, groups }
    }

    /// Number of documents.
    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Number of tokens.
    pub(super) fn token_count(&self) -> usize {
        self.of_tokens.len()
    }

    /// The words of a group with their keys.
    pub(super) fn group_keys(&self, group: usize) -> Vec<u64> {
        self.groups[group].iter().map(|tokens| self.keys[tokens.word as usize]).collect()
    }
}
