//! Fuzz target: `fuzz::safetensors`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::safetensors(bytes));

#[cfg(not(fuzzing))]
fn main() {}
