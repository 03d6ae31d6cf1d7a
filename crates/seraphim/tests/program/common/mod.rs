//! Shared code of the tests of the binary: running it, and small data with a known answer.
#![allow(clippy::print_stdout, clippy::format_push_string, reason = "helpers of tests")]

#[cfg(feature = "parquet")]
pub(crate) mod arrow_file;
#[cfg(unix)]
pub(crate) mod cluster;
pub(crate) mod disturbed;
#[cfg(unix)]
pub(crate) mod metrics;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_file;
#[cfg(unix)]
pub(crate) mod probe;
#[cfg(unix)]
pub(crate) mod service;
pub(crate) mod skip;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use math::random::{Purpose, stream};

/// Runs the binary with these arguments.
pub(crate) fn seraphim(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary was built for this test")
}

/// Returns the command of the binary without starting it.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seraphim"));
    command.args(arguments);
    command
}

/// Runs the binary, which must succeed, and returns its standard output.
pub(crate) fn succeed(arguments: &[&str]) -> String {
    let output = seraphim(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "seraphim {arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("output is text")
}

/// Runs the binary, which must fail with this exit code, and returns its standard error.
pub(crate) fn fail(code: i32, arguments: &[&str]) -> String {
    let output = seraphim(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "seraphim {arguments:?}: {error}");
    let at = error.find("error: ").unwrap_or_else(|| panic!("no error in: {error}"));
    error[at..].to_owned()
}

/// Flags for where a job runs: in this process, or on servers and workers.
pub(crate) const DEPLOYMENTS: [&[&str]; 4] = [
    &[],
    &["--servers", "1", "--workers", "1"],
    &["--servers", "2", "--workers", "2"],
    &["--servers", "3", "--workers", "1"],
];

/// Trains in every deployment with `arguments` that name neither command nor model. Returns all files of the model,
/// which must be the same everywhere.
pub(crate) fn train_everywhere(folder: &Folder, arguments: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    let model = folder.path("everywhere");
    let models = DEPLOYMENTS.map(|deployment| {
        succeed(&[&["train", "--quiet", "--overwrite", "--model", &model], arguments, deployment].concat());
        bytes_of(&model)
    });
    for (deployment, other) in DEPLOYMENTS.iter().zip(&models) {
        assert!(*other == models[0], "{arguments:?} {deployment:?}: other bytes than in this process");
    }
    let [alone, ..] = models;
    alone
}

/// Sparse records of two classes with features 1 to 50. The label is likely 1 when many features below 25 are present.
pub(crate) fn clicks(records: u64, seed: u64) -> String {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut text = String::new();
    for _ in 0..records {
        let mut keys: Vec<u64> = (0..8).map(|_| 1 + random.below(50)).collect();
        keys.sort_unstable();
        keys.dedup();
        let margin: f64 = keys.iter().map(|&key| if key < 25 { 0.6 } else { -0.6 }).sum();
        let label = u8::from(random.uniform() < 1.0 / (1.0 + (-margin).exp()));
        text.push_str(&label.to_string());
        for key in keys {
            text.push_str(&format!(" {key}:1"));
        }
        text.push('\n');
    }
    text
}

/// Whether a file of data is a table of text.
pub(crate) fn is_csv(data: &str) -> bool {
    Path::new(data).extension().is_some_and(|extension| extension == "csv")
}

pub(crate) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes.as_ref()).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

/// A folder for one test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("the temporary folder can be written"))
    }

    /// Returns the path of a file in the folder, as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("temporary names are text").to_owned()
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the temporary folder can be written");
        path
    }
}

/// Returns the name and content of every file of a directory.
pub(crate) fn bytes_of(directory: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| entry.expect("it can be listed").path())
        .map(|path| {
            (path.file_name().expect("an entry has a name").into(), std::fs::read(&path).expect("readable"))
        })
        .collect();
    files.sort();
    files
}

/// Returns the name and content of every file, hidden ones too, that lies directly in the folder of a test.
pub(crate) fn bytes_of_files(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder.0.path()).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("readable"));
    paths.filter(|path| path.is_file()).map(read).collect()
}

/// Returns a number of a JSON text by a pointer such as `/metrics/auc`.
pub(crate) fn number(json: &str, pointer: &str) -> f64 {
    let value: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    value
        .pointer(pointer)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("no {pointer} in {json}"))
}

/// Returns the folder of a real data set. If it is missing, marks the test as skipped and returns `None`.
pub(crate) fn real_data(name: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("SERAPHIM_DATA").map_or(default, PathBuf::from);
    let path = root.join(name);
    if !path.exists() {
        skip::skip(&format!("{} is not there (SERAPHIM_DATA names its root)", path.display()));
        return None;
    }
    Some(path)
}

/// Returns the text of a manifest with a correct checksum, whatever its content.
pub(crate) fn sealed(manifest: &serde_json::Value) -> String {
    let mut text = serde_json::to_string_pretty(manifest).expect("it is JSON");
    // Only the last brace goes, which closes the whole.
    text.truncate(text.trim_end().trim_end_matches('\n').len() - 1);
    text.truncate(text.trim_end().len());
    let sum = crc32c::crc32c(text.as_bytes());
    format!("{text},\n  \"crc32c\": \"{sum:08x}\"\n}}\n")
}
