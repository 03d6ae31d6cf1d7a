//! Module files survive encoding and decoding, and every process makes the same function table from them.

mod common;

use std::path::PathBuf;

use wasm::module_file::{ModuleFile, load_functions, read_all, table_with_builtins};
use wasm::{Error, Limits};

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("a folder for tests");
    path
}

fn axpy() -> Vec<u8> {
    wat::parse_str(include_str!("../../../examples/axpy.wat")).expect("good text")
}

fn names(table: &matrix::FunctionTable) -> Vec<String> {
    table.entries().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_module_gives_the_same_functions_after_its_travel() {
    let path = file("travels.wasm", &axpy());
    let limits = Limits::default();
    let here = load_functions(&[&path], &limits).expect("a good file");
    let uploads = read_all(&[&path], &limits).expect("a good file");
    let there = ModuleFile::decode(&uploads[0].encode()).expect("whole bytes");
    assert_eq!(there, uploads[0]);
    let there = table_with_builtins(&[there], &limits).expect("a good module");
    assert!(names(&here).iter().any(|name| name == "wat_axpy"));
    assert_eq!(names(&here), names(&there));
}

#[test]
fn a_broken_copy_is_told() {
    let upload = ModuleFile::read(&file("breaks.wasm", &axpy()), &Limits::default()).expect("a good file");
    let mut bytes = upload.encode();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let error = ModuleFile::decode(&bytes).expect_err("another byte").to_string();
    assert!(error.contains("digest") && error.contains("breaks.wasm"), "{error}");
    assert!(ModuleFile::decode(&bytes[..middle]).is_err());
}

#[test]
fn files_that_are_no_modules_are_named() {
    let limits = Limits::default();
    let error = load_functions(&["nowhere.wasm"], &limits).expect_err("no file").to_string();
    assert!(error.contains("nowhere.wasm") && error.contains("cannot be read"), "{error}");
    let error = load_functions(&[file("text.wasm", b"(module)")], &limits).expect_err("text").to_string();
    assert!(error.contains("text.wasm") && error.contains("no valid WebAssembly"), "{error}");
    let short = Limits { module_bytes: 10, ..limits };
    let error = load_functions(&[file("large.wasm", &axpy())], &short).expect_err("too large");
    assert!(matches!(error.error, Error::TooLarge { limit: 10, .. }), "{error}");
    let path = file("twice.wasm", &axpy());
    let error = load_functions(&[&path, &path], &limits).expect_err("twice").to_string();
    assert!(error.contains("\"wat_axpy\"") && error.contains("registered already"), "{error}");
}
