//! Fuzz target: `fuzz::libsvm`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::libsvm(bytes));

#[cfg(not(fuzzing))]
fn main() {}
