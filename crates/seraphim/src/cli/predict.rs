//! `seraphim predict --model out/ --data test.libsvm.gz --output scores.csv`.

use clap::{ArgMatches, Command};
use engine::cluster::launch;
use engine::job::{PredictJob, ScoringJob, keys};
use engine::predict::Prediction;
use engine::{Environment, Error, Exit};

use super::flags::{raw_job, with_flags};
use super::print_json;
use crate::progress::counted;

pub(super) fn command() -> Command {
    with_flags(
        Command::new("predict").about("Score data with a model, in the order of the data"),
        keys::JobCommand::Predict,
    )
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let raw = raw_job(matches, keys::JobCommand::Predict);
    let job = PredictJob::check(&raw)?;
    let to_standard_output = job.output.as_os_str() == "-";
    if job.run_options.json && to_standard_output {
        let what = "--json and --output - both write to standard output";
        return Err(Error::request(what, "name a file for the scores, or leave out --json"));
    }
    let prediction = match job.members.size() {
        None => engine::predict::predict(&job, environment)?,
        Some(size) => launch::score(&raw, &ScoringJob::Predict(job.clone()), size, environment)?,
    };
    print(&prediction, &job)?;
    Ok(Exit::Done)
}

/// Tells the user what was scored.
pub(super) fn print(prediction: &Prediction, job: &PredictJob) -> Result<(), Error> {
    if job.run_options.json {
        print_json(prediction)?;
    } else if !job.run_options.quiet {
        // It goes to standard error, since standard output may be the scores.
        eprint!("{}", summary(prediction));
    }
    Ok(())
}

/// Describes a prediction for people.
pub(super) fn summary(prediction: &Prediction) -> String {
    let mut text = String::new();
    for notice in &prediction.notices {
        text += &format!("note: {notice}\n");
    }
    if prediction.bad_lines > 0 {
        text += &format!("skipped {}: no score for them\n", counted(prediction.bad_lines, "bad line"));
    }
    if prediction.output != "-" {
        let positive = prediction.positive_label.as_ref();
        let positive = positive.map_or(String::new(), |label| format!("; score: for label {label}"));
        text += &format!(
            "{} written to {} ({}{positive})\n",
            counted(prediction.records, "score"),
            prediction.output,
            prediction.columns.join(", ")
        );
    }
    text
}
