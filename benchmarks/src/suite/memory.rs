//! Memory of a worker when keys are five times as far apart, with the same records, features and values; memory of
//! all processes while a large matrix is saved.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::Benchmark;
use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::Cores;
use crate::target::{Figure, Figures, Target};

pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "worker_memory",
        title: "a worker of L-BFGS on two servers: 50M dimensions against 10M, all else the same",
        targets: &[Target::ratio("peak", 1.10, 1.02)],
        run: worker,
    },
    Benchmark {
        name: "saving_memory",
        title: "saving a matrix of 10M x 8 from two servers and two workers: the peak of the largest process after and before",
        targets: &[Target::at_most("growth", "x", 1.10, 1.02)],
        run: saving,
    },
];

/// Factor on each key.
const REPEATS: u64 = 5;
/// The peak occurs in the survey of the data or in any evaluation, so few iterations suffice.
const SETTINGS: &[&str] = &["optimizer=lbfgs", "l2=10", "tolerance=0", "max_iterations=5"];

/// Peaks of the larger of two workers on two servers with 10M and with 50M dimensions, in turns.
fn worker(context: &Context) -> Result<Figures> {
    let near = context.clicks(10)?.join("train.libsvm");
    let far = context.scratch_path("stretched.libsvm");
    repeat_data(&near, &far)?;
    let model = context.scratch_path("model_worker_memory");
    let servers = ["--servers", "2", "--workers", "2"];
    let peak = |data: &Path| -> Result<Sample> {
        let words = train("lr", data, &model, 2, SETTINGS, &servers);
        let peaks = context.workers_peaks(Cores::Two, &words)?;
        ensure!(peaks.len() == 2, "{} workers were seen, not 2", peaks.len());
        Ok(Sample { peak_mb: peaks.into_iter().fold(0.0, f64::max), ..Sample::default() })
    };
    let race = Comparison::run(context.options.rounds, || peak(&far), || peak(&near).map(Some))?;
    Ok(Figures::from([("peak", race.peaks())]))
}

/// Features of the matrix that is saved; each is in one record.
const FEATURES: u64 = 10_000_000;
/// Features of a record.
const RECORD_FEATURES: u64 = 50;
/// Prime to [`FEATURES`]: the features of a record are far apart.
const STRIDE: u64 = 7_368_787;
/// 8 factors and no slots for each feature.
const SAVED: &[&str] = &["k=8", "epochs=1", "optimizer=sgd", "linear_optimizer=sgd"];

/// By how much saving a matrix of 10M x 8 from two servers and two workers raises the peak of the largest process.
fn saving(context: &Context) -> Result<Figures> {
    let data = context.scratch_path("ten_million.libsvm");
    write_features(&data)?;
    let folder = context.scratch_path("saved");
    std::fs::create_dir_all(&folder).context("a folder for the model")?;
    let servers = ["--servers", "2", "--workers", "2"];
    let words = train("fm", &data, &folder.join("model"), 2, SAVED, &servers);
    let mut growths = Vec::new();
    let (mut before, mut after) = (0.0, 0.0);
    for _ in 0..context.options.rounds {
        // The model is written beside its place first.
        [before, after] = context.peaks_before_and_after(&words, || {
            std::fs::read_dir(&folder).is_ok_and(|mut names| {
                names.any(|name| {
                    name.is_ok_and(|name| name.file_name().to_string_lossy().starts_with(".model.part"))
                })
            })
        })?;
        growths.push(after / before);
    }
    std::fs::remove_file(&data).context("the data")?;
    growths.sort_by(f64::total_cmp);
    Ok(Figures::from([
        ("growth", Figure::ours(growths[growths.len() / 2])),
        ("before", Figure::ours(before)),
        ("peak", Figure::ours(after)),
    ]))
}

/// Writes records with every feature once.
pub(super) fn write_features(to: &Path) -> Result<()> {
    let mut output = BufWriter::new(File::create(to).with_context(|| to.display().to_string())?);
    for record in 0..FEATURES / RECORD_FEATURES {
        let numbers = record * RECORD_FEATURES..(record + 1) * RECORD_FEATURES;
        let mut keys: Vec<u64> = numbers.map(|i| i * STRIDE % FEATURES).collect();
        keys.sort_unstable();
        write!(output, "{}", record % 2)?;
        for key in keys {
            write!(output, " {key}:1")?;
        }
        writeln!(output)?;
    }
    Ok(output.flush()?)
}

/// Writes the records with all keys multiplied and all other bytes unchanged.
fn repeat_data(from: &Path, to: &Path) -> Result<()> {
    let name = || from.display().to_string();
    let input = BufReader::new(File::open(from).with_context(name)?);
    let mut output = BufWriter::new(File::create(to).with_context(|| to.display().to_string())?);
    for line in input.lines() {
        let line = line.with_context(name)?;
        let mut words = line.split_ascii_whitespace();
        write!(output, "{}", words.next().unwrap_or_default())?;
        for word in words {
            let (key, value) = word.split_once(':').with_context(|| format!("{word:?} is no key:value"))?;
            write!(output, " {}:{value}", key.parse::<u64>().with_context(name)? * REPEATS)?;
        }
        writeln!(output)?;
    }
    Ok(output.flush()?)
}
