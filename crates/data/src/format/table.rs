//! The table of formats, and the choice of a row for a file.

use super::{Abilities, FormatRow, adjacency, csv, dense, edges, libffm, libsvm, text, uci_bags, vw};
use crate::Error;
use crate::arrays::MemoryInputs;
use crate::compression::Compression;
use crate::error::nearest;
use crate::input::{Head, Input};

/// The available formats. [`FormatTable::with`] adds a format of a user.
#[derive(Clone)]
pub struct FormatTable {
    rows: Vec<FormatRow>,
    memory: MemoryInputs,
}

/// Extensions of compressed files; they do not determine the format.
const COMPRESSION_EXTENSIONS: [&str; 4] = ["gz", "gzip", "zst", "zstd"];

impl FormatTable {
    /// The formats of Seraphim; the ones that are recognized most reliably come first.
    pub fn builtin() -> Self {
        let table = Self {
            memory: MemoryInputs::default(),
            rows: vec![
                FormatRow {
                    name: "libsvm",
                    title: "label index:value ... (indices of 64 bits, 0- or 1-based, values are optional)",
                    extensions: &["libsvm", "svm", "svmlight"],
                    abilities: Abilities { is_numbered: true, has_qid: true, ..Abilities::NONE },
                    recognize: libsvm::recognize,
                    open: libsvm::open,
                },
                FormatRow {
                    name: "libffm",
                    title: "label field:index:value ...",
                    extensions: &["libffm", "ffm"],
                    abilities: Abilities { is_numbered: true, has_groups: true, ..Abilities::NONE },
                    recognize: libffm::recognize,
                    open: libffm::open,
                },
                FormatRow {
                    name: "vw",
                    title: "Vowpal Wabbit text: label |namespace feature:value ...",
                    extensions: &["vw"],
                    abilities: Abilities { has_groups: true, ..Abilities::NONE },
                    recognize: vw::recognize,
                    open: vw::open,
                },
                uci_bags::ROW,
                FormatRow {
                    name: "dense",
                    title: "numbers separated by blanks, tabs or commas, with the label first",
                    extensions: &["dense"],
                    abilities: Abilities::COLUMNS,
                    recognize: dense::recognize,
                    open: dense::open,
                },
                FormatRow {
                    name: "csv",
                    title: "columns separated by commas, semicolons, tabs or bars, with or without a header",
                    extensions: &["csv", "tsv"],
                    abilities: Abilities::COLUMNS,
                    recognize: csv::recognize,
                    open: csv::open,
                },
                FormatRow {
                    name: "text",
                    title: "one document per line, words between white space",
                    extensions: &[],
                    abilities: Abilities { has_text: true, ..Abilities::NONE },
                    recognize: |_| false,
                    open: text::open,
                },
                FormatRow {
                    name: "edges",
                    title: "edges of a graph: source target [weight [time]]",
                    extensions: &["edges"],
                    abilities: Abilities::NONE,
                    recognize: |_| false,
                    open: edges::open,
                },
                adjacency::ROW,
            ],
        };
        #[cfg(feature = "parquet")]
        let table = table.with(super::arrow_ipc::ROW).with(super::parquet::ROW);
        table
    }

    /// Adds a row in front of the others; it replaces a row of the same name.
    #[must_use]
    pub fn with(mut self, row: FormatRow) -> Self {
        self.rows.retain(|known| known.name != row.name);
        self.rows.insert(0, row);
        self
    }

    /// Adds arrays that are read as inputs; they replace those that were added before.
    #[must_use]
    pub fn with_memory(mut self, memory: MemoryInputs) -> Self {
        self.memory = memory;
        self
    }

    pub(crate) fn memory(&self) -> &MemoryInputs {
        &self.memory
    }

    pub fn rows(&self) -> &[FormatRow] {
        &self.rows
    }

    pub fn find(&self, name: &str) -> Result<&FormatRow, Error> {
        self.rows.iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownFormat {
            name: name.to_owned(),
            nearest: nearest(name, self.rows.iter().map(|row| row.name)),
            known: self.names(),
        })
    }

    /// Chooses the row of these files by extension, else by the first bytes of the first file that is not empty.
    pub(crate) fn recognize(&self, files: &[Input]) -> Result<&FormatRow, Error> {
        if let Some(arrays) = files.iter().find_map(Input::arrays) {
            return self.find(arrays.format_name());
        }
        for file in files {
            let ending = file.file_name().and_then(|name| self.find_by_extension(name));
            let head = checked_head(file)?;
            if let Some(row) = ending {
                // Bytes that cannot be text decide, whatever the extension is.
                return Ok(self.rows.iter().find(|row| row.is_binary(&head.bytes)).unwrap_or(row));
            }
            if head.bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return self.rows.iter().find(|row| (row.recognize)(&head.bytes)).ok_or_else(|| {
                Error::FormatNotRecognized { file: file.name().to_owned(), known: self.names() }
            });
        }
        Err(Error::NoRecords { files: crate::input::list_names(files) })
    }

    /// Chooses the row of files that are read with a trained schema, whose format was `known`. Binary bytes decide.
    /// Else the extension of a format decides, unless only the format of training recognizes the bytes. Text without
    /// such an extension has the format of training.
    pub(crate) fn recognize_for_schema(&self, files: &[Input], known: &str) -> Result<&FormatRow, Error> {
        if let Some(arrays) = files.iter().find_map(Input::arrays) {
            return self.find(arrays.format_name());
        }
        let known = self.find(known)?;
        for file in files {
            let ending = file.file_name().and_then(|name| self.find_by_extension(name));
            let head = checked_head(file)?;
            if let Some(binary) = self.rows.iter().find(|row| row.is_binary(&head.bytes)) {
                return Ok(binary);
            }
            if ending.is_some_and(|row| row.name == known.name) {
                return Ok(known);
            }
            if head.bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return Ok(match ending {
                Some(row) if (row.recognize)(&head.bytes) || !(known.recognize)(&head.bytes) => row,
                Some(_) | None => known,
            });
        }
        Ok(known)
    }

    fn find_by_extension(&self, name: &str) -> Option<&FormatRow> {
        let name = name.to_ascii_lowercase();
        let mut parts = name.rsplit('.').filter(|part| !COMPRESSION_EXTENSIONS.contains(part));
        let ending = parts.next()?;
        self.rows.iter().find(|row| row.extensions.contains(&ending))
    }

    fn names(&self) -> String {
        self.rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the first bytes of a file; an archive of files is an error.
fn checked_head(file: &Input) -> Result<Head, Error> {
    let head = file.head()?;
    if Compression::is_tar(&head.bytes) {
        return Err(Error::UnsupportedEncoding { file: file.name().to_owned(), what: "a tar archive" });
    }
    if Compression::has_cr_lines(&head.bytes) {
        let what = "text whose lines end with CR alone";
        return Err(Error::UnsupportedEncoding { file: file.name().to_owned(), what });
    }
    Ok(head)
}

#[cfg(test)]
mod tests;
