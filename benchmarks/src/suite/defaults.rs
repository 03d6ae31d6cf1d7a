//! What the defaults reach with no setting but the label, compared with scikit-learn and its defaults.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures, Target};

/// How far the defaults may be behind those of scikit-learn, and how much longer they may take, including reading.
pub(super) const BARS: &[Target] = &[Target::at_most("behind", "", 0.003, 0.0), Target::time_ratio(2.0, 1.0)];

/// Number of training rows in the labelled file of Criteo; the others are for the test.
const CRITEO_TRAINING_ROWS: usize = 1600;

/// A data set and its metric.
pub(super) struct Set {
    name: &'static str,
    algorithm: &'static str,
    metric: &'static str,
    /// Extension of the files.
    ending: &'static str,
    /// Flags for the roles of columns that the first lines do not show.
    flags: &'static [&'static str],
}

const fn set(
    name: &'static str,
    algorithm: &'static str,
    metric: &'static str,
    ending: &'static str,
    flags: &'static [&'static str],
) -> Set {
    Set { name, algorithm, metric, ending, flags }
}

pub(super) const A9A: Set = set("a9a", "lr", "auc", "libsvm", &[]);
pub(super) const AGARICUS: Set = set("agaricus", "lr", "auc", "libsvm", &[]);
pub(super) const ADULT: Set = set("adult_raw", "lr", "auc", "csv", &["--label", "income"]);
pub(super) const HIGGS: Set = set("higgs7k", "lr", "auc", "tsv", &["--label", "0"]);
pub(super) const CRITEO: Set =
    set("criteo_tiny", "lr", "auc", "csv", &["--label", "Label", "--skip-columns", "Id"]);
pub(super) const FRAPPE: Set = set("frappe", "lr", "auc", "libsvm", &[]);
pub(super) const CALIFORNIA: Set = set("california", "linear", "r2", "csv", &["--label", "target"]);
pub(super) const ABALONE: Set = set("abalone", "linear", "r2", "libsvm", &[]);
pub(super) const NEWS20: Set = set("news20", "softmax", "accuracy", "libsvm", &[]);
pub(super) const MULTI5: Set = set("multi5", "softmax", "accuracy", "tsv", &["--label", "0"]);
pub(super) const FASHION: Set = set("fashion_mnist", "softmax", "accuracy", "libsvm", &[]);

/// Trains without settings, in turns with the peer.
pub(super) fn run(context: &Context, set: &Set) -> Result<Figures> {
    let [data, test] = files(context, set)?;
    let model = context.scratch_path(&format!("model_defaults_{}", set.name));
    let mut words = arguments(["train", set.algorithm, "--quiet", "--overwrite", "--model"]);
    words.push(model.clone().into());
    words.push("--data".into());
    words.push(data.clone().into());
    words.extend(arguments(set.flags.iter().copied()));
    let mut peer = None;
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let value = peers.defaults(&context.options.root, set.name, [&data, &test])?;
            peer = value[set.metric].as_f64();
            Ok(value["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let values = context.evaluate(&model, &test, &[])?;
    let ours = values[set.metric].as_f64().with_context(|| format!("evaluate gave no {}", set.metric))?;
    let behind = peer.map_or(f64::NAN, |peer| peer - ours);
    Ok(Figures::from([
        (set.metric, Figure::with_peer(ours, peer)),
        ("behind", Figure::ours(behind)),
        ("time", race.time()),
    ]))
}

/// Training and test files without compression.
fn files(context: &Context, set: &Set) -> Result<[PathBuf; 2]> {
    match set.name {
        "fashion_mnist" => {
            context.data_set(set.name)?;
            Ok([context.images("train")?, context.images("test")?])
        }
        "criteo_tiny" => split_criteo(context),
        name => Ok([
            context.unpacked(name, &format!("train.{}", set.ending))?,
            context.unpacked(name, &format!("test.{}", set.ending))?,
        ]),
    }
}

/// The labels of the test file are placeholders, so the labelled file is split in two.
fn split_criteo(context: &Context) -> Result<[PathBuf; 2]> {
    let whole = context.unpacked("criteo_tiny", "train.csv")?;
    let text = std::fs::read_to_string(&whole)?;
    let mut lines = text.lines();
    let header = lines.next().context("a header")?;
    let rows: Vec<&str> = lines.collect();
    let (train, test) = rows.split_at(CRITEO_TRAINING_ROWS.min(rows.len()));
    let write = |name: &str, rows: &[&str]| -> Result<PathBuf> {
        let path = whole.with_file_name(name);
        std::fs::write(&path, format!("{header}\n{}\n", rows.join("\n")))?;
        Ok(path)
    };
    Ok([write("train_part.csv", train)?, write("test_part.csv", test)?])
}
