//! The parameters of boosted trees. Names and defaults are those of LightGBM where it has them.

use super::objective::Objective;
use super::sampling::RecordSample;
use super::split::SplitRule;
use algo::error::Error;
use algo::loss::Loss;
use algo::metric::STOPPING_METRICS;
use algo::param::common::{
    AUTO_POSITIVE, EARLY_STOPPING_METRIC, NOT_NEGATIVE, POSITIVE, POSITIVE_LABEL, SHARE as PART_BELOW_ONE,
    VALIDATION_SHARE, early_stopping_by, positive_label,
};
use algo::param::{Bounds, CheckedParams, ParamKind, ParamValues, words};
use algo::stopping::EarlyStopping;

/// Without validation data, where nothing else is chosen: iterations, learning rate, leaves of a tree.
pub(super) const PLAIN_ITERATIONS: u64 = 100;
pub(super) const PLAIN_RATE: f64 = 0.1;
pub(super) const PLAIN_LEAVES: u64 = 31;

algo::choices! {
    /// What trees minimize.
    pub(super) enum ObjectiveName {
        Logistic = "logistic": "two classes, the prediction is a probability", reads SCALE_POS_WEIGHT;
        Softmax = "softmax": "several classes, with a tree for each in every iteration";
        Squared = "squared": "numbers: half the squared error, which predicts the mean";
        Absolute = "absolute": "numbers: the absolute error, which predicts the median";
        Huber = "huber": "numbers: squared for small errors, absolute for large ones", reads ALPHA;
        Quantile = "quantile": "numbers: predicts the quantile alpha", reads ALPHA;
        Poisson = "poisson": "counts", reads POISSON_STEP;
        Gamma = "gamma": "positive numbers whose deviation grows with their mean";
        Tweedie = "tweedie": "positive numbers with many zeros", reads TWEEDIE_POWER;
        LambdaRank = "lambdarank": "ranks the records of a group (--group), whose labels are grades from 0 to 31", reads TRUNCATION;
    }
}

algo::choices! {
    /// Which leaf is split next.
    enum Growth {
        LeafWise = "leaf_wise": "the one whose split gains most";
        DepthWise = "depth_wise": "those of a level after those of the level above";
    }
}

/// A share above 0.
const PART: ParamKind = ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenLow };

