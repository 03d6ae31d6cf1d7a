//! The sampler for many topics. The weight of a topic is
//!
//! ```text
//! (n_dk + alpha_k) (n_wk + beta) / (n_k + V beta) = n_dk s_k + alpha_k n_wk r_k + alpha_k beta r_k
//! r_k = 1 / (n_k + V beta),  s_k = (n_wk + beta) r_k
//! ```
//! (Yao, Mimno, `McCallum`, "Efficient methods for topic model inference on streaming document collections", KDD 2009). The first
//! term has the topics of the document alone. The others do not change while the tokens of a word are sampled, so their running
//! sums are made once for the word, and once for all words. A token costs as much as its document has topics, in vectors of fixed
//! length; a word as much as it has topics.

use std::ops::Range;

use math::prefetch::prefetch;
use multiversion::multiversion;

use super::documents::Documents;
use super::sampler::{Frozen, Group, LANES, bits, running_sums, uniform};

/// Tokens after which the topics of a document are needed.
const LOOK_AHEAD: usize = 8;
/// Vectors of a list that are fetched ahead.
const FETCHED: usize = 6;

/// The topics of each document with their counts, in no order that means anything: vectors, whose last is filled up with counts of
/// 0.
pub(super) struct TopicLists {
    /// Where the vectors of a document begin.
    starts: Vec<usize>,
    /// Number of topics of each document.
    lens: Vec<u32>,
    topics: Vec<[u16; LANES]>,
    counts: Vec<[i32; LANES]>,
}

impl TopicLists {
    /// The lists of documents whose tokens have these topics.
    pub(super) fn new(documents: &Documents, topics: &[u16], topic_count: usize) -> Self {
        let mut starts = vec![0];
        for length in &documents.lengths {
            starts.push(starts[starts.len() - 1] + (*length as usize).min(topic_count).div_ceil(LANES));
        }
        let size = starts[starts.len() - 1];
        let lens = vec![0; documents.count()];
        let mut lists = Self { starts, lens, topics: vec![[0; LANES]; size], counts: vec![[0; LANES]; size] };
        for (&document, &topic) in documents.of_tokens.iter().zip(topics) {
            lists.add(document as usize, topic);
        }
        lists
    }

    /// The topics of a document with their counts.
    pub(super) fn of(&self, document: usize) -> impl Iterator<Item = (u16, i32)> {
        let range = self.vectors(document);
        let topics = self.topics[range.clone()].as_flattened().iter().copied();
        topics.zip(self.counts[range].as_flattened().iter().copied()).take(self.lens[document] as usize)
    }

    /// The vectors of a document.
    #[inline]
    fn vectors(&self, document: usize) -> Range<usize> {
        let start = self.starts[document];
        start..start + (self.lens[document] as usize).div_ceil(LANES)
    }

    /// The position of a topic in the list of a document.
    #[inline]
    fn position(&self, document: usize, topic: u16) -> Option<usize> {
        let len = self.lens[document] as usize;
        for (v, topics) in self.topics[self.vectors(document)].iter().enumerate() {
            // Without a way out between the lanes, they are compared at once.
            if topics.iter().map(|other| u16::from(*other == topic)).sum::<u16>() > 0 {
                let lane = topics.iter().position(|other| *other == topic).expect("a lane has the topic");
                // The lanes behind the list have the topic 0 or an old one.
                return Some(v * LANES + lane).filter(|at| *at < len);
            }
        }
        None
    }

    #[inline]
    fn add(&mut self, document: usize, topic: u16) {
        let (start, position) = (self.starts[document], self.position(document, topic));
        let counts = self.counts[start..].as_flattened_mut();
        if let Some(at) = position {
            counts[at] += 1;
            return;
        }
        let len = self.lens[document] as usize;
        counts[len] = 1;
        self.topics[start..].as_flattened_mut()[len] = topic;
        self.lens[document] += 1;
    }

    #[inline]
    fn remove(&mut self, document: usize, topic: u16) {
        let at = self.position(document, topic).expect("the token is in the list");
        let start = self.starts[document];
        let counts = self.counts[start..].as_flattened_mut();
        counts[at] -= 1;
        if counts[at] == 0 {
            let last = self.lens[document] as usize - 1;
            counts[at] = counts[last];
            counts[last] = 0;
            let topics = self.topics[start..].as_flattened_mut();
            topics[at] = topics[last];
            self.lens[document] -= 1;
        }
    }
}

