//! What a user asks for: the texts of flags, job files and programs become one typed, checked job. Here are no files, no
//! sockets, and no algorithm.
//!
//! | module | contents |
//! |---|---|
//! | [`keys`] | the table of keys: each is a flag and a key of a job file |
//! | [`raw`] | the texts of a job by key; flags and job file are merged here |
//! | [`training`], `train_check`, [`scoring`] | the checked jobs; [`input`], [`holdout`], [`checkpoints`], [`local_data`]: parts of them |
//! | [`submission`] | jobs for the members of a cluster |
//! | [`modules`] | WebAssembly modules, which are sent with a job |
//! | [`check`] | texts become values: the check of each kind is written once |
//! | [`error`], [`exit`] | what is wrong with a job; the exit codes of commands |

pub mod check;
pub mod checkpoints;
pub mod error;
pub mod exit;
pub mod holdout;
pub mod input;
pub mod keys;
pub mod local_data;
pub mod modules;
pub mod raw;
pub mod scoring;
pub mod submission;
#[cfg(test)]
mod tests;
mod train_check;
pub mod training;

pub use self::error::Error;
pub use self::exit::Exit;
pub use self::holdout::Holdout;
pub use self::input::{ClusterSize, Input, RunOptions};
pub use self::modules::Modules;
pub use self::raw::RawJob;
pub use self::scoring::{EvaluateJob, PredictJob, ScoringJob};
pub use self::training::{SlowWorkerPolicy, TrainJob, WrittenPaths};
