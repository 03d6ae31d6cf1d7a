//! How many tokens of each document each topic has, in the form that the sampler needs.

use super::dense::{self, vectors};
use super::documents::Documents;
use super::sampler::{DENSE_LIMIT, Group, LANES};
use super::sparse::{self, TopicLists};

/// The counts of all documents of a task. They are made of the topics of the tokens at the beginning of each epoch, so that a
/// training that goes on from a checkpoint has them in the same order.
pub(super) enum DocumentTopics {
    /// Rows of vectors.
    Dense {
        topics: usize,
        counts: Vec<[f32; LANES]>,
    },
    Sparse(TopicLists),
}

/// Numbers of the row of a word.
pub(super) fn row_width(topics: usize) -> usize {
    if topics <= DENSE_LIMIT { vectors(topics) * LANES } else { topics }
}

impl DocumentTopics {
    pub(super) fn new(documents: &Documents, of_tokens: &[u16], topics: usize) -> Self {
        if topics > DENSE_LIMIT {
            return Self::Sparse(TopicLists::new(documents, of_tokens, topics));
        }
        let width = row_width(topics);
        let mut counts = vec![[0.0; LANES]; documents.count() * width / LANES];
        let flat = counts.as_flattened_mut();
        for (&document, &topic) in documents.of_tokens.iter().zip(of_tokens) {
            flat[document as usize * width + usize::from(topic)] += 1.0;
        }
        Self::Dense { topics, counts }
    }

    pub(super) fn sample(&mut self, group: &mut Group<'_>) {
        match self {
            Self::Dense { counts, .. } => dense::sample(group, counts),
            Self::Sparse(lists) => sparse::sample(group, lists),
        }
    }

    /// How many documents have how many tokens of a topic: for each topic and each count above 0 that occurs, ascending.
    pub(super) fn histogram(&self, document_count: usize) -> Vec<(u32, u32, u64)> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        match self {
            Self::Dense { topics, counts } => {
                let rows = counts.as_flattened().chunks_exact(row_width(*topics));
                for row in rows {
                    let counts = (0..).zip(row).filter(|(_, count)| **count > 0.0);
                    all.extend(counts.map(|(topic, count)| (topic, *count as u32)));
                }
            }
            Self::Sparse(lists) => {
                let lists = (0..document_count).flat_map(|document| lists.of(document));
                all.extend(lists.map(|(topic, count)| (u32::from(topic), count.cast_unsigned())));
            }
        }
        all.sort_unstable();
        all.chunk_by(|a, b| a == b).map(|same| (same[0].0, same[0].1, same.len() as u64)).collect()
    }
}