/// Samples all tokens of a group.
pub(super) fn sample(group: &mut Group<'_>, lists: &mut TopicLists) {
    let (documents, frozen) = (group.documents, group.frozen);
    let mut of_word = OfWord::new(frozen);
    for (at, word) in group.words.iter().enumerate() {
        let range = word.start..word.end;
        let row = group.rows.row(at, word, group.topics);
        of_word.set(frozen, row);
        let tokens = Tokens {
            documents: &documents.of_tokens[range.clone()],
            before: documents.before,
            of_word: group.draws.of_word(documents.keys[word.word as usize]),
        };
        sample_word(frozen, &mut of_word, &tokens, &mut group.topics[range], lists, row, group.changes);
    }
}

/// The tokens of a word.
struct Tokens<'a> {
    documents: &'a [u32],
    before: u64,
    of_word: u64,
}

/// Samples the tokens of a word. The row of the word changes at once, but its tokens are all sampled from what it was.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn sample_word(
    frozen: &Frozen,
    of_word: &mut OfWord,
    tokens: &Tokens<'_>,
    topics: &mut [u16],
    lists: &mut TopicLists,
    row: &mut [i32],
    changes: &mut [i64],
) {
    let (mut before, mut copy) = (u32::MAX, 0);
    for (t, topic) in topics.iter_mut().enumerate() {
        if let Some(next) = tokens.documents.get(t + LOOK_AHEAD) {
            let start = lists.starts[*next as usize];
            prefetch(&lists.topics, start);
            (0..FETCHED).step_by(2).for_each(|vector| prefetch(&lists.counts, start + vector));
        }
        let document = tokens.documents[t];
        copy = if document == before { copy + 1 } else { 0 };
        before = document;
        let draw = uniform(bits(tokens.of_word, tokens.before + u64::from(document), copy));
        let (document, old) = (document as usize, *topic);
        let own = lists.vectors(document);
        let ends = of_word.weigh(&lists.topics[own.clone()], &lists.counts[own.clone()], old);
        let of_document = ends[LANES - 1];
        let at = usize::from(of_word.places[usize::from(old)]);
        let alone = of_word.alone(frozen, old);
        let of_row = of_word.end_before(at) + alone + of_word.sum() - of_word.ends[at];
        let target = draw * (of_document + of_row + of_word.smoothing_sum());
        let new = if target < of_document {
            let len = lists.lens[document] as usize;
            lists.topics[own].as_flattened()[of_word.draw_of_document(&ends, target, len)]
        } else {
            of_word.draw_of_word(target - of_document, old, at, alone)
        };
        if new != old {
            lists.remove(document, old);
            lists.add(document, new);
            *topic = new;
            let (old, new) = (usize::from(old), usize::from(new));
            row[old] -= 1;
            row[new] += 1;
            changes[old] -= 1;
            changes[new] += 1;
        }
    }
}

/// One number for each topic, and for those that do not exist: an index of 16 bits needs no check.
type Table = Box<[f32; 1 << 16]>;

fn table() -> Table {
    vec![0.0; 1 << 16].try_into().expect("the length is that of the type")
}

/// What the tokens of a word share.
struct OfWord {
    /// `s_k`; of a topic that the word does not have, `beta r_k`.
    share: Table,
    /// `(n_wk - 1 + beta) / (n_k - 1 + V beta)`, for a token of the topic.
    own_share: Table,
    /// The topics that have the word, ascending, and the position of each of them there.
    topics: Vec<u16>,
    places: Vec<u16>,
    /// The running sums of `alpha_k n_wk r_k` over them.
    ends: Vec<f32>,
    /// The running sums of `alpha_k beta r_k` over all topics.
    smoothing: Vec<f32>,
    /// `n_dk s_k` of the token that is sampled, and their sums by lane.
    weights: Vec<[f32; LANES]>,
    sums: [f32; LANES],
}

impl OfWord {
    fn new(frozen: &Frozen) -> Self {
        let (mut share, mut smoothing, mut sum) = (table(), Vec::new(), 0.0);
        for ((share, scale), alpha) in share.iter_mut().zip(&frozen.scale).zip(&frozen.alpha) {
            *share = frozen.beta * scale;
            sum += alpha * *share;
            smoothing.push(sum);
        }
        let places = vec![0; frozen.alpha.len()];
        let (topics, ends, weights) = (Vec::new(), Vec::new(), Vec::new());
        Self { share, own_share: table(), topics, places, ends, smoothing, weights, sums: [0.0; LANES] }
    }

