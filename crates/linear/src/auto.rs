//! Resolves `auto`: the optimizer, its penalty, and the scaling of columns and records. The choice is made once, before
//! the first step, from the given settings and from properties of the data that are the same on every machine.
//!
//! | question | answer |
//! |---|---|
//! | optimizer | the one that uses a given setting; otherwise the one of the model that training continues from |
//! | | `ftrl` with `--consistency ssp` or `asp`, for standard input, large inputs, `loss=hinge`, texts, |
//! | | and many wide sparse records |
//! | | otherwise `lbfgs`, or `owlqn` with `l1`: they reach the minimum |
//! | `l2` | 1 for `lbfgs` and `owlqn`, up to 5 if sparse data have more columns than records; otherwise, and for |
//! | | regressions with ten records a column, 0 |
//! | `epochs` | `auto`; at most two for `ftrl` if sparse data have more columns than records |
//! | `standardize` | true for tables; `idf` for texts; for other data, whichever optimizer is given, if the scales of columns differ a lot, or all |
//! | | columns are very large or very small: true, or `entries` for sparse data |
//! | `normalize` | `l2` for texts: classes of sparse records of very different length, whose entries are counts |
//!
//! **Measured** (test AUC on clicks of `generate ctr`; records x dimensions; weights with deviation 0.22, then 1): with
//! more columns than records, the minimum with `l2=1` overfits.
//!
//! | | `lbfgs l2=1` | `lbfgs l2=5` | `ftrl`, epochs 1; 2 or 3; 10 |
//! |---|---|---|---|
//! | 2,000 x 100,000 | .6357 | .6450 | .6490; .6462; - |
//! | 10,000 x 100,000 | .6826 | .6998 | .7055; .7042; - |
//! | 50,000 x 1,000,000 | .7169 | .7366 | .7428; .7418; - |
//! | 2,000 x 30,000, deviation 1 | .8294 | .8310 | .8110; .8205; .8218 |
//! | 20,000 x 30,000, deviation 1 | .9251 | .9228 | .9065; .9186; .9238 |

mod scaling;

use data::Survey;

use super::job::Linear;
use super::model::Model;
use super::optimizer::{FTRL, LBFGS, OPTIMIZERS, OWLQN, Optimizer};
use super::optimizer_params::{L1, L2, LEARNING_RATE};
use super::param_table::{BATCH_SIZE, CLIP, EPOCHS, GRADIENT, NORMALIZE, OPTIMIZER, STANDARDIZE};
use super::params::learning_rate;
use super::schedule::SCHEDULE;
use algo::chosen::{ChosenValue, chosen};
use algo::error::Error;
use algo::job::{DataProfile, Epochs, Resolution, ResolvedSettings};
use algo::loss::Loss;
use algo::param::common::SHUFFLE;
use algo::param::{AUTO, CheckedParams, Choice, ParamSpec};
use algo::scaling::MAX_SPARSE_DENSITY;
use scaling::{TextKind, column_scaling, record_scaling, text_kind};

/// Larger inputs are not surveyed before a default is chosen, and do not get a full-batch optimizer.
const LARGE_BYTES: u64 = 2 << 30;
/// Largest number of products of a pass, entries x classes, for a full-batch optimizer: a hundred such passes take some
/// seconds on two cores.
const LARGE_PRODUCTS: u64 = 100_000_000;
/// The same limit for tables: their columns are often collinear, and then FTRL needs very many passes.
const LARGE_TABLE_PRODUCTS: u64 = 400_000_000;
/// Largest number of entries of wide sparse data for a full-batch optimizer: above it, its steps take longer and FTRL
/// is as good.
const LARGE_WIDE_ENTRIES: u64 = 1_000_000;
/// L2 penalty of `lbfgs` and `owlqn`.
const FULL_BATCH_L2: f64 = 1.0;
/// The same for wide sparse data with two classes of equal size, in which most columns occur once or twice.
const WIDE_L2: f64 = 5.0;
/// From this number of records per column on, a regression needs no penalty to generalize, as in most programs.
const LONG: f64 = 10.0;
/// Largest number of epochs of FTRL over wide sparse data: more epochs overfit.
const WIDE_EPOCHS: u64 = 2;
/// Parameters that only push rules use, besides those that their rows name. Full-batch optimizers take their defaults.
const PUSH_RULE_PARAMETERS: &[&ParamSpec] = &[&EPOCHS, &SCHEDULE, &GRADIENT, &CLIP, &BATCH_SIZE, &SHUFFLE];

type ChosenOptimizer = ChosenValue<&'static Optimizer>;

