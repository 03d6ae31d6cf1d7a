//! Topics of documents by latent Dirichlet allocation, with collapsed Gibbs sampling.
//!
//! **Model.** A topic is a distribution over words with the prior Dirichlet(beta), a document one over topics with the prior
//! Dirichlet(alpha); each token of a document has a topic, and is a word of it. Given the topics of all others, a token of the
//! word w in the document d has the topic k with a probability in proportion to
//! `(n_dk + alpha_k) (n_wk + beta) / (n_k + V beta)`, where the counts leave the token out.
//!
//! **Sources.** Blei, Ng, Jordan, "Latent Dirichlet allocation", JMLR 2003; Griffiths, Steyvers, "Finding scientific topics", PNAS
//! 2004 (collapsed Gibbs sampling); Newman, Asuncion, Smyth, Welling, "Distributed algorithms for topic models", JMLR 2009 (counts
//! that are late); the samplers: see `dense` and `sparse`; alpha and beta: see `prior`.
//!
//! **Notation.** D documents, V words, N tokens, K topics. `n_dk`, `n_wk`, `n_k`: tokens of the topic k in the document d, of the
//! word w, in all.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `topics` | words x K, sparse by hash: `n_wk` | i32 | add; assign if a task is alone |
//! | `totals` | 1 x K: `n_k` | i64 | assign |
//! | `prior` | 1 x (K + 2): alpha, beta, V | f64 | assign |
//! | `top_words` | K x 10: keys of the most frequent words | i64 | assign |
//! | `words`, in training | words x 1: documents with the word | i64 | add |
//!
//! **A sweep** samples each token once, group by group: a group has the tokens of a block of documents in a slice of the
//! vocabulary, and both follow from the data alone. While a group is sampled, `n_wk` and `n_k` are those of its beginning, less
//! the token itself, and `n_dk` is that of the moment. So a draw depends on what all tasks know at the beginning of the group and
//! on its own document: the topics have the same bytes for any number of tasks. A task of several pulls the rows of a group
//! before it, and pushes the differences after it, so that no task has the rows of all words; a task alone keeps the rows, or counts
//! them.
//!
//! Both samplers draw from the exact distribution given these counts. Metropolis-Hastings steps (`LightLDA`, `WarpLDA`) need
//! more sweeps for the same likelihood, and with counts that do not change while a word is sampled the exact draw costs
//! only as much as the document has topics; `docs/algorithms/lda.md` has the measured comparison.
//!
//! **Cost** of a sweep: N K / 8 vector operations up to 128 topics, else N / 8 times the mean number of topics of a document and K / 16
//! for each word; for each word and block, 1 to 3 bytes pulled for each topic that the word has, and as many pushed for each
//! count that has changed, but by a task alone.
//!
//! | file | what it holds |
//! |---|---|
//! | `documents`, `vocabulary` | the documents of a task and their groups; which words are kept |
//! | `sampler`, `dense`, `sparse` | what samplers share; that for few topics; that for many |
//! | `counts`, `table` | the counts of documents; those of words |
//! | `prior`, `functions` | alpha, beta and the likelihood of topics; folds at the servers, and whether counts add up |
//! | `coherence` | the words of topics, and how often they meet |
//! | `train`, `model`, `score` | a task; the saved model; topics of new documents |

mod coherence;
mod counts;
mod dense;
mod documents;
mod family;
mod functions;
mod job;
mod model;
mod params;
mod prior;
mod sampler;
mod score;
mod sparse;
mod table;
#[cfg(test)]
mod tests;
mod train;
mod vocabulary;

pub use family::FAMILY;
pub use model::Model;
pub use score::TopicScorer;
