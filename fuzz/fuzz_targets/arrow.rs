//! Fuzz target: `fuzz::arrow`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::arrow(bytes));

#[cfg(not(fuzzing))]
fn main() {}
