//! `cargo xtask ci`: every check, cheap ones first; stops at the first that fails.
//!
//! Nothing is built twice under different flags: clippy makes check artifacts, everything that runs shares the dev
//! profile with all features.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::command::Cmd;
use crate::{docs, fuzz, metadata, tidy};

/// How much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What every change must pass.
    Usual,
    /// Longer fuzzing and the benchmarks in their quick form as well.
    Slow,
}

const FUZZ_SECONDS: u64 = 5;
const FUZZ_SECONDS_SLOW: u64 = 60;

/// Examples and the words to run them with. `None`: it measures speed, which nobody waits for here, so it is only
/// compiled.
const EXAMPLES: &[(&str, Option<&str>)] = &[
    ("own_format", Some("train lr --data examples/days.weather --model target/own_format --overwrite")),
    (
        "own_commands",
        Some(
            "functions; \
             train lr --data examples/breast_cancer/train.csv --label benign --set standardize=true --set epochs=2 \
             --tasks 2 --servers 2 --workers 2 --model target/own_commands --overwrite --quiet; \
             apply target/own_commands --function log_sum; \
             apply target/own_commands --function squash --argument 0.5 --output target/own_commands_squashed \
             --overwrite; \
             apply target/own_commands_squashed --function log_sum --servers 2",
        ),
    ),
    ("own_function", Some("")),
    ("wasm_function", Some("")),
    ("function_speed", None),
    ("keep_speed", None),
    ("lane_speed", None),
    ("parse_speed", None),
    ("pull_push", None),
    ("throughput", None),
];

struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "format", run: |root| Cmd::cargo(root, "fmt --all -- --check").run() },
    Step { name: "tidy", run: tidy::run },
    Step { name: "clippy", run: clippy },
    Step { name: "without parquet", run: without_parquet },
    Step { name: "build", run: build },
    Step {
        name: "tests and doctests",
        run: |root| Cmd::cargo(root, "test --workspace --all-features").run(),
    },
    Step { name: "examples", run: examples },
    Step { name: "api docs", run: api_docs },
    Step { name: "docs", run: |root| docs::run(root, docs::Pages::Check) },
    Step { name: "fuzz", run: |root| fuzz::run(root, &fuzz::Request::all(FUZZ_SECONDS)) },
];

const SLOW_STEPS: &[Step] = &[
    Step { name: "fuzz longer", run: |root| fuzz::run(root, &fuzz::Request::all(FUZZ_SECONDS_SLOW)) },
    Step { name: "benchmarks", run: |root| Cmd::cargo(root, "run --release -p benchmarks -- --quick").run() },
];

/// Runs all steps and prints how long each took.
pub(crate) fn run(root: &Path, depth: Depth) -> Result<()> {
    let slow = if depth == Depth::Slow { SLOW_STEPS } else { &[] };
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for step in STEPS.iter().chain(slow) {
        println!("\n== {}", step.name);
        let start = Instant::now();
        let outcome = (step.run)(root);
        times.push((step.name, start.elapsed()));
        if let Err(error) = outcome {
            print_times(&times);
            return Err(error.context(format!("step {:?}", step.name)));
        }
    }
    print_times(&times);
    println!("ci: all {} steps passed", times.len());
    Ok(())
}

fn print_times(times: &[(&str, Duration)]) {
    println!("\n{:<20} {:>8}", "step", "seconds");
    for (name, time) in times {
        println!("{name:<20} {:>8.1}", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    println!("{:<20} {:>8.1}", "total", total.as_secs_f64());
}

fn clippy(root: &Path) -> Result<()> {
    Cmd::cargo(root, "clippy --workspace --all-targets --all-features -- -D warnings").run()
}

/// The only optional feature: all must stand without it, as the fuzz targets use it.
fn without_parquet(root: &Path) -> Result<()> {
    Cmd::cargo(root, "clippy -p data -p seraphim --no-default-features -- -D warnings").run()
}

/// With the examples, because these bring in what only tests need: without them cargo would build packages that both
/// use a second time, with fewer features.
pub(crate) fn build(root: &Path) -> Result<()> {
    Cmd::cargo(root, "build --workspace --all-features --bins --examples").run()
}

fn api_docs(root: &Path) -> Result<()> {
    Cmd::cargo(root, "doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings").run()
}

/// Every example of the workspace stands in the table, so none is forgotten.
fn examples(root: &Path) -> Result<()> {
    let folder = metadata::target_folder(root)?.join("debug/examples");
    for package in metadata::packages(root)?.iter().filter(|package| package.source.is_none()) {
        for example in &package.examples {
            let row = EXAMPLES.iter().find(|(name, _)| name == example);
            let Some((name, arguments)) = row else {
                bail!(
                    "example {example:?} is not in the table EXAMPLES of xtask/src/ci.rs: say how to run it"
                );
            };
            if let Some(arguments) = arguments {
                for command in arguments.split(';') {
                    Cmd::new(folder.join(name), root)
                        .args(command.split_whitespace())
                        .run()
                        .with_context(|| format!("example {name:?}"))?;
                }
            }
        }
    }
    Ok(())
}
