//! `KMeans` on Fashion-MNIST: inertia and time against scikit-learn.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Benchmark;
use crate::comparison::{Comparison, Sample, median};
use crate::context::Context;
use crate::process::{Cores, arguments};
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "kmeans_10",
        title: "Fashion-MNIST, KMeans k=10, Lloyd, one core; inertia: median of five seeds; peer: scikit-learn, fit alone",
        targets: &[
            Target::at_most("inertia", "", 642_579.0, 639_382.0),
            Target::ratio("iteration", 1.0, 0.6),
            Target::time_ratio(1.0, 0.6),
        ],
        run: lloyd_10,
    },
    Benchmark {
        name: "kmeans_100",
        title: "the same with k=100",
        targets: &[
            Target::at_most("inertia", "", 406_443.0, 404_421.0),
            Target::ratio("iteration", 1.0, 0.6),
            Target::time_ratio(1.0, 0.6),
        ],
        run: lloyd_100,
    },
    Benchmark {
        name: "kmeans_mini_10",
        title: "the same with k=10 and mini-batches, four passes; peer: MiniBatchKMeans",
        targets: &[
            Target::at_most("inertia", "", 649_024.0, 649_024.0),
            Target::ratio("iteration", 1.0, 0.5),
        ],
        run: mini_10,
    },
    Benchmark {
        name: "kmeans_mini_100",
        title: "the same with k=100 and mini-batches, four passes; peer: MiniBatchKMeans",
        targets: &[
            Target::at_most("inertia", "", 411_146.0, 411_146.0),
            Target::ratio("iteration", 1.0, 0.5),
        ],
        run: mini_100,
    },
];

fn lloyd_10(context: &Context) -> Result<Figures> {
    run(context, 10, "lloyd")
}

fn lloyd_100(context: &Context) -> Result<Figures> {
    run(context, 100, "lloyd")
}

fn mini_10(context: &Context) -> Result<Figures> {
    run(context, 10, "mini_batch")
}

fn mini_100(context: &Context) -> Result<Figures> {
    run(context, 100, "mini_batch")
}

/// Trains on one core with another seed in each round, in turns with the peer. Our time includes reading the text; that
/// of the peer is the fit alone. An iteration of the peer is its fit divided by their number, with the choice of the first
/// centres; ours is the mean of those after the first, in seconds.
fn run(context: &Context, k: usize, method: &str) -> Result<Figures> {
    let folder = context.data_set("fashion_mnist")?;
    let data = context.images("train")?;
    let (model, report) = (context.scratch_path("model_kmeans"), context.scratch_path("kmeans.json"));
    let (mut inertias, mut iterations) = (Vec::new(), Vec::new());
    let (mut peer_inertia, mut peer_iterations) = (None, Vec::new());
    let (clusters, method_setting) = (format!("k={k}"), format!("method={method}"));
    let mut round = 0;
    let race = Comparison::run(
        context.options.rounds,
        || {
            round += 1;
            let seed = round.to_string();
            let mut words =
                arguments(["train", "kmeans", "--quiet", "--overwrite", "--tasks", "1", "--seed", &seed]);
            words.extend(arguments(["--set", &clusters, "--set", &method_setting, "--data"]));
            words.push(data.clone().into());
            words.extend(["--model".into(), model.clone().into(), "--report".into(), report.clone().into()]);
            let usage = context.seraphim(Cores::One, &words)?;
            let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
            let lines = report["epochs"].as_array().context("a report has epochs")?;
            // The first epoch also reads the data and chooses the first centres.
            let later: Vec<f64> = lines.iter().skip(1).filter_map(|line| line["seconds"].as_f64()).collect();
            iterations.push(later.iter().sum::<f64>() / later.len().max(1) as f64);
            let values = context.evaluate(&model, &data, &[])?;
            inertias.push(values["inertia"].as_f64().context("evaluate gave no inertia")?);
            Ok(usage.into())
        },
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            let case = format!("{}_{k}", if method == "lloyd" { "lloyd" } else { "mini" });
            let value = peers.clusters(&case, &folder)?;
            peer_inertia = value["inertia"].as_f64();
            let seconds = value["fit_s"].as_f64();
            peer_iterations
                .extend(seconds.zip(value["iters"].as_f64()).map(|(seconds, count)| seconds / count));
            Ok(seconds.map(Sample::time))
        },
    )?;
    Ok(Figures::from([
        ("inertia", Figure::with_peer(median(&inertias).unwrap_or(f64::NAN), peer_inertia)),
        ("iteration", Figure::with_peer(median(&iterations).unwrap_or(f64::NAN), median(&peer_iterations))),
        ("time", race.time()),
    ]))
}
