//! Tests of `table.rs`.

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
    assert_eq!(recognized(&[memory(b""), memory(b" \n\r\n"), memory(CSV), memory(LIBSVM)]).unwrap(), "csv");
    match recognized(&[memory(b"\n"), memory(b"")]) {
        Err(Error::NoRecords { files }) => assert_eq!(files, "f, f"),
        other => panic!("{other:?}"),
    }
    match recognized(&[memory(b"some words of a text\nand more of them\n")]) {
        Err(Error::FormatNotRecognized { file, known }) => {
            assert_eq!(file, "f");
            assert!(known.contains("libsvm, libffm, vw, uci_bags, dense, csv, text, edges"), "{known}");
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
    let own =
        FormatRow { name: added, recognize: |head| head.starts_with(b"1"), ..*table.find("csv").unwrap() };
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
