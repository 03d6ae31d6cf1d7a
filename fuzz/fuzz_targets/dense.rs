//! Fuzz target: `fuzz::dense`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::dense(bytes));

#[cfg(not(fuzzing))]
fn main() {}
