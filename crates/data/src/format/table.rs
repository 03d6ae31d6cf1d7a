//! The table of formats, and the choice of a row for a file.

use super::{Abilities, FormatRow, csv, dense, edges, libffm, libsvm, text, vw};
use crate::Error;
use crate::arrays::MemoryInputs;
use crate::compression::Compression;
use crate::error::nearest;
use crate::input::{Head, Input};
use std::path::Path;

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
                    abilities: Abilities::NONE,
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
            let ending = file.path().and_then(|path| self.find_by_extension(path));
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
            let ending = file.path().and_then(|path| self.find_by_extension(path));
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

    fn find_by_extension(&self, path: &Path) -> Option<&FormatRow> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
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
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::format::testing::gzip;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a folder"))
        }

        fn file(&self, name: &str, bytes: &[u8]) -> Input {
            let path: PathBuf = self.0.path().join(name);
            std::fs::write(&path, bytes).expect("room");
            Input::file(path).expect("a file")
        }
    }

    const LIBSVM: &[u8] = b"1 1:2 3:4\n0 2:1\n";
    const CSV: &[u8] = b"a,b\nx,1\ny,2\n";
    const NUMBERS: &[u8] = b"1,2\n3,4\n";

    fn recognized(files: &[Input]) -> Result<&'static str, Error> {
        FormatTable::builtin().recognize(files).map(|row| row.name)
    }

    fn recognized_again(files: &[Input], known: &str) -> &'static str {
        FormatTable::builtin().recognize_for_schema(files, known).expect("a format").name
    }

    #[test]
    fn the_extension_decides_also_before_that_of_a_compression() {
        let folder = Folder::new();
        for (name, bytes, expected) in [
            ("a.svm", CSV, "libsvm"),
            ("a.ffm", CSV, "libffm"),
            ("a.VW", CSV, "vw"),
            ("a.dense", CSV, "dense"),
            ("a.csv", NUMBERS, "csv"),
            ("a.tsv", LIBSVM, "csv"),
            ("a.edges", NUMBERS, "edges"),
            ("a.csv.svm", CSV, "libsvm"),
            ("a.csv.txt", NUMBERS, "dense"),
            ("csv", NUMBERS, "csv"),
        ] {
            assert_eq!(recognized(&[folder.file(name, bytes)]).unwrap(), expected, "{name}");
        }
        for name in ["a.csv.gz", "a.csv.gzip", "a.gz.csv"] {
            assert_eq!(recognized(&[folder.file(name, &gzip(NUMBERS))]).unwrap(), "csv", "{name}");
        }
        let zstd = zstd::bulk::compress(NUMBERS, 1).expect("zstd");
        for name in ["a.svm.zst", "a.svm.zstd"] {
            assert_eq!(recognized(&[folder.file(name, &zstd)]).unwrap(), "libsvm", "{name}");
        }
        assert_eq!(recognized(&[folder.file("gz", &gzip(NUMBERS))]).unwrap(), "dense");
    }

    #[test]
    fn without_an_extension_the_first_file_with_text_decides() {
        let memory = |bytes: &[u8]| Input::memory("f", bytes).expect("text");
        assert_eq!(recognized(&[memory(LIBSVM)]).unwrap(), "libsvm");
        assert_eq!(
            recognized(&[memory(b""), memory(b" \n\r\n"), memory(CSV), memory(LIBSVM)]).unwrap(),
            "csv"
        );
        match recognized(&[memory(b"\n"), memory(b"")]) {
            Err(Error::NoRecords { files }) => assert_eq!(files, "f, f"),
            other => panic!("{other:?}"),
        }
        match recognized(&[memory(b"some words of a text\nand more of them\n")]) {
            Err(Error::FormatNotRecognized { file, known }) => {
                assert_eq!(file, "f");
                assert!(known.contains("libsvm, libffm, vw, dense, csv, text, edges"), "{known}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_refused_under_any_name() {
        let folder = Folder::new();
        let tar = [&[b'x'; 257][..], b"ustar\x0000", &[0; 248]].concat();
        for (bytes, what) in [(&tar[..], "a tar archive"), (b"1,2\r3,4\r5,6", "CR alone")] {
            let file = [folder.file("a.csv", bytes)];
            let text = recognized(&file).expect_err("no lines").to_string();
            assert!(text.contains(what) && text.contains("a.csv"), "{text}");
            let again = FormatTable::builtin().recognize_for_schema(&file, "csv").err().expect("no lines");
            assert!(again.to_string().contains(what), "{again}");
        }
    }

    #[test]
    fn later_files_have_the_format_of_training_unless_they_say_another() {
        let folder = Folder::new();
        for (name, bytes, known, expected) in [
            // The extension of the format of training, and of another format that recognizes the bytes.
            ("a.csv", LIBSVM, "csv", "csv"),
            ("a.svm", LIBSVM, "csv", "libsvm"),
            // Only the format of training recognizes these bytes.
            ("a.svm", CSV, "csv", "csv"),
            // Neither does.
            ("a.svm", b"some words\nof a text\n", "libsvm", "libsvm"),
            ("a.vw", b"some words\nof a text\n", "libsvm", "vw"),
            // Both do.
            ("b.dense", NUMBERS, "csv", "dense"),
            // Text without such an extension.
            ("a.txt", LIBSVM, "csv", "csv"),
            ("a", NUMBERS, "text", "text"),
            ("empty.svm", b"", "csv", "csv"),
        ] {
            let files = [folder.file(name, bytes)];
            assert_eq!(recognized_again(&files, known), expected, "{name} for a model of {known}");
        }
        let files = [folder.file("blank.svm", b" \n"), folder.file("c.svm", LIBSVM)];
        assert_eq!(recognized_again(&files, "csv"), "libsvm", "a blank file decides nothing");
        assert!(FormatTable::builtin().recognize_for_schema(&files, "gone").is_err());
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn bytes_that_are_no_text_decide_under_any_extension() {
        let folder = Folder::new();
        let parquet = [&b"PAR1\x15\x04\x00\x00"[..], &[0; 40], b"PAR1"].concat();
        let files = [folder.file("a.csv", &parquet)];
        assert_eq!(recognized(&files).unwrap(), "parquet");
        assert_eq!(recognized_again(&files, "csv"), "parquet");
        assert_eq!(recognized(&[folder.file("a.parquet", NUMBERS)]).unwrap(), "parquet");
    }

    #[test]
    fn a_row_of_a_user_comes_first_and_replaces_one_of_its_name() {
        let table = FormatTable::builtin();
        let count = table.rows().len();
        let added = "own";
        let own = FormatRow {
            name: added,
            recognize: |head| head.starts_with(b"1"),
            ..*table.find("csv").unwrap()
        };
        let table = table.with(own);
        assert_eq!((table.rows().len(), table.rows()[0].name), (count + 1, "own"));
        let file = [Input::memory("f", LIBSVM).expect("text")];
        assert_eq!(table.recognize(&file).unwrap().name, "own");
        let other = FormatRow { title: "another", ..*table.find("libsvm").unwrap() };
        let table = table.with(other);
        assert_eq!((table.rows().len(), table.rows()[0].title), (count + 1, "another"));
        match table.find("libsv") {
            Err(Error::UnknownFormat { name, nearest, known }) => {
                assert_eq!((name.as_str(), nearest.as_deref()), ("libsv", Some("libsvm")));
                assert!(known.starts_with("libsvm, own"), "{known}");
            }
            _ => panic!("there is no such format"),
        }
    }
}
