//! `model.json`: the description of a model, how it was trained, and the checksum of every file. It does not depend on
//! time or machine, so equal runs write equal bytes.

use algo::SavedModel;
use std::collections::BTreeMap;
use std::path::Path;

use data::Schema;
use matrix::{ElementType, MatrixSpec, Storage};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The version of the model format that this program writes. Version 2 may have `label_scale`, `idf` and
/// `mark_missing`, and version 3 `scaled_columns` and the `form` and `origin` of a column; a reader that ignores them
/// would compute other predictions.
pub const FORMAT_VERSION: u64 = 3;
/// The oldest version that this program reads.
const OLDEST_VERSION: u64 = 1;
/// Name of the manifest in a model directory.
pub const FILE_NAME: &str = "model.json";
/// The value of `format` in a manifest.
pub const FORMAT_NAME: &str = "seraphim-model";

/// The manifest of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`FORMAT_NAME`].
    pub format: String,
    /// At most [`FORMAT_VERSION`].
    pub format_version: u64,
    /// Version of the program that wrote the model.
    pub program_version: String,
    pub algorithm: String,
    /// Value of every parameter of the algorithm.
    pub settings: BTreeMap<String, String>,
    /// Columns and kinds of the training data.
    pub schema: Schema,
    /// Data that scoring needs besides the matrices.
    pub model: SavedModel,
    /// The matrices, in the order of creation.
    pub matrices: Vec<MatrixEntry>,
    /// How it was trained.
    pub trained: TrainingRecord,
    /// The other files of the directory.
    pub files: Vec<FileEntry>,
}

/// A matrix of a model and its files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MatrixEntry {
    /// Name of the matrix and of its tensor.
    pub name: String,
    /// The file of the values.
    pub file: String,
    /// Name of the tensor of keys, `U64 [stored_rows]`, ascending; none when all rows are stored in order.
    pub keys: Option<String>,
    /// Number of declared rows.
    pub rows: u64,
    pub columns: u64,
    /// Number of rows in the file; the missing ones are zero.
    pub stored_rows: u64,
    pub dtype: ElementType,
    /// Storage of the matrix in training.
    pub storage: Storage,
    /// The file of the optimizer slots, if they are saved.
    pub optimizer_file: Option<String>,
    /// Names of the slots; the tensor of a slot is `MATRIX.SLOT`.
    pub slots: Vec<String>,
    /// The declaration of the matrix for training.
    pub spec: MatrixSpec,
}

/// How a model was trained.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrainingRecord {
    /// Training data as given.
    pub data: Vec<String>,
    /// Validation data as given.
    pub validate: Vec<String>,
    /// The model with which training started, if any.
    pub from: Option<String>,
    /// Number of records in the training data.
    pub records: u64,
    /// Number of epochs that were run.
    pub epochs: u64,
    /// The position of training that the saved weights have reached; none in models of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<TrainingPosition>,
    /// Whether training was interrupted.
    pub interrupted: bool,
    pub seed: u64,
    pub tasks: u32,
    /// Consistency as the command line spells it.
    pub consistency: String,
    /// Metrics of the last epoch on the training data; each record is scored before the update of its batch.
    pub metrics: BTreeMap<String, f64>,
    /// Metrics of the last epoch on the validation data.
    pub validation_metrics: BTreeMap<String, f64>,
    /// The settings as they were given, by key, without those that no byte of a model depends on. None in models of older
    /// versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<String, Vec<String>>,
    /// The files of the data, first those for training; none if they could be read only once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DataDigest>,
    /// PS functions that have changed the weights since training, in order. The first one removes the metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<AppliedFunction>,
}

/// A file of the data, by which it is recognized wherever it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDigest {
    /// Its name without its folder.
    pub name: String,
    pub size_bytes: u64,
    /// A hash of its contents, or of samples of them if it is large.
    pub digest: String,
}

/// The position of training at which another run continues from a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingPosition {
    /// Epochs over the data of [`TrainingRecord::data`], including those of earlier runs over the same data.
    pub epochs: u64,
    /// Number of steps of all runs; schedules of learning rates depend on it.
    pub clock: u64,
}

/// A PS function that has changed the weights of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedFunction {
    pub function: String,
    pub matrix: String,
    pub argument: serde_json::Value,
    /// Rows that the function read; none when it was applied to each row separately.
    pub from: Option<Vec<u32>>,
    /// Rows that the function wrote.
    pub into: Option<Vec<u32>>,
}

/// A file of the model directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub size_bytes: u64,
    /// CRC-32C of the contents.
    pub crc32c: u32,
}

/// Start of the line with the manifest's own checksum; eight hexadecimal digits and [`TRAILER_END`] follow.
const TRAILER_START: &str = ",\n  \"crc32c\": \"";
const TRAILER_END: &str = "\"\n}\n";
const CHECKSUM_DIGITS: usize = 8;

impl Manifest {
    /// Returns the manifest as text. The last member, `crc32c`, is the checksum of all bytes before its comma.
    pub fn to_text(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("strings, numbers and lists are always JSON");
        text.truncate(text.trim_end_matches(['\n', '}']).len());
        let sum = crc32c::crc32c(text.as_bytes());
        text + TRAILER_START + &format!("{sum:08x}") + TRAILER_END
    }

    /// Parses a manifest. It verifies the checksum before it uses any content, except the format version: another
    /// version may have its checksum elsewhere, so an unsupported version is reported first.
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

/// The recorded and the actual checksum of a damaged manifest.
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
    // When only the syntax around the checksum is damaged, the checksum of the whole file shows the difference.
    let actual = if recorded == sum { crc32c::crc32c(bytes) } else { sum };
    Err(ChecksumMismatch { expected: recorded, actual })
}

/// Returns the error of a model of an unsupported version.
fn version_error(value: &serde_json::Value, path: &Path, damage: Option<ChecksumMismatch>) -> Option<Error> {
    let actual = value.get("format_version")?.as_u64()?;
    if (OLDEST_VERSION..=FORMAT_VERSION).contains(&actual) || value.get("format")?.as_str()? != FORMAT_NAME {
        return None;
    }
    let written_by = value.get("program_version").and_then(|v| v.as_str()).unwrap_or("unknown").to_owned();
    let damage = damage.map(|d| (d.expected, d.actual));
    Some(Error::ModelVersion { path: path.into(), actual, newest: FORMAT_VERSION, written_by, damage })
}
