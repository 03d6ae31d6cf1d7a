//! The library's front door: local runs, model directories, the command line.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the commands, one file each |
//! | [`job`] | what is asked for: one table of keys for flags and job file |
//! | [`run`] | training, scoring and evaluation in one process |
//! | [`modules`] | WebAssembly modules with functions, which travel with a job |
//! | [`model`] | the model directory: manifest, safetensors, dictionary |
//! | [`report`], [`progress`] | what a run says, to machines and to people |
//! | [`generate`] | synthetic data with a known best model |
//! | [`error`], [`exit`] | what can go wrong, and the exit code of each |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod cli;
pub mod error;
pub mod exit;
mod file_identity;
pub mod generate;
pub mod interrupt;
pub mod job;
mod labels;
mod machine;
pub mod model;
pub mod modules;
mod outputs;
pub mod progress;
pub mod report;
pub mod run;
mod terminal_bar;

/// PS functions as WebAssembly modules; `wasm::upload` makes the table of a job from files.
#[cfg(feature = "wasm")]
pub use wasm;

pub use error::Error;
pub use exit::Exit;
