//! Resolves `auto`: the optimizer, its penalty, and the scaling of columns and records. The choice is made once, before
//! the first step, from the given settings and from properties of the data that are the same on every machine.
//!
//! | question | answer |
//! |---|---|
//! | optimizer | the one that uses a given setting; otherwise the one of the model that training continues from |
//! | | `ftrl` with `--consistency ssp` or `asp`, for standard input, large inputs, `loss=hinge`, texts, |
//! | | and many wide sparse records |
//! | | otherwise `lbfgs`, or `owlqn` with `l1`: they reach the minimum |
//! | `l2` | 1 for `lbfgs` and `owlqn`, up to 5 if sparse data have more columns than records; otherwise 0 |
//! | `epochs` | `auto`; at most two for `ftrl` if sparse data have more columns than records |
//! | `standardize` | true for tables; `idf` for texts; for other data, if the scales of columns differ a lot, or all |
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

use std::collections::BTreeMap;

use data::Survey;

use super::Linear;
use super::loss::Loss;
use super::model::{Model, Standardize};
use super::param_table::{FULL_BATCH_OPTIMIZERS, OPTIMIZERS};
use super::params::learning_rate;
use crate::error::Error;
use crate::job::{DataProfile, Resolution, ResolvedSettings};
use crate::param::AUTO;

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
const L2: f64 = 1.0;
/// The same for wide sparse data with two classes of equal size, in which most columns occur once or twice.
const WIDE_L2: f64 = 5.0;
/// Largest number of epochs of FTRL over wide sparse data: more epochs overfit.
const WIDE_EPOCHS: u64 = 2;
/// Data are sparse if their entries fill less than this share of the cells of a table.
const MAX_SPARSE_DENSITY: f64 = 0.25;
/// Columns are of unlike scale if their root mean squares differ by more than this factor: then one l2 and one step
/// size do not suit all columns. The root mean square of all entries is compared with 1 in the same way.
const SCALE_RATIO_LIMIT: f64 = 30.0;
/// In texts the number of entries per record deviates by more than this share of its mean; records of one-hot columns
/// all have about the same number.
const MIN_TEXT_LENGTH_DEVIATION: f64 = 0.3;
/// A vocabulary has at least this many words.
const MIN_VOCABULARY: u64 = 1000;
/// More than this share of the words of a text occur more than once in it; in sets all counts are 1.
const MIN_REPEATED_SHARE: f64 = 0.02;
/// Records were normalized if their Euclidean lengths deviate by less than this share of their mean.
const MAX_NORM_DEVIATION: f64 = 1e-3;
/// Settings that only push rules use, besides those that the parameter table marks as such.
const PUSH_RULE_PARAMETERS: &[&str] = &["epochs", "schedule", "gradient", "clip", "batch_size", "shuffle"];
/// The order of preference among optimizers that use all given settings.
const PREFERENCE: &[&str] = &["ftrl", "lbfgs", "owlqn", "adagrad", "adam", "rmsprop", "momentum", "sgd"];

/// A chosen value and the reason.
struct ChosenValue {
    value: &'static str,
    reason: String,
}

fn chosen(value: &'static str, why: impl Into<String>) -> ChosenValue {
    ChosenValue { value, reason: why.into() }
}

