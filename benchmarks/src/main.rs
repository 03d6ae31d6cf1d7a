//! Every target of the project in one command: `cargo run --release -p benchmarks -- [--quick] [--only NAME]`.
//!
//! A benchmark and its peer run in turns (A B A B ...), as whole processes on the same cores. Times are medians, and
//! ratios are medians of the ratios of the rounds, so that a disturbance affects both. `docs/benchmarks.md` explains
//! the table.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks on its streams")]

mod child;
mod comparison;
mod context;
mod options;
mod peer;
mod process;
mod suite;
mod table;
mod target;
mod traffic;

use std::process::ExitCode;

use anyhow::Result;

use crate::context::Context;
use crate::options::{Action, Options, USAGE};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    if let [first, rest @ ..] = words
        && first == "inner"
    {
        return child::run(rest);
    }
    let options = match Options::parse(words)? {
        Action::Run(options) => options,
        Action::List => {
            for work in suite::benchmarks() {
                println!("{:<20} {}", work.name, work.title);
            }
            return Ok(());
        }
        Action::Help => {
            print!("{USAGE}");
            return Ok(());
        }
    };
    let works = suite::select(&options)?;
    let context = Context::new(options)?;
    let mut rows = Vec::new();
    for work in works {
        eprintln!("{}: {}", work.name, work.title);
        match (work.run)(&context) {
            Ok(figures) => rows.extend(table::rows(work, &figures, context.options.quick)),
            Err(error) => rows.push(table::failed(work, &error)),
        }
    }
    table::print(&rows);
    let path = table::save(&rows, &context)?;
    println!("written to {}", path.display());
    Ok(())
}
