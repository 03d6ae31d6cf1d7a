//! The sampler for many topics. The weight of a topic is
//!
//! ```text
//! (n_dk + alpha_k) (n_wk + beta) / (n_k + V beta) = n_dk s_k + alpha_k n_wk r_k + alpha_k beta r_k
//! r_k = 1 / (n_k + V beta),  s_k = (n_wk + beta) r_k
//! ```
//! (Yao, Mimno, `McCallum`, "Efficient methods for topic model inference on streaming document collections", KDD 2009). The first
//! term has the topics of the document alone. The others do not change while the tokens of a word are sampled, so their running
//! sums are made once for the word, and once for all words. A token costs as much as its document has topics.

use super::documents::Documents;
use super::sampler::{Frozen, Group, bits, uniform};

/// The topics of each document with their counts, in no order that means anything.
pub(super) struct TopicLists {
    /// Where the list of a document begins.
    starts: Vec<usize>,
    lens: Vec<u32>,
    /// Topic and count.
    entries: Vec<[u32; 2]>,
}

impl TopicLists {
    /// The lists of documents whose tokens have these topics.
    pub(super) fn new(documents: &Documents, topics: &[u16], topic_count: usize) -> Self {
        let mut starts = vec![0];
        for length in &documents.lengths {
            starts.push(starts[starts.len() - 1] + (*length as usize).min(topic_count));
        }
        let entries = vec![[0; 2]; starts[starts.len() - 1]];
        let mut lists = Self { starts, lens: vec![0; documents.count()], entries };
        for (&document, &topic) in documents.of_tokens.iter().zip(topics) {
            lists.add(document as usize, u32::from(topic));
        }
        lists
    }

    #[inline]
    pub(super) fn of(&self, document: usize) -> &[[u32; 2]] {
        &self.entries[self.starts[document]..][..self.lens[document] as usize]
    }

    #[inline]
    fn add(&mut self, document: usize, topic: u32) {
        let start = self.starts[document];
        let len = self.lens[document] as usize;
        if let Some(entry) = self.entries[start..start + len].iter_mut().find(|entry| entry[0] == topic) {
            entry[1] += 1;
            return;
        }
        self.entries[start + len] = [topic, 1];
        self.lens[document] += 1;
    }

    #[inline]
    fn remove(&mut self, document: usize, topic: u32) {
        let start = self.starts[document];
        let list = &mut self.entries[start..start + self.lens[document] as usize];
        let at = list.iter().position(|entry| entry[0] == topic).expect("the token is in the list");
        list[at][1] -= 1;
        if list[at][1] == 0 {
            list[at] = list[list.len() - 1];
            self.lens[document] -= 1;
        }
    }
}

/// Samples all tokens of a group.
pub(super) fn sample(group: &mut Group<'_>, lists: &mut TopicLists) {
    let frozen = group.frozen;
    let (mut of_word, smoothing) = (OfWord::new(frozen), smoothing(frozen));
    let (mut ends, mut moves) = (Vec::new(), Vec::new());
    for (at, word) in group.words.iter().enumerate() {
        of_word.set(frozen, group.rows.row(at, word));
        let named = group.draws.of_word(group.documents.keys[word.word as usize]);
        let (mut before, mut copy) = (u32::MAX, 0);
        moves.clear();
        for t in word.start..word.end {
            let document = group.documents.of_tokens[t];
            copy = if document == before { copy + 1 } else { 0 };
            before = document;
            let old = usize::from(group.topics[t]);
            let draw = uniform(bits(named, group.documents.before + u64::from(document), copy));
            let new = of_word.draw(frozen, lists.of(document as usize), old, draw, &smoothing, &mut ends);
            if new != old {
                lists.remove(document as usize, old as u32);
                lists.add(document as usize, new as u32);
                group.topics[t] = new as u16;
                moves.push((old, new));
            }
        }
        let row = group.rows.row(at, word);
        for &(old, new) in &moves {
            row[old] -= 1;
            row[new] += 1;
            group.changes[old] -= 1;
            group.changes[new] += 1;
        }
    }
}

