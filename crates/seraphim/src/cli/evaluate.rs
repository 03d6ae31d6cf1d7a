//! `seraphim evaluate --model out/ --data test.libsvm.gz --json`.

use clap::{ArgMatches, Command};

use super::flags::{raw_job, with_flags};
use super::{print_json, print_text};
use crate::error::Error;
use crate::exit::Exit;
use crate::job::EvaluateJob;
use crate::job::keys;
use crate::run::Environment;

pub(super) fn command() -> Command {
    with_flags(Command::new("evaluate").about("Metrics of a model on labelled data"), keys::Command::Evaluate)
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let job = EvaluateJob::check(&raw_job(matches, keys::Command::Evaluate))?;
    let evaluation = crate::run::evaluate::evaluate(&job, environment)?;
    if job.manner.json {
        print_json(&evaluation)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for notice in &evaluation.notices {
        text += &format!("note: {notice}\n");
    }
    if evaluation.bad_lines > 0 {
        text += &format!("skipped {} bad lines\n", evaluation.bad_lines);
    }
    text += &format!("records     {}\nlabels      {}\n", evaluation.records, evaluation.labels);
    for (name, value) in &evaluation.metrics {
        text += &format!("{name:<11} {value:.6}\n");
    }
    print_text(&text)?;
    Ok(Exit::Done)
}
