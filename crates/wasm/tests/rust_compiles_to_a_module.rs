//! The Rust example compiles to a module with the command in its first lines, and computes what the built-in function
//! computes. The test needs the target wasm32-unknown-unknown (`rustup target add wasm32-unknown-unknown`) and is
//! skipped without it.

#![allow(clippy::print_stdout, reason = "says that it is skipped")]

mod common;
#[path = "../../seraphim/tests/program/common/skip.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

use common::{M, agent_of, change, f32_row, fill, numbers};
use matrix::function::zip::Axpy;
use matrix::{Agent as _, ElementType, FunctionCall, Values};
use wasm::Limits;

const TARGET: &str = "wasm32-unknown-unknown";

/// Whether the standard library of the target is installed.
fn has_target() -> bool {
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    })
}

#[test]
fn the_example_in_rust_has_the_bytes_of_the_built_in() {
    if !has_target() {
        skip::skip(&format!("the target {TARGET} is not installed"));
        return;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm_axpy.wasm");
    let words = "--edition 2024 --crate-type cdylib -C opt-level=3 -C target-feature=+simd128 -C panic=abort \
                 -C strip=symbols --target wasm32-unknown-unknown";
    let status = Command::new("rustc")
        .args(words.split_whitespace())
        .arg("-o")
        .arg(&out)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/wasm_axpy.rs"))
        .status();
    assert!(status.expect("rustc is there").success());
    let bytes = std::fs::read(&out).expect("rustc wrote it");
    let module = wasm::load(&bytes, &Limits::default()).expect("a good module");
    let mut agent = agent_of(&module, ElementType::F32, 2);
    for row in [0, 1] {
        let values: Vec<f32> = numbers(f64::from(row)).iter().map(|x| *x as f32).collect();
        fill(&mut agent, row, Values::F32(&values));
    }
    change(&mut agent, "rust_axpy", &[0, 1], &[2], &[0.3]).expect("rows that fit");
    agent.push_function(M, &[FunctionCall::push(&Axpy, &[0, 1], &[3], &0.3)]).expect("rows that fit");
    assert_eq!(f32_row(&mut agent, 2), f32_row(&mut agent, 3));
}
