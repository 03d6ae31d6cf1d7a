//! A PS function as a WebAssembly module written in Rust: axpy, `into[0] = a x + y`, like `axpy.wat`. It needs no
//! package and no dependency:
//!
//! ```text
//! rustup target add wasm32-unknown-unknown
//! rustc --edition 2024 --crate-type cdylib -C opt-level=3 -C target-feature=+simd128 -C panic=abort -C strip=symbols \
//!     --target wasm32-unknown-unknown -o target/wasm_axpy.wasm examples/wasm_axpy.rs
//! cargo run -p wasm --example wasm_function -- target/wasm_axpy.wasm
//! ```
//!
//! `docs/wasm-functions.md` explains each export.

use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Number of rows to read.
#[unsafe(export_name = "reads:rust_axpy")]
pub extern "C" fn reads() -> i32 {
    2
}

/// Number of rows to write.
#[unsafe(export_name = "writes:rust_axpy")]
pub extern "C" fn writes() -> i32 {
    1
}

/// Number of values in the argument.
#[unsafe(export_name = "arguments:rust_axpy")]
pub extern "C" fn arguments() -> i32 {
    1
}

/// Whether every written value is written without reading its old value.
#[unsafe(export_name = "overwrites:rust_axpy")]
pub extern "C" fn overwrites() -> i32 {
    1
}

/// Whether a call is first tried on all partitions. It need not be: axpy fails only when a result is too large.
#[unsafe(export_name = "tries_first:rust_axpy")]
pub extern "C" fn tries_first() -> i32 {
    0
}

/// Changes a block of columns. Returns 0 for success.
///
/// # Safety
/// The server calls it with slices that do not overlap: `from_count` rows of `length` values one after another at
/// `from`, `into_count` such rows at `into`, and the values of the argument at `argument`.
#[unsafe(export_name = "change:rust_axpy:f32")]
pub unsafe extern "C" fn change(
    from: *const f32,
    from_count: usize,
    into: *mut f32,
    into_count: usize,
    length: usize,
    _start: u64,
    argument: *const f64,
    argument_count: usize,
) -> i32 {
    // SAFETY: the server guarantees these slices (see `# Safety` above).
    let (from, into, argument) = unsafe {
        let from = from_raw_parts(from, from_count * length);
        let into = from_raw_parts_mut(into, into_count * length);
        (from, into, from_raw_parts(argument, argument_count))
    };
    let a = argument[0];
    let (x, y) = from.split_at(length);
    for ((out, x), y) in into.iter_mut().zip(x).zip(y) {
        *out = (a * f64::from(*x) + f64::from(*y)) as f32;
    }
    0
}
