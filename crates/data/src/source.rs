//! Inputs: what the user names, and the files it stands for.

use crate::bad_lines::BadLines;
use crate::label::LabelRule;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to read and how.
#[derive(Clone, Debug, Default)]
pub struct SourceConfig {
    /// Files, folders, glob patterns; "-" is standard input.
    pub inputs: Vec<String>,
    /// Name in the table of formats; `None` = by the file's ending, then by its first lines.
    pub format: Option<String>,
    /// Settings of the format.
    pub options: FormatOptions,
    /// What to do with bad lines.
    pub bad_lines: BadLines,
}

/// Settings of formats. A column is named as in the header, or by its 0-based number.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// Label column. `None`: CSV takes label, target or y, else the last; dense the first.
    pub label: Option<String>,
    /// Whether lines have a label at all (prediction may do without).
    pub has_label: bool,
    /// Column of record weights.
    pub weight: Option<String>,
    /// Column of groups; "qid" for libsvm.
    pub group: Option<String>,
    /// Whether the first line names the columns; `None` = by looking.
    pub header: Option<bool>,
    /// Byte between fields; `None` = by looking.
    pub delimiter: Option<u8>,
    /// Columns whose values are names even if they look like numbers.
    pub text_columns: Vec<String>,
    /// Columns to leave out.
    pub skip_columns: Vec<String>,
    /// Whether zero entries are kept (standardization needs them).
    pub keep_zeros: bool,
    /// What labels may be.
    pub label_rule: LabelRule,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self {
            label: None,
            has_label: true,
            weight: None,
            group: None,
            header: None,
            delimiter: None,
            text_columns: Vec::new(),
            skip_columns: Vec::new(),
            keep_zeros: false,
            label_rule: LabelRule::Real,
        }
    }
}

/// One file of the input.
#[derive(Clone, Debug)]
pub struct Input {
    name: String,
    place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Place {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

impl Input {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.display().to_string(), place: Place::File(path) }
    }

    /// Bytes in memory, under a name for messages.
    pub fn memory(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { name: name.into(), place: Place::Memory(bytes.into()) }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it lies, when it is a file.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Memory(_) => None,
        }
    }
}
