//! The folds over the rows of words, at the servers.

use math::elementary::{digamma, ln_gamma};
use math::hash::mix64;
use matrix::function::{RowFold, unpack};
use matrix::{Agent, FunctionCall, FunctionFault, FunctionTable, MatrixId};

use algo::error::Error;

/// A fold: its name and its terms.
pub(super) type Fold<const N: usize> = (&'static str, fn(&[f64], u64, &[f64]) -> [f64; N]);

/// Over the documents of words: how many words are in a number of documents in a range. The argument is the range.
pub(super) const WORDS: Fold<1> =
    ("lda_words", |range, _, row| [f64::from(u8::from(row[0] >= range[0] && row[0] <= range[1]))]);

/// Over the rows of words: the sum of `ln Gamma(n + beta) - ln Gamma(beta)`. The argument has beta, then these terms of small
/// counts, from 0.
pub(super) const LIKELIHOOD: Fold<1> =
    ("lda_likelihood", |argument, _, row| [sum_of_counts(argument, row, ln_gamma)]);

/// The same of `digamma(n + beta) - digamma(beta)`.
pub(super) const BETA: Fold<1> = ("lda_beta", |argument, _, row| [sum_of_counts(argument, row, digamma)]);

fn sum_of_counts(argument: &[f64], row: &[f64], function: fn(f64) -> f64) -> f64 {
    let (beta, known) = (argument[0], &argument[1..]);
    let term = |count: f64| {
        known.get(count as usize).copied().unwrap_or_else(|| function(count + beta) - function(beta))
    };
    row.iter().filter(|count| **count > 0.0).map(|count| term(*count)).sum()
}

/// Over the rows of words: what [`Checksum`] has. The argument has the number of each topic.
pub(super) const CHECK: Fold<3> = ("lda_check", |argument, _, row| {
    let named = row.iter().zip(argument).map(|(count, number)| count * number).sum();
    [row.iter().sum(), named, row.iter().filter(|count| **count < 0.0).count() as f64]
});

pub(super) fn register(table: &mut FunctionTable) -> Result<(), FunctionFault> {
    table
        .add_row_fold(RowFold::new(WORDS.0, WORDS.1))?
        .add_row_fold(RowFold::new(LIKELIHOOD.0, LIKELIHOOD.1))?
        .add_row_fold(RowFold::new(BETA.0, BETA.1))?
        .add_row_fold(RowFold::new(CHECK.0, CHECK.1))?;
    Ok(())
}

/// Runs a fold over all rows of a matrix.
pub(super) fn call<const N: usize>(
    agent: &mut dyn Agent,
    matrix: MatrixId,
    name: &str,
    argument: &[f64],
) -> Result<[f64; N], Error> {
    let answer = agent.pull_function(matrix, &FunctionCall::of_rows(name, argument))?;
    let sums: Vec<f64> = unpack(&answer).map_err(|fault| matrix::Error::function("topics", name, fault))?;
    Ok(sums.try_into().expect("a fold has as many sums as terms"))
}

/// Numbers of small counts in the arguments of [`LIKELIHOOD`] and [`BETA`].
const KNOWN: u32 = 256;

pub(super) fn likelihood_argument(beta: f64) -> Vec<f64> {
    count_argument(beta, ln_gamma)
}

pub(super) fn beta_argument(beta: f64) -> Vec<f64> {
    count_argument(beta, digamma)
}

fn count_argument(beta: f64, function: fn(f64) -> f64) -> Vec<f64> {
    let known = (0..KNOWN).map(|count| function(f64::from(count) + beta) - function(beta));
    std::iter::once(beta).chain(known).collect()
}

/// Numbers by which the counts of topics are multiplied, so that counts in wrong topics change the sum: whole numbers below
/// 2^20, so that the sums are exact.
pub(super) fn check_argument(topics: usize) -> Vec<f64> {
    (0..topics as u64).map(|topic| (mix64(topic) >> 44) as f64).collect()
}

/// Refuses rows of words whose sums, made by [`CHECK`], are not those of the totals.
pub(super) fn check_sums(sums: [f64; 3], totals: &[i64]) -> Result<(), Error> {
    let expected = totals.iter().map(|total| *total as f64).sum::<f64>();
    let named: f64 =
        totals.iter().zip(check_argument(totals.len())).map(|(total, number)| *total as f64 * number).sum();
    let [sum, of_topics, negative] = sums;
    let fault = if negative > 0.0 {
        format!("{negative} counts are below 0")
    } else if sum != expected {
        format!("the counts of words are {sum} in all, and the totals of topics {expected}")
    } else if of_topics != named {
        "the counts of words are divided over the topics in another way than the totals".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::unsuitable(format!(
        "the counts of the topics do not add up: {fault}. The files of the model or of the checkpoint do not belong together, \
         or were changed; take them from a copy, or train again"
    )))
}
