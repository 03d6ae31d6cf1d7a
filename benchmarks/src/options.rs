//! The command line of the benchmarks.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The usage text.
pub(crate) const USAGE: &str = "\
usage: cargo run --release -p benchmarks -- [OPTIONS]

  --quick          small synthetic data and one round: whether it runs, not how fast
  --only NAME      only works whose name begins with NAME; may be repeated
  --list           names of the works
  --rounds N       rounds of ours and the peer in turns (default 5)
  --scratch DIR    where data and models are written (default target/benchmarks)
  --clicks DIR     where synthetic clicks lie or are put (default SCRATCH/clicks)
  --data DIR       real data sets (default: the variable SERAPHIM_DATA, else ../shared/data)
  --peers DIR      scripts that run the peers (default ../shared/peers)
  --python PATH    a Python with the peers (default: one made in SCRATCH/venv)
";

/// What the command line requests.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Run the benchmarks with these settings.
    Run(Options),
    /// List the names of the benchmarks.
    List,
    /// Print [`USAGE`].
    Help,
}

/// Which benchmarks run, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    pub(crate) only: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) scratch: PathBuf,
    pub(crate) clicks: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) peers: PathBuf,
    pub(crate) python: Option<PathBuf>,
    pub(crate) root: PathBuf,
}

impl Options {
    /// Parses the command line. [`crate::suite::select`] compares `--only` with the names of the benchmarks.
    pub(crate) fn parse(words: &[String]) -> Result<Action> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().context("the folder of the workspace")?;
        let default_data = std::env::var_os("SERAPHIM_DATA").map(PathBuf::from);
        let mut options = Self {
            quick: false,
            only: Vec::new(),
            rounds: 5,
            scratch: root.join("target/benchmarks"),
            clicks: PathBuf::new(),
            data: default_data.unwrap_or_else(|| root.join("../shared/data")),
            peers: root.join("../shared/peers"),
            python: None,
            root,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => (options.quick, options.rounds) = (true, 1),
                "--only" => options.only.push(value()?.clone()),
                "--rounds" => options.rounds = value()?.parse().context("--rounds needs a number")?,
                "--scratch" => options.scratch = value()?.into(),
                "--clicks" => options.clicks = value()?.into(),
                "--data" => options.data = value()?.into(),
                "--peers" => options.peers = value()?.into(),
                "--python" => options.python = Some(value()?.into()),
                "--list" => return Ok(Action::List),
                "--help" | "-h" => return Ok(Action::Help),
                _ => bail!("unknown option {word:?}\n\n{USAGE}"),
            }
        }
        if options.clicks.as_os_str().is_empty() {
            options.clicks = options.scratch.join("clicks");
        }
        options.rounds = options.rounds.max(1);
        Ok(Action::Run(options))
    }

    /// Whether `--only` selects a benchmark.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.starts_with(only.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Action> {
        Options::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn quick_is_one_round_and_only_takes_beginnings_of_names() {
        let Action::Run(options) = parse(&["--quick", "--only", "clicks"]).unwrap() else { panic!("a run") };
        assert_eq!(options.rounds, 1);
        assert!(options.wants("clicks_two_cores") && !options.wants("a9a_lr"));
    }

    #[test]
    fn unknown_options_are_errors() {
        assert!(parse(&["--fast"]).is_err());
        assert!(parse(&["--rounds"]).is_err());
    }
}
