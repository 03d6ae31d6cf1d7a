//! Jobs and how they run, in one process and on a cluster. Here is what the command line does without its flags and
//! printing, for every program that runs jobs.
//!
//! | module | contents |
//! |---|---|
//! | [`job`] | checked jobs; one table of keys for flags and job files |
//! | [`run`] | training, prediction and evaluation, in one process and on clusters |
//! | [`modules`] | WebAssembly modules with PS functions, which are sent with a job |
//! | [`progress`], [`report`] | what a job tells while it runs, and at its end |
//! | [`interrupt`] | Ctrl-C, and the flag by which other programs stop a run |
//! | [`outputs`] | whether a command may write to a path |
//! | [`labels`], [`amounts`] | labels and numbers as people read them |
//! | [`machine`] | cores and memory |
//! | [`error`], [`exit`] | the errors of this crate, and the exit code of each |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod amounts;
pub mod error;
pub mod exit;
pub mod interrupt;
pub mod job;
pub mod labels;
pub mod machine;
pub mod modules;
pub mod outputs;
pub mod progress;
pub mod report;
pub mod run;

/// PS functions as WebAssembly modules; `wasm::upload` makes the function table of a job from files.
#[cfg(feature = "wasm")]
pub use wasm;

pub use error::Error;
pub use exit::Exit;
