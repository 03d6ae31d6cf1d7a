//! Fuzz target: `fuzz::uci_bags`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::uci_bags(bytes));

#[cfg(not(fuzzing))]
fn main() {}
