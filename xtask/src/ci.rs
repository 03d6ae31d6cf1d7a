//! `cargo xtask ci`: runs every check, cheap ones first, and stops at the first failure.
//!
//! Nothing is built twice with different flags: clippy makes check artifacts, and everything that runs shares the dev
//! profile and [`PACKAGES`]. The exception is the simulation, for which the state machines are built with `fault-injection`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::command::Cmd;
use crate::skipped::{self, SkippedTests};
use crate::{
    bits, docs, fuzz, jvm, kill, kubernetes, manifests, metadata, mutants, python, spark, stores, tidy,
    wheel, yarn,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CiOptions {
    /// Also kill processes of trainings, run fuzzing, the benchmarks in their quick form, and mutants of the changed code.
    slow: bool,
    /// Treat a skipped test as a failure.
    no_skips: bool,
}

impl CiOptions {
    /// Parses the words after `ci`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut request = Self::default();
        for word in words {
            *match *word {
                "--slow" => &mut request.slow,
                "--no-skips" => &mut request.no_skips,
                other => bail!("unknown word {other:?}: ci takes --slow and --no-skips"),
            } = true;
        }
        Ok(request)
    }
}

/// What is built and tested before the simulation: every feature but `fault-injection`, with which rules are taken out of the state
/// machines. Cargo builds a package once for all that a command chooses, with the features of all, so the simulation is
/// not among them: the tests of processes run the program as it is released.
pub(crate) const PACKAGES: &str = "--workspace --exclude simulation --features wasm";

/// The test that needs `fault-injection`. Third-party packages are those of [`PACKAGES`], because all packages are chosen.
const TESTS_WITH_FAULT_INJECTION: &str = "--test simulation";

const FUZZ_SECONDS: u64 = 60;

/// Examples and the arguments to run them with. `None`: the example measures speed, so it is only compiled.
const EXAMPLES: &[(&str, Option<&str>)] = &[
    ("own_format", Some("train lr --data examples/days.weather --model target/own_format --overwrite")),
    (
        "own_algorithm",
        Some(
            "algorithms pagerank; \
             train pagerank --data examples/links.txt --format edges --tasks 2 --model target/own_ranks --overwrite; \
             train pagerank --data examples/links.txt --format edges --tasks 2 --servers 2 --workers 2 \
             --model target/own_ranks_of_servers --overwrite --quiet; \
             export target/own_ranks --output -",
        ),
    ),
    (
        "own_steps",
        Some(
            "train ratings --data examples/ratings.csv --label rating --tasks 2 --model target/own_tastes --overwrite; \
             train ratings --data examples/ratings.csv --label rating --tasks 2 --servers 2 --workers 2 \
             --model target/own_tastes_of_servers --overwrite --quiet; \
             evaluate --model target/own_tastes --data examples/ratings.csv; \
             predict --model target/own_tastes --data examples/ratings.csv --output target/own_ratings.csv --overwrite",
        ),
    ),
    (
        "own_family",
        Some(
            "algorithms means; \
             generate ctr --rows 5000 --test-rows 1000 --dimensions 1000 --output target/own_clicks --overwrite; \
             train means --data target/own_clicks/train.libsvm --tasks 2 --servers 2 --workers 2 \
             --model target/own_family --overwrite --quiet; \
             evaluate --model target/own_family --data target/own_clicks/test.libsvm; \
             inspect target/own_family --top 3",
        ),
    ),
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
    ("own_loop", Some("")),
    ("train_in_a_program", Some("")),
    ("wasm_function", Some("")),
    ("function_speed", None),
    ("keep_speed", None),
    ("lane_speed", None),
    ("parse_speed", None),
    ("pull_push", None),
    ("throughput", None),
];

/// Trainings of examples in which a server is killed.
const KILLED_EXAMPLES: &[(&str, &str)] = &[
    (
        "own_algorithm",
        "train pagerank --data examples/links.txt --format edges --set tolerance=0 --set rounds=3000",
    ),
    ("own_steps", "train ratings --data examples/ratings.csv --label rating --set epochs=3000"),
];

struct CiStage {
    name: &'static str,
    run: fn(&Path) -> Result<()>,
}

const STAGES: &[CiStage] = &[
    CiStage { name: "format", run: |root| Cmd::cargo(root, "fmt --all -- --check").run() },
    CiStage { name: "tidy", run: tidy::run },
    CiStage { name: "manifests", run: |root| manifests::run(root, false) },
    CiStage { name: "clippy", run: clippy },
    CiStage { name: "without parquet", run: without_parquet },
    CiStage { name: "build", run: build },
    CiStage { name: "tests and doctests", run: tests },
    CiStage { name: "jvm", run: jvm::run },
    CiStage { name: "python", run: python::run },
    CiStage { name: "wheel", run: wheel::run },
    CiStage { name: "spark", run: spark::run_shortly },
    CiStage { name: "yarn", run: yarn::run },
    CiStage { name: "simulation", run: |root| with_all(root, "test", TESTS_WITH_FAULT_INJECTION).run() },
    CiStage { name: "examples", run: examples },
    CiStage { name: "api docs", run: api_docs },
    CiStage { name: "docs", run: |root| docs::run(root, docs::PageMode::Check) },
];

