//! Boosted trees against LightGBM with the same settings: quality and time on real tables, time and memory on large ones.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use math::elementary::sigmoid;
use math::random::{Purpose, RandomStream, stream};
use serde_json::Value;

use super::Benchmark;
use super::train::{against_itself, train};
use crate::comparison::{Comparison, Sample, median};
use crate::context::Context;
use crate::process::Cores;
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "trees_california",
        title: "California housing, 100 trees of 31 leaves, text to saved model, one core; peer: LightGBM, text to model",
        targets: &[Target::ratio("rmse", 1.002, 1.0), Target::time_ratio(1.0, 0.7)],
        run: |context| table(context, "california", "squared", Cores::One),
    },
    Benchmark {
        name: "trees_adult",
        title: "the same on a table with names",
        targets: &[Target::at_least("auc", "", 0.9248, 0.9267), Target::time_ratio(1.0, 0.7)],
        run: |context| table(context, "adult_raw", "logistic", Cores::One),
    },
    Benchmark {
        name: "trees_adult_two_cores",
        title: "the same with two cores for both",
        targets: &[Target::time_ratio(1.0, 0.7)],
        run: |context| table(context, "adult_raw", "logistic", Cores::Two),
    },
    Benchmark {
        name: "trees_dense",
        title: "1M x 28 numbers, 100 trees of 255 leaves, two cores; time of the trees alone; peer: LightGBM, fit",
        targets: &[Target::time_ratio(1.2, 0.8), Target::ratio("peak", 1.2, 0.8)],
        run: dense,
    },
    Benchmark {
        name: "trees_sparse",
        title: "1M x 10k, 30 entries a record, 100 trees of 31 leaves, two cores; peer: LightGBM, fit",
        targets: &[Target::time_ratio(1.3, 0.8), Target::ratio("peak", 1.2, 0.8)],
        run: sparse,
    },
    Benchmark {
        name: "trees_servers",
        title: "1M x 28 with two servers and two workers; peer: the same in one process",
        targets: &[Target::time_ratio(2.0, 1.3)],
        run: servers,
    },
];

const QUICK_SHRINK: usize = 20;
const RECORDS: usize = 1_000_000;
const DENSE_COLUMNS: usize = 28;
const SPARSE_COLUMNS: u64 = 10_000;
const ENTRIES: usize = 30;

/// Trains on a real table in turns with the peer. Our time and that of the peer are from the text to the saved model.
fn table(context: &Context, name: &str, objective: &str, cores: Cores) -> Result<Figures> {
    let folder = context.data_set(name)?;
    let [data, test] = ["train.csv.gz", "test.csv.gz"].map(|file| folder.join(file));
    let model = context.scratch_path("model_trees");
    let setting = format!("objective={objective}");
    let mut words = train("gbdt", &data, &model, 1, &[&setting], &[]);
    if cores == Cores::Two {
        words.retain(|word| word != "--tasks" && word != "1");
    }
    let mut peer_metric = None;
    let metric = if objective == "squared" { "rmse" } else { "auc" };
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(cores, &words)?.into()),
        || {
            let Some(value) = peer(context, &data, Some(&test), objective, &[], cores)? else {
                return Ok(None);
            };
            peer_metric = value[metric].as_f64();
            Ok(value["seconds"].as_f64().map(Sample::time))
        },
    )?;
    let own = context.evaluate(&model, &test, &[])?[metric].as_f64().context("evaluate gave no metric")?;
    Ok(Figures::from([(metric, Figure::with_peer(own, peer_metric)), ("time", race.time())]))
}

/// Runs LightGBM with its defaults and more settings.
fn peer(
    context: &Context,
    data: &Path,
    test: Option<&Path>,
    objective: &str,
    more: &[&str],
    cores: Cores,
) -> Result<Option<Value>> {
    let Some(peers) = context.peers() else { return Ok(None) };
    let objective = if objective == "squared" { "objective=regression" } else { "objective=binary" };
    let threads = format!("num_threads={}", cores.count());
    let settings = [&[objective, &threads], more].concat();
    peers.trees(&context.options.root, data, test, &settings, cores).map(Some)
}

fn dense(context: &Context) -> Result<Figures> {
    large(context, &dense_data(context)?, "leaves=255", "num_leaves=255")
}

fn sparse(context: &Context) -> Result<Figures> {
    large(context, &sparse_data(context)?, "leaves=31", "num_leaves=31")
}

