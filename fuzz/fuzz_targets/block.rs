//! Fuzz target: `fuzz::block`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::block(bytes));

#[cfg(not(fuzzing))]
fn main() {}