/// Chooses, or asks for a survey of the data.
pub(super) fn resolve_settings(
    job: &Linear,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> Result<Resolution, Error> {
    let readers = readers(job)?;
    let optimizer = match optimizer_by_settings(job, &readers) {
        Some(answer) => answer,
        None => match previous.map(|previous| optimizer_of(job, previous)) {
            Some(answer) => answer,
            None => match optimizer_by_data(job, &readers, known) {
                Some(answer) => answer,
                None => return Ok(Resolution::NeedsSurvey),
            },
        },
    };
    Ok(Resolution::Resolved(resolved(job, known, previous, &optimizer)?))
}

/// The given settings, except those that are `auto`.
fn given_settings(job: &Linear) -> impl Iterator<Item = (&str, &str)> {
    job.given_settings
        .iter()
        .map(|(name, text)| (name.as_str(), text.trim()))
        .filter(|(_, text)| *text != AUTO)
}

/// The optimizers that use every given setting.
fn readers(job: &Linear) -> Result<Vec<&'static str>, Error> {
    let mut readers: Vec<_> = OPTIMIZERS.iter().copied().filter(|name| *name != AUTO).collect();
    let mut narrowing = Vec::new();
    for (name, text) in given_settings(job) {
        let before = readers.len();
        let spec = job.checked_params.spec(name);
        match spec.read_when {
            Some(("optimizer", words)) => readers.retain(|reader| words.contains(reader)),
            _ if PUSH_RULE_PARAMETERS.contains(&name) && text != spec.default => {
                readers.retain(|reader| !FULL_BATCH_OPTIMIZERS.contains(reader));
            }
            _ => {}
        }
        if name == "schedule" && text != spec.default {
            readers.retain(|reader| !matches!(*reader, "ftrl" | "adadelta"));
        }
        if readers.len() < before {
            narrowing.push(format!("{name}={text}"));
        }
    }
    let l1 = job.checked_params.real("l1");
    readers.retain(|reader| match *reader {
        "owlqn" => l1 > 0.0,
        "lbfgs" | "gd" | "svrg" => l1 == 0.0,
        _ => true,
    });
    if job.loss == Loss::Hinge {
        readers.retain(|reader| !FULL_BATCH_OPTIMIZERS.contains(reader));
    }
    if readers.is_empty() {
        let first = narrowing.pop().unwrap_or_default();
        let second = if narrowing.is_empty() { "the loss".to_owned() } else { narrowing.join(", ") };
        return Err(Error::Conflict {
            algorithm: job.algorithm(),
            first,
            second,
            reason: "no optimizer uses all of them; remove one",
        });
    }
    Ok(readers)
}

/// The optimizer if it is given, or if the given settings decide it; `None` if the data must decide.
fn optimizer_by_settings(job: &Linear, readers: &[&'static str]) -> Option<ChosenValue> {
    let asked = job.checked_params.text("optimizer");
    if let Some(&name) = OPTIMIZERS.iter().find(|name| **name == asked && asked != AUTO) {
        return Some(chosen(name, ""));
    }
    let has = |names: &[&str]| readers.iter().any(|reader| names.contains(reader));
    if job.loss == Loss::Hinge && readers.contains(&"ftrl") {
        return Some(chosen("ftrl", "hinge loss has a corner, where full-batch optimizers have no gradient"));
    }
    if has(&["ftrl"]) && has(&["lbfgs", "owlqn"]) {
        return None;
    }
    let first = PREFERENCE.iter().find(|name| readers.contains(name)).or(readers.first());
    let first = *first.expect("readers are not empty");
    let (name, text) = given_settings(job)
        .find(|(name, text)| {
            let spec = job.checked_params.spec(name);
            spec.read_when.is_some_and(|(other, words)| other == "optimizer" && words.contains(&first))
                || (PUSH_RULE_PARAMETERS.contains(name) && *text != spec.default)
        })
        .unwrap_or(("l1", job.checked_params.text("l1")));
    Some(chosen(first, format!("it uses {name}={text}, which is given")))
}

/// The optimizer that made the model from which training continues.
fn optimizer_of(job: &Linear, previous: &Model) -> ChosenValue {
    let why = "as in the model that training continues from";
    match previous.numbered {
        Some(_) => chosen(minimum(job), why),
        None => chosen("ftrl", why),
    }
}

/// The optimizer that reaches the minimum of the objective.
fn minimum(job: &Linear) -> &'static str {
    if job.checked_params.real("l1") > 0.0 { "owlqn" } else { "lbfgs" }
}