const SLOW_STAGES: &[CiStage] = &[
    CiStage {
        name: "killed processes",
        run: |root| kill::run(root, &kill::KillOptions::parse(&["--rounds", "50"])?),
    },
    CiStage { name: "stores of other systems", run: stores::run },
    CiStage { name: "kubernetes", run: kubernetes::run },
    CiStage { name: "cut connections of Spark", run: jvm::run_cut_connections },
    CiStage { name: "bits of other machines", run: bits::run },
    CiStage { name: "fuzz", run: |root| fuzz::run(root, &fuzz::FuzzOptions::all(FUZZ_SECONDS)) },
    CiStage {
        name: "mutants of Parquet files",
        run: |root| {
            let words = "test -p data --all-features --lib mutants_of_files";
            Cmd::cargo(root, words).env("PARQUET_MUTANTS", "100000").run()
        },
    },
    CiStage {
        name: "benchmarks",
        run: |root| Cmd::cargo(root, "run --release -p benchmarks -- --quick").run(),
    },
    CiStage { name: "mutants", run: mutants::run_changed },
];

/// Runs all steps and prints how long each took.
pub(crate) fn run(root: &Path, request: CiOptions) -> Result<()> {
    let slow = if request.slow { SLOW_STAGES } else { &[] };
    skipped::clear(root)?;
    let start = Instant::now();
    let mut times: Vec<StageTime> = Vec::new();
    let outcome = STAGES.iter().chain(slow).try_for_each(|stage| {
        println!("\n== {}", stage.name);
        let begin = Instant::now();
        let ended = (stage.run)(root).with_context(|| format!("step {:?}", stage.name));
        times.push((stage.name, begin.elapsed()));
        ended
    });
    print_times(&times, start.elapsed());
    outcome?;
    let skipped = SkippedTests::read(root)?;
    println!("ci: all {} steps passed{}", times.len(), skipped.text());
    if request.no_skips { skipped.fail_if_any() } else { Ok(()) }
}

/// The name of a stage, and how long it took.
type StageTime = (&'static str, Duration);

fn print_times(times: &[StageTime], total: Duration) {
    println!("\n{:<24} {:>8}", "step", "seconds");
    for (name, time) in times {
        println!("{name:<24} {:>8.1}", time.as_secs_f64());
    }
    println!("{:<24} {:>8.1}", "total", total.as_secs_f64());
}

/// A cargo command for all packages with the features that are checked everywhere.
fn with_all(root: &Path, command: &str, words: &str) -> Cmd {
    Cmd::cargo(root, &format!("{command} --workspace --features {} {words}", metadata::FEATURES))
}

fn clippy(root: &Path) -> Result<()> {
    with_all(root, "clippy", "--all-targets -- -D warnings").run()
}

/// Runs two tests a core at once, because most of the long ones wait for processes.
fn tests(root: &Path) -> Result<()> {
    let skipped = skipped::file(root)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Cmd::cargo(root, &format!("test {PACKAGES}"))
        .env(skipped::VARIABLE, skipped)
        .env("RUST_TEST_THREADS", (2 * cores).to_string())
        .run()
}

/// Checks the build without the default feature, `parquet`.
fn without_parquet(root: &Path) -> Result<()> {
    Cmd::cargo(root, "clippy -p data -p runtime -p engine -p seraphim --no-default-features -- -D warnings")
        .run()
}

/// Builds the examples too, because they use dev-dependencies. Without them cargo would build packages that both use a
/// second time, with fewer features.
pub(crate) fn build(root: &Path) -> Result<()> {
    Cmd::cargo(root, &format!("build {PACKAGES} --bins --examples")).run()
}

fn api_docs(root: &Path) -> Result<()> {
    with_all(root, "doc", "--no-deps").env("RUSTDOCFLAGS", "-D warnings").run()
}

/// The examples alone.
pub(crate) fn build_and_run_examples(root: &Path) -> Result<()> {
    build(root)?;
    examples(root)
}

/// Runs the examples. Every example of the workspace must be in the table and the other way round, so that none is
/// forgotten or lost.
fn examples(root: &Path) -> Result<()> {
    let folder = metadata::target_folder(root)?.join("debug/examples");
    let mut missing: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
    for package in metadata::packages(root)?.iter().filter(|package| package.source.is_none()) {
        for example in &package.examples {
            let row = EXAMPLES.iter().find(|(name, _)| name == example);
            let Some((name, arguments)) = row else {
                bail!(
                    "example {example:?} is not in the table EXAMPLES of xtask/src/ci.rs: say how to run it"
                );
            };
            missing.retain(|other| other != name);
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
    for (name, words) in KILLED_EXAMPLES {
        kill::run_example(root, &folder.join(name), words).with_context(|| format!("example {name:?}"))?;
    }
    if !missing.is_empty() {
        bail!(
            "the table EXAMPLES of xtask/src/ci.rs has examples that no package has: {}",
            missing.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_ci_are_read_and_other_words_refused() {
        let request = |words: &[&str]| CiOptions::parse(words).unwrap();
        assert_eq!(request(&[]), CiOptions { slow: false, no_skips: false });
        assert_eq!(request(&["--slow"]), CiOptions { slow: true, no_skips: false });
        assert_eq!(request(&["--no-skips", "--slow"]), CiOptions { slow: true, no_skips: true });
        assert!(CiOptions::parse(&["--fast"]).is_err());
    }
}
