//! The parameters of boosted trees. Names and defaults are those of LightGBM where it has them.

use std::collections::BTreeMap;

use super::split::SplitRule;
use crate::error::Error;
use crate::loss::Loss;
use crate::param::common::{
    EARLY_STOPPING, EARLY_STOPPING_METRIC, NOT_NEGATIVE, POSITIVE, POSITIVE_LABEL, VALIDATION_SHARE,
    early_stopping, positive_label,
};
use crate::param::{CheckedParams, ParamKind, words};
use crate::stopping::EarlyStopping;

crate::choices! {
    /// What trees minimize.
    pub(super) enum Objective {
        Logistic = "logistic": "two classes, the prediction is a probability";
        Softmax = "softmax": "several classes, with a tree for each in every iteration";
        Squared = "squared": "numbers: half the squared error";
    }
}

crate::params! {
    pub(super) const PARAMETERS = [
        /// What is minimized
        OBJECTIVE = "objective": ParamKind::Choice(words::<Objective>), "logistic";
        /// Largest number of iterations, each of which adds a tree (one for each class, if there are several)
        ITERATIONS = "iterations": ParamKind::Integer { low: 0, high: 1_000_000 }, "100", "iterations";
        /// Factor of the values of a new tree
        LEARNING_RATE = "learning_rate": POSITIVE, "0.1";
        /// Largest number of leaves of a tree
        LEAVES = "leaves": ParamKind::Integer { low: 2, high: 131_072 }, "31", "leaves";
        /// Largest depth of a tree; 0: any
        MAX_DEPTH = "max_depth": ParamKind::Integer { low: 0, high: 131_072 }, "0", "levels";
        /// Largest number of bins of a feature
        MAX_BINS = "max_bins": ParamKind::Integer { low: 3, high: 65_535 }, "255", "bins";
        /// Least number of records in a leaf
        MIN_RECORDS = "min_records": ParamKind::Integer { low: 1, high: 1 << 40 }, "20", "records";
        /// Least sum of hessians in a leaf
        MIN_HESSIAN = "min_hessian": NOT_NEGATIVE, "0.001";
        /// Least gain of a split
        MIN_GAIN = "min_gain": NOT_NEGATIVE, "0";
        /// L1 penalty of the values of leaves
        L1 = "l1": NOT_NEGATIVE, "0";
        /// L2 penalty of the values of leaves
        L2 = "l2": NOT_NEGATIVE, "0";
        /// Stop after this many iterations without a better validation metric and keep the best trees; 0: off
        STOPPING = "early_stopping": EARLY_STOPPING.kind, "0", "iterations";
        /// Validation metric of early_stopping, one of those that the algorithm reports; whether larger is better follows from it
        STOPPING_METRIC = "early_stopping_metric": EARLY_STOPPING_METRIC.kind, "loss";
        /// Share of the training records held out for validation
        SHARE = "validation_share": VALIDATION_SHARE.kind, "0";
        /// For two classes: the label that counts as 1, as in the data; all others count as 0 [1; of two names, the second in alphabetical order]
        POSITIVE_NAME = "positive_label": POSITIVE_LABEL.kind, "";
    ];
}

/// Parameters in force.
#[derive(Clone, Debug)]
pub(super) struct Params {
    pub(super) loss: Loss,
    pub(super) iterations: u64,
    pub(super) learning_rate: f64,
    pub(super) leaves: u64,
    pub(super) depth: usize,
    pub(super) max_bins: usize,
    /// Without the units of the gradients.
    pub(super) rule: SplitRule,
    pub(super) validation_share: f64,
    pub(super) early_stopping: Option<EarlyStopping>,
    pub(super) positive_label: Option<String>,
}

/// Checks given parameters.
pub(super) fn check(given: &BTreeMap<String, String>) -> Result<(CheckedParams, Params), Error> {
    let checked = CheckedParams::new("gbdt", &PARAMETERS, given)?;
    let loss = match checked.choice(&OBJECTIVE) {
        Objective::Logistic => Loss::Logistic,
        Objective::Softmax => Loss::Softmax,
        Objective::Squared => Loss::Squared,
    };
    let params = Params {
        loss,
        iterations: checked.integer(&ITERATIONS),
        learning_rate: checked.real(&LEARNING_RATE),
        leaves: checked.integer(&LEAVES),
        depth: match checked.integer(&MAX_DEPTH) {
            0 => usize::MAX,
            depth => depth as usize,
        },
        max_bins: checked.integer(&MAX_BINS) as usize,
        rule: SplitRule {
            l1: checked.real(&L1),
            l2: checked.real(&L2),
            min_gain: checked.real(&MIN_GAIN),
            min_records: checked.integer(&MIN_RECORDS) as i64,
            min_hessian: checked.real(&MIN_HESSIAN),
            gradient_unit: 1.0,
            hessian_unit: 1.0,
        },
        validation_share: checked.real(&VALIDATION_SHARE),
        early_stopping: early_stopping(&checked, loss)?,
        positive_label: positive_label(&checked, loss)?,
    };
    Ok((checked, params))
}
