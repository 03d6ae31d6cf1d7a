//! Benchmarks that train to the minimum of an objective over all records: time, distance from the minimum, memory.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures};

/// Settings of each benchmark.
mod settings {
    pub(super) const LBFGS: &[&str] = &["optimizer=lbfgs", "l2=1", "history=40", "tolerance=3e-6"];
    pub(super) const OWLQN: &[&str] = &["optimizer=owlqn", "l1=1", "tolerance=1e-8", "max_iterations=500"];
    pub(super) const ADMM: &[&str] = &["optimizer=admm", "l2=1", "tolerance=3e-6"];
    pub(super) const SVM: &[&str] = &[
        "loss=squared_hinge",
        "optimizer=lbfgs",
        "l2=1",
        "history=40",
        "tolerance=1e-9",
        "max_iterations=500",
    ];
    pub(super) const NEWS20: &[&str] = &["optimizer=lbfgs", "l2=1", "max_iterations=30"];
    pub(super) const CLICKS: &[&str] = &["optimizer=lbfgs", "l2=10", "tolerance=0", "max_iterations=20"];
    /// The penalties are added to the sum over 16,512 records.
    pub(super) const CALIFORNIA: [(&str, &[&str]); 5] = [
        ("ols", &["optimizer=lbfgs", "tolerance=1e-9"]),
        ("ridge", &["optimizer=lbfgs", "tolerance=1e-9", "l2=1"]),
        ("lasso_01", &["optimizer=owlqn", "tolerance=1e-9", "l1=165.12"]),
        ("lasso_1", &["optimizer=owlqn", "tolerance=1e-9", "l1=1651.2"]),
        ("elastic_net", &["optimizer=owlqn", "tolerance=1e-9", "l1=82.56", "l2=82.56"]),
    ];
}

pub(super) fn a9a_lbfgs(context: &Context) -> Result<Figures> {
    let mut figures = a9a(context, (settings::LBFGS, 1), "liblinear_l2")?;
    figures.remove("non_zeros");
    Ok(figures)
}

pub(super) fn a9a_owlqn(context: &Context) -> Result<Figures> {
    a9a(context, (settings::OWLQN, 1), "liblinear_l1")
}

/// With four tasks, so that ADMM has a consensus to reach.
pub(super) fn a9a_admm(context: &Context) -> Result<Figures> {
    let mut figures = a9a(context, (settings::ADMM, 4), "liblinear_l2")?;
    figures.remove("non_zeros");
    Ok(figures)
}

