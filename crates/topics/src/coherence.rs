//! The most frequent words of topics, and how often these words meet in the documents of the training.

use math::elementary::ln;
use math::selection::TopN;
use matrix::Agent;

use super::documents::Documents;
use super::model::TOP_WORDS;
use super::table::WordRows;
use algo::error::Error;
use algo::exchange::Exchange;

/// The keys of the most frequent words of each topic, the most frequent first; of equal ones the one with the smaller key.
pub(super) fn top_words(
    rows: &mut WordRows,
    agent: &mut dyn Agent,
    documents: &Documents,
    token_topics: &[u16],
    topics: usize,
) -> Result<Vec<Vec<u64>>, Error> {
    let mut top_of_topics = vec![TopN::new(TOP_WORDS * documents.groups.len().max(1)); topics];
    rows.for_each(agent, documents, token_topics, |key, row| {
        let counts = top_of_topics.iter_mut().zip(row).filter(|(_, count)| **count > 0);
        counts.for_each(|(top, count)| top.add(f64::from(*count), key));
    })?;
    // The words of all tasks: counts and both halves of keys.
    let (task, task_count) = (agent.task() as usize, agent.task_count() as usize);
    let mut sent = vec![0i64; 3 * TOP_WORDS * topics * task_count];
    let own = sent.chunks_exact_mut(3 * TOP_WORDS).skip(task * topics);
    for (top, own) in top_of_topics.into_iter().zip(own) {
        let mut words = top.into_sorted();
        words.dedup();
        for ((count, key), sent) in words.into_iter().zip(own.as_chunks_mut::<3>().0) {
            *sent = [count as i64, (key >> 32) as i64, (key & u64::from(u32::MAX)) as i64];
        }
    }
    Exchange::new(agent).sum(&mut sent)?;
    let mut all = vec![Vec::new(); topics];
    for (at, words) in sent.chunks_exact(3 * TOP_WORDS).enumerate() {
        let words = words.as_chunks::<3>().0.iter().filter(|word| word[0] > 0);
        all[at % topics].extend(words.map(|[count, high, low]| (-count, (*high as u64) << 32 | *low as u64)));
    }
    let first = |mut words: Vec<(i64, u64)>| {
        words.sort_unstable();
        words.dedup();
        words.into_iter().take(TOP_WORDS).map(|(_, key)| key).collect()
    };
    Ok(all.into_iter().map(first).collect())
}

/// Means over the topics that have two words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coherence {
    /// Mimno et al., "Optimizing semantic coherence in topic models", EMNLP 2011, equation 1; the mean over pairs of words.
    pub(super) umass: f64,
    /// Normalized pointwise mutual information (Bouma, 2009) of words in documents; the mean over pairs of words.
    pub(super) npmi: f64,
}

/// The coherence of topics with these words; `None` if no topic has two.
pub(super) fn coherence(
    words: &[Vec<u64>],
    documents: &Documents,
    document_count: u64,
    exchange: &mut Exchange<'_>,
) -> Result<Option<Coherence>, Error> {
    let mut counts = Vec::new();
    for words in words {
        let lists: Vec<Vec<u32>> = words.iter().map(|key| documents_with(*key, documents)).collect();
        for (i, list) in lists.iter().enumerate() {
            counts.extend(lists[..i].iter().map(|other| common(list, other)));
            counts.push(list.len() as i64);
        }
    }
    exchange.sum(&mut counts)?;
    let (mut umass, mut npmi, mut topics, mut counts) = (0.0, 0.0, 0.0, counts.as_slice());
    for words in words {
        let (own, rest) = counts.split_at(words.len() * (words.len() + 1) / 2);
        counts = rest;
        if words.len() > 1 {
            let [own_umass, own_npmi] = of_topic(own, words.len(), document_count as f64);
            (umass, npmi, topics) = (umass + own_umass, npmi + own_npmi, topics + 1.0);
        }
    }
    Ok((topics > 0.0).then(|| Coherence { umass: umass / topics, npmi: npmi / topics }))
}

/// Both of a topic: `umass`, `npmi`. `counts`: for each word the documents that it shares with the words before it, then its own.
fn of_topic(counts: &[i64], words: usize, documents: f64) -> [f64; 2] {
    let count = |i: usize, j: usize| counts[i * (i + 1) / 2 + j] as f64;
    let (mut umass, mut npmi, mut pairs) = (0.0, 0.0, 0.0);
    for i in 1..words {
        for j in 0..i {
            let (both, first, second) = (count(i, j), count(i, i), count(j, j));
            umass += ln((both + 1.0) / second);
            npmi += match both {
                0.0 => -1.0,
                _ if both >= documents => 1.0,
                _ => ln(both * documents / (first * second)) / -ln(both / documents),
            };
            pairs += 1.0;
        }
    }
    [umass / pairs, npmi / pairs]
}

/// The documents of the task that have a word, ascending.
fn documents_with(key: u64, documents: &Documents) -> Vec<u32> {
    let mut numbers = Vec::new();
    for group in &documents.groups {
        let own = group.iter().find(|tokens| documents.keys[tokens.word as usize] == key);
        let own = own.map(|tokens| &documents.of_tokens[tokens.start..tokens.end]);
        numbers.extend_from_slice(own.unwrap_or_default());
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// How many numbers two ascending lists have in common.
fn common(a: &[u32], b: &[u32]) -> i64 {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    short.iter().filter(|number| long.binary_search(number).is_ok()).count() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_meet_in_all_their_documents_are_coherent_and_others_are_not() {
        // Two words in the same 4 of 16 documents; then two that never meet.
        let [umass, npmi] = of_topic(&[4, 4, 4], 2, 16.0);
        assert!((umass - ln(1.25)).abs() < 1e-12 && (npmi - 1.0).abs() < 1e-12, "{umass} {npmi}");
        let [umass, npmi] = of_topic(&[4, 0, 4], 2, 16.0);
        assert!((umass - ln(0.25)).abs() < 1e-12 && npmi == -1.0, "{umass} {npmi}");
        // Independent words: 8 x 8 / 16 = 4 documents in common.
        let [_, npmi] = of_topic(&[8, 4, 8], 2, 16.0);
        assert!(npmi.abs() < 1e-12, "{npmi}");
        assert_eq!(of_topic(&[3, 3, 3], 2, 3.0)[1], 1.0);
    }
}