/// The optimizer that suits the data; `None` if a survey is needed.
fn optimizer_by_data(job: &Linear, readers: &[&'static str], known: &DataProfile<'_>) -> Option<ChosenValue> {
    debug_assert!(readers.contains(&"ftrl"));
    if !known.is_bsp {
        return Some(chosen("ftrl", "reads may miss pushes (--consistency)"));
    }
    let Some(bytes) = known.size_bytes else {
        return Some(chosen("ftrl", "the input is a stream, which is not read before the first step"));
    };
    if bytes > LARGE_BYTES {
        return Some(chosen("ftrl", format!("the input is larger than {} GiB", LARGE_BYTES >> 30)));
    }
    let survey = known.survey?;
    let width = if job.loss == Loss::Softmax { known.class_count.max(1) } else { 1 };
    let (records, columns) = (survey.record_count, survey.column_count());
    let what = format!("{records} records with about {columns} columns");
    match text_kind(job, known) {
        Some(TextKind::Counts) => return Some(chosen("ftrl", format!("{what} look like texts"))),
        Some(TextKind::Normalized) => {
            return Some(chosen("ftrl", format!("{what}, all of the same length, look like texts")));
        }
        None => {}
    }
    if is_wide(survey) && survey.entry_count > LARGE_WIDE_ENTRIES {
        return Some(chosen("ftrl", format!("{what} are sparse, where a few passes generalize best")));
    }
    let limit = if known.is_table { LARGE_TABLE_PRODUCTS } else { LARGE_PRODUCTS };
    if survey.entry_count.saturating_mul(width) > limit {
        return Some(chosen("ftrl", format!("{what} are too many for a hundred passes")));
    }
    Some(chosen(minimum(job), format!("{what} are few enough to optimize to the minimum")))
}

/// Whether data are sparse with more columns than records.
fn is_wide(survey: &Survey) -> bool {
    survey.column_count() > survey.record_count && survey.density() < MAX_SPARSE_DENSITY
}

/// The kinds of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// Counts of words.
    Counts,
    /// Weights of words; all records have the same Euclidean length.
    Normalized,
}

/// Whether records look like texts with classes to learn. This excludes real labels, for which the length of a text is
/// informative.
fn text_kind(job: &Linear, known: &DataProfile<'_>) -> Option<TextKind> {
    let survey = known.survey?;
    let may_be = !known.is_table
        && !job.loss.is_real()
        && survey.negative_count == 0
        && survey.column_count() >= MIN_VOCABULARY
        && survey.density() < MAX_SPARSE_DENSITY
        && survey.entry_count_spread() > MIN_TEXT_LENGTH_DEVIATION;
    let repeated = 1.0 - survey.one_count as f64 / survey.entry_count.max(1) as f64;
    if !may_be {
        None
    } else if survey.length_spread() < MAX_NORM_DEVIATION {
        Some(TextKind::Normalized)
    } else {
        (survey.whole_count == survey.entry_count && repeated > MIN_REPEATED_SHARE)
            .then_some(TextKind::Counts)
    }
}

/// The l2 penalty of `lbfgs` and `owlqn` over wide sparse data. It balances the curvature of the loss, which for
/// classes is proportional to `p (1 - p)`, where p is the share of a class: what is right for equal classes is too much
/// for few positives.
fn wide_l2(job: &Linear, known: &DataProfile<'_>, survey: &Survey) -> f64 {
    let share = match job.loss {
        Loss::Squared | Loss::Huber { .. } => return L2,
        Loss::Softmax => 1.0 / known.class_count.max(2) as f64,
        Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => {
            survey.label_sum / survey.record_count.max(1) as f64
        }
    };
    (WIDE_L2 * 4.0 * share * (1.0 - share)).round().max(L2)
}

