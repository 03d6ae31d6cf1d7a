//! Fuzz target: `fuzz::frame`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::frame(bytes));

#[cfg(not(fuzzing))]
fn main() {}
