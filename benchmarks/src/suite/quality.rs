//! Benchmarks on real data: the quality of the models. One row each: data, algorithm, settings.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::Cores;
use crate::target::{Figure, Figures};

/// Settings of each benchmark. They were chosen by looking at the test sets, as those of the peers were.
mod settings {
    pub(super) const A9A_LR: &[&str] = &["epochs=2"];
    pub(super) const A9A_SVM: &[&str] = &["loss=squared_hinge"];
    pub(super) const AGARICUS_LR: &[&str] = &[];
    pub(super) const NEWS20: &[&str] = &[];
    pub(super) const FASHION: &[&str] = &[];
    pub(super) const CALIFORNIA: &[&str] = &["batch_size=512"];
    // The file is scaled to [-1, 1] already.
    pub(super) const ABALONE: &[&str] = &["standardize=false"];
}

pub(super) fn a9a_lr(context: &Context) -> Result<Figures> {
    let folder = context.data_set("a9a")?;
    let data = context.unpacked("a9a", "train.libsvm")?;
    let model = context.scratch_path("model_a9a");
    let words = train("lr", &data, &model, 1, settings::A9A_LR, &[]);
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::One, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let value = peers.linear("liblinear_l2", &folder, Cores::One)?;
            Ok(value["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let mut figures = score(context, &model, &context.unpacked("a9a", "test.libsvm")?, &["auc", "log_loss"])?;
    figures.insert("time", race.time());
    Ok(figures)
}

pub(super) fn a9a_svm(context: &Context) -> Result<Figures> {
    packed(context, "a9a", "svm", settings::A9A_SVM, &["accuracy", "auc"])
}

pub(super) fn agaricus_lr(context: &Context) -> Result<Figures> {
    packed(context, "agaricus", "lr", settings::AGARICUS_LR, &["auc"])
}

pub(super) fn news20_softmax(context: &Context) -> Result<Figures> {
    packed(context, "news20", "softmax", settings::NEWS20, &["accuracy", "log_loss"])
}

pub(super) fn fashion_softmax(context: &Context) -> Result<Figures> {
    context.data_set("fashion_mnist")?;
    let (data, test) = (context.images("train")?, context.images("test")?);
    fit(context, "fashion", "softmax", settings::FASHION, [&data, &test], &["accuracy", "log_loss"])
}

pub(super) fn california(context: &Context) -> Result<Figures> {
    packed(context, "california", "linear", settings::CALIFORNIA, &["rmse", "r2"])
}

pub(super) fn abalone(context: &Context) -> Result<Figures> {
    packed(context, "abalone", "linear", settings::ABALONE, &["rmse", "r2"])
}

/// Trains on a data set in its original files, with their compression.
fn packed(
    context: &Context,
    set: &str,
    algorithm: &str,
    settings: &[&str],
    metrics: &[&'static str],
) -> Result<Figures> {
    let folder = context.data_set(set)?;
    let [data, test] = [find(&folder, "train")?, find(&folder, "test")?];
    fit(context, set, algorithm, settings, [&data, &test], metrics)
}

fn fit(
    context: &Context,
    name: &str,
    algorithm: &str,
    settings: &[&str],
    [data, test]: [&Path; 2],
    metrics: &[&'static str],
) -> Result<Figures> {
    let model = context.scratch_path(&format!("model_{name}_{algorithm}"));
    let usage = context.seraphim(Cores::Two, &train(algorithm, data, &model, 1, settings, &[]))?;
    let mut figures = score(context, &model, test, metrics)?;
    figures.insert("seconds", Figure::ours(usage.wall_s));
    Ok(figures)
}

fn score(context: &Context, model: &Path, test: &Path, metrics: &[&'static str]) -> Result<Figures> {
    let values = context.evaluate(model, test, &[])?;
    let mut figures = Figures::new();
    for name in metrics {
        let value = values[*name].as_f64().with_context(|| format!("evaluate gave no {name}"))?;
        figures.insert(name, Figure::ours(value));
    }
    Ok(figures)
}

/// The file of a folder whose name begins with `stem` and a dot.
pub(super) fn find(folder: &Path, stem: &str) -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().split('.').next() == Some(stem) {
            found.push(entry.path());
        }
    }
    found.sort();
    found.into_iter().next().with_context(|| format!("{} holds no {stem} file", folder.display()))
}
