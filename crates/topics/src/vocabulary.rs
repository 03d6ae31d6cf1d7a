//! Which words are kept: those of enough documents, and not of too many.

use matrix::{Agent, Values, ValuesMut};

use super::documents::Bags;
use super::functions::{WORDS, call};
use super::model::Model;
use algo::error::Error;
use algo::rows::rows_of;

/// The limits of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) min_documents: u64,
    /// Largest share of the documents.
    pub(super) max_share: f64,
    /// Largest number of words.
    pub(super) words: u64,
}

/// Words of so many documents are not left out for their share.
const FEW_DOCUMENTS: f64 = 10.0;

/// The vocabulary, as a task sees it.
pub(super) struct Vocabulary {
    /// Whether each of the words of the task is kept.
    pub(super) is_word: Vec<bool>,
    /// Number of words of all tasks.
    pub(super) size: u64,
    /// What was left out, for people.
    pub(super) notice: Option<String>,
}

/// Counts the documents of each word over all tasks, and applies the limits. All tasks wait for each other. In a training that
/// goes on, the counts are there.
pub(super) fn choose(
    limits: Limits,
    bags: &Bags,
    document_count: u64,
    agent: &mut dyn Agent,
    is_new: bool,
) -> Result<Vocabulary, Error> {
    if is_new {
        let counts = bags.documents_of_words();
        if !counts.is_empty() {
            agent.push(Model::WORDS, rows_of(&bags.keys), Values::I64(&counts))?;
        }
        agent.tick()?;
    }
    agent.barrier()?;
    let most = (limits.max_share * document_count as f64).floor().max(FEW_DOCUMENTS);
    let mut words_from = |least: u64| {
        call::<1>(agent, Model::WORDS, WORDS.0, &[least as f64, most]).map(|[count]| count as u64)
    };
    let (mut least, all) = (limits.min_documents, words_from(1)?);
    let mut size = words_from(least)?;
    if size > limits.words {
        // The smallest number of documents that leaves no more words than the limit.
        let (mut low, mut high) = (least, most as u64 + 1);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if words_from(middle)? > limits.words { low = middle } else { high = middle }
        }
        (least, size) = (high, words_from(high)?);
    }
    let mut counts = vec![0; bags.keys.len()];
    if !counts.is_empty() {
        agent.pull(Model::WORDS, rows_of(&bags.keys), ValuesMut::I64(&mut counts))?;
    }
    if size == 0 {
        return Err(Error::unsuitable(format!(
            "no word of the {document_count} documents is left: a word is kept if it is in {least} to {most} of them. Lower \
             min_documents, or raise max_document_share or vocabulary_limit; and check that the documents have words"
        )));
    }
    let is_word = counts.iter().map(|count| (least as i64..=most as i64).contains(count)).collect();
    let notice = (size < all || least > limits.min_documents)
        .then(|| format!("the vocabulary has {size} words: those of {least} to {most} documents"));
    Ok(Vocabulary { is_word, size, notice })
}
