//! The peers: other programs, run by the scripts of `--peers`, each case in its own process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::options::Options;
use crate::process::{Cores, arguments, pinned_command};

/// Packages that the scripts for linear models import.
const PACKAGES: &[&str] = &[
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "pyarrow",
    "vowpalwabbit",
    "xlearn",
    "lightgbm",
    "tomotopy",
    "cmfrec",
    "implicit",
    "psutil",
    "setuptools<81",
];

/// The scripts of the peers and a Python that can run them.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    python: PathBuf,
    scripts: PathBuf,
}

impl Peers {
    /// Finds the scripts and a Python with the packages. If no Python is named, creates one in the scratch folder.
    pub(crate) fn find(options: &Options) -> Result<Self> {
        let scripts = options.peers.clone();
        if !scripts.join("linear.py").is_file() {
            bail!("no peers: {} holds no linear.py (--peers DIR)", scripts.display());
        }
        let python = match &options.python {
            Some(python) => python.clone(),
            None => make_python(&options.scratch.join("venv"))?,
        };
        if !imports(&python) {
            bail!("no peers: {} lacks one of {PACKAGES:?}", python.display());
        }
        Ok(Self { python, scripts })
    }

    /// Runs a case of `linear.py` and returns its JSON line: `fit_s`, `predict_s`, `auc`, ...
    pub(crate) fn linear(&self, case: &str, data: &Path, cores: Cores) -> Result<Value> {
        let threads = cores.count().to_string();
        let mut words = arguments([self.scripts.join("linear.py")]);
        words.extend(arguments([case, "--data"]));
        words.push(data.into());
        words.extend(arguments(["--threads", &threads]));
        self.run(case, cores, &words)
    }

    /// Runs a case of `cluster.py` on one core: `fit_s`, `inertia`, `iters`.
    pub(crate) fn clusters(&self, case: &str, data: &Path) -> Result<Value> {
        let mut words = arguments([self.scripts.join("cluster.py")]);
        words.extend(arguments([case, "--data"]));
        words.push(data.into());
        words.extend(arguments(["--threads", "1"]));
        self.run(case, Cores::One, &words)
    }

    /// Runs a case of `fm.py` on one core: `fit_s`, `auc`, `logloss`.
    pub(crate) fn factorization(&self, case: &str, data: &Path) -> Result<Value> {
        let mut words = arguments([self.scripts.join("fm.py")]);
        words.extend(arguments([case, "--data"]));
        words.push(data.into());
        words.extend(arguments(["--threads", "1"]));
        self.run(case, Cores::One, &words)
    }

    /// Runs a case of `benchmarks/peers/defaults.py` on training and test data: `fit_s`, and the metric of the case.
    pub(crate) fn defaults(&self, root: &Path, case: &str, [train, test]: [&Path; 2]) -> Result<Value> {
        let mut words = arguments([root.join("benchmarks/peers/defaults.py")]);
        words.push(case.into());
        words.extend([train.into(), test.into()]);
        self.run(case, Cores::Two, &words)
    }

    /// Runs `benchmarks/peers/trees.py`: `seconds`, `fit_s`, `peak_mb`, and a metric on `test`.
    pub(crate) fn trees(
        &self,
        root: &Path,
        train: &Path,
        test: Option<&Path>,
        settings: &[&str],
        cores: Cores,
    ) -> Result<Value> {
        let mut words = arguments([root.join("benchmarks/peers/trees.py")]);
        words.extend([train.into(), test.map_or_else(|| "-".into(), Into::into)]);
        words.extend(arguments(settings));
        self.run("trees", cores, &words)
    }

    /// Runs `benchmarks/peers/topics.py` on one core: `fit_s` of tomotopy, `perplexity` of any topics.
    pub(crate) fn topics(
        &self,
        root: &Path,
        case: &str,
        [train, test]: [&Path; 2],
        more: &[&str],
    ) -> Result<Value> {
        let mut words = arguments([root.join("benchmarks/peers/topics.py")]);
        words.push(case.into());
        words.extend([train.into(), test.into()]);
        words.extend(arguments(more));
        self.run(case, Cores::One, &words)
    }

    /// Runs a case of `mf.py` on two cores: `fit_s`, and `rmse` or `ndcg20`.
    pub(crate) fn recommender(&self, case: &str, data: &Path) -> Result<Value> {
        let mut words = arguments([self.scripts.join("mf.py")]);
        words.extend(arguments([case, "--data"]));
        words.push(data.into());
        words.extend(arguments(["--threads", "2"]));
        self.run(case, Cores::Two, &words)
    }

    /// Runs `benchmarks/peers/recommenders.py` on two cores: `seconds` of the lists of implicit for all users.
    pub(crate) fn lists(&self, root: &Path, train: &Path) -> Result<Value> {
        let mut words = arguments([root.join("benchmarks/peers/recommenders.py")]);
        words.push(train.into());
        words.extend(arguments(["2"]));
        self.run("recommenders", Cores::Two, &words)
    }

    fn run(&self, case: &str, cores: Cores, words: &[OsString]) -> Result<Value> {
        let threads = cores.count().to_string();
        let mut command = pinned_command(cores, &self.python, words);
        for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(name, &threads);
        }
        command.env("PYTHONWARNINGS", "ignore").env("OMP_WAIT_POLICY", "PASSIVE");
        // xLearn ends at once without it.
        command.env("USER", std::env::var("USER").unwrap_or_else(|_| "user".to_owned()));
        let output = command.stderr(Stdio::piped()).output().context("cannot start the peer")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(line) = text.lines().rev().find(|line| line.starts_with('{')) else {
            bail!("peer {case}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        };
        serde_json::from_str(line).with_context(|| format!("peer {case} printed {line:?}"))
    }

    /// Rewrites a Parquet file with the defaults of pyarrow.
    pub(crate) fn rewrite_parquet(&self, from: &Path, to: &Path) -> Result<()> {
        let code =
            "import sys, pyarrow.parquet as pq; pq.write_table(pq.read_table(sys.argv[1]), sys.argv[2])";
        let status = Command::new(&self.python).args(["-c", code]).args([from, to]).status()?;
        if !status.success() {
            bail!("pyarrow: {status} while it rewrote {}", from.display());
        }
        Ok(())
    }
}

fn imports(python: &Path) -> bool {
    let code =
        "import numpy, scipy, sklearn, pandas, pyarrow, vowpalwabbit, xlearn, lightgbm, cmfrec, implicit";
    let status = Command::new(python).args(["-c", code]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn make_python(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    if imports(&python) {
        return Ok(python);
    }
    eprintln!("making a Python with the peers in {}", folder.display());
    let run = |command: &mut Command| -> Result<()> {
        let status = command.stdin(Stdio::null()).status()?;
        if !status.success() {
            bail!("{status}: {command:?}");
        }
        Ok(())
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(folder)).context("python3 -m venv")?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))
        .context("pip install")?;
    Ok(python)
}
