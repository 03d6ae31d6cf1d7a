//! `cargo xtask simulate`: runs all members in one thread from seeds; see `crates/simulation`.
//!
//! It uses the dev profile of ci: building the optimized test takes longer than running the seeds.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::Cmd;
use crate::metadata;

/// The variable that the test reads.
const SEEDS_VARIABLE: &str = "SERAPHIM_SEEDS";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SimulateOptions {
    seeds: u64,
    start: u64,
}

impl SimulateOptions {
    /// Parses the words after `simulate`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut request = Self { seeds: 1_000, start: 0 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let field = match *word {
                "--seeds" => &mut request.seeds,
                "--start" => &mut request.start,
                other => bail!("unknown word {other:?}: simulate takes --seeds N and --start S"),
            };
            let value = words.next().with_context(|| format!("{word} needs a number"))?;
            *field = value.parse().with_context(|| format!("{word} {value:?} is no number"))?;
        }
        ensure!(request.seeds > 0, "--seeds 0 would try nothing: give 1 or more");
        Ok(request)
    }
}

/// Runs the seeds. For a failing seed the test prints the command that replays it.
pub(crate) fn run(root: &Path, request: &SimulateOptions) -> Result<()> {
    let SimulateOptions { seeds, start } = request;
    let words = format!(
        "test --workspace --features {} --test simulation -- --nocapture every_seed_keeps_every_promise",
        metadata::FEATURES
    );
    Cmd::cargo(root, &words).env(SEEDS_VARIABLE, format!("{start}..{}", start.saturating_add(*seeds))).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_other_words_refused() {
        assert_eq!(SimulateOptions::parse(&[]).unwrap(), SimulateOptions { seeds: 1_000, start: 0 });
        let request = SimulateOptions::parse(&["--start", "7", "--seeds", "2"]).unwrap();
        assert_eq!(request, SimulateOptions { seeds: 2, start: 7 });
        assert!(SimulateOptions::parse(&["--seeds"]).is_err());
        assert!(SimulateOptions::parse(&["--seed", "1"]).is_err());
        assert!(SimulateOptions::parse(&["--seeds", "0"]).is_err(), "no seed keeps every promise");
    }
}
