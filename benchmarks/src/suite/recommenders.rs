//! Recommenders: errors of ratings on `MovieLens` 100k, the order of items on gowalla, and time against cmfrec and implicit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Benchmark;
use super::factorization::number;
use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "ratings_als",
        title: "MovieLens 100k, als, two tasks, text to saved model; peer: the fit of cmfrec with two threads",
        targets: &[Target::at_most("rmse", "", 0.9230, 0.906), Target::time_ratio(1.0, 0.5)],
        run: |context| ratings(context, "als", &[]),
    },
    Benchmark {
        name: "ratings_implicit",
        title: "the same with implicit features of the weight 1",
        targets: &[Target::at_most("rmse", "", 0.906, 0.906)],
        run: |context| ratings(context, "als", &["implicit_weight=1"]),
    },
    Benchmark {
        name: "ratings_mf",
        title: "the same with mf, by stochastic gradient descent; peer: cmfrec, by ALS",
        targets: &[Target::at_most("rmse", "", 0.9180, 0.906)],
        run: |context| ratings(context, "mf", &[]),
    },
    Benchmark {
        name: "choices_ials",
        title: "gowalla, ials, 64 factors, 15 iterations, two tasks, text to saved model; peer: the fit of implicit with two threads",
        targets: &[Target::at_least("ndcg", "", 0.1257, 0.135), Target::time_ratio(0.7, 0.4)],
        run: |context| choices(context, "ials", "als", &["iterations=15"]),
    },
    Benchmark {
        name: "choices_bpr",
        title: "the same with bpr, 64 factors; peer: 100 epochs of implicit",
        targets: &[Target::at_least("ndcg", "", 0.11, 0.13), Target::time_ratio(1.0, 0.5)],
        run: |context| choices(context, "bpr", "bpr", &[]),
    },
    Benchmark {
        name: "choices_best",
        title: "gowalla, training and validation data, ials with 256 factors; itemknn beside it",
        targets: &[Target::at_least("ndcg", "", 0.140, 0.147)],
        run: best,
    },
    Benchmark {
        name: "recommend",
        title: "20 items for each user of gowalla as CSV, from the model of 64 factors; peer: implicit, in memory",
        targets: &[Target::time_ratio(0.7, 0.4)],
        run: recommend,
    },
];

const ON_SERVERS: &[&str] = &["--servers", "2", "--workers", "2"];
const COLUMNS: &[&str] = &["--user", "user_id:token", "--item", "item_id:token", "--rating", "rating:float"];

/// Times a training and a peer in turns; returns the time and what the peer has found.
fn race(context: &Context, words: &[OsString], case: &str, folder: &Path) -> Result<(Figure, Value)> {
    let mut peer = Value::Null;
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            peer = peers.recommender(case, folder)?;
            Ok(peer["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    Ok((race.time(), peer))
}

/// Seconds of the same training with two servers and two workers.
fn on_servers(context: &Context, words: &[OsString]) -> Result<Figure> {
    let words = [words, &arguments(ON_SERVERS.iter().copied())].concat();
    Ok(Figure::ours(context.seraphim(Cores::Two, &words)?.wall_s))
}

fn ratings(context: &Context, algorithm: &str, settings: &[&str]) -> Result<Figures> {
    let folder = context.data_set("ml-100k")?;
    let model = context.scratch_path("model_ratings");
    let words = train(algorithm, &folder.join("train.tsv.gz"), &model, 2, settings, COLUMNS);
    let (time, peer) = race(context, &words, "cmfrec", &folder)?;
    let metrics = context.evaluate(&model, &folder.join("test.tsv.gz"), &[])?;
    let rmse = Figure::with_peer(number(&metrics, "rmse")?, peer["rmse"].as_f64());
    Ok(Figures::from([("rmse", rmse), ("time", time), ("on_servers", on_servers(context, &words)?)]))
}

/// The data of gowalla: training, validation and test.
fn gowalla(context: &Context) -> Result<(PathBuf, [PathBuf; 3])> {
    let folder = context.data_set("gowalla")?;
    let files = ["train", "valid", "test"].map(|part| folder.join(format!("{part}.txt.gz")));
    Ok((folder, files))
}

/// NDCG of 20 items for the test data, without the items of the validation data.
fn ndcg(context: &Context, model: &Path) -> Result<f64> {
    let (_, [_, valid, test]) = gowalla(context)?;
    let mut words = arguments(["recommend"]);
    words.push(model.into());
    words.extend(arguments(["--users", "all", "--top", "20", "--seen"]));
    words.push(valid.into());
    words.push("--test".into());
    words.push(test.into());
    let text = context.seraphim_output(&words)?;
    let line = text.lines().find_map(|line| line.strip_prefix("ndcg")).context("a line with ndcg")?;
    Ok(line.split_whitespace().next().context("a number")?.parse()?)
}

fn choices(context: &Context, algorithm: &str, case: &str, settings: &[&str]) -> Result<Figures> {
    let (folder, [data, ..]) = gowalla(context)?;
    let model = context.scratch_path("model_choices");
    let words = train(algorithm, &data, &model, 2, settings, &["--format", "adjacency"]);
    let (time, peer) = race(context, &words, case, &folder)?;
    let ndcg = Figure::with_peer(ndcg(context, &model)?, peer["ndcg20"].as_f64());
    Ok(Figures::from([("ndcg", ndcg), ("time", time), ("on_servers", on_servers(context, &words)?)]))
}

fn best(context: &Context) -> Result<Figures> {
    let (_, [data, valid, _]) = gowalla(context)?;
    let model = context.scratch_path("model_best");
    let valid = valid.to_string_lossy();
    let of = |algorithm: &str, settings: &[&str]| -> Result<(f64, f64)> {
        let more = ["--data", &valid, "--format", "adjacency"];
        let usage = context.seraphim(Cores::Two, &train(algorithm, &data, &model, 2, settings, &more))?;
        Ok((ndcg(context, &model)?, usage.wall_s))
    };
    let (neighbors, neighbors_seconds) = of("itemknn", &[])?;
    let (factors, seconds) = of("ials", &["factors=256"])?;
    Ok(Figures::from([
        ("ndcg", Figure::ours(factors)),
        ("seconds", Figure::ours(seconds)),
        ("itemknn", Figure::ours(neighbors)),
        ("itemknn_seconds", Figure::ours(neighbors_seconds)),
    ]))
}

fn recommend(context: &Context) -> Result<Figures> {
    let (_, [data, ..]) = gowalla(context)?;
    let (model, output) = (context.scratch_path("model_lists"), context.scratch_path("lists.csv"));
    context.seraphim(Cores::Two, &train("ials", &data, &model, 2, &[], &["--format", "adjacency"]))?;
    let mut words = arguments(["recommend"]);
    words.push(model.into());
    words.extend(arguments(["--users", "all", "--top", "20", "--overwrite", "--output"]));
    words.push(output.into());
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::Two, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let peer = peers.lists(&context.options.root, &data)?;
            Ok(peer["seconds"].as_f64().map(Sample::time))
        },
    )?;
    Ok(Figures::from([("time", race.time())]))
}
