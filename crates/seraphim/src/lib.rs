//! The library behind the command line: runs in one process and on clusters, model directories, commands.
//!
//! | module | contents |
//! |---|---|
//! | [`cli`] | the commands, one file each |
//! | [`job`] | checked jobs; one table of keys for flags and job files |
//! | [`run`] | training, prediction and evaluation, in one process and on clusters |
//! | [`modules`] | WebAssembly modules with PS functions, which are sent with a job |
//! | [`model`] | the model directory: manifest, safetensors, dictionary |
//! | [`report`], [`progress`] | what a run prints and writes, for programs and for people |
//! | [`generate`] | synthetic data with a known best model |
//! | [`error`], [`exit`] | the errors of this crate, and the exit code of each |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod cli;
pub mod error;
pub mod exit;
pub mod generate;
pub mod interrupt;
pub mod job;
mod labels;
mod machine;
pub mod modules;
mod outputs;
pub mod progress;
pub mod report;
pub mod run;
mod terminal_bar;

/// PS functions as WebAssembly modules; `wasm::upload` makes the function table of a job from files.
#[cfg(feature = "wasm")]
pub use wasm;

pub use error::Error;
pub use exit::Exit;
pub use model;
