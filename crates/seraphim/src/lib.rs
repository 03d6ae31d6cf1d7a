//! The commands, and under the same name what they run: jobs, the model directory, reports.
//!
//! | module | contents |
//! |---|---|
//! | [`library`] | training, prediction and evaluation for programs |
//! | [`cli`] | the commands, one file each |
//! | [`progress`] | what a run prints for people while it runs |
//! | [`generate`] | synthetic data with a known best model |
//! | [`job`], [`run`], [`modules`], [`report`], [`interrupt`], [`error`], [`exit`] | the crate [`cluster`]: jobs and how they run |
//! | [`model`] | the crate of that name: the model directory |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod cli;
pub mod generate;
pub mod library;
pub mod progress;
mod terminal_bar;

pub use cluster::{Error, Exit, error, exit, interrupt, job, modules, report, run};
pub use model;

use cluster::{labels, machine, outputs};

/// PS functions as WebAssembly modules; `wasm::upload` makes the function table of a job from files.
#[cfg(feature = "wasm")]
pub use cluster::wasm;
