//! Loading a file that is not a module of functions is an error that names the export and what was expected.

mod common;

use common::{module, module_with};
use matrix::FunctionTable;
use wasm::Limits;

const META: &str = r#"(func (export "reads:f") (result i32) (i32.const 1))
    (func (export "writes:f") (result i32) (i32.const 1))"#;
const CODE: &str =
    r#"(func (export "change:f:f32") (param i32 i32 i32 i32 i32 i64 i32 i32) (result i32) (i32.const 0))"#;
const MEMORY: &str = r#"(memory (export "memory") 1)"#;

/// Returns the error of loading a module with these fields.
fn refused(fields: &[&str]) -> String {
    let text = format!("(module {})", fields.join("\n"));
    module_with(&text, &Limits::default()).expect_err(&text).to_string()
}

fn holds(error: &str, words: &[&str]) {
    assert!(words.iter().all(|word| error.contains(word)), "{error} lacks {words:?}");
}

#[test]
fn a_good_module_is_taken() {
    assert_eq!(module(&format!("(module {MEMORY}{META}{CODE})")).names(), ["f"]);
}

#[test]
fn a_file_that_is_not_webassembly_is_told() {
    for bytes in [&b""[..], b"\x7fELF", b"(module)", b"\0as"] {
        let error = wasm::load(bytes, &Limits::default()).expect_err("no module").to_string();
        holds(&error, &["no valid WebAssembly module", "it begins with"]);
    }
    let cut = wasm::load(b"\0asm\x01\0\0\0\x01\x05", &Limits::default()).expect_err("cut off").to_string();
    holds(&cut, &["no valid WebAssembly module"]);
}

#[test]
fn imports_are_refused_by_name() {
    let error = refused(&[
        r#"(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
        r#"(import "env" "clock" (func (result i64)))"#,
        MEMORY,
        META,
        CODE,
    ]);
    holds(&error, &["wasi_snapshot_preview1.fd_write", "env.clock", "without WASI"]);
}

#[test]
fn a_file_above_the_limit_is_refused() {
    let limits = Limits { module_bytes: 100, ..Limits::default() };
    let error = module_with(&format!("(module {MEMORY}{META}{CODE})"), &limits).expect_err("it is long");
    holds(&error.to_string(), &["at most 100"]);
}

#[test]
fn memory_above_the_limit_is_refused() {
    // A memory of 4 GiB, and a 64-bit memory for 100 GB.
    holds(
        &refused(&[r#"(memory (export "memory") 65536)"#, META, CODE]),
        &["cannot be started", "67108864 bytes"],
    );
    holds(&refused(&[r#"(memory (export "memory") i64 1600000)"#, META, CODE]), &["no valid", "memory64"]);
}

#[test]
fn a_start_that_does_not_end_is_stopped() {
    let error = refused(&[MEMORY, META, CODE, "(func $s (loop $l (br $l)))", "(start $s)"]);
    holds(&error, &["cannot be started", "its start was stopped after 1000000 units of fuel"]);
}

#[test]
fn exports_that_lack_are_named() {
    holds(&refused(&[META, CODE]), &["\"memory\"", "not there"]);
    holds(&refused(&[MEMORY]), &["no function", "change:NAME:TYPE"]);
    let writes = r#"(func (export "writes:f") (result i32) (i32.const 1))"#;
    holds(&refused(&[MEMORY, CODE, writes]), &["\"reads:f\"", "not there", "number of rows"]);
    let read = r#"(func (export "read:f:f32") (param i32 i32 i32 i64 i32 i32) (result i64) (i64.const 0))"#;
    let reads = r#"(func (export "reads:f") (result i32) (i32.const 1))"#;
    holds(&refused(&[MEMORY, read, reads]), &["\"merge:f\"", "not there"]);
}

#[test]
fn exports_of_another_type_are_named() {
    let short = r#"(func (export "change:f:f32") (param i32) (result i32) (i32.const 0))"#;
    holds(&refused(&[MEMORY, META, short]), &["\"change:f:f32\"", "another type"]);
    let global = r#"(global (export "change:f:f32") i32 (i32.const 0))"#;
    holds(&refused(&[MEMORY, META, global]), &["\"change:f:f32\"", "another type"]);
    holds(
        &refused(&[r#"(global (export "memory") i32 (i32.const 0))"#, META, CODE]),
        &["\"memory\"", "no memory"],
    );
}

#[test]
fn names_that_are_nearly_right_are_told() {
    let typo = r#"(func (export "chnage:g:f32"))"#;
    holds(&refused(&[MEMORY, META, CODE, typo]), &["chnage:g:f32", "change"]);
    let alone = r#"(func (export "version:g") (result i32) (i32.const 1))"#;
    holds(&refused(&[MEMORY, META, CODE, alone]), &["version:g", "no code"]);
    let two =
        r#"(func (export "terms:f:f32") (param i32 i32 i32 i32 i64 i32 i32) (result i32) (i32.const 0))"#;
    holds(&refused(&[MEMORY, META, CODE, two]), &["terms:f:f32", "one kind"]);
}

#[test]
fn a_name_that_a_built_in_has_is_refused() {
    let text = format!("(module {MEMORY}{META}{CODE})").replace(":f", ":axpy").replace("axpy32", "f32");
    let error = module(&text).register(&mut FunctionTable::builtin()).expect_err("there is an axpy");
    holds(&error.to_string(), &["\"axpy\"", "another name"]);
}