    /// Sets the word.
    fn set(&mut self, frozen: &Frozen, row: &[i32]) {
        for topic in self.topics.drain(..) {
            self.share[usize::from(topic)] = frozen.beta * frozen.scale[usize::from(topic)];
        }
        self.ends.clear();
        let mut sum = 0.0;
        for (v, vector) in row.chunks(LANES).enumerate() {
            if vector.iter().fold(0, |all, count| all | count) == 0 {
                continue;
            }
            for (k, &count) in (v * LANES..).zip(vector).filter(|(_, count)| **count != 0) {
                let count = count as f32;
                self.share[k] = (count + frozen.beta) * frozen.scale[k];
                self.own_share[k] = (count - 1.0 + frozen.beta) * frozen.own_scale[k];
                self.places[k] = self.topics.len() as u16;
                self.topics.push(k as u16);
                sum += frozen.alpha[k] * count * frozen.scale[k];
                self.ends.push(sum);
            }
        }
    }

    /// Weighs the topics of a document for a token of the topic `old`. Returns the running sums of the lanes.
    #[expect(clippy::inline_always, reason = "it must have the vector instructions of its caller")]
    #[inline(always)]
    fn weigh(&mut self, topics: &[[u16; LANES]], counts: &[[i32; LANES]], old: u16) -> [f32; LANES] {
        let (own_share, share) = (self.own_share[usize::from(old)], &*self.share);
        if self.weights.len() < topics.len() {
            self.weights.resize(topics.len(), [0.0; LANES]);
        }
        let mut sums = [0.0; LANES];
        for ((topics, counts), weights) in topics.iter().zip(counts).zip(&mut self.weights) {
            // Loops of one operation each become vectors; one that does all of them does not.
            let is_own = topics.map(|topic| i32::from(topic == old));
            let mut shares = [0.0; LANES];
            for j in 0..LANES {
                shares[j] = share[usize::from(topics[j])];
            }
            let mut others = [0i32; LANES];
            for j in 0..LANES {
                // A lane behind the list has the count 0.
                others[j] = (counts[j] - is_own[j]).max(0);
            }
            for j in 0..LANES {
                let share = if is_own[j] == 1 { own_share } else { shares[j] };
                weights[j] = others[j] as f32 * share;
            }
            for j in 0..LANES {
                sums[j] += weights[j];
            }
        }
        self.sums = sums;
        running_sums(sums)
    }

    /// The position of the topic that `target` means, in the list of the document with `len` topics: first its lane is drawn,
    /// then the topic of the lane.
    #[inline]
    fn draw_of_document(&self, ends: &[f32; LANES], target: f32, len: usize) -> usize {
        let lane = ends.iter().map(|end| usize::from(*end <= target)).sum::<usize>().min(len.min(LANES) - 1);
        let left = target - (ends[lane] - self.sums[lane]);
        let (mut sum, mut vector) = (0.0, 0);
        for weights in &self.weights[..(len - 1) / LANES] {
            sum += weights[lane];
            vector += usize::from(sum <= left);
        }
        // The last vector may have no topic in the lane.
        let at = vector * LANES + lane;
        if at < len { at } else { at - LANES }
    }

    /// The sum of `alpha_k n_wk r_k`.
    fn sum(&self) -> f32 {
        self.ends[self.ends.len() - 1]
    }

    fn smoothing_sum(&self) -> f32 {
        self.smoothing[self.smoothing.len() - 1]
    }

    /// The sum of the topics before a position.
    fn end_before(&self, at: usize) -> f32 {
        if at == 0 { 0.0 } else { self.ends[at - 1] }
    }

    /// `alpha_k n_wk r_k` of the topic of a token, without the token.
    fn alone(&self, frozen: &Frozen, old: u16) -> f32 {
        let old = usize::from(old);
        frozen.alpha[old] * (self.own_share[old] - frozen.beta * frozen.own_scale[old]).max(0.0)
    }

    /// The topic that `target` means among those of the word, then among all, for a token of the topic `old`, which is at the
    /// position `at` and has the weight `alone`.
    fn draw_of_word(&self, mut target: f32, old: u16, at: usize, alone: f32) -> u16 {
        let before = self.end_before(at);
        if target < before {
            return self.topics[self.ends[..at].partition_point(|end| *end <= target).min(at)];
        }
        if target < before + alone {
            return old;
        }
        let of_row = before + alone + self.sum() - self.ends[at];
        if target < of_row {
            target += self.ends[at] - before - alone;
            let place = at + 1 + self.ends[at + 1..].partition_point(|end| *end <= target);
            return self.topics[place.min(self.topics.len() - 1)];
        }
        target -= of_row;
        self.smoothing.partition_point(|end| *end <= target).min(self.smoothing.len() - 1) as u16
    }
}
