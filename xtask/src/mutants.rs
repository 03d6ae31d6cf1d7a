//! `cargo xtask mutants`: inserts faults into the code one at a time; the tests of the crate must detect them.
//!
//! `cargo-mutants` inserts the faults in a copy of the tree. With `--in-place` it changes the tree itself, which saves
//! a build, but the tree must not be edited meanwhile. If the program is missing, it is installed below the target
//! folder. A whole crate takes hours, so a sample of the faults is drawn: the same seed draws the same faults as long
//! as the code does not change.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::command::{Cmd, is_available};
use crate::metadata;

/// The version to install, fixed so that every machine makes the same faults.
const VERSION: &str = "27.1.0";
/// Crates that are sampled if none is named.
const CRATES: [&str; 18] = [
    "matrix",
    "algo",
    "linear",
    "factorization",
    "kmeans",
    "trees",
    "topics",
    "recommend",
    "data",
    "model",
    "server",
    "worker",
    "master",
    "job",
    "driver",
    "runtime",
    "engine",
    "seraphim",
];
/// Crates whose promises are also checked by the tests of others: what their own tests miss goes to these.
const TESTED_ABOVE: [(&str, &[&str]); 6] = [
    ("algo", &["families", "linear", "factorization", "kmeans", "trees", "topics", "recommend"]),
    ("driver", &["simulation", "seraphim"]),
    ("runtime", &["seraphim"]),
    ("master", &["simulation"]),
    ("server", &["simulation"]),
    ("worker", &["seraphim", "simulation"]),
];
/// Packages whose tests train and simulate: without optimization they are too slow.
const SLOW_TESTS: [&str; 3] = ["runtime", "seraphim", "simulation"];
/// Default number of faults per crate.
const SAMPLE: usize = 20;
/// Minimum share of the compiling faults that tests must detect, in percent.
const MIN_CAUGHT_PERCENT: usize = 90;
/// Exit codes of a finished run of `cargo mutants`: all detected, some missed, some timed out.
const DONE_CODES: [i32; 3] = [0, 2, 3];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MutantsOptions {
    crates: Vec<String>,
    sample: usize,
    seed: u64,
    in_place: bool,
}

impl MutantsOptions {
    /// Parses the words after `mutants`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut request = Self { crates: Vec::new(), sample: SAMPLE, seed: 0, in_place: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || {
                let value = words.next().with_context(|| format!("{word} needs a number"))?;
                value.parse::<u64>().with_context(|| format!("{word} {value:?} is no number"))
            };
            match *word {
                "--sample" => request.sample = number()? as usize,
                "--seed" => request.seed = number()?,
                "--in-place" => request.in_place = true,
                flag if flag.starts_with('-') => {
                    bail!("unknown flag {flag:?}: mutants takes --sample N, --seed S and --in-place")
                }
                name => request.crates.push(name.to_owned()),
            }
        }
        ensure!(request.sample > 0, "--sample 0 would put in no fault: give 1 or more");
        Ok(request)
    }
}

/// Names of the faults that compile: detected and missed.
#[derive(Debug, Default, PartialEq, Eq)]
struct MutantCounts {
    caught: Vec<String>,
    missed: Vec<String>,
}

impl MutantCounts {
    fn add(&mut self, other: Self) {
        self.caught.extend(other.caught);
        self.missed.extend(other.missed);
    }

    /// Adds the results of other tests for the faults that were missed so far.
    fn retry(&mut self, other: Self) {
        let more = other.caught.into_iter().filter(|name| !self.caught.contains(name)).collect::<Vec<_>>();
        self.caught.extend(more);
        self.missed = other.missed;
    }

    fn count(&self) -> usize {
        self.caught.len() + self.missed.len()
    }

    fn text(&self) -> String {
        format!("{} of {} faults were noticed", self.caught.len(), self.count())
    }

    /// Returns an error if too many faults were missed.
    fn check(&self) -> Result<()> {
        for name in &self.missed {
            println!("missed: {name}");
        }
        println!("mutants: {}", self.text());
        let enough = self.caught.len() * 100 >= self.count() * MIN_CAUGHT_PERCENT;
        ensure!(
            enough,
            "{}, expected {MIN_CAUGHT_PERCENT} %: write a test for those that were missed",
            self.text()
        );
        Ok(())
    }
}

