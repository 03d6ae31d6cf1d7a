//! Benchmarks on synthetic clicks: speed, memory and quality at millions of dimensions.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::train::train;
use crate::comparison::{Comparison, Sample, median};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures};

const ONE_PASS: &[&str] = &["epochs=1"];
const THREE_PASSES: &[&str] = &["epochs=3", "learning_rate=0.07", "l2=20"];

/// Cases of the peer: one pass of VW with a suitable number of weight bits.
const VW_10M: &str = "vw_big";
const VW_50M: &str = "vw_50m";

pub(super) fn two_cores(context: &Context) -> Result<Figures> {
    against_vw(context, 10, Cores::Two, VW_10M)
}

pub(super) fn one_core(context: &Context) -> Result<Figures> {
    against_vw(context, 10, Cores::One, VW_10M)
}

pub(super) fn fifty_million(context: &Context) -> Result<Figures> {
    against_vw(context, 50, Cores::Two, VW_50M)
}

/// Runs one pass from text to saved model, ours and that of VW in turns, then evaluates the last model.
fn against_vw(context: &Context, millions: u64, cores: Cores, case: &str) -> Result<Figures> {
    let folder = context.clicks(millions)?;
    let model = context.scratch_path("model_clicks");
    let words = train("lr", &folder.join("train.libsvm"), &model, cores.count(), ONE_PASS, &[]);
    let mut peer_metrics = Value::Null;
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(cores, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            peer_metrics = peers.linear(case, &folder, cores)?;
            Ok(peer_metrics["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let metrics = context.evaluate(&model, &folder.join("test.libsvm"), &[])?;
    Ok(Figures::from([
        ("auc", Figure::with_peer(number(&metrics, "auc")?, peer_metrics["auc"].as_f64())),
        ("log_loss", Figure::with_peer(number(&metrics, "log_loss")?, peer_metrics["logloss"].as_f64())),
        ("time", race.time()),
        ("peak", race.peak()),
        ("cpu", race.cpu()),
    ]))
}

pub(super) fn three_passes(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let model = context.scratch_path("model_three_passes");
    let words = train("lr", &folder.join("train.libsvm"), &model, 2, THREE_PASSES, &[]);
    let usage = context.seraphim(Cores::Two, &words)?;
    let metrics = context.evaluate(&model, &folder.join("test.libsvm"), &[])?;
    Ok(Figures::from([
        ("auc", Figure::ours(number(&metrics, "auc")?)),
        ("log_loss", Figure::ours(number(&metrics, "log_loss")?)),
        ("seconds", Figure::ours(usage.wall_s)),
        ("peak", Figure::ours(usage.peak_mb)),
    ]))
}

pub(super) fn parquet(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    against_text(context, &folder, &folder.join("train.parquet"))
}

pub(super) fn pyarrow(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let rewritten = context.scratch_path("pyarrow.parquet");
    let peers = context.peers().context("pyarrow, which is among the peers, is not there")?;
    peers.rewrite_parquet(&folder.join("train.parquet"), &rewritten)?;
    against_text(context, &folder, &rewritten)
}

fn against_text(context: &Context, folder: &Path, parquet: &Path) -> Result<Figures> {
    let model = context.scratch_path("model_parquet");
    let [ours, text] =
        [parquet, &folder.join("train.libsvm")].map(|file| train("lr", file, &model, 2, ONE_PASS, &[]));
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, &ours)?.into()),
        || Ok(Some(context.seraphim(Cores::Two, &text)?.into())),
    )?;
    Ok(Figures::from([("time", race.time()), ("peak", race.peak())]))
}

/// Seconds of the second epoch compared with the first, from the report of the run.
pub(super) fn later_epochs(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let (model, report) = (context.scratch_path("model_epochs"), context.scratch_path("report.json"));
    let mut words = train("lr", &folder.join("train.libsvm"), &model, 2, &["epochs=3"], &["--report"]);
    words.push(report.clone().into());
    let (mut first, mut second, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..context.options.rounds {
        context.seraphim(Cores::Two, &words)?;
        let value = read_json(&report)?;
        let seconds = |epoch: usize| {
            value["epochs"][epoch]["seconds"].as_f64().context("the report lacks seconds of an epoch")
        };
        first.push(seconds(0)?);
        second.push(seconds(1)?);
        ratios.push(seconds(1)? / seconds(0)?);
    }
    let time =
        Figure { ours: median(&second).unwrap_or(f64::NAN), peer: median(&first), ratio: median(&ratios) };
    Ok(Figures::from([("time", time)]))
}

/// Times of the three consistency modes in turns, and the distance of their models.
pub(super) fn consistency(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let modes = ["bsp", "asp", "ssp:4"].map(|mode| {
        let model = context.scratch_path(&format!("model_{}", mode.replace(':', "_")));
        let words = train("lr", &folder.join("train.libsvm"), &model, 2, ONE_PASS, &["--consistency", mode]);
        (model, words)
    });
    let mut ssp = Vec::new();
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, &modes[0].1)?.into()),
        || {
            let asp: Sample = context.seraphim(Cores::Two, &modes[1].1)?.into();
            ssp.push(context.seraphim(Cores::Two, &modes[2].1)?.wall_s);
            Ok(Some(asp))
        },
    )?;
    let mut aucs = Vec::new();
    for (model, _) in &modes {
        aucs.push(number(&context.evaluate(model, &folder.join("test.libsvm"), &[])?, "auc")?);
    }
    let spread =
        aucs.iter().copied().fold(f64::MIN, f64::max) - aucs.iter().copied().fold(f64::MAX, f64::min);
    Ok(Figures::from([
        ("auc_spread", Figure::ours(spread)),
        ("time", race.time()),
        ("ssp_seconds", Figure::ours(median(&ssp).unwrap_or(f64::NAN))),
        ("auc_bsp", Figure::ours(aucs[0])),
        ("auc_asp", Figure::ours(aucs[1])),
        ("auc_ssp", Figure::ours(aucs[2])),
    ]))
}

pub(super) fn two_tasks(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let model = context.scratch_path("model_two_tasks");
    let words =
        |tasks| train("lr", &folder.join("train.libsvm"), &model, tasks, ONE_PASS, &["--consistency", "asp"]);
    let (one, two) = (words(1), words(2));
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::One, &one)?.into()),
        || Ok(Some(context.seraphim(Cores::Two, &two)?.into())),
    )?;
    let time = race.time();
    Ok(Figures::from([
        ("speedup", Figure::ours(time.ratio.unwrap_or(f64::NAN))),
        ("one_and_two_tasks_s", time),
    ]))
}

pub(super) fn predict(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let (model, scores) = (context.scratch_path("model_predict"), context.scratch_path("scores.csv"));
    context.seraphim(Cores::Two, &train("lr", &folder.join("train.libsvm"), &model, 2, ONE_PASS, &[]))?;
    let mut words = arguments(["predict", "--quiet", "--overwrite", "--model"]);
    words.extend([model.into(), "--data".into(), folder.join("test.libsvm").into()]);
    words.extend(["--output".into(), scores.into()]);
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let value = peers.linear(VW_10M, &folder, Cores::Two)?;
            Ok(value["predict_s"].as_f64().map(Sample::time))
        },
    )?;
    Ok(Figures::from([("time", race.time()), ("peak", race.peak())]))
}

fn number(metrics: &Value, name: &str) -> Result<f64> {
    metrics[name].as_f64().with_context(|| format!("evaluate gave no {name}"))
}

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
