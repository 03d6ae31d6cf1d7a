//! What the topic shares of documents need besides the tables of a model; saved with them as JSON.

use std::fmt::Write;

use matrix::{Agent, ElementType, MatrixId, MatrixSpec, Partitioner, PushRule, Storage, ValuesMut};
use serde::{Deserialize, Serialize};

use super::functions::{CHECK, call, check_argument, check_sums};
use algo::error::Error;
use algo::family::ModelFacts;
use algo::rows::ONE_ROW;

/// Words of a topic that are kept with the model, and that its coherence compares.
pub(super) const TOP_WORDS: usize = 10;

/// Topics without their tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Number of topics.
    pub topics: usize,
    /// Sweeps over the tokens of a new document.
    pub inference_sweeps: u64,
    /// Seed of the draws for new documents.
    pub inference_seed: u64,
}

/// What documents and words are compared with.
#[derive(Clone, Debug)]
pub(super) struct Prior {
    pub(super) alpha: Vec<f64>,
    pub(super) beta: f64,
    /// Number of words.
    pub(super) vocabulary: f64,
    /// Number of tokens of each topic.
    pub(super) totals: Vec<i64>,
}

impl Model {
    /// Tokens of each topic, by word.
    pub(super) const TOPICS: MatrixId = MatrixId(0);
    /// Tokens of each topic.
    pub(super) const TOTALS: MatrixId = MatrixId(1);
    /// Alpha of each topic, beta, and the number of words.
    pub(super) const PRIOR: MatrixId = MatrixId(2);
    /// The keys of the most frequent words, by topic; -1: no more.
    pub(super) const TOP_WORDS: MatrixId = MatrixId(3);
    /// In training: the number of documents, by word.
    pub(super) const WORDS: MatrixId = MatrixId(4);

    /// The matrices with the rule of the rows of words.
    pub(super) fn matrices_with(&self, rule: PushRule, partition_count: u32) -> Vec<MatrixSpec> {
        let topics = self.topics as u64;
        let dense = |name: &str, element, rows: u64, columns: u64| {
            let partitioner = Partitioner::Range { partition_count: 1 };
            let spec = MatrixSpec::sparse(name, element, columns, PushRule::Assign, 1);
            MatrixSpec { rows, storage: Storage::Dense, partitioner, ..spec }
        };
        vec![
            MatrixSpec::sparse("topics", ElementType::I32, topics, rule, partition_count),
            dense("totals", ElementType::I64, 1, topics),
            dense("prior", ElementType::F64, 1, topics + 2),
            dense("top_words", ElementType::I64, topics, TOP_WORDS as u64),
        ]
    }

    /// Reads the prior, and checks that the counts of the words add up to the totals.
    pub(super) fn prior(&self, agent: &mut dyn Agent) -> Result<Prior, Error> {
        let mut totals = vec![0; self.topics];
        agent.pull(Self::TOTALS, ONE_ROW, ValuesMut::I64(&mut totals))?;
        let mut alpha = vec![0.0; self.topics + 2];
        agent.pull(Self::PRIOR, ONE_ROW, ValuesMut::F64(&mut alpha))?;
        let sums = call(agent, Self::TOPICS, CHECK.0, &check_argument(self.topics))?;
        check_sums(sums, &totals)?;
        let (vocabulary, beta) = (alpha[self.topics + 1], alpha[self.topics]);
        alpha.truncate(self.topics);
        Ok(Prior { alpha, beta, vocabulary, totals })
    }

    /// The topics for people: the largest first, each with its share of all tokens and its most frequent words.
    pub(super) fn text(&self, facts: &ModelFacts<'_>, agent: &mut dyn Agent) -> Result<String, Error> {
        let prior = self.prior(agent)?;
        let mut words = vec![0; self.topics * TOP_WORDS];
        let all = matrix::Selection::Rows(matrix::Keys::Range(0, self.topics as u64));
        agent.pull(Self::TOP_WORDS, all, ValuesMut::I64(&mut words))?;
        let tokens = prior.totals.iter().sum::<i64>().max(1) as f64;
        let mut order: Vec<usize> = (0..self.topics).collect();
        order.sort_by_key(|topic| (-prior.totals[*topic], *topic));
        let mut text = String::new();
        for topic in order {
            let share = 100.0 * prior.totals[topic] as f64 / tokens;
            let _ = write!(text, "topic_{topic}\t{share:.2} %\talpha {:.4}\t", prior.alpha[topic]);
            let keys = words[topic * TOP_WORDS..][..TOP_WORDS].iter().filter(|key| **key >= 0);
            let names = keys.map(|key| {
                let key = *key as u64;
                facts.names.get(key).map_or_else(|| key.to_string(), str::to_owned)
            });
            text.push_str(&names.collect::<Vec<_>>().join(" "));
            text.push('\n');
        }
        Ok(text)
    }
}
