//! What benchmarks need: our binary, the data, the peers.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::options::Options;
use crate::peer::Peers;
use crate::process::{self, Cores, Usage, arguments};

/// Rows of synthetic clicks in `--quick`, and the divisor of their dimensions.
const QUICK_ROWS: u64 = 100_000;
const QUICK_SHRINK: u64 = 10;
const ROWS: u64 = 1_000_000;

/// Largest value of a pixel.
const PIXEL_MAX: f32 = 255.0;

/// What all benchmarks share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    seraphim: PathBuf,
    peers: OnceCell<Option<Peers>>,
}

impl Context {
    /// Builds our binary with the release profile.
    pub(crate) fn new(options: Options) -> Result<Self> {
        std::fs::create_dir_all(&options.scratch).context("cannot create the scratch folder")?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = std::process::Command::new(cargo);
        build.current_dir(&options.root).args(["build", "--release", "-p", "seraphim"]);
        if !build.status().context("cannot start cargo")?.success() {
            bail!("cargo build --release -p seraphim failed");
        }
        let own = std::env::current_exe().context("where am I")?;
        let seraphim = own.parent().context("a program lies in a folder")?.join("seraphim");
        Ok(Self { options, seraphim, peers: OnceCell::new() })
    }

    /// The peers. If they cannot run here, prints the reason once and returns `None`.
    pub(crate) fn peers(&self) -> Option<&Peers> {
        let find = || Peers::find(&self.options).map_err(|error| eprintln!("{error:#}")).ok();
        self.peers.get_or_init(find).as_ref()
    }

    /// Runs `seraphim` and measures it.
    pub(crate) fn seraphim(&self, cores: Cores, words: &[OsString]) -> Result<Usage> {
        process::measure(cores, &self.seraphim, words)
    }

    /// The command of `seraphim` without standard input, for a benchmark that watches it.
    pub(crate) fn command(&self, cores: Cores, words: &[OsString]) -> std::process::Command {
        process::pinned_command(cores, &self.seraphim, words)
    }

    /// Runs `seraphim` with workers; returns the peak of each worker in MB.
    pub(crate) fn workers_peaks(&self, cores: Cores, words: &[OsString]) -> Result<Vec<f64>> {
        process::children_peaks(cores, &self.seraphim, words, "worker")
    }

    /// Runs `seraphim` with its servers and workers; returns the peak of the largest process in MB when `is_reached`
    /// becomes true, and at the end.
    pub(crate) fn peaks_before_and_after(
        &self,
        words: &[OsString],
        is_reached: impl Fn() -> bool,
    ) -> Result<[f64; 2]> {
        process::largest_peaks(&self.seraphim, words, is_reached)
    }

    pub(crate) fn version(&self) -> Result<String> {
        Ok(process::output(Cores::Two, &self.seraphim, &arguments(["--version"]))?.trim().to_owned())
    }

    /// Metrics of a model on data, by `seraphim evaluate --json`.
    pub(crate) fn evaluate(&self, model: &Path, data: &Path, extra: &[&str]) -> Result<Value> {
        let mut words = arguments(["evaluate", "--json", "--quiet", "--model"]);
        words.push(model.into());
        words.push("--data".into());
        words.push(data.into());
        words.extend(arguments(extra.iter().copied()));
        let text = process::output(Cores::Two, &self.seraphim, &words)?;
        let value: Value = serde_json::from_str(&text).context("evaluate --json printed no JSON")?;
        Ok(value["metrics"].clone())
    }

    /// Returns the standard output of a command.
    pub(crate) fn seraphim_output(&self, words: &[OsString]) -> Result<String> {
        process::output(Cores::Two, &self.seraphim, words)
    }

    /// A path for models of a benchmark.
    pub(crate) fn scratch_path(&self, name: &str) -> PathBuf {
        self.options.scratch.join(name)
    }

    /// The folder of a real data set; an error if it is missing.
    pub(crate) fn data_set(&self, name: &str) -> Result<PathBuf> {
        let folder = self.options.data.join(name);
        if !folder.is_dir() {
            bail!("skipped: {} is not there (--data DIR)", folder.display());
        }
        Ok(folder)
    }

    /// The dimensions of the clicks that [`clicks`](Self::clicks) gives.
    pub(crate) fn click_dimensions(&self, millions: u64) -> u64 {
        millions * 1_000_000 / if self.options.quick { QUICK_SHRINK } else { 1 }
    }

    /// Our binary.
    pub(crate) fn seraphim_path(&self) -> &Path {
        &self.seraphim
    }

    /// Synthetic clicks with train and test files as libsvm and Parquet; generated if they are missing.
    pub(crate) fn clicks(&self, million_dimensions: u64) -> Result<PathBuf> {
        let rows = if self.options.quick { QUICK_ROWS } else { ROWS };
        let dimensions = self.click_dimensions(million_dimensions);
        let prefix = if self.options.quick { "quick" } else { "m1" };
        let folder = self.options.clicks.join(format!("{prefix}d{million_dimensions}"));
        for format in ["libsvm", "parquet"] {
            if folder.join(format!("train.{format}")).is_file()
                && folder.join(format!("test.{format}")).is_file()
            {
                continue;
            }
            let (rows, tests) = (rows.to_string(), (rows / 10).to_string());
            let mut words = arguments([
                "generate",
                "ctr",
                "--overwrite",
                "--rows",
                &rows,
                "--test-rows",
                &tests,
                "--format",
                format,
            ]);
            words.extend(arguments(["--dimensions", &dimensions.to_string(), "--output"]));
            words.push(folder.clone().into());
            self.seraphim(Cores::Two, &words).context("seraphim generate ctr")?;
        }
        Ok(folder)
    }

    /// Decompresses a gzip file into the scratch folder, so that we read the same text as a peer without gzip.
    pub(crate) fn unpacked(&self, set: &str, file: &str) -> Result<PathBuf> {
        let from = self.data_set(set)?.join(format!("{file}.gz"));
        let to = self.options.scratch.join(set).join(file);
        if !to.is_file() {
            std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
            let mut reader =
                MultiGzDecoder::new(File::open(&from).with_context(|| from.display().to_string())?);
            std::io::copy(&mut reader, &mut File::create(&to)?)?;
        }
        Ok(to)
    }

    /// Fashion-MNIST as libsvm with pixels from 0 to 1.
    pub(crate) fn images(&self, part: &str) -> Result<PathBuf> {
        let images = std::fs::read(self.unpacked("fashion_mnist", &format!("{part}-images-idx3-ubyte"))?)?;
        let labels = std::fs::read(self.unpacked("fashion_mnist", &format!("{part}-labels-idx1-ubyte"))?)?;
        let path = self.options.scratch.join(format!("fashion_mnist/{part}.libsvm"));
        let mut out = BufWriter::new(File::create(&path)?);
        let (images, labels) = (&images[16..], &labels[8..]);
        for (image, label) in images.chunks_exact(images.len() / labels.len()).zip(labels) {
            write!(out, "{label}")?;
            for (index, &pixel) in image.iter().enumerate().filter(|(_, pixel)| **pixel > 0) {
                write!(out, " {index}:{}", f32::from(pixel) / PIXEL_MAX)?;
            }
            writeln!(out)?;
        }
        out.flush()?;
        Ok(path)
    }
}
