//! Fuzz target: `fuzz::parquet`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::parquet(bytes));

#[cfg(not(fuzzing))]
fn main() {}