algo::params! {
    pub(super) const PARAMETERS = [
        /// What is minimized; auto: logistic for two labels, softmax for more names, squared for other numbers
        pub(super) OBJECTIVE = "objective": ParamKind::AutoChoice(words::<ObjectiveName>), "auto";
        /// Weight of the records of the positive class
        SCALE_POS_WEIGHT = "scale_pos_weight": POSITIVE, "1";
        /// For huber the error from which on it counts as absolute, in units of the label; for quantile the quantile, below 1
        ALPHA = "alpha": POSITIVE, "0.9";
        /// The hessian is exp of this times larger, so that steps are short
        POISSON_STEP = "poisson_max_delta_step": POSITIVE, "0.7";
        /// The variance is proportional to the mean to this power
        TWEEDIE_POWER = "tweedie_variance_power": ParamKind::Real { low: 1.0, high: 2.0, open: Bounds::OpenHigh }, "1.5";
        /// Pairs of records count of which one is among the first so many of its group
        TRUNCATION = "lambdarank_truncation_level": ParamKind::Integer { low: 1, high: 1_000_000 }, "30", "records";
        /// Largest number of iterations, each of which adds a tree (one for each class, if there are several)
        pub(super) ITERATIONS = "iterations": ParamKind::AutoInteger { low: 1, high: 1_000_000 }, "auto", "iterations";
        /// Factor of the values of a new tree
        pub(super) LEARNING_RATE = "learning_rate": AUTO_POSITIVE, "auto";
        /// Largest number of leaves of a tree
        pub(super) LEAVES = "leaves": ParamKind::AutoInteger { low: 2, high: 131_072 }, "auto", "leaves";
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
        /// Share of the records that an iteration learns from, drawn anew for each
        RECORD_SHARE = "bagging_fraction": PART, "1";
        /// Share of the records, those with the largest gradients, that every iteration learns from (GOSS), beside a part of the others; 0: off
        TOP_RATE = "top_rate": PART_BELOW_ONE, "0";
        /// With top_rate: share of the records that are drawn from the others, and count for all of them
        OTHER_RATE = "other_rate": PART, "0.1";
        /// Share of the features that a tree may split by, drawn anew for each
        pub(super) FEATURE_SHARE = "feature_fraction": ParamKind::AutoReal { low: 0.0, high: 1.0, open: Bounds::OpenLow }, "auto";
        /// Share of the features of a tree that the leaves of a level may split by, drawn anew for each level
        LEVEL_SHARE = "feature_fraction_bylevel": PART, "1";
        /// Which leaf is split next
        GROWTH = "growth": ParamKind::Choice(words::<Growth>), "leaf_wise";
        /// Of each feature only one split is tried, drawn at random, as in extremely randomized trees (true or false)
        EXTRA_TREES = "extra_trees": ParamKind::Flag, "false";
        /// Moves the value of a leaf towards that of its parent: halfway if it has this many records; 0: not at all
        PATH_SMOOTH = "path_smooth": NOT_NEGATIVE, "0";
        /// Columns with which predictions only rise or fall: column:1 or column:-1, with commas between them
        pub(super) MONOTONE = "monotone_constraints": ParamKind::Text, "";
        /// Groups of columns in brackets, such as [age,sex],[age,income]: only columns of one group meet in a branch, and others are not used; empty: all may meet
        pub(super) INTERACTIONS = "interaction_constraints": ParamKind::Text, "";
        /// Bits of gradients and hessians in the sums that find splits: 15, to the nearest step; fewer, at random up or down, for less traffic
        GRADIENT_BITS = "gradient_bits": ParamKind::Integer { low: 4, high: 15 }, "15", "bits";
        /// Stop after this many iterations without a better validation metric and keep the best trees; 0: off
        pub(super) STOPPING = "early_stopping": ParamKind::AutoInteger { low: 0, high: 1_000_000 }, "auto", "iterations";
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
    /// `None`: it is chosen from the labels.
    pub(super) objective: Option<Objective>,
    pub(super) iterations: u64,
    pub(super) learning_rate: f64,
    pub(super) leaves: u64,
    pub(super) depth: usize,
    pub(super) max_bins: usize,
    /// Without the units of the gradients.
    pub(super) rule: SplitRule,
    pub(super) records: RecordSample,
    pub(super) feature_share: f64,
    pub(super) level_share: f64,
    pub(super) is_depth_wise: bool,
    pub(super) gradient_bits: u32,
    pub(super) validation_share: f64,
    pub(super) early_stopping: Option<EarlyStopping>,
    pub(super) positive_label: Option<String>,
}

/// Names of LightGBM for parameters that have other names here.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "iterations",
        &["num_iterations", "n_estimators", "num_boost_round", "num_round", "num_rounds", "num_trees"],
    ),
    ("learning_rate", &["eta", "shrinkage_rate"]),
    ("leaves", &["num_leaves", "max_leaves"]),
    ("max_bins", &["max_bin"]),
    ("min_records", &["min_data_in_leaf", "min_child_samples"]),
    ("min_hessian", &["min_sum_hessian_in_leaf", "min_child_weight"]),
    ("min_gain", &["min_gain_to_split", "min_split_gain"]),
    ("l1", &["lambda_l1", "reg_alpha"]),
    ("bagging_fraction", &["subsample", "sub_row", "bagging"]),
    ("feature_fraction", &["colsample_bytree", "sub_feature"]),
    ("feature_fraction_bylevel", &["colsample_bylevel"]),
    ("extra_trees", &["extra_tree"]),
    ("growth", &["grow_policy"]),
    ("monotone_constraints", &["mc", "monotone_constraint"]),
    ("l2", &["lambda_l2", "reg_lambda", "lambda"]),
    ("early_stopping", &["early_stopping_round", "early_stopping_rounds"]),
];
/// Objectives of LightGBM that are not here, with the nearest one.
const UNKNOWN_OBJECTIVES: &[(&str, &str)] = &[
    ("rank_xendcg", "lambdarank"),
    ("fair", "huber"),
    ("mape", "absolute"),
    ("multiclassova", "softmax"),
    ("cross_entropy", "logistic"),
    ("cross_entropy_lambda", "logistic"),
];
/// Values of LightGBM for `objective` and `max_depth`.
const VALUES: &[(&str, &str, &str)] = &[
    ("objective", "binary", "logistic"),
    ("objective", "multiclass", "softmax"),
    ("objective", "regression", "squared"),
    ("objective", "regression_l2", "squared"),
    ("objective", "l2", "squared"),
    ("objective", "mean_squared_error", "squared"),
    ("objective", "mse", "squared"),
    ("objective", "rmse", "squared"),
    ("objective", "regression_l1", "absolute"),
    ("objective", "l1", "absolute"),
    ("objective", "mean_absolute_error", "absolute"),
    ("objective", "mae", "absolute"),
    ("max_depth", "-1", "0"),
    ("growth", "lossguide", "leaf_wise"),
    ("growth", "depthwise", "depth_wise"),
];