/// Logistic regression on a9a on one core with this number of tasks, ours and a case of the peer in turns.
fn a9a(context: &Context, (settings, tasks): (&[&str], usize), case: &str) -> Result<Figures> {
    let folder = context.data_set("a9a")?;
    let data = context.unpacked("a9a", "train.libsvm")?;
    let model = context.scratch_path("model_a9a_minimum");
    let words = train("lr", &data, &model, tasks, settings, &[]);
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::One, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let value = peers.linear(case, &folder, Cores::One)?;
            Ok(value["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let test = context.evaluate(&model, &context.unpacked("a9a", "test.libsvm")?, &[])?;
    let trained = context.evaluate(&model, &data, &[])?;
    Ok(Figures::from([
        ("auc", Figure::ours(number(&test, "auc")?)),
        ("log_loss", Figure::ours(number(&test, "log_loss")?)),
        ("train_log_loss", Figure::ours(number(&trained, "log_loss")?)),
        ("non_zeros", Figure::ours(non_zeros(context, &model)?)),
        ("time", race.time()),
    ]))
}

pub(super) fn a9a_svm(context: &Context) -> Result<Figures> {
    context.data_set("a9a")?;
    let data = context.unpacked("a9a", "train.libsvm")?;
    let model = context.scratch_path("model_a9a_svm_minimum");
    let usage = context.seraphim(Cores::One, &train("svm", &data, &model, 1, settings::SVM, &[]))?;
    let test = context.evaluate(&model, &context.unpacked("a9a", "test.libsvm")?, &[])?;
    let loss = number(&context.evaluate(&model, &data, &[])?, "loss")?;
    let count = records(&data)?;
    let squares = weights_norm(context, &model, "square_sum")?;
    Ok(Figures::from([
        ("accuracy", Figure::ours(number(&test, "accuracy")?)),
        ("objective", Figure::ours(loss * count + 0.5 * squares)),
        ("seconds", Figure::ours(usage.wall_s)),
    ]))
}

pub(super) fn news20(context: &Context) -> Result<Figures> {
    let folder = context.data_set("news20")?;
    let [data, test] = [super::quality::find(&folder, "train")?, super::quality::find(&folder, "test")?];
    let model = context.scratch_path("model_news20_minimum");
    let usage = context.seraphim(Cores::Two, &train("softmax", &data, &model, 1, settings::NEWS20, &[]))?;
    let values = context.evaluate(&model, &test, &[])?;
    Ok(Figures::from([
        ("accuracy", Figure::ours(number(&values, "accuracy")?)),
        ("log_loss", Figure::ours(number(&values, "log_loss")?)),
        ("seconds", Figure::ours(usage.wall_s)),
    ]))
}

pub(super) fn california(context: &Context) -> Result<Figures> {
    let folder = context.data_set("california")?;
    let [data, test] = [super::quality::find(&folder, "train")?, super::quality::find(&folder, "test")?];
    let mut figures = Figures::new();
    for (name, settings) in settings::CALIFORNIA {
        let model = context.scratch_path(&format!("model_california_{name}"));
        context.seraphim(Cores::One, &train("linear", &data, &model, 1, settings, &[]))?;
        let rmse = number(&context.evaluate(&model, &test, &[])?, "rmse")?;
        figures.insert(name, Figure::ours(rmse));
        let count = non_zeros(context, &model)?;
        match name {
            "lasso_01" => drop(figures.insert("lasso_01_non_zeros", Figure::ours(count))),
            "lasso_1" => drop(figures.insert("lasso_1_non_zeros", Figure::ours(count))),
            "elastic_net" => drop(figures.insert("elastic_net_non_zeros", Figure::ours(count))),
            _ => {}
        }
    }
    Ok(figures)
}

pub(super) fn clicks_alone(context: &Context) -> Result<Figures> {
    clicks(context, &[])
}

pub(super) fn clicks_on_servers(context: &Context) -> Result<Figures> {
    clicks(context, &["--servers", "2", "--workers", "2"])
}

/// Twenty iterations from text to model. With several processes, the peak is that of the largest.
fn clicks(context: &Context, more: &[&str]) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let (data, model) = (folder.join("train.libsvm"), context.scratch_path("model_clicks_minimum"));
    let usage = context.seraphim(Cores::Two, &train("lr", &data, &model, 2, settings::CLICKS, more))?;
    let test = context.evaluate(&model, &folder.join("test.libsvm"), &[])?;
    let trained = context.evaluate(&model, &data, &[])?;
    let squares = weights_norm(context, &model, "square_sum")?;
    let objective = number(&trained, "log_loss")? + 5.0 / records(&data)? * squares;
    Ok(Figures::from([
        ("objective", Figure::ours(objective)),
        ("auc", Figure::ours(number(&test, "auc")?)),
        ("seconds", Figure::ours(usage.wall_s)),
        ("peak", Figure::ours(usage.peak_mb)),
    ]))
}

/// The answer of a function on the one row of weights of a model.
fn weights_norm(context: &Context, model: &Path, function: &str) -> Result<f64> {
    let mut words = arguments(["apply", "--function", function]);
    words.push(model.into());
    let text = context.seraphim_output(&words)?;
    text.trim().parse().with_context(|| format!("apply of {function} printed {text:?}"))
}

fn non_zeros(context: &Context, model: &Path) -> Result<f64> {
    weights_norm(context, model, "count_non_zero")
}

/// Number of records of a text file: its lines.
fn records(data: &Path) -> Result<f64> {
    use std::io::BufRead as _;
    let file = std::fs::File::open(data).with_context(|| data.display().to_string())?;
    Ok(std::io::BufReader::new(file).split(b'\n').count() as f64)
}

fn number(metrics: &Value, name: &str) -> Result<f64> {
    metrics[name].as_f64().with_context(|| format!("evaluate gave no {name}"))
}