/// Chooses, or asks for a survey of the data.
pub(super) fn resolve_settings(
    job: &Linear,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> Result<Resolution, Error> {
    let readers = readers(job)?;
    if needs_scales(job, known, previous) {
        return Ok(Resolution::NeedsSurvey);
    }
    let optimizer = optimizer_by_settings(job, &readers)
        .or_else(|| previous.map(|previous| optimizer_of(job, previous)))
        .or_else(|| optimizer_by_data(job, &readers, known));
    let Some(optimizer) = optimizer else { return Ok(Resolution::NeedsSurvey) };
    Ok(Resolution::Resolved(resolved(job, known, previous, &optimizer)?))
}

/// Whether the scales of columns must be known: they decide `standardize`, whichever optimizer was given.
fn needs_scales(job: &Linear, known: &DataProfile<'_>, previous: Option<&Model>) -> bool {
    let is_open = job.params.column_scaling.is_none() && previous.is_none() && !known.is_table;
    is_open && known.survey.is_none() && known.size_bytes.is_some_and(|bytes| bytes <= LARGE_BYTES)
}

/// The given settings, except those that are `auto`.
fn given_settings(job: &Linear) -> impl Iterator<Item = (&'static str, &str)> {
    job.checked_params.given_texts().filter(|(_, text)| *text != AUTO)
}

/// The optimizers that use every given setting, in order of preference.
fn readers(job: &Linear) -> Result<Vec<&'static Optimizer>, Error> {
    let mut readers = OPTIMIZERS.to_vec();
    let mut narrowing = Vec::new();
    for (name, text) in given_settings(job) {
        let before = readers.len();
        readers.retain(|optimizer| uses(job, optimizer, name, text));
        if readers.len() < before {
            narrowing.push(format!("{name}={text}"));
        }
    }
    readers.retain(|optimizer| optimizer.allows_l1(job.params.l1));
    if job.loss == Loss::Hinge {
        readers.retain(|optimizer| !optimizer.is_full_batch());
    }
    if readers.is_empty() {
        let first = narrowing.pop().unwrap_or_default();
        let second = if narrowing.is_empty() { "the loss".to_owned() } else { narrowing.join(", ") };
        return Err(Error::Conflict {
            algorithm: job.checked_params.algorithm(),
            first,
            second,
            reason: "no optimizer uses all of them; remove one".into(),
        });
    }
    Ok(readers)
}

/// Whether the optimizer uses the given value `text` of the parameter `name`.
fn uses(job: &Linear, optimizer: &'static Optimizer, name: &str, text: &str) -> bool {
    if let Some(all) = job.checked_params.readers(&OPTIMIZER, name) {
        return all.contains(&optimizer.name);
    }
    if !is_push_rule_setting(name, text) {
        return true;
    }
    !optimizer.is_full_batch() && (name != SCHEDULE.name || optimizer.follows_schedule(&job.checked_params))
}

/// Whether only push rules use this value of the parameter `name`.
fn is_push_rule_setting(name: &str, text: &str) -> bool {
    PUSH_RULE_PARAMETERS.iter().any(|spec| spec.name == name && spec.default != text)
}

/// The optimizer if it is given, or if the given settings decide it; `None` if the data must decide.
fn optimizer_by_settings(job: &Linear, readers: &[&'static Optimizer]) -> Option<ChosenOptimizer> {
    if let Some(given) = job.params.optimizer {
        return Some(chosen(given, ""));
    }
    if job.loss == Loss::Hinge && readers.contains(&&FTRL) {
        return Some(chosen(&FTRL, "hinge loss has a corner, where full-batch optimizers have no gradient"));
    }
    if readers.contains(&&FTRL) && (readers.contains(&&LBFGS) || readers.contains(&&OWLQN)) {
        return None;
    }
    let first = *readers.first().expect("readers are not empty");
    let (name, text) = given_settings(job)
        .find(|(name, text)| {
            first.reads.iter().any(|spec| spec.name == *name) || is_push_rule_setting(name, text)
        })
        .unwrap_or((L1.name, job.checked_params.text(&L1)));
    Some(chosen(first, format!("it uses {name}={text}, which is given")))
}

/// The optimizer that made the model from which training continues.
fn optimizer_of(job: &Linear, previous: &Model) -> ChosenOptimizer {
    let why = "as in the model that training continues from";
    match previous.numbered {
        Some(_) => chosen(minimum(job), why),
        None => chosen(&FTRL, why),
    }
}

/// The optimizer that reaches the minimum of the objective.
fn minimum(job: &Linear) -> &'static Optimizer {
    if job.params.l1 > 0.0 { &OWLQN } else { &LBFGS }
}