/// Replaces names and values of LightGBM. A parameter that is given by two names keeps both, so that the second is refused.
fn without_aliases(given: &ParamValues) -> ParamValues {
    let mut own = ParamValues::default();
    for (name, value) in given.iter() {
        let known = ALIASES.iter().find(|(known, aliases)| {
            aliases.contains(&name) && !given.contains(known) && !own.contains(known)
        });
        let name = known.map_or(name, |(known, _)| known);
        match VALUES.iter().find(|(of, theirs, _)| *of == name && *theirs == value.text()) {
            Some((.., text)) => own.set_text(name, *text),
            None => own.set(name, value.clone()),
        }
    }
    own
}

/// The objective with its parameters.
fn objective(checked: &CheckedParams) -> Result<Option<Objective>, Error> {
    let is_binary =
        [&POSITIVE_NAME, &SCALE_POS_WEIGHT].into_iter().any(|spec| checked.text(spec) != spec.default);
    let name = match checked.auto_choice(&OBJECTIVE) {
        None if is_binary => ObjectiveName::Logistic,
        None => return Ok(None),
        Some(name) => name,
    };
    Ok(Some(match name {
        ObjectiveName::Logistic => Objective::Logistic { positive_weight: checked.real(&SCALE_POS_WEIGHT) },
        ObjectiveName::Softmax => Objective::Softmax,
        ObjectiveName::Squared => Objective::Squared,
        ObjectiveName::Absolute => Objective::Absolute,
        ObjectiveName::Huber => Objective::Huber { delta: checked.real(&ALPHA) },
        ObjectiveName::Quantile => match checked.real(&ALPHA) {
            alpha if alpha < 1.0 => Objective::Quantile { alpha },
            _ => return Err(checked.invalid_value(&ALPHA, "a number between 0 and 1 for objective=quantile")),
        },
        ObjectiveName::Poisson => Objective::Poisson { max_delta_step: checked.real(&POISSON_STEP) },
        ObjectiveName::Gamma => Objective::Gamma,
        ObjectiveName::Tweedie => Objective::Tweedie { power: checked.real(&TWEEDIE_POWER) },
        ObjectiveName::LambdaRank => Objective::LambdaRank { truncation: checked.integer(&TRUNCATION) },
    }))
}

