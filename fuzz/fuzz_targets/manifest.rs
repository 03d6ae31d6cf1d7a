//! Fuzz target: `fuzz::manifest`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::manifest(bytes));

#[cfg(not(fuzzing))]
fn main() {}
