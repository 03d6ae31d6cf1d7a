//! Fuzz target: `fuzz::job_toml`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::job_toml(bytes));

#[cfg(not(fuzzing))]
fn main() {}
