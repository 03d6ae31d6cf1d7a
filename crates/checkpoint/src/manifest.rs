//! The manifest of a checkpoint: one line of JSON, then a line with the CRC-32C of the first.

use std::collections::BTreeSet;

use matrix::MatrixSpec;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::training_id::TrainingId;

/// Version of the format of checkpoints: of the manifest and what it means. 1 and 2: without bases.
pub const VERSION: u32 = 3;

/// What a checkpoint is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format of this file and of the files that it names.
    pub format_version: u32,
    /// The program that has written it.
    pub program_version: String,
    pub training: TrainingId,
    /// Its number in the training, from 1.
    pub number: u64,
    /// When it was begun, in seconds since 1970.
    pub created_s: u64,
    /// The job as the program that trains describes it.
    pub job: serde_json::Value,
    /// The files that the training reads.
    pub data: Vec<DataFile>,
    pub task_count: u32,
    /// The epoch that comes next or continues, from 0.
    pub epoch: u64,
    /// Whether the checkpoint is from within the epoch.
    pub is_within_epoch: bool,
    /// The largest clock of a task since the training began.
    pub clock: u64,
    /// The checkpoint whose rows this one completes: its parts have only rows that may have changed since. None: its parts
    /// have all rows.
    #[serde(default)]
    pub base: Option<Base>,
    /// The matrices, in the order of their numbers in the parts.
    pub matrices: Vec<MatrixSpec>,
    pub parts: Vec<PartFile>,
}

/// The checkpoint on which another one builds. A number may be used again after a failure, a checksum is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub number: u64,
    /// The checksum of its manifest.
    pub crc32c: u32,
}

/// A file of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    pub path: String,
    pub size_bytes: u64,
    /// When it was changed last, in milliseconds since 1970, if that is known.
    pub modified_ms: Option<u64>,
    /// A hash of its contents, or of samples of them if it is large. None in checkpoints of older versions.
    #[serde(default)]
    pub digest: Option<String>,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// Its name in the folder of the checkpoint.
    pub name: String,
    pub size_bytes: u64,
    /// The tasks whose states it has.
    pub tasks: BTreeSet<u32>,
    /// Whether it has rows.
    pub has_rows: bool,
    /// The number of rows of each matrix, in their order. None in checkpoints of older versions.
    #[serde(default)]
    pub row_counts: Vec<u64>,
}

impl Manifest {
    /// The field of [`Self::job`] that a checkpoint of a session has, with the title of the session.
    pub const SESSION: &str = "session";

    /// The title of the session of the parameter service whose checkpoint it is; none: it is one of a training.
    pub fn session(&self) -> Option<&str> {
        self.job.get(Self::SESSION)?.as_str()
    }

    /// The text of the file, and its checksum.
    ///
    /// # Panics
    /// Never: the fields are texts, numbers, lists and maps with text keys.
    pub fn to_text(&self) -> (String, u32) {
        let line = serde_json::to_string(self).expect("a manifest can be written as JSON");
        let crc = crc32c::crc32c(line.as_bytes());
        (format!("{line}\ncrc32c {crc:08x}\n"), crc)
    }

    /// Reads the text of the file at `path` of the store at `location`. Returns its checksum too.
    ///
    /// # Errors
    /// [`Error::Damaged`], and [`Error::NewerFormat`] even if the rest is not understood.
    pub fn from_text(text: &[u8], location: &str, path: &str) -> Result<(Self, u32), Error> {
        let damaged = |offset: usize, what: &str| Error::Damaged {
            location: location.to_owned(),
            path: path.to_owned(),
            offset: offset as u64,
            what: what.to_owned(),
        };
        let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        let (line, rest) = text.split_at(end);
        let crc = crc32c::crc32c(line);
        if rest != format!("\ncrc32c {crc:08x}\n").as_bytes() {
            return Err(damaged(end, "the checksum of the manifest does not fit"));
        }
        let value: serde_json::Value =
            serde_json::from_slice(line).map_err(|error| damaged(0, &error.to_string()))?;
        let version = value.get("format_version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if version > u64::from(VERSION) {
            let (location, path) = (location.to_owned(), path.to_owned());
            let version = u32::try_from(version).unwrap_or(u32::MAX);
            return Err(Error::NewerFormat { location, path, version, newest: VERSION });
        }
        let manifest = serde_json::from_value(value).map_err(|error| damaged(0, &error.to_string()))?;
        Ok((manifest, crc))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use matrix::{ElementType, PushRule};
    use serde_json::json;

    use super::*;

    pub(crate) fn manifest(number: u64) -> Manifest {
        Manifest {
            format_version: VERSION,
            program_version: "0.1.0".into(),
            training: TrainingId::from("t-1"),
            number,
            created_s: 1_700_000_000,
            job: json!({"algorithm": "lr"}),
            data: vec![DataFile {
                path: "train.libsvm".into(),
                size_bytes: 12,
                modified_ms: Some(5),
                digest: None,
            }],
            task_count: 2,
            epoch: 3,
            is_within_epoch: true,
            clock: 77,
            base: None,
            matrices: vec![MatrixSpec::sparse("weights", ElementType::F32, 1, PushRule::Add, 4)],
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_manifest_comes_back_and_every_changed_byte_is_noticed() {
        let manifest = manifest(12);
        let (text, crc) = manifest.to_text();
        let text = text.into_bytes();
        assert_eq!(Manifest::from_text(&text, "folder", "manifest").unwrap(), (manifest, crc));
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            assert!(Manifest::from_text(&changed, "folder", "manifest").is_err(), "byte {at}");
            assert!(Manifest::from_text(&text[..at], "folder", "manifest").is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_manifest_of_a_newer_program_is_named_as_such() {
        let line = r#"{"format_version":4,"unknown":true}"#;
        let text = format!("{line}\ncrc32c {:08x}\n", crc32c::crc32c(line.as_bytes()));
        let error = Manifest::from_text(text.as_bytes(), "folder", "00000001/manifest").unwrap_err();
        assert!(matches!(error, Error::NewerFormat { version: 4, newest: VERSION, .. }), "{error}");
    }
}