/// Inserts a sample of faults in each crate and counts the detected ones.
pub(crate) fn run(root: &Path, request: &MutantsOptions) -> Result<()> {
    let tool = tool(root)?;
    let named = request.crates.iter().map(String::as_str);
    let crates: Vec<&str> = if request.crates.is_empty() { CRATES.to_vec() } else { named.collect() };
    let mut all = MutantCounts::default();
    for name in crates {
        let package = ["--package".to_owned(), name.to_owned()];
        let listed = tool.command(root).args(["--list"]).args(&package).output()?;
        let chosen = sample(listed.lines(), request.sample, request.seed);
        ensure!(!chosen.is_empty(), "crate {name:?} has no code to put faults into");
        tool.leave_out(listed.lines().filter(|fault| !chosen.contains(fault)))?;
        let place = request.in_place.then(|| "--in-place".to_owned());
        let arguments: Vec<String> =
            package.into_iter().chain(["--iterate".to_owned()]).chain(place).collect();
        let mut outcome = tool.run(root, arguments.clone(), optimization([name]))?;
        if !outcome.missed.is_empty() && !packages_above(name).is_empty() {
            let above = packages_above(name).iter().map(|package| format!("--test-package={package}"));
            let optimization = optimization(packages_above(name).iter().copied());
            outcome.retry(tool.run(root, arguments.into_iter().chain(above).collect(), optimization)?);
        }
        println!("mutants: {name}: {}", outcome.text());
        all.add(outcome);
    }
    all.check()
}

/// Inserts faults into the code that differs from `main`.
pub(crate) fn run_changed(root: &Path) -> Result<()> {
    let main = ["main", "origin/main"];
    let Some(main) =
        main.iter().find(|name| is_available("git", &["-C", &root.to_string_lossy(), "rev-parse", name]))
    else {
        println!("mutants: there is no branch main to compare with");
        return Ok(());
    };
    let above = TESTED_ABOVE.map(|(name, _)| (name, vec![format!("crates/{name}/*.rs")]));
    let others = TESTED_ABOVE.map(|(name, _)| format!(":!crates/{name}"));
    let others = ("", [vec!["crates/*.rs".to_owned()], others.to_vec()].concat());
    let (mut all, mut is_changed) = (MutantCounts::default(), false);
    for (name, paths) in std::iter::once(others).chain(above) {
        let diff = Cmd::new("git", root).args(["diff", "--merge-base", main, "--"]).args(paths).output()?;
        if diff.is_empty() {
            continue;
        }
        is_changed = true;
        let tool = tool(root)?;
        let path = tool.output.join("changed.diff");
        std::fs::write(&path, diff).with_context(|| format!("cannot write {}", path.display()))?;
        let in_diff = format!("--in-diff={}", path.display());
        let packages = Some(name)
            .filter(|name| !name.is_empty())
            .into_iter()
            .chain(packages_above(name).iter().copied());
        let packages = packages.map(|package| format!("--test-package={package}"));
        // The tests of any package may run.
        all.add(tool.run(root, std::iter::once(in_diff).chain(packages).collect(), "1")?);
    }
    if !is_changed {
        println!("mutants: nothing was changed against {main}");
        return Ok(());
    }
    all.check()
}

/// The level of optimization with which the tests of packages run.
fn optimization<'a>(packages: impl IntoIterator<Item = &'a str>) -> &'static str {
    if packages.into_iter().any(|package| SLOW_TESTS.contains(&package)) { "1" } else { "0" }
}

/// The packages above a crate whose tests check it, too.
fn packages_above(name: &str) -> &'static [&'static str] {
    TESTED_ABOVE.iter().find(|(tested, _)| *tested == name).map_or(&[], |(_, packages)| *packages)
}

/// The `cargo mutants` program.
struct Tool {
    program: PathBuf,
    /// Folder of its results.
    output: PathBuf,
}

/// Finds the program, or installs it.
fn tool(root: &Path) -> Result<Tool> {
    let target = metadata::target_folder(root)?;
    let (folder, output) = (target.join("tools"), target.join("mutants"));
    let program = folder.join("bin/cargo-mutants");
    let asked = Cmd::new(&program, root).args(["mutants", "--version"]).output();
    if !asked.is_ok_and(|text| text.trim().ends_with(VERSION)) {
        let words = format!("install cargo-mutants --locked --version {VERSION} --root");
        Cmd::cargo(root, &words).args([&folder]).run()?;
    }
    std::fs::create_dir_all(&output).with_context(|| format!("cannot make {}", output.display()))?;
    Ok(Tool { program, output })
}

impl Tool {
    fn command(&self, root: &Path) -> Cmd {
        Cmd::new(&self.program, root).args(["mutants", "--colors=never"])
    }

