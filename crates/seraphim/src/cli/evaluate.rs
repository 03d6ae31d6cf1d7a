//! `seraphim evaluate --model out/ --data test.libsvm.gz --json`.

use clap::{ArgMatches, Command};
use engine::algo::metric::calibration::CalibrationRow;
use engine::cluster::launch;
use engine::evaluate::ConfusionMatrix;
use engine::job::{EvaluateJob, ScoringJob, keys};
use engine::{Environment, Error, Evaluation, Exit, labels};

use super::flags::{raw_job, with_flags};
use super::{print_json, print_text};
use crate::progress::{counted, decimal};

/// Maximum number of classes of a confusion matrix that is printed; JSON has it for any number.
const PRINTED_CLASSES: usize = 20;
/// Maximum number of characters in a cell of the printed confusion matrix.
const CELL_WIDTH: usize = 16;

pub(super) fn command() -> Command {
    with_flags(
        Command::new("evaluate").about("Compute the metrics of a model on labelled data"),
        keys::JobCommand::Evaluate,
    )
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let raw = raw_job(matches, keys::JobCommand::Evaluate);
    let job = EvaluateJob::check(&raw)?;
    let evaluation = match job.members.size() {
        None => engine::evaluate::evaluate(&job, environment)?,
        Some(size) => launch::score(&raw, &ScoringJob::Evaluate(job.clone()), size, environment)?,
    };
    print(&evaluation, &job)?;
    Ok(Exit::Done)
}

/// Prints metrics, as JSON or for people.
pub(super) fn print(evaluation: &Evaluation, job: &EvaluateJob) -> Result<(), Error> {
    if job.run_options.json {
        return print_json(evaluation);
    }
    print_text(&summary(evaluation))
}

/// Describes an evaluation for people.
pub(super) fn summary(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    for notice in &evaluation.notices {
        text += &format!("note: {notice}\n");
    }
    if evaluation.bad_lines > 0 {
        text += &format!("skipped {}\n", counted(evaluation.bad_lines, "bad line"));
    }
    text += &format!("records     {}\n", evaluation.records);
    if evaluation.labels != labels::NONE {
        text += &format!("labels      {}\n", evaluation.labels);
    }
    for (name, value) in &evaluation.metrics {
        text += &format!("{name:<11} {}\n", decimal(*value, 6));
    }
    if let Some(confusion) = &evaluation.confusion {
        text += &confusion_text(confusion, evaluation.threshold);
    }
    text + &calibration_text(&evaluation.calibration_table)
}

/// Returns the confusion matrix as a table: one row per label, one column per predicted label.
fn confusion_text(confusion: &ConfusionMatrix, threshold: Option<f64>) -> String {
    let ConfusionMatrix { labels, counts } = confusion;
    if labels.len() > PRINTED_CLASSES {
        return format!("confusion   of {} classes: see --json\n", labels.len());
    }
    let at = threshold.map_or(String::new(), |threshold| format!(", 1 above {threshold}"));
    let mut text = format!("confusion matrix (one row per label, one column per prediction{at})\n");
    let cells: Vec<Vec<String>> =
        counts.iter().map(|row| row.iter().map(|weight| short(*weight)).collect()).collect();
    let wide = labels.iter().chain(cells.iter().flatten()).map(|cell| cell.chars().count());
    let width = wide.max().unwrap_or(0).min(CELL_WIDTH);
    let line = |head: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{:>width$}", cut(cell, width))).collect();
        format!("  {:<width$}  {}\n", cut(head, width), cells.join("  "))
    };
    text += &line("", labels);
    for (label, cells) in labels.iter().zip(&cells) {
        text += &line(label, cells);
    }
    text
}

/// Returns a table of predicted probabilities and observed frequencies.
fn calibration_text(rows: &[CalibrationRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from("calibration (predicted  mean  observed share  records)\n");
    for row in rows {
        text += &format!(
            "  {:.1} to {:.1}  {}  {}  {}\n",
            row.low,
            row.high,
            decimal(row.mean_predicted, 5),
            decimal(row.observed_share, 5),
            row.records
        );
    }
    text
}

/// Returns a sum of weights as text, without decimals if it is a whole number.
fn short(weight: f64) -> String {
    if weight.fract() == 0.0 { format!("{weight:.0}") } else { format!("{weight:.3}") }
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}
