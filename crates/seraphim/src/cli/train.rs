//! `seraphim train lr --data ... --model ...`, or `seraphim train job.toml`.

use std::path::Path;
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};
use engine::job::{RawJob, TrainJob, keys};
use engine::job_file::{read_job_file, saved_job, with_modules};
use engine::report::Report;
use engine::train::train;
use engine::{Environment, Error, Exit, labels, metrics_text};

use super::flags::{raw_job, with_flags};
use super::{print_json, print_text};
use crate::progress::{Progress, bytes, counted};

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
            raw = read_job_file(Path::new(file))?;
        }
        Some(algorithm) => flags.algorithm = Some(algorithm.clone()),
        None => raw = saved_job(&flags)?.unwrap_or_default(),
    }
    with_modules(raw.overridden_by(flags))
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let raw = raw(matches)?;
    let job = TrainJob::check(&raw, environment.families)?;
    let progress = Arc::new(Progress::new());
    let report = train(&job, environment, progress)?;
    if job.run_options.json {
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
        if !line.training.is_empty() {
            text += &format!("training    {}\n", metrics_text(&line.training));
        }
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
        "{how} {}: {rows}, {}, after {} over {} in {:.2} s\n",
        report.model.path,
        bytes(report.model.size_bytes),
        counted(report.epochs.len() as u64, "epoch"),
        counted(report.input.records, "record"),
        report.timings.total_s
    );
    text
}

fn first_bad_line(report: &Report) -> &str {
    report.input.first_bad_lines.first().map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use engine::report::{EpochLine, Timings};

    fn report(change: impl Fn(&mut Report)) -> Report {
        let line = |epoch, loss: f64| {
            let metrics = |loss: f64| [("loss".to_owned(), loss)].into();
            let (training, validation) = (metrics(loss), Some(metrics(loss + 1.0)));
            EpochLine { epoch, records: 20, training, validation, ..EpochLine::default() }
        };
        let mut report = serde_json::from_value(json!({
            "program_version": "1", "algorithm": "lr", "settings": {}, "seed": 1, "consistency": "bsp", "tasks": 1,
            "threads": 1, "data": ["a"], "validate": [], "format": "csv", "epochs": [line(0, 0.5), line(1, 0.25)],
            "input": {"records": 20, "size_bytes": null, "labels": "2 classes (0 to 1)", "bad_lines": 0,
                "first_bad_lines": [], "kept": null},
            "ended_by": "finished", "best_epoch": null, "timings": Timings { total_s: 1.5, ..Timings::default() },
            "records_per_second": 1.0, "peak_memory_bytes": null, "store": null, "notices": [],
            "model": {"path": "/m", "size_bytes": 512, "stored_rows": {"weights": 1}},
        }))
        .unwrap();
        change(&mut report);
        report
    }

    #[test]
    fn a_training_is_told_with_the_metrics_of_the_saved_epoch() {
        assert_eq!(
            summary(&report(|_| {})),
            "labels      2 classes (0 to 1)\n\
             training    loss 0.25000\n\
             validation  loss 1.25000\n\
             model saved in /m: 1 weight row, 512 bytes, after 2 epochs over 20 records in 1.50 s\n"
        );
        let stopped = summary(&report(|report| {
            report.ended_by = "early_stopping".into();
            report.best_epoch = Some(0);
        }));
        assert!(stopped.contains("training    loss 0.50000\nvalidation  loss 1.50000\n"), "{stopped}");
        assert!(
            stopped.contains("\nstopped early; the best model is saved in /m: 1 weight row, "),
            "{stopped}"
        );
        let interrupted = summary(&report(|report| report.ended_by = "interrupted".into()));
        assert!(interrupted.contains("\ninterrupted; the model so far is saved in /m: "), "{interrupted}");
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let told = summary(&report(|report| {
            report.notices = vec!["careful".into()];
            report.input.labels = labels::NONE.to_owned();
            report.epochs.clear();
            report.model.stored_rows = [("centres".to_owned(), 2), ("norms".to_owned(), 1)].into();
        }));
        assert_eq!(
            told,
            "note: careful\nmodel saved in /m: centres of 2 rows, norms of 1 row, 512 bytes, after 0 epochs over 20 records in 1.50 s\n"
        );
        let told = summary(&report(|report| {
            report.input.bad_lines = 2;
            report.input.first_bad_lines = vec!["a:3: bad".into(), "a:4: bad".into()];
            report.epochs[1].validation = None;
        }));
        assert!(told.starts_with("skipped 2 bad lines, the first: a:3: bad\nlabels "), "{told}");
        assert!(!told.contains("validation"), "{told}");
        let told = summary(&report(|report| report.input.bad_lines = 1));
        assert!(told.starts_with("skipped 1 bad line, the first: \n"), "{told}");
    }
}