/// Trains on a large table with two tasks in turns with the peer; times are those of the trees alone.
fn large(context: &Context, data: &Path, leaves: &str, peer_leaves: &str) -> Result<Figures> {
    let (model, report) = (context.scratch_path("model_trees"), context.scratch_path("trees.json"));
    let mut words = train("gbdt", data, &model, 2, &[leaves, "objective=logistic"], &[]);
    words.extend(["--report".into(), report.clone().into()]);
    let (mut peaks, mut peer_peaks) = (Vec::new(), Vec::new());
    let race = Comparison::run(
        context.options.rounds,
        || {
            let usage = context.seraphim(Cores::Two, &words)?;
            peaks.push(usage.peak_mb);
            let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
            let lines = report["epochs"].as_array().context("a report has epochs")?;
            // The first epoch also reads the data.
            let later: Vec<f64> = lines.iter().skip(1).filter_map(|line| line["seconds"].as_f64()).collect();
            let mean = later.iter().sum::<f64>() / later.len().max(1) as f64;
            Ok(Sample::time(mean * lines.len() as f64))
        },
        || {
            let Some(value) = peer(context, data, None, "logistic", &[peer_leaves], Cores::Two)? else {
                return Ok(None);
            };
            peer_peaks.extend(value["peak_mb"].as_f64());
            Ok(value["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let peak = Figure::with_peer(median(&peaks).unwrap_or(f64::NAN), median(&peer_peaks));
    Ok(Figures::from([("time", race.time()), ("peak", peak)]))
}

fn servers(context: &Context) -> Result<Figures> {
    let data = dense_data(context)?;
    let settings = ["leaves=255", "objective=logistic", "iterations=20"];
    let on =
        |model: &str, more: &[&str]| train("gbdt", &data, &context.scratch_path(model), 2, &settings, more);
    let (spread, alone) = (on("model_spread", &["--servers", "2", "--workers", "2"]), on("model_alone", &[]));
    against_itself(context, &spread, &alone)
}

/// A file of records, made if it is not there. `record` writes the features and returns the log odds of label 1.
fn make(
    context: &Context,
    name: &str,
    header: &str,
    mut record: impl FnMut(&mut RandomStream, &mut String) -> f64,
    is_label_first: bool,
) -> Result<PathBuf> {
    let quick = if context.options.quick { "quick_" } else { "" };
    let path = context.scratch_path(&format!("{quick}{name}"));
    if path.is_file() {
        return Ok(path);
    }
    let count = if context.options.quick { RECORDS / QUICK_SHRINK } else { RECORDS };
    let mut random = stream(1, Purpose::Generate, 0, 0);
    let part = path.with_extension("part");
    let mut out = BufWriter::new(File::create(&part)?);
    out.write_all(header.as_bytes())?;
    let mut features = String::new();
    for _ in 0..count {
        features.clear();
        let score = record(&mut random, &mut features);
        let label = u8::from(random.uniform() < sigmoid(score));
        if is_label_first {
            writeln!(out, "{label}{features}")?;
        } else {
            writeln!(out, "{features}{label}")?;
        }
    }
    out.flush()?;
    std::fs::rename(part, &path)?;
    Ok(path)
}

fn dense_data(context: &Context) -> Result<PathBuf> {
    let mut header: String =
        (0..DENSE_COLUMNS).fold(String::new(), |text, column| text + &format!("x{column},"));
    header.push_str("label\n");
    let record = |random: &mut RandomStream, text: &mut String| {
        let x: [f64; DENSE_COLUMNS] = std::array::from_fn(|_| random.normal());
        for x in x {
            write!(text, "{x:.4},").expect("a string takes all");
        }
        let bumps: f64 =
            (0..DENSE_COLUMNS / 4).map(|i| x[i] * x[i + 7] * if x[i + 14] > 0.3 { 1.0 } else { -0.2 }).sum();
        0.6 * bumps + 0.5 * x[0] - 0.4 * (x[1] * x[1] - 1.0) + if x[2] > 1.0 { x[3] } else { 0.0 }
    };
    make(context, "trees_dense.csv", &header, record, false)
}

fn sparse_data(context: &Context) -> Result<PathBuf> {
    let record = |random: &mut RandomStream, text: &mut String| {
        // Powers of uniform numbers: a few columns are frequent.
        let mut columns: Vec<u64> =
            (0..ENTRIES).map(|_| (random.uniform().powi(3) * SPARSE_COLUMNS as f64) as u64 + 1).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut score = 0.0;
        for &column in &columns {
            let value = 1.0 + random.below(8) as f64 / 4.0;
            write!(text, " {column}:{value}").expect("a string takes all");
            score += value
                * 0.3
                * match column % 7 {
                    0 => 1.0,
                    1 => -1.0,
                    _ => 0.0,
                };
        }
        score
    };
    make(context, "trees_sparse.libsvm", "", record, true)
}
