//! Fuzz target: `fuzz::libffm`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::libffm(bytes));

#[cfg(not(fuzzing))]
fn main() {}
