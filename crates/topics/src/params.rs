//! The parameters of LDA.

use algo::param::{Bounds, ParamKind};

algo::params! {
    pub(super) const PARAMETERS = [
        /// Number of topics
        pub(super) TOPICS = "topics": ParamKind::Integer { low: 1, high: 65_535 }, "20", "topics";
        /// Sweeps over all tokens
        pub(super) SWEEPS = "sweeps": ParamKind::Integer { low: 1, high: 1_000_000 }, "200", "sweeps";
        /// Prior of a topic in a document, at first
        pub(super) ALPHA = "alpha": ParamKind::Real { low: 1e-5, high: 1e3, open: Bounds::Closed }, "0.1";
        /// Every 10 sweeps, fit alpha to the documents, with a number for each topic
        pub(super) OPTIMIZE_ALPHA = "optimize_alpha": ParamKind::Flag, "true";
        /// Prior of a word in a topic
        pub(super) BETA = "beta": ParamKind::Real { low: 1e-5, high: 1e3, open: Bounds::Closed }, "0.01";
        /// Every 10 sweeps, fit beta to the words, as one number for all of them
        pub(super) OPTIMIZE_BETA = "optimize_beta": ParamKind::Flag, "false";
        /// A word of fewer documents is left out: by default one of a single document, which says nothing of what belongs together
        pub(super) MIN_DOCUMENTS = "min_documents": ParamKind::Integer { low: 1, high: 1 << 40 }, "2", "documents";
        /// A word of a larger share of the documents is left out, if it is in more than 10
        pub(super) MAX_SHARE = "max_document_share": ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenLow }, "0.5";
        /// Largest number of words: if more are left, those of the fewest documents are left out
        pub(super) VOCABULARY = "vocabulary_limit": ParamKind::Integer { low: 1, high: 1 << 31 }, "1000000", "words";
        /// Sweeps over the tokens of a new document, whose last half gives its topics
        pub(super) INFERENCE_SWEEPS = "inference_sweeps": ParamKind::Integer { low: 1, high: 100_000 }, "50", "sweeps";
        /// Seed of the draws for new documents
        pub(super) INFERENCE_SEED = "inference_seed": ParamKind::Integer { low: 0, high: u64::MAX }, "1";
    ];
}
