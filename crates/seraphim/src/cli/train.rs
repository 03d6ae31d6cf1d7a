//! `seraphim train lr --data ... --model ...`, or `seraphim train job.toml`.

use std::path::Path;
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};

use super::flags::{raw_job, with_flags};
use super::{print_json, print_text};
use crate::error::Error;
use crate::exit::Exit;
use crate::job::TrainJob;
use crate::job::checkpoints;
use crate::job::keys;
use crate::job::raw::RawJob;
use crate::labels;
use crate::progress::{Progress, counted};
use crate::report::Report;
use crate::run::Environment;
use crate::run::driver::epoch_monitor::metrics_text;

pub(super) fn command() -> Command {
    let what = Arg::new("what").value_name("ALGORITHM|JOB.toml").help(
        "An algorithm (see `seraphim algorithms`), or a job file with the same keys; flags override the file",
    );
    with_flags(Command::new("train").about("Train a model").arg(what), keys::JobCommand::Train)
}

/// Returns the settings of the job file and the flags, with the modules that they name.
pub(super) fn raw(matches: &ArgMatches) -> Result<RawJob, Error> {
    let mut flags = raw_job(matches, keys::JobCommand::Train);
    let mut raw = RawJob::new();
    match matches.get_one::<String>("what") {
        Some(file) if Path::new(file).extension().is_some_and(|extension| extension == "toml") => {
            raw = RawJob::from_file(Path::new(file))?;
        }
        Some(algorithm) => flags.algorithm = Some(algorithm.clone()),
        None => raw = checkpoints::saved_job(&flags)?.unwrap_or_default(),
    }
    raw.overridden_by(flags).with_modules()
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let raw = raw(matches)?;
    let job = TrainJob::check(&raw, environment.families)?;
    let progress = Arc::new(Progress::new());
    let report = match job.size {
        None => crate::run::local::train(&raw, &job, environment, progress)?,
        Some(size) => crate::run::cluster::launch::train(&raw, &job, size, environment, progress)?,
    };
    if job.manner.json {
        print_json(&report)?;
    } else {
        print_text(&summary(&report))?;
    }
    Ok(if report.ended_by == "interrupted" { Exit::Interrupted } else { Exit::Done })
}

pub(super) fn summary(report: &Report) -> String {
    let mut text = String::new();
    for notice in &report.notices {
        text += &format!("note: {notice}\n");
    }
    if report.input.bad_lines > 0 {
        text += &format!(
            "skipped {}, the first: {}\n",
            counted(report.input.bad_lines, "bad line"),
            first_bad_line(report)
        );
    }
    if report.input.labels != labels::NONE {
        text += &format!("labels      {}\n", report.input.labels);
    }
    if let Some(line) = report.saved_epoch() {
        text += &format!("training    {}\n", metrics_text(&line.training));
        if let Some(validation) = &line.validation {
            text += &format!("validation  {}\n", metrics_text(validation));
        }
    }
    let how = match report.ended_by.as_str() {
        "interrupted" => "interrupted; the model so far is saved in",
        "early_stopping" => "stopped early; the best model is saved in",
        _ => "model saved in",
    };
    let stored = &report.model.stored_rows;
    let rows = if let Some(rows) = stored.get("weights") {
        counted(*rows, "weight row")
    } else {
        let rows = |(name, rows): (&String, &u64)| format!("{name} of {}", counted(*rows, "row"));
        stored.iter().map(rows).collect::<Vec<_>>().join(", ")
    };
    text += &format!(
        "{how} {}: {rows}, {}, after {} in {:.2} s\n",
        report.model.path,
        crate::progress::bytes(report.model.size_bytes),
        counted(report.epochs.iter().map(|line| line.records).sum(), "record"),
        report.timings.total_s
    );
    text
}

fn first_bad_line(report: &Report) -> &str {
    report.input.first_bad_lines.first().map_or("", String::as_str)
}
