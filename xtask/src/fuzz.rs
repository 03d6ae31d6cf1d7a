//! `cargo xtask fuzz`: builds the targets of `fuzz/` with coverage counters and runs each on its stored corpus.
//!
//! The flags are those of cargo-fuzz without the address sanitizer, which needs a nightly compiler. The code under test
//! is safe Rust, so the findings are panics. Inputs that reach new code go to `fuzz/target/corpus/TARGET`. An input
//! that fails is written to `fuzz/artifacts/TARGET`; copied to `fuzz/corpus/TARGET`, it becomes a permanent test.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::{Cmd, is_available};

const RUSTFLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";

const DEFAULT_SECONDS: u64 = 5;

/// Memory limit of a target. More memory is a finding, such as a length from the input that is not checked.
const MEMORY_LIMIT_MB: u32 = 1024;

/// Time limit of an input. More time is a finding.
const INPUT_LIMIT_SECONDS: u32 = 10;

/// Longest input in bytes.
const INPUT_LIMIT_BYTES: u32 = 4096;

/// Which targets to fuzz, and for how long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    seconds: u64,
    targets: Vec<String>,
}

impl FuzzOptions {
    /// Every target for this time.
    pub(crate) fn all(seconds: u64) -> Self {
        Self { seconds, targets: Vec::new() }
    }

    /// Parses the words after `fuzz`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut request = Self::all(DEFAULT_SECONDS);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => {
                    let value = words.next().context("--seconds needs a number")?;
                    request.seconds =
                        value.parse().with_context(|| format!("--seconds {value:?} is not a number"))?;
                }
                flag if flag.starts_with('-') => bail!("unknown flag {flag:?}; there is --seconds N"),
                target => request.targets.push(target.to_owned()),
            }
        }
        Ok(request)
    }
}

/// Builds all targets and runs the selected ones.
pub(crate) fn run(root: &Path, request: &FuzzOptions) -> Result<()> {
    let folder = root.join("fuzz");
    let known = targets(&folder)?;
    for target in &request.targets {
        ensure!(known.contains(target), "unknown fuzz target {target:?}; there are {known:?}");
    }
    if !is_available("c++", &["--version"]) {
        println!("skipped: no C++ compiler (libFuzzer needs one); replaying the kept corpus instead");
        return Cmd::cargo(&folder, "test --locked").run();
    }
    let host = host_triple(root)?;
    // With --target, build scripts and macros are built without the flags.
    let built = folder.join("target");
    let build = Cmd::cargo(&folder, "build --locked --release --bins --target").args([&host]);
    build.env("RUSTFLAGS", RUSTFLAGS).env("CARGO_TARGET_DIR", &built).run()?;
    let programs = built.join(&host).join("release");
    let is_selected = |name: &&String| request.targets.is_empty() || request.targets.contains(name);
    let selected: Vec<&String> = known.iter().filter(is_selected).collect();
    // A target is one thread, so as many targets as there are cores run at a time.
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    for group in selected.chunks(at_a_time) {
        std::thread::scope(|scope| {
            let run = |target| run_target(root, &folder, &programs, target, request);
            let runs: Vec<_> = group.iter().map(|target| scope.spawn(move || run(target))).collect();
            runs.into_iter().try_for_each(|run| run.join().expect("running a program does not panic"))
        })?;
    }
    Ok(())
}

/// Runs one target on its stored corpus and on new inputs.
fn run_target(
    root: &Path,
    folder: &Path,
    programs: &Path,
    target: &str,
    request: &FuzzOptions,
) -> Result<()> {
    let seconds = request.seconds;
    let grown = folder.join("target/corpus").join(target);
    let artifacts = folder.join("artifacts").join(target);
    std::fs::create_dir_all(&grown)?;
    std::fs::create_dir_all(&artifacts)?;
    let command = Cmd::new(programs.join(target), root)
        .args([
            format!("-max_total_time={seconds}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            format!("-rss_limit_mb={MEMORY_LIMIT_MB}"),
            format!("-timeout={INPUT_LIMIT_SECONDS}"),
            format!("-max_len={INPUT_LIMIT_BYTES}"),
            "-print_final_stats=0".to_owned(),
            "-verbosity=0".to_owned(),
        ])
        .args([grown, folder.join("corpus").join(target)]);
    command
        .run()
        .with_context(|| format!("fuzz target {target:?}: the input lies in fuzz/artifacts/{target}"))
}

/// Names of the targets: the files of `fuzz/fuzz_targets`, sorted.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("fuzz_targets")).context("fuzz/fuzz_targets")? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn host_triple(root: &Path) -> Result<String> {
    let text = Cmd::new("rustc", root).args(["-vV"]).output()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_targets_are_read() {
        let request = FuzzOptions::parse(&["--seconds", "30", "csv", "vw"]).unwrap();
        assert_eq!(request, FuzzOptions { seconds: 30, targets: vec!["csv".into(), "vw".into()] });
    }

    #[test]
    fn a_bad_number_and_an_unknown_flag_are_errors() {
        assert!(FuzzOptions::parse(&["--seconds"]).is_err());
        assert!(FuzzOptions::parse(&["--seconds", "x"]).is_err());
        assert!(FuzzOptions::parse(&["--hours", "1"]).is_err());
    }
}
