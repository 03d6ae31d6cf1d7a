//! The table, printed and as JSON.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::context::Context;
use crate::suite::Benchmark;
use crate::target::{Basis, Figures, LimitKind, Target};

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    cells: [String; 9],
    value: Value,
}

const HEAD: [&str; 9] = ["work", "figure", "ours", "unit", "must", "aim", "peer", "ratio", "verdict"];

/// The lines of a benchmark: one per target, then figures without a target.
pub(crate) fn rows(work: &Benchmark, figures: &Figures, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for bar in work.targets {
        let Some(figure) = figures.get(bar.figure) else {
            rows.push(row(
                [work.name, bar.figure, "", bar.unit, "", "", "", "", "not measured"],
                Value::Null,
            ));
            continue;
        };
        let verdict = if quick { "quick" } else { bar.verdict(figure) };
        let value = json!({
            "work": work.name, "figure": bar.figure, "unit": bar.unit, "ours": figure.ours, "peer": figure.peer,
            "ratio": figure.ratio, "must": bar.required, "aim": bar.goal, "verdict": verdict,
        });
        let [must, aim] = [bar.required, bar.goal].map(|limit| limit_text(bar, limit));
        let [ours, peer, ratio] = [Some(figure.ours), figure.peer, figure.ratio].map(number);
        rows.push(row([work.name, bar.figure, &ours, bar.unit, &must, &aim, &peer, &ratio, verdict], value));
    }
    for (name, figure) in
        figures.iter().filter(|(name, _)| !work.targets.iter().any(|bar| bar.figure == **name))
    {
        let value = json!({"work": work.name, "figure": name, "ours": figure.ours, "peer": figure.peer});
        let [ours, peer, ratio] = [Some(figure.ours), figure.peer, figure.ratio].map(number);
        rows.push(row([work.name, name, &ours, "", "", "", &peer, &ratio, ""], value));
    }
    rows
}

/// The line of a benchmark that failed or was skipped.
pub(crate) fn failed(work: &Benchmark, error: &anyhow::Error) -> Row {
    let text = format!("{error:#}");
    eprintln!("{}: {text}", work.name);
    let verdict = if text.starts_with("skipped") { "skipped" } else { "FAILED" };
    row([work.name, "", "", "", "", "", "", "", verdict], json!({"work": work.name, "error": text}))
}

fn row(cells: [&str; 9], value: Value) -> Row {
    Row { cells: cells.map(str::to_owned), value }
}

/// The limit as text; empty if it is infinite.
fn limit_text(bar: &Target, limit: f64) -> String {
    if limit.is_infinite() {
        return String::new();
    }
    let sign = if bar.limit_kind == LimitKind::AtLeast { ">=" } else { "<=" };
    let unit = if bar.basis == Basis::Ratio { "x" } else { "" };
    format!("{sign}{limit}{unit}")
}

/// Five decimals below ten, one above; empty for `None`.
fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.abs() < 10.0 => format!("{value:.5}"),
        Some(value) => format!("{value:.1}"),
    }
}

pub(crate) fn print(rows: &[Row]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row.cells[column].len());
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    };
    let line = |cells: [&str; 9]| {
        let padded =
            cells.iter().enumerate().map(|(column, cell)| format!("{cell:<width$}", width = width(column)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    println!("{}", line(HEAD));
    for row in rows {
        println!("{}", line(row.cells.each_ref().map(String::as_str)));
    }
}

/// Writes the rows with version, processor and options to `benchmarks/results`.
pub(crate) fn save(rows: &[Row], context: &Context) -> Result<PathBuf> {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let folder = context.options.root.join("benchmarks/results");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{seconds}.json"));
    let value = json!({
        "unix_s": seconds, "version": context.version()?, "processor": processor(), "quick": context.options.quick,
        "rounds": context.options.rounds, "rows": rows.iter().map(|row| &row.value).collect::<Vec<_>>(),
    });
    std::fs::write(&path, serde_json::to_string_pretty(&value)? + "\n")
        .context("cannot write the results")?;
    Ok(path)
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    name.unwrap_or("unknown").to_owned()
}
