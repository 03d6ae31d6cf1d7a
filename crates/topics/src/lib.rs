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
mod functions;
mod model;
mod prior;
mod sampler;
mod score;
mod sparse;
mod table;
#[cfg(test)]
mod tests;
mod train;
mod vocabulary;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{BatchSize, Shuffle};
use matrix::{ElementType, MatrixSpec, PushRule};

pub use model::Model;
pub use score::TopicScorer;

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family};
use algo::job::{DataFacts, Epochs, Job, Needs, TableLayout, TrainTask};
use algo::param::{Bounds, CheckedParams, ParamKind};
use algo::task_loop::{Learner, TaskState};

/// Topics of documents.
pub const FAMILY: Family = Family {
    name: "topics",
    algorithms: &[AlgorithmRow {
        name: "lda",
        title: "LDA: topics of documents (latent Dirichlet allocation)",
        parameters: &PARAMETERS,
        configure: |given| Ok(Arc::new(Lda::new(given)?)),
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: functions::register,
};

algo::params! {
    const PARAMETERS = [
        /// Number of topics
        TOPICS = "topics": ParamKind::Integer { low: 1, high: 65_535 }, "20", "topics";
        /// Sweeps over all tokens
        SWEEPS = "sweeps": ParamKind::Integer { low: 1, high: 1_000_000 }, "200", "sweeps";
        /// Prior of a topic in a document, at first
        ALPHA = "alpha": ParamKind::Real { low: 1e-5, high: 1e3, open: Bounds::Closed }, "0.1";
        /// Every 10 sweeps, fit alpha to the documents, with a number for each topic
        OPTIMIZE_ALPHA = "optimize_alpha": ParamKind::Flag, "true";
        /// Prior of a word in a topic
        BETA = "beta": ParamKind::Real { low: 1e-5, high: 1e3, open: Bounds::Closed }, "0.01";
        /// Every 10 sweeps, fit beta to the words, as one number for all of them
        OPTIMIZE_BETA = "optimize_beta": ParamKind::Flag, "false";
        /// A word of fewer documents is left out: by default one of a single document, which says nothing of what belongs together
        MIN_DOCUMENTS = "min_documents": ParamKind::Integer { low: 1, high: 1 << 40 }, "2", "documents";
        /// A word of a larger share of the documents is left out, if it is in more than 10
        MAX_SHARE = "max_document_share": ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenLow }, "0.5";
        /// Largest number of words: if more are left, those of the fewest documents are left out
        VOCABULARY = "vocabulary_limit": ParamKind::Integer { low: 1, high: 1 << 31 }, "1000000", "words";
        /// Sweeps over the tokens of a new document, whose last half gives its topics
        INFERENCE_SWEEPS = "inference_sweeps": ParamKind::Integer { low: 1, high: 100_000 }, "50", "sweeps";
        /// Seed of the draws for new documents
        INFERENCE_SEED = "inference_seed": ParamKind::Integer { low: 0, high: u64::MAX }, "1";
    ];
}

/// Documents that are read at once.
const READ_SIZE: usize = 4096;
/// Sweeps of an epoch, after which alpha is fitted and the likelihood reported.
const EPOCH_SWEEPS: u64 = 10;

/// A job of LDA.
#[derive(Clone, Debug)]
struct Lda {
    checked: CheckedParams,
    topics: usize,
    sweeps: u64,
    alpha: f64,
    optimize_alpha: bool,
    beta: f64,
    optimize_beta: bool,
    limits: vocabulary::Limits,
    inference_sweeps: u64,
    inference_seed: u64,
}

impl Lda {
    fn new(given: &BTreeMap<String, String>) -> Result<Self, Error> {
        let checked = CheckedParams::new("lda", &PARAMETERS, given)?;
        Ok(Self {
            topics: checked.integer(&TOPICS) as usize,
            sweeps: checked.integer(&SWEEPS),
            alpha: checked.real(&ALPHA),
            optimize_alpha: checked.flag(&OPTIMIZE_ALPHA),
            beta: checked.real(&BETA),
            optimize_beta: checked.flag(&OPTIMIZE_BETA),
            limits: vocabulary::Limits {
                min_documents: checked.integer(&MIN_DOCUMENTS),
                max_share: checked.real(&MAX_SHARE),
                words: checked.integer(&VOCABULARY),
            },
            inference_sweeps: checked.integer(&INFERENCE_SWEEPS),
            inference_seed: checked.integer(&INFERENCE_SEED),
            checked,
        })
    }
}

impl Job for Lda {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn needs(&self) -> Needs {
        Needs {
            uses_labels: false,
            // The tasks keep the documents in a form of their own.
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Fixed(READ_SIZE),
            shuffle: Shuffle::None,
            repeats_validation: true,
            requires_bsp: true,
            ..Needs::default()
        }
    }

    fn model(
        &self,
        _: &DataFacts,
        previous: Option<&dyn family::Model>,
    ) -> Result<Arc<dyn family::Model>, Error> {
        if previous.is_some() {
            return Err(Error::unsuitable(
                "lda cannot go on from a model, which has no topics of the tokens of its documents: train without --from on \
                 all documents. A training that was interrupted goes on from its checkpoint",
            ));
        }
        let (inference_sweeps, inference_seed) = (self.inference_sweeps, self.inference_seed);
        Ok(Arc::new(Model { topics: self.topics, inference_sweeps, inference_seed }))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        // A task alone writes its rows, and several add up theirs.
        let rule = if layout.task_count == 1 { PushRule::Assign } else { PushRule::Add };
        let own: &Model = model.of()?;
        let mut specs = own.matrices_with(rule, layout.partition_count);
        specs.push(MatrixSpec::sparse("words", ElementType::I64, 1, PushRule::Add, layout.partition_count));
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        train::begin(self, task, saved)
    }
}