/// The running sums of `alpha_k beta r_k`.
fn smoothing(frozen: &Frozen) -> Vec<f32> {
    let mut sum = 0.0;
    let terms = frozen.alpha.iter().zip(&frozen.scale).map(|(alpha, scale)| alpha * frozen.beta * scale);
    terms
        .map(|term| {
            sum += term;
            sum
        })
        .collect()
}

/// What the tokens of a word share.
struct OfWord {
    /// `s_k`.
    share: Vec<f32>,
    /// `(n_wk - 1 + beta) / (n_k - 1 + V beta)`, for a token of the topic.
    own_share: Vec<f32>,
    /// The topics that have the word, ascending, and the position of each of them there.
    topics: Vec<u16>,
    places: Vec<u16>,
    /// The running sums of `alpha_k n_wk r_k` over them.
    ends: Vec<f32>,
}

impl OfWord {
    fn new(frozen: &Frozen) -> Self {
        let zeros = vec![0.0; frozen.alpha.len()];
        let places = vec![0; zeros.len()];
        Self { share: zeros.clone(), own_share: zeros, topics: Vec::new(), places, ends: Vec::new() }
    }

    fn set(&mut self, frozen: &Frozen, row: &[i32]) {
        self.topics.clear();
        self.ends.clear();
        for ((share, count), scale) in self.share.iter_mut().zip(row).zip(&frozen.scale) {
            *share = (*count as f32 + frozen.beta) * scale;
        }
        let mut sum = 0.0;
        for (k, &count) in row.iter().enumerate().filter(|(_, count)| **count != 0) {
            let count = count as f32;
            self.own_share[k] = (count - 1.0 + frozen.beta) * frozen.own_scale[k];
            self.places[k] = self.topics.len() as u16;
            self.topics.push(k as u16);
            sum += frozen.alpha[k] * count * frozen.scale[k];
            self.ends.push(sum);
        }
    }

    /// Draws the topic of a token of the topic `old`, in a document with these topics.
    #[inline]
    fn draw(
        &self,
        frozen: &Frozen,
        document: &[[u32; 2]],
        old: usize,
        uniform: f32,
        smoothing: &[f32],
        ends: &mut Vec<f32>,
    ) -> usize {
        ends.clear();
        let mut of_document = 0.0;
        for &[topic, count] in document {
            let topic = topic as usize;
            let is_own = topic == old;
            let share = if is_own { self.own_share[old] } else { self.share[topic] };
            of_document += (count - u32::from(is_own)) as f32 * share;
            ends.push(of_document);
        }
        // The token is in the row of its word.
        let at = usize::from(self.places[old]);
        let before = if at == 0 { 0.0 } else { self.ends[at - 1] };
        let own = frozen.alpha[old] * (self.own_share[old] - frozen.beta * frozen.own_scale[old]).max(0.0);
        let after = self.ends[self.ends.len() - 1] - self.ends[at];
        let of_word = before + own + after;
        let mut target = uniform * (of_document + of_word + smoothing[smoothing.len() - 1]);
        if target < of_document {
            return document[ends.partition_point(|end| *end <= target).min(document.len() - 1)][0] as usize;
        }
        target -= of_document;
        if target < before {
            return self.topics[self.ends[..at].partition_point(|end| *end <= target).min(at)].into();
        }
        if target < before + own {
            return old;
        }
        if target < of_word {
            let target = target - before - own + self.ends[at];
            let place = at + 1 + self.ends[at + 1..].partition_point(|end| *end <= target);
            return self.topics[place.min(self.topics.len() - 1)].into();
        }
        target -= of_word;
        smoothing.partition_point(|end| *end <= target).min(smoothing.len() - 1)
    }
}
