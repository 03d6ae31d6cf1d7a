//! A job of LDA, with its checked settings.

use algo::error::Error;
use algo::param::{CheckedParams, ParamValues};

use super::params::{
    ALPHA, BETA, INFERENCE_SEED, INFERENCE_SWEEPS, MAX_SHARE, MIN_DOCUMENTS, OPTIMIZE_ALPHA, OPTIMIZE_BETA,
    PARAMETERS, SWEEPS, TOPICS, VOCABULARY,
};
use super::vocabulary;

/// Sweeps of an epoch, after which alpha is fitted and the likelihood reported.
pub(super) const EPOCH_SWEEPS: u64 = 10;

/// A job of LDA.
#[derive(Clone, Debug)]
pub(super) struct Lda {
    pub(super) checked: CheckedParams,
    pub(super) topics: usize,
    pub(super) sweeps: u64,
    pub(super) alpha: f64,
    pub(super) optimize_alpha: bool,
    pub(super) beta: f64,
    pub(super) optimize_beta: bool,
    pub(super) limits: vocabulary::Limits,
    pub(super) inference_sweeps: u64,
    pub(super) inference_seed: u64,
}

impl Lda {
    pub(super) fn new(given: &ParamValues) -> Result<Self, Error> {
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