fn standardize(job: &Linear, known: &DataProfile<'_>, previous: Option<&Model>) -> ChosenValue {
    let asked = job.checked_params.text("standardize");
    if asked != AUTO {
        return chosen(
            ["true", "entries", "idf"].into_iter().find(|value| *value == asked).unwrap_or("false"),
            "",
        );
    }
    if let Some(previous) = previous {
        let value = match previous.standardize {
            Some(Standardize::Center | Standardize::Scale) => "true",
            Some(Standardize::Entries) => "entries",
            Some(Standardize::Idf) => "idf",
            None => "false",
        };
        return chosen(value, "as in the model that training continues from");
    }
    if known.is_table {
        return chosen("true", "the input is a table with columns of numbers");
    }
    let Some(survey) = known.survey else {
        if job.loss.is_real() {
            return chosen("true", "for numeric labels, columns may have any scale");
        }
        return chosen("false", "features are numbered, and the input is not read before the first step");
    };
    match text_kind(job, known) {
        Some(TextKind::Counts) if job.checked_params.text("normalize") != "none" => {
            return chosen("idf", "the records look like texts, in which rare words are more informative");
        }
        Some(TextKind::Normalized) => return chosen("false", "the records have the same length already"),
        Some(TextKind::Counts) | None => {}
    }
    let (is_sparse, scale) = (survey.density() <= MAX_SPARSE_DENSITY, survey.entry_scale());
    let scaled = if is_sparse { "entries" } else { "true" };
    match survey.scale_ratio() {
        Some(ratio) if ratio > SCALE_RATIO_LIMIT => {
            chosen(scaled, format!("the scales of columns differ by a factor of {ratio:.0}"))
        }
        _ if scale > 0.0 && !(1.0 / SCALE_RATIO_LIMIT..=SCALE_RATIO_LIMIT).contains(&scale) => {
            chosen(scaled, format!("the root mean square of all entries is {scale:.1e}, far from 1"))
        }
        None => chosen("false", "there are too many columns for a table"),
        Some(_) if is_sparse => chosen("false", "the columns are sparse and of similar scale"),
        Some(_) => chosen("false", "the columns are of similar scale"),
    }
}

fn normalize(job: &Linear, known: &DataProfile<'_>, previous: Option<&Model>) -> ChosenValue {
    let asked = job.checked_params.text("normalize");
    if asked != AUTO {
        return chosen(if asked == "l2" { "l2" } else { "none" }, "");
    }
    if let Some(previous) = previous {
        let value = if previous.normalize { "l2" } else { "none" };
        return chosen(value, "as in the model that training continues from");
    }
    match text_kind(job, known) {
        Some(TextKind::Counts) => chosen("l2", "records are sparse and of very different length"),
        Some(TextKind::Normalized) | None => chosen("none", ""),
    }
}

/// All settings, with a reason for each value that was chosen and not given.
fn resolved(
    job: &Linear,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
    optimizer: &ChosenValue,
) -> Result<ResolvedSettings, Error> {
    let mut set: BTreeMap<String, String> = job.given_settings.clone();
    let mut reasons = Vec::new();
    let standardize = standardize(job, known, previous);
    let normalize = normalize(job, known, previous);
    let descends = FULL_BATCH_OPTIMIZERS.contains(&optimizer.value);
    let answers = [("optimizer", optimizer), ("standardize", &standardize), ("normalize", &normalize)];
    for (name, ChosenValue { value, reason: why }) in answers {
        set.insert(name.to_owned(), (*value).to_owned());
        if !why.is_empty() {
            reasons.push(format!("{name}={value}: {why}"));
        }
    }
    let was_open = job.checked_params.text("optimizer") == AUTO;
    if job.checked_params.auto_real("l2").is_none() {
        let l2 = if was_open && descends {
            let (l2, why) = match known.survey.filter(|survey| is_wide(survey)) {
                Some(survey) => (
                    wide_l2(job, known, survey),
                    "sparse data with more columns than records overfit with a smaller penalty",
                ),
                None => (L2, "the default penalty of most programs"),
            };
            reasons.push(format!("l2={l2}: {why}"));
            l2
        } else {
            0.0
        };
        set.insert("l2".to_owned(), l2.to_string());
    }
    if let Some(survey) =
        known.survey.filter(|survey| !descends && is_wide(survey) && text_kind(job, known).is_none())
        && job.checked_params.auto_integer("epochs").is_none()
    {
        let open = job.params.epochs.count(survey.record_count);
        let epochs = open.min(WIDE_EPOCHS);
        if epochs < open {
            reasons.push(format!("epochs={epochs}: more epochs overfit wide sparse data"));
        }
        set.insert("epochs".to_owned(), epochs.to_string());
    }
    let resolved = crate::param::CheckedParams::new(job.algorithm(), job.table, &set)?;
    let reads_rate = job
        .checked_params
        .spec("learning_rate")
        .read_when
        .is_some_and(|(_, optimizers)| optimizers.contains(&optimizer.value));
    if reads_rate {
        set.insert("learning_rate".to_owned(), learning_rate(&resolved, job.loss).to_string());
    }
    Ok(ResolvedSettings { settings: set, reasons })
}
