//! Memory of a worker when keys are five times as far apart, with the same records, features and values.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::train::train;
use crate::comparison::{Comparison, Sample};
use crate::context::Context;
use crate::process::Cores;
use crate::target::Figures;

/// Factor on each key.
const REPEATS: u64 = 5;
/// The peak occurs in the survey of the data or in any evaluation, so few iterations suffice.
const SETTINGS: &[&str] = &["optimizer=lbfgs", "l2=10", "tolerance=0", "max_iterations=5"];

/// Peaks of the larger of two workers on two servers with 10M and with 50M dimensions, in turns.
pub(super) fn worker(context: &Context) -> Result<Figures> {
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
