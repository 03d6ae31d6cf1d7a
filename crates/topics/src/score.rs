//! The topics of new documents: the counts of the words do not change, and the tokens of the document are sampled.

use data::Batch;
use math::elementary::ln;
use math::hash::combine;
use math::random::{NamedDraws, Purpose, RandomStream};
use matrix::{Agent, ValuesMut};

use super::documents::{count, has_weight};
use super::model::{Model, Prior};
use algo::error::Error;
use algo::job::Scorer;
use algo::metric::MetricAccumulator;
use algo::rows::rows_of;

/// Scores batches with the counts at the agent.
pub struct TopicScorer {
    model: Model,
    /// Read and checked with the first batch.
    prior: Option<Prior>,
}

impl TopicScorer {
    pub(super) fn new(model: &Model) -> Self {
        Self { model: model.clone(), prior: None }
    }

    /// The words of a batch.
    fn words(&mut self, agent: &mut dyn Agent, batch: &Batch) -> Result<Words, Error> {
        let prior = match &mut self.prior {
            Some(prior) => prior,
            empty => empty.insert(self.model.prior(agent)?),
        };
        let topics = self.model.topics;
        let mut rows = vec![0i32; batch.columns.len() * topics];
        if !rows.is_empty() {
            agent.pull(Model::TOPICS, rows_of(&batch.columns), ValuesMut::I32(&mut rows))?;
        }
        let scale: Vec<f64> =
            prior.totals.iter().map(|total| 1.0 / (*total as f64 + prior.vocabulary * prior.beta)).collect();
        let is_known = rows.chunks_exact(topics).map(|row| row.iter().any(|count| *count > 0)).collect();
        let shares = rows.iter().enumerate();
        let shares = shares.map(|(i, count)| ((f64::from(*count) + prior.beta) * scale[i % topics]) as f32);
        Ok(Words { is_known, shares: shares.collect(), topics })
    }
}

/// The shares of words in topics.
struct Words {
    is_known: Vec<bool>,
    /// Words x topics.
    shares: Vec<f32>,
    topics: usize,
}

impl Words {
    /// The share of a word in each topic.
    fn of(&self, word: u32) -> &[f32] {
        &self.shares[word as usize * self.topics..][..self.topics]
    }

    /// The known tokens of a record, word by word, by their columns in the batch.
    fn tokens(&self, batch: &Batch, r: usize) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        for i in batch.entries(r) {
            if let Some(count) = count(batch, i)? {
                entries.push((batch.indices[i], count));
            }
        }
        entries.sort_unstable();
        let known = entries.into_iter().filter(|(word, _)| self.is_known[*word as usize]);
        Ok(known.flat_map(|(word, count)| std::iter::repeat_n(word, count as usize)).collect())
    }

    /// Sets `shares` to the shares of the topics in a document with these tokens: the mean over the last half of the sweeps.
    /// Without a known token they are those of alpha.
    fn infer(&self, tokens: &[u32], prior: &Prior, sweeps: u64, draws: RandomStream, shares: &mut Vec<f64>) {
        let (mut draws, alpha) = (draws, &prior.alpha);
        let mut counts: Vec<f32> = alpha.iter().map(|alpha| *alpha as f32).collect();
        let (mut ends, mut of_tokens) = (vec![0f32; self.topics], Vec::with_capacity(tokens.len()));
        for &word in tokens {
            let topic = self.draw(word, &counts, &mut ends, &mut draws);
            counts[topic] += 1.0;
            of_tokens.push(topic);
        }
        let mut sums = vec![0u64; self.topics];
        let counted_sweeps = sweeps.div_ceil(2);
        for sweep in 0..sweeps {
            for (&word, topic) in tokens.iter().zip(&mut of_tokens) {
                counts[*topic] -= 1.0;
                *topic = self.draw(word, &counts, &mut ends, &mut draws);
                counts[*topic] += 1.0;
            }
            if sweep >= sweeps - counted_sweeps {
                for topic in &of_tokens {
                    sums[*topic] += 1;
                }
            }
        }
        let all = tokens.len() as f64 + alpha.iter().sum::<f64>();
        shares.extend(
            sums.iter().zip(alpha).map(|(sum, alpha)| (*sum as f64 / counted_sweeps as f64 + alpha) / all),
        );
    }

    /// Draws a topic by `counts` and the share of the word in it.
    fn draw(&self, word: u32, counts: &[f32], ends: &mut [f32], draws: &mut RandomStream) -> usize {
        let mut sum = 0.0;
        for ((end, count), share) in ends.iter_mut().zip(counts).zip(self.of(word)) {
            // A count that has lost digits may be below 0 by as much.
            sum += count.max(0.0) * share;
            *end = sum;
        }
        let target = draws.uniform() as f32 * sum;
        ends.partition_point(|end| *end <= target).min(self.topics - 1)
    }
}

/// The draws for a document with these tokens: the same wherever the document is.
fn draws(seed: u64, tokens: &[u32], batch: &Batch) -> RandomStream {
    let keys = tokens.iter().map(|word| batch.columns[*word as usize]);
    NamedDraws::new(seed, Purpose::Topics, u64::MAX).of(keys.fold(0, combine))
}

impl Scorer for TopicScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        out.clear();
        let words = self.words(agent, batch)?;
        let prior = self.prior.as_ref().expect("it is read with the words");
        for r in 0..batch.record_count() {
            let tokens = words.tokens(batch, r)?;
            let draws = draws(self.model.inference_seed, &tokens, batch);
            words.infer(&tokens, prior, self.model.inference_sweeps, draws, out);
        }
        Ok(())
    }

    /// Document completion: topics are inferred from every second token, and predict the others.
    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let MetricAccumulator::Named(parts) = parts else { unreachable!("the model makes the accumulators") };
        let words = self.words(agent, batch)?;
        let prior = self.prior.as_ref().expect("it is read with the words");
        let mut shares = Vec::new();
        for r in 0..batch.record_count() {
            let tokens = words.tokens(batch, r)?;
            if !has_weight(batch, r)? || tokens.len() < 2 {
                parts.loss.record_count += 1;
                continue;
            }
            let given: Vec<u32> = tokens.iter().copied().step_by(2).collect();
            let hidden: Vec<u32> = tokens.iter().copied().skip(1).step_by(2).collect();
            let draws = draws(self.model.inference_seed, &given, batch);
            shares.clear();
            words.infer(&given, prior, self.model.inference_sweeps, draws, &mut shares);
            let loss = |word: &u32| {
                let of_topics = words.of(*word).iter().zip(&shares);
                -ln(of_topics.map(|(word, topic)| f64::from(*word) * topic).sum::<f64>())
            };
            let mean = hidden.iter().map(loss).sum::<f64>() / hidden.len() as f64;
            parts.loss.add(mean, hidden.len() as f64);
            parts.metrics[0].add(mean, hidden.len() as f64);
        }
        Ok(())
    }
}
