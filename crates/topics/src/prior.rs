//! The priors: alpha, one number for each topic, from the counts of all documents; beta, one number, from those of all words.
//!
//! **Source.** Minka, "Estimating a Dirichlet distribution", 2000, equation 55 (the fixed point of the Dirichlet-multinomial);
//! Wallach, Mimno, `McCallum`, "Rethinking LDA: why priors matter", NIPS 2009, for why alpha has a number for each topic and beta
//! does not. Sums over documents are integers, so they are the same for any division of the documents over tasks.

use math::elementary::{digamma, ln, ln_gamma};
use math::reduction::FixedPoint;

use algo::error::Error;
use algo::exchange::Exchange;

/// Steps of the fixed point after some sweeps.
const STEPS: usize = 10;
/// The same for beta, whose step visits the rows of all words.
pub(super) const BETA_STEPS: usize = 4;
/// Beta stays in this range: one that grows without end says that the words do not depend on the topics.
const BETA_RANGE: (f64, f64) = (1e-5, 1e3);
/// Alpha never is below: a topic that has lost all its tokens could never get one again.
const FLOOR: f64 = 1e-5;

/// The next beta, by the fixed point of a symmetric prior: `of_words` is the sum of `digamma(n_wk + beta) - digamma(beta)`.
pub(super) fn next_beta(beta: f64, of_words: f64, vocabulary: u64, totals: &[i64]) -> f64 {
    let words = vocabulary as f64;
    let of_sum = digamma(words * beta);
    let of_totals: f64 = totals.iter().map(|total| digamma(*total as f64 + words * beta) - of_sum).sum();
    if of_totals <= 0.0 {
        beta
    } else {
        (beta * of_words / (words * of_totals)).clamp(BETA_RANGE.0, BETA_RANGE.1)
    }
}

/// The counts of the documents of a task.
pub(super) struct DocumentCounts {
    /// Topic, number of tokens, number of documents that have it.
    pub(super) of_topics: Vec<(u32, u32, u64)>,
    /// Number of tokens, number of documents that have it.
    pub(super) lengths: Vec<(u32, u64)>,
}

/// Number of tokens and of documents of all tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) documents: u64,
    pub(super) tokens: u64,
}

impl DocumentCounts {
    pub(super) fn new(of_topics: Vec<(u32, u32, u64)>, lengths: &[u32]) -> Self {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        let lengths = sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64));
        Self { of_topics, lengths: lengths.collect() }
    }

    /// For each topic the sum of `of_topic(topic, count)` over the documents of all tasks, and the sum of `of_length(length)`.
    /// `largest` is the largest magnitude of a term.
    fn sums(
        &self,
        exchange: &mut Exchange<'_>,
        (topics, documents, largest): (usize, u64, f64),
        of_topic: impl Fn(usize, f64) -> f64,
        of_length: impl Fn(f64) -> f64,
    ) -> Result<(Vec<f64>, f64), Error> {
        let unit = FixedPoint::for_sums(largest, documents);
        let mut sums = vec![0i64; topics + 1];
        for &(topic, count, times) in &self.of_topics {
            sums[topic as usize] += times as i64 * unit.steps(of_topic(topic as usize, f64::from(count)));
        }
        for &(length, times) in &self.lengths {
            sums[topics] += times as i64 * unit.steps(of_length(f64::from(length)));
        }
        exchange.sum(&mut sums)?;
        let last = unit.value(sums[topics]);
        Ok((sums[..topics].iter().map(|sum| unit.value(*sum)).collect(), last))
    }

    /// Improves alpha.
    pub(super) fn optimize(
        &self,
        alpha: &mut [f64],
        size: Size,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), Error> {
        for _ in 0..STEPS {
            let sum: f64 = alpha.iter().sum();
            let smallest = alpha.iter().copied().fold(f64::INFINITY, f64::min);
            // digamma(n + a) - digamma(a) is the sum of 1 / (a + i) for i below n.
            let largest = 1.0 / smallest + 1.0 + ln(size.tokens as f64 + 1.0);
            let at: Vec<f64> = alpha.iter().map(|alpha| digamma(*alpha)).collect();
            let of_sum = digamma(sum);
            let (over, under) = self.sums(
                exchange,
                (alpha.len(), size.documents, largest),
                |topic, count| digamma(count + alpha[topic]) - at[topic],
                |length| digamma(length + sum) - of_sum,
            )?;
            if under <= 0.0 {
                return Ok(());
            }
            for (alpha, over) in alpha.iter_mut().zip(over) {
                *alpha = (*alpha * over / under).max(FLOOR);
            }
        }
        Ok(())
    }

    /// `log p(z)`: the logarithm of the probability of the topics of all tokens.
    pub(super) fn log_likelihood(
        &self,
        alpha: &[f64],
        size: Size,
        exchange: &mut Exchange<'_>,
    ) -> Result<f64, Error> {
        let sum: f64 = alpha.iter().sum();
        let at: Vec<f64> = alpha.iter().map(|alpha| ln_gamma(*alpha)).collect();
        let of_sum = ln_gamma(sum);
        let farthest = at.iter().fold(of_sum.abs(), |most, at| most.max(at.abs()));
        let tokens = size.tokens as f64 + sum;
        let largest = ln_gamma(tokens + 2.0) + 2.0 * farthest;
        let (of_topics, of_lengths) = self.sums(
            exchange,
            (alpha.len(), size.documents, largest),
            |topic, count| ln_gamma(count + alpha[topic]) - at[topic],
            |length| ln_gamma(length + sum) - of_sum,
        )?;
        Ok(of_topics.iter().sum::<f64>() - of_lengths)
    }
}