/// The optimizer that suits the data; `None` if a survey is needed.
fn optimizer_by_data(
    job: &Linear,
    readers: &[&'static Optimizer],
    known: &DataProfile<'_>,
) -> Option<ChosenOptimizer> {
    debug_assert!(readers.contains(&&FTRL));
    if !known.is_bsp {
        return Some(chosen(&FTRL, "reads may miss pushes (--consistency)"));
    }
    let Some(bytes) = known.size_bytes else {
        return Some(chosen(&FTRL, "the input is a stream, which is not read before the first step"));
    };
    if bytes > LARGE_BYTES {
        return Some(chosen(&FTRL, format!("the input is larger than {} GiB", LARGE_BYTES >> 30)));
    }
    let survey = known.survey?;
    let width = if job.loss == Loss::Softmax { known.class_count.max(1) } else { 1 };
    let (records, columns) = (survey.record_count, survey.column_count());
    let what = format!("{records} records with about {columns} columns");
    match text_kind(job, known) {
        Some(TextKind::Counts) => return Some(chosen(&FTRL, format!("{what} look like texts"))),
        Some(TextKind::Normalized) => {
            return Some(chosen(&FTRL, format!("{what}, all of the same length, look like texts")));
        }
        None => {}
    }
    if is_wide(survey) && survey.entry_count > LARGE_WIDE_ENTRIES {
        return Some(chosen(&FTRL, format!("{what} are sparse, where a few passes generalize best")));
    }
    let limit = if known.is_table { LARGE_TABLE_PRODUCTS } else { LARGE_PRODUCTS };
    if survey.entry_count.saturating_mul(width) > limit {
        return Some(chosen(&FTRL, format!("{what} are too many for a hundred passes")));
    }
    Some(chosen(minimum(job), format!("{what} are few enough to optimize to the minimum")))
}

/// Whether data are sparse with more columns than records.
fn is_wide(survey: &Survey) -> bool {
    survey.column_count() as f64 > survey.sample_size() && survey.density() < MAX_SPARSE_DENSITY
}

/// The l2 penalty of `lbfgs` and `owlqn` over wide sparse data. It balances the curvature of the loss, which for
/// classes is proportional to `p (1 - p)`, where p is the share of a class: what is right for equal classes is too much
/// for few positives.
fn wide_l2(job: &Linear, known: &DataProfile<'_>, survey: &Survey) -> f64 {
    let share = match job.loss {
        Loss::Squared | Loss::Huber { .. } => return FULL_BATCH_L2,
        Loss::Softmax => 1.0 / known.class_count.max(2) as f64,
        Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => survey.label_mean(),
    };
    (WIDE_L2 * 4.0 * share * (1.0 - share)).round().max(FULL_BATCH_L2)
}

/// All settings, with a reason for each value that was chosen and not given.
fn resolved(
    job: &Linear,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
    optimizer: &ChosenOptimizer,
) -> Result<ResolvedSettings, Error> {
    let mut all = ResolvedSettings { settings: job.checked_params.given(), reasons: Vec::new() };
    all.add(&OPTIMIZER, optimizer.value.name, &optimizer.reason);
    let columns = column_scaling(job, known, previous);
    all.add(&STANDARDIZE, columns.value.name(), &columns.reason);
    let records = record_scaling(job, known, previous);
    all.add(&NORMALIZE, records.value.name(), &records.reason);
    if job.params.l2.is_none() {
        let l2 = l2(job, known, optimizer.value);
        all.add(&L2, l2.value, &l2.reason);
    }
    if let Epochs::Auto { .. } = job.params.epochs
        && let Some(survey) = known.survey
        && !optimizer.value.is_full_batch()
        && is_wide(survey)
        && text_kind(job, known).is_none()
    {
        let open = job.params.epochs.count(survey.record_count);
        let epochs = open.min(WIDE_EPOCHS);
        let reason = if epochs < open { "more epochs overfit wide sparse data" } else { "" };
        all.add(&EPOCHS, epochs, reason);
    }
    if optimizer.value.reads.iter().any(|spec| spec.name == LEARNING_RATE.name) {
        let resolved = CheckedParams::new(job.checked_params.algorithm(), job.table, &all.settings)?;
        all.add(&LEARNING_RATE, learning_rate(&resolved, job.loss), "");
    }
    Ok(all)
}

/// The L2 penalty for data without one: full-batch optimizers that nobody asked for need it.
fn l2(job: &Linear, known: &DataProfile<'_>, optimizer: &Optimizer) -> ChosenValue<f64> {
    if job.params.optimizer.is_some() || !optimizer.is_full_batch() {
        return chosen(0.0, "");
    }
    match known.survey {
        Some(survey) if is_wide(survey) => chosen(
            wide_l2(job, known, survey),
            "sparse data with more columns than records overfit with a smaller penalty",
        ),
        Some(survey) if job.loss.is_real() && survey.sample_size() >= LONG * survey.column_count() as f64 => {
            chosen(0.0, "the records are many times as many as the columns")
        }
        _ => chosen(FULL_BATCH_L2, "the default penalty of most programs"),
    }
}