/// Which records an iteration learns from.
fn record_sample(checked: &CheckedParams) -> Result<RecordSample, Error> {
    let [share, top, other] = [&RECORD_SHARE, &TOP_RATE, &OTHER_RATE].map(|spec| checked.real(spec));
    match (share, top) {
        (1.0, 0.0) => Ok(RecordSample::All),
        (share, 0.0) => Ok(RecordSample::Share(share)),
        (1.0, top) if top + other <= 1.0 => Ok(RecordSample::LargeGradients { top, other }),
        (1.0, _) => Err(checked.invalid_value(&OTHER_RATE, "at most 1 with top_rate together")),
        _ => {
            let reason = "both choose the records of an iteration; leave one of them out";
            Err(checked.conflict(checked.pair(&RECORD_SHARE), &TOP_RATE, reason))
        }
    }
}

/// Checks given parameters.
pub(super) fn check(given: &ParamValues) -> Result<(CheckedParams, Params), Error> {
    let given = without_aliases(given);
    let unknown = UNKNOWN_OBJECTIVES.iter().find(|(name, _)| given.text(OBJECTIVE.name) == Some(name));
    if let Some((name, nearest)) = unknown {
        return Err(Error::Parameter {
            algorithm: "gbdt",
            name: OBJECTIVE.name,
            actual: (*name).to_owned(),
            expected: format!("{}; the nearest one is {nearest}", OBJECTIVE.kind.describe()),
        });
    }
    let checked = CheckedParams::new("gbdt", &PARAMETERS, &given)?;
    let objective = objective(&checked)?;
    for spec in [&MONOTONE, &PATH_SMOOTH] {
        if objective.and_then(Objective::percentile).is_some() && checked.text(spec) != spec.default {
            let reason = "the values of its leaves are percentiles, which have no bounds; use objective=huber, or leave it out";
            return Err(checked.conflict(checked.pair(spec), &OBJECTIVE, reason));
        }
    }
    let all: Vec<&str> = STOPPING_METRICS.iter().map(|metric| metric.name).collect();
    let metrics: &[&str] = match objective {
        Some(objective) => objective.stopping_metrics(),
        None => &all,
    };
    let loss = objective.and_then(Objective::shared_loss).unwrap_or(Loss::Squared);
    let params = Params {
        objective,
        iterations: checked.auto_integer(&ITERATIONS).unwrap_or(PLAIN_ITERATIONS),
        learning_rate: checked.auto_real(&LEARNING_RATE).unwrap_or(PLAIN_RATE),
        leaves: checked.auto_integer(&LEAVES).unwrap_or(PLAIN_LEAVES),
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
            smoothing: checked.real(&PATH_SMOOTH),
            // The seed of the job takes the place of this one.
            extra_draws: checked.flag(&EXTRA_TREES).then_some((0, 0)),
            gradient_unit: 1.0,
            hessian_unit: 1.0,
        },
        records: record_sample(&checked)?,
        feature_share: checked.auto_real(&FEATURE_SHARE).unwrap_or(1.0),
        level_share: checked.real(&LEVEL_SHARE),
        gradient_bits: checked.integer(&GRADIENT_BITS) as u32,
        is_depth_wise: checked.choice::<Growth>(&GROWTH) == Growth::DepthWise,
        validation_share: checked.real(&VALIDATION_SHARE),
        early_stopping: early_stopping_by(&checked, metrics)?,
        positive_label: positive_label(&checked, loss)?,
    };
    Ok((checked, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> ParamValues {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn names_and_values_of_lightgbm_are_understood() {
        let theirs =
            [("num_leaves", "7"), ("objective", "regression"), ("reg_lambda", "3"), ("max_depth", "-1")];
        let (checked, params) = check(&given(&theirs)).unwrap();
        assert_eq!((params.leaves, params.rule.l2, params.depth), (7, 3.0, usize::MAX));
        assert_eq!(checked.text(&OBJECTIVE), "squared");
    }

    #[test]
    fn a_parameter_with_two_names_is_refused() {
        for pairs in [[("num_leaves", "7"), ("leaves", "9")], [("num_leaves", "7"), ("max_leaves", "9")]] {
            let error = check(&given(&pairs)).unwrap_err().to_string();
            assert!(error.contains("_leaves"), "{error}");
        }
    }
}
