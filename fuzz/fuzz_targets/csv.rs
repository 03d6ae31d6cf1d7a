//! Fuzz target: `fuzz::csv`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::csv(bytes));

#[cfg(not(fuzzing))]
fn main() {}