    /// Makes the next run with `--iterate` leave these faults out: it takes them for detected in an earlier run. Patterns
    /// cannot choose, because the program does not compare them with faults that omit a field.
    fn leave_out<'a>(&self, faults: impl Iterator<Item = &'a str>) -> Result<()> {
        let folder = self.output.join("mutants.out");
        let lines: String = faults.flat_map(|fault| [fault, "\n"]).collect();
        let written = std::fs::remove_dir_all(&folder)
            .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
            .and_then(|()| std::fs::create_dir_all(&folder))
            .and_then(|()| std::fs::write(folder.join("previously_caught.txt"), lines));
        written.with_context(|| format!("cannot write to {}", folder.display()))
    }

    /// Runs it with this level of optimization.
    fn run(&self, root: &Path, arguments: Vec<String>, optimization: &str) -> Result<MutantCounts> {
        let output = self.output.to_string_lossy().into_owned();
        let command = self.command(root).args(["--no-times", "--output", &output]).args(arguments);
        let code = command.env("CARGO_PROFILE_MUTANTS_OPT_LEVEL", optimization).run_for_code()?;
        ensure!(
            DONE_CODES.contains(&code),
            "cargo mutants ended with {code}: do the tests pass without faults?"
        );
        let path = self.output.join("mutants.out/outcomes.json");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        parse_counts(&text)
    }
}

/// Parses `outcomes.json`. A fault that makes a test run for ever counts as detected.
fn parse_counts(text: &str) -> Result<MutantCounts> {
    let value: Value = serde_json::from_str(text).context("outcomes.json is not JSON")?;
    let list = value["outcomes"].as_array().context("outcomes.json has no outcomes")?;
    let mut outcome = MutantCounts::default();
    for one in list {
        let names = match one["summary"].as_str() {
            Some("CaughtMutant" | "Timeout") => &mut outcome.caught,
            Some("MissedMutant") => &mut outcome.missed,
            _ => continue,
        };
        names.push(one["scenario"]["Mutant"]["name"].as_str().unwrap_or("a fault without a name").to_owned());
    }
    Ok(outcome)
}

/// Draws the faults with the smallest hashes. A fault that is added or removed changes one element of the sample.
fn sample<'a>(faults: impl Iterator<Item = &'a str>, count: usize, seed: u64) -> Vec<&'a str> {
    let mut faults: Vec<(u64, &str)> = faults.map(|fault| (hash(seed, fault), fault)).collect();
    faults.sort_unstable();
    faults.truncate(count);
    faults.into_iter().map(|(_, fault)| fault).collect()
}

/// FNV-1a of the seed and the text, with its bits mixed by the finalizer of `SplitMix64`.
fn hash(seed: u64, text: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(text.bytes());
    let sum =
        bytes.fold(0xcbf29ce484222325, |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100000001b3));
    let mixed = (sum ^ (sum >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d049bb133111eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_crates_and_a_sample() {
        let request = MutantsOptions::parse(&["matrix", "--sample", "5", "--seed", "7", "algo"]).unwrap();
        let crates = ["matrix", "algo"].map(str::to_owned).to_vec();
        assert_eq!(request, MutantsOptions { crates, sample: 5, seed: 7, in_place: false });
        assert!(MutantsOptions::parse(&["--in-place"]).unwrap().in_place);
        assert!(MutantsOptions::parse(&["--sample"]).is_err());
        assert!(MutantsOptions::parse(&["--sample", "0"]).is_err());
        assert!(MutantsOptions::parse(&["--count", "3"]).is_err());
    }

    #[test]
    fn a_sample_hangs_on_the_seed_and_stays_when_others_go() {
        let names: Vec<String> = (0..100).map(|i| format!("crates/x.rs:{i}: replace + with -")).collect();
        let of = |skip: usize, seed| sample(names.iter().skip(skip).map(String::as_str), 10, seed);
        assert_eq!(of(0, 1), of(0, 1));
        assert_ne!(of(0, 1), of(0, 2));
        let stay = of(1, 1).iter().filter(|name| of(0, 1).contains(name)).count();
        assert!(stay >= 9, "{stay}");
        assert_eq!(sample(["only"].into_iter(), 10, 1), ["only"]);
    }

    #[test]
    fn outcomes_are_counted_without_those_that_do_not_compile() {
        let text = r#"{"outcomes": [
            {"scenario": "Baseline", "summary": "Success"},
            {"scenario": {"Mutant": {"name": "a"}}, "summary": "CaughtMutant"},
            {"scenario": {"Mutant": {"name": "b"}}, "summary": "MissedMutant"},
            {"scenario": {"Mutant": {"name": "c"}}, "summary": "Timeout"},
            {"scenario": {"Mutant": {"name": "d"}}, "summary": "Unviable"}]}"#;
        let outcome = parse_counts(text).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(outcome, MutantCounts { caught: names(&["a", "c"]), missed: names(&["b"]) });
        assert!(outcome.check().is_err());
        assert!(MutantCounts { caught: names(&["a"; 9]), missed: names(&["b"]) }.check().is_ok());
        assert!(MutantCounts::default().check().is_ok(), "nothing to notice");
        let mut own = MutantCounts { caught: names(&["a", "t"]), missed: names(&["b", "c"]) };
        own.retry(MutantCounts { caught: names(&["b", "t"]), missed: names(&["c"]) });
        assert_eq!(own, MutantCounts { caught: names(&["a", "t", "b"]), missed: names(&["c"]) });
    }
}
