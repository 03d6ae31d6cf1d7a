//! The exact sampler for few topics: for each token all topics are weighed, in vectors of fixed length.
//!
//! Tokens of a word follow one another, so what depends on the word alone is computed once for all of them, and
//! tokens that follow one another are mostly of different documents: none waits for the counts that another has just changed.

use math::prefetch::prefetch;
use multiversion::multiversion;

use super::sampler::{Frozen, Group, LANES, bits, running_sums, uniform};

/// Numbers of all topics: vectors of [`LANES`].
type Vectors<T, const G: usize> = [[T; LANES]; G];

/// Tokens after which the counts of a document are needed.
const LOOK_AHEAD: usize = 6;

/// Vectors of a row for this many topics: a number for which [`sample`] has a kernel.
pub(super) fn vectors(topics: usize) -> usize {
    match topics.div_ceil(LANES) {
        7 => 8,
        9 => 10,
        11 => 12,
        13..=16 => 16,
        few => few,
    }
}

/// Samples all tokens of a group. `counts`: for each document the number of its tokens in each topic.
pub(super) fn sample(group: &mut Group<'_>, counts: &mut [[f32; LANES]]) {
    match vectors(group.frozen.alpha.len()) {
        1 => sample_vectors::<1>(group, counts),
        2 => sample_vectors::<2>(group, counts),
        3 => sample_vectors::<3>(group, counts),
        4 => sample_vectors::<4>(group, counts),
        5 => sample_vectors::<5>(group, counts),
        6 => sample_vectors::<6>(group, counts),
        8 => sample_vectors::<8>(group, counts),
        10 => sample_vectors::<10>(group, counts),
        12 => sample_vectors::<12>(group, counts),
        _ => sample_vectors::<16>(group, counts),
    }
}

fn sample_vectors<const G: usize>(group: &mut Group<'_>, counts: &mut [[f32; LANES]]) {
    let frozen = Vectorized::new(group.frozen);
    let (documents, draws) = (group.documents, group.draws);
    let counts = counts.as_chunks_mut::<G>().0;
    for (at, word) in group.words.iter().enumerate() {
        let row: &mut Vectors<i32, G> = group
            .rows
            .row(at, word, group.topics)
            .as_chunks_mut::<LANES>()
            .0
            .try_into()
            .expect("rows have G vectors");
        let tokens = Tokens {
            documents: &documents.of_tokens[word.start..],
            before: documents.before,
            of_word: draws.of_word(documents.keys[word.word as usize]),
        };
        let topics = &mut group.topics[word.start..word.end];
        sample_word(&frozen, &tokens, topics, counts, row, group.changes);
    }
}

/// [`Frozen`] in vectors. The numbers of topics that do not exist are 0.
struct Vectorized<const G: usize> {
    topics: usize,
    alpha: Vectors<f32, G>,
    beta: f32,
    scale: Vectors<f32, G>,
    own_scale: Vectors<f32, G>,
}

impl<const G: usize> Vectorized<G> {
    fn new(frozen: &Frozen) -> Self {
        let vectors = |numbers: &[f32]| {
            let mut vectors = [[0.0; LANES]; G];
            vectors.as_flattened_mut()[..numbers.len()].copy_from_slice(numbers);
            vectors
        };
        Self {
            topics: frozen.alpha.len(),
            alpha: vectors(&frozen.alpha),
            beta: frozen.beta,
            scale: vectors(&frozen.scale),
            own_scale: vectors(&frozen.own_scale),
        }
    }
}

/// The tokens of a word, and those after them.
struct Tokens<'a> {
    documents: &'a [u32],
    before: u64,
    of_word: u64,
}

/// Samples the tokens of a word. The row of the word changes at once, but its tokens are all sampled from what it was.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn sample_word<const G: usize>(
    frozen: &Vectorized<G>,
    tokens: &Tokens<'_>,
    topics: &mut [u16],
    counts: &mut [Vectors<f32, G>],
    row: &mut Vectors<i32, G>,
    changes: &mut [i64],
) {
    let (mut share, mut own_share) = ([[0f32; LANES]; G], [[0f32; LANES]; G]);
    for g in 0..G {
        for j in 0..LANES {
            let count = row[g][j] as f32 + frozen.beta;
            share[g][j] = count * frozen.scale[g][j];
            own_share[g][j] = (count - 1.0) * frozen.own_scale[g][j];
        }
    }
    let (last_topic, last_lane) = (frozen.topics - 1, frozen.topics.min(LANES) - 1);
    let (mut before, mut copy) = (u32::MAX, 0u64);
    for (t, topic) in topics.iter_mut().enumerate() {
        let document = tokens.documents[t];
        if let Some(next) = tokens.documents.get(t + LOOK_AHEAD) {
            prefetch(counts, *next as usize);
        }
        copy = if document == before { copy + 1 } else { 0 };
        before = document;
        let own = &mut counts[document as usize];
        let old = usize::from(*topic);
        let own_weight = own_share.as_flattened()[old]
            * (own.as_flattened()[old] - 1.0 + frozen.alpha.as_flattened()[old]);
        let (mut weights, mut sums) = ([[0f32; LANES]; G], [0f32; LANES]);
        for g in 0..G {
            for j in 0..LANES {
                let weight = (own[g][j] + frozen.alpha[g][j]) * share[g][j];
                let weight = if g * LANES + j == old { own_weight } else { weight };
                weights[g][j] = weight;
                sums[j] += weight;
            }
        }
        // First the lane is drawn, then the topic of the lane.
        let ends = running_sums(sums);
        let number = tokens.before + u64::from(document);
        let target = uniform(bits(tokens.of_word, number, copy)) * ends[LANES - 1];
        let lane = ends.iter().map(|end| usize::from(*end <= target)).sum::<usize>().min(last_lane);
        let left = target - (ends[lane] - sums[lane]);
        let (mut sum, mut vector) = (0f32, 0);
        for weights in &weights[..G - 1] {
            sum += weights[lane];
            vector += usize::from(sum <= left);
        }
        // The last vectors may have no topic in the lane.
        while vector * LANES + lane > last_topic {
            vector -= 1;
        }
        let new = vector * LANES + lane;
        *topic = new as u16;
        own.as_flattened_mut()[old] -= 1.0;
        own.as_flattened_mut()[new] += 1.0;
        row.as_flattened_mut()[old] -= 1;
        row.as_flattened_mut()[new] += 1;
        changes[old] -= 1;
        changes[new] += 1;
    }
}
