//! Factorization machines on frappe and on synthetic clicks: quality and time against xLearn, memory with admission.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Benchmark;
use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::Cores;
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "fm_frappe",
        title: "frappe, FM k=8, ten passes, one core, text to saved model; peer: xLearn FM",
        targets: &[
            Target::at_least("auc", "", 0.9470, 0.950),
            Target::at_most("log_loss", "", 0.267, 0.267),
            Target::time_ratio(1.5, 1.0),
        ],
        run: fm,
    },
    Benchmark {
        name: "fm_frappe_64",
        title: "frappe, FM k=64 with its best settings, one core",
        targets: &[Target::at_least("auc", "", 0.957, 0.962), Target::at_most("log_loss", "", 0.215, 0.215)],
        run: fm_64,
    },
    Benchmark {
        name: "ffm_frappe",
        title: "frappe, FFM k=4, ten passes, one core, text to saved model; peer: xLearn FFM",
        targets: &[
            Target::at_least("auc", "", 0.950, 0.958),
            Target::at_most("log_loss", "", 0.255, 0.255),
            Target::time_ratio(1.5, 0.8),
        ],
        run: ffm,
    },
    Benchmark {
        name: "fm_clicks",
        title: "1M x 10M clicks, FM k=8 with admission at 5 sightings, one pass; `ahead`: AUC minus that of lr",
        targets: &[Target::at_least("ahead", "", 0.0, 0.0), Target::at_most("peak", "MB", 1500.0, 1500.0)],
        run: clicks,
    },
];

/// Ten passes; all else by default.
const TEN_PASSES: &[&str] = &["epochs=10"];
/// The best settings that were found for 64 factors.
const MANY_FACTORS: &[&str] = &[
    "k=64",
    "epochs=15",
    "batch_size=64",
    "shuffle=records",
    "learning_rate=0.4",
    "linear_learning_rate=0.75",
    "l2=0.011",
    "init_deviation=0.1",
];
/// One pass over the clicks, whose labels follow from weights alone.
const ADMISSION: &[&str] =
    &["epochs=1", "admission=5", "learning_rate=0.02", "linear_learning_rate=0.1", "init_deviation=0.01"];
const ON_SERVERS: &[&str] = &["--servers", "2", "--workers", "2"];

fn fm(context: &Context) -> Result<Figures> {
    let folder = context.data_set("frappe")?;
    let files = ["train", "test"].map(|part| context.unpacked("frappe", &format!("{part}.libsvm")));
    let [training, test] = files;
    against_xlearn(context, "fm", "xl_fm", &folder, [&training?, &test?])
}

fn ffm(context: &Context) -> Result<Figures> {
    let folder = context.data_set("frappe")?;
    let [training, test] = ["train", "test"].map(|part| with_fields(context, part));
    against_xlearn(context, "ffm", "xl_ffm", &folder, [&training?, &test?])
}

fn fm_64(context: &Context) -> Result<Figures> {
    let [training, test] =
        ["train", "test"].map(|part| context.unpacked("frappe", &format!("{part}.libsvm")));
    let model = context.scratch_path("model_fm_64");
    let usage = context.seraphim(Cores::One, &train("fm", &training?, &model, 1, MANY_FACTORS, &[]))?;
    let metrics = context.evaluate(&model, &test?, &[])?;
    Ok(Figures::from([
        ("auc", Figure::ours(number(&metrics, "auc")?)),
        ("log_loss", Figure::ours(number(&metrics, "log_loss")?)),
        ("seconds", Figure::ours(usage.wall_s)),
    ]))
}

/// Text to saved model in ten passes on one core, ours and xLearn in turns, both with reading the text.
fn against_xlearn(
    context: &Context,
    algorithm: &str,
    case: &str,
    folder: &Path,
    [training, test]: [&Path; 2],
) -> Result<Figures> {
    let model = context.scratch_path("model_factorization");
    let words = train(algorithm, training, &model, 1, TEN_PASSES, &[]);
    let mut peer = Value::Null;
    let race = Comparison::run(
        context.options.rounds,
        || Ok(context.seraphim(Cores::One, &words)?.into()),
        || {
            let Some(peers) = context.peers() else { return Ok(None) };
            peer = peers.factorization(case, folder)?;
            Ok(peer["fit_s"].as_f64().map(Sample::time))
        },
    )?;
    let metrics = context.evaluate(&model, test, &[])?;
    let servers = context.scratch_path("model_factorization_servers");
    let usage =
        context.seraphim(Cores::Two, &train(algorithm, training, &servers, 2, TEN_PASSES, ON_SERVERS))?;
    Ok(Figures::from([
        ("auc", Figure::with_peer(number(&metrics, "auc")?, peer["auc"].as_f64())),
        ("log_loss", Figure::with_peer(number(&metrics, "log_loss")?, peer["logloss"].as_f64())),
        ("time", race.time()),
        ("on_servers", Figure::ours(usage.wall_s)),
    ]))
}

/// One pass over the clicks; the peer is our own logistic regression.
fn clicks(context: &Context) -> Result<Figures> {
    let folder = context.clicks(10)?;
    let (training, test) = (folder.join("train.libsvm"), folder.join("test.libsvm"));
    let (model, linear) = (context.scratch_path("model_fm_clicks"), context.scratch_path("model_clicks"));
    let usage = context.seraphim(Cores::Two, &train("fm", &training, &model, 2, ADMISSION, &[]))?;
    context.seraphim(Cores::Two, &train("lr", &training, &linear, 2, &["epochs=1"], &[]))?;
    let auc = number(&context.evaluate(&model, &test, &[])?, "auc")?;
    let linear_auc = number(&context.evaluate(&linear, &test, &[])?, "auc")?;
    Ok(Figures::from([
        ("ahead", Figure::ours(auc - linear_auc)),
        ("auc", Figure::with_peer(auc, Some(linear_auc))),
        ("seconds", Figure::ours(usage.wall_s)),
        ("peak", Figure::ours(usage.peak_mb)),
    ]))
}

/// The records of frappe as libffm: the ten entries of a record have the fields 0 to 9.
fn with_fields(context: &Context, part: &str) -> Result<PathBuf> {
    let source = context.unpacked("frappe", &format!("{part}.libsvm"))?;
    let path = source.with_extension("libffm");
    let mut out = BufWriter::new(File::create(&path)?);
    for line in BufReader::new(File::open(&source)?).lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        write!(out, "{}", words.next().unwrap_or_default())?;
        for (field, entry) in words.enumerate() {
            write!(out, " {field}:{entry}")?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(path)
}

pub(super) fn number(metrics: &Value, name: &str) -> Result<f64> {
    metrics[name].as_f64().with_context(|| format!("evaluate gave no {name}"))
}
