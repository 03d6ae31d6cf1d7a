//! `model.json`: what a model is, how it was made, and the checksum of every file. Nothing in it hangs on time or
//! machine, so that equal runs write equal bytes.

use std::collections::BTreeMap;
use std::path::Path;

use data::Schema;
use matrix::{ElementType, MatrixSpec, Storage};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The version of the model format that this program writes. Version 2 may have `label_scale`, `idf` and `mark_missing`, without
/// which a model would predict something else.
pub const FORMAT_VERSION: u64 = 2;
/// The oldest version that this program reads.
const OLDEST_VERSION: u64 = 1;
/// Name of the manifest in a model directory.
pub const FILE_NAME: &str = "model.json";
/// What `format` says.
pub const FORMAT_NAME: &str = "seraphim-model";

/// The manifest of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_NAME`].
    pub format: String,
    /// [`FORMAT_VERSION`].
    pub format_version: u64,
    /// The program that wrote it.
    pub program_version: String,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Every parameter with its value in force.
    pub settings: BTreeMap<String, String>,
    /// Columns and kinds of the training data.
    pub schema: Schema,
    /// What scoring needs besides the matrices.
    pub model: algo::Model,
    /// The matrices, in the order of creation.
    pub matrices: Vec<MatrixEntry>,
    /// How it was trained.
    pub trained: TrainingRecord,
    /// The other files of the directory.
    pub files: Vec<FileEntry>,
}

/// A matrix and where it lies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MatrixEntry {
    /// Its name, and the name of its tensor.
    pub name: String,
    /// The file of its values.
    pub file: String,
    /// The tensor of its keys, `U64 [stored_rows]`, ascending; none when all rows are stored in order.
    pub keys: Option<String>,
    /// Rows declared.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Rows in the file; those left out are zero.
    pub stored_rows: u64,
    /// Type of the elements.
    pub dtype: ElementType,
    /// How it was stored in training.
    pub storage: Storage,
    /// The file of its optimizer slots, if kept.
    pub optimizer_file: Option<String>,
    /// Names of the slots; the tensor of one is `MATRIX.SLOT`.
    pub slots: Vec<String>,
    /// As it was declared for training.
    pub spec: MatrixSpec,
}

/// How a model was trained.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrainingRecord {
    /// Training data as given.
    pub data: Vec<String>,
    /// Validation data as given.
    pub validate: Vec<String>,
    /// The model it was trained on from.
    pub from: Option<String>,
    /// Records of the training data.
    pub records: u64,
    /// Epochs made.
    pub epochs: u64,
    /// How far the saved weights have come; none in models of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<TrainingPosition>,
    /// Whether it was interrupted before its end.
    pub interrupted: bool,
    /// Seed.
    pub seed: u64,
    /// Number of tasks.
    pub tasks: u32,
    /// As spelled on the command line.
    pub consistency: String,
    /// Metrics of the last epoch on the training data, before each update.
    pub metrics: BTreeMap<String, f64>,
    /// Metrics of the last epoch on the validation data.
    pub validation_metrics: BTreeMap<String, f64>,
    /// How far a job had come that was saved because its master was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedJob>,
    /// Functions that have changed the weights since then, in order. The metrics are gone with the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<AppliedFunction>,
}

/// How far training has come: where another run goes on from a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingPosition {
    /// Epochs over the data of `TrainingRecord::data`, those of earlier runs over the same data included.
    pub epochs: u64,
    /// Clocks of all runs: what schedules of step sizes follow.
    pub clock: u64,
}

/// A PS function that has changed the weights of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedFunction {
    /// Its name.
    pub function: String,
    /// The matrix.
    pub matrix: String,
    /// Its argument.
    pub argument: serde_json::Value,
    /// Rows read; none: each row by itself.
    pub from: Option<Vec<u32>>,
    /// Rows written.
    pub into: Option<Vec<u32>>,
}

/// A job that was saved in its middle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedJob {
    /// What was asked for: the keys of a job file with their texts.
    pub job: BTreeMap<String, Vec<String>>,
    /// The epoch in which it stopped, from 0. It may have been whole: only the master knows.
    pub epoch: u64,
    /// Epochs that were planned; 0 when that was not known yet.
    pub epoch_count: u64,
    /// Steps of each task.
    pub clocks: Vec<u64>,
    /// Tasks that did not come to the end: their last step may be missing, or be there in part.
    pub lost_tasks: Vec<u32>,
}

/// A file of the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
}

/// How the line of the manifest's own checksum begins; eight hexadecimal digits and [`TRAILER_END`] follow.
const TRAILER_START: &str = ",\n  \"crc32c\": \"";
const TRAILER_END: &str = "\"\n}\n";
const CHECKSUM_DIGITS: usize = 8;

impl Manifest {
    /// As text. The last member, `crc32c`, is the checksum of all bytes before its comma.
    pub fn to_text(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("strings, numbers and lists are always JSON");
        text.truncate(text.trim_end_matches(['\n', '}']).len());
        let sum = crc32c::crc32c(text.as_bytes());
        text + TRAILER_START + &format!("{sum:08x}") + TRAILER_END
    }

    /// Reads a manifest. The checksum is verified before anything is believed; only a version that is not ours is
    /// told first, since an other version may have its checksum elsewhere.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let loose = serde_json::from_slice::<serde_json::Value>(bytes);
        if let Err(damage) = verify(bytes) {
            let foreign = loose.as_ref().ok().and_then(|value| version_error(value, path, Some(damage)));
            return Err(foreign.unwrap_or(Error::Checksum {
                path: path.into(),
                expected: damage.expected,
                actual: damage.actual,
            }));
        }
        let bad = |what: String| Error::BadModel { path: path.into(), what };
        let value = loose.map_err(|e| bad(e.to_string()))?;
        if let Some(error) = version_error(&value, path, None) {
            return Err(error);
        }
        serde_json::from_value(value).map_err(|e| bad(e.to_string()))
    }
}

/// The two checksums of a damaged manifest.
#[derive(Clone, Copy, Debug)]
struct ChecksumMismatch {
    expected: u32,
    actual: u32,
}

fn verify(bytes: &[u8]) -> Result<(), ChecksumMismatch> {
    let trailer = TRAILER_START.len() + CHECKSUM_DIGITS + TRAILER_END.len();
    let (body, tail) = bytes.split_at(bytes.len().saturating_sub(trailer));
    let sum = crc32c::crc32c(body);
    if tail == format!("{TRAILER_START}{sum:08x}{TRAILER_END}").as_bytes() {
        return Ok(());
    }
    let digits = tail.get(TRAILER_START.len()..TRAILER_START.len() + CHECKSUM_DIGITS);
    let recorded =
        digits.and_then(|d| u32::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok()).unwrap_or(0);
    // When only the frame around the sum is broken, the sum of the whole file tells the difference.
    let actual = if recorded == sum { crc32c::crc32c(bytes) } else { sum };
    Err(ChecksumMismatch { expected: recorded, actual })
}

/// The error of a model of another version.
fn version_error(value: &serde_json::Value, path: &Path, damage: Option<ChecksumMismatch>) -> Option<Error> {
    let found = value.get("format_version")?.as_u64()?;
    if (OLDEST_VERSION..=FORMAT_VERSION).contains(&found) || value.get("format")?.as_str()? != FORMAT_NAME {
        return None;
    }
    let written_by = value.get("program_version").and_then(|v| v.as_str()).unwrap_or("unknown").to_owned();
    let damage = damage.map(|d| (d.expected, d.actual));
    Some(Error::ModelVersion { path: path.into(), found, known: FORMAT_VERSION, written_by, damage })
}
