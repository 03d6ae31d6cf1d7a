//! Runs of jobs: the worker's side of a job, in one process and on a cluster; sockets, processes, and the master's runner.
//! A training has one [`driver`] and one or more [`worker`]s, in one process ([`local`]) or on a [`cluster`].
//!
//! | module | contents |
//! |---|---|
//! | [`run_loop`] | carries out the effects of a driver |
//! | [`worker`] | what a worker of a job does |
//! | [`local`], [`cluster`] | jobs in one process; on servers and workers |
//! | [`score`], [`score_columns`], [`score_output`], [`metric_parts`], [`explain`] | scoring in parallel and in order, and what is written |
//! | [`input`], [`task_streams`], [`task_count`] | the data of a training, divided over its tasks |
//! | [`resume`], [`saved_job`], [`model_writer`] | what a training continues from; the model that it writes |
//! | [`failures`], `coverage_agent`, [`coverage_recorder`] | what is recorded while tasks run |
//! | [`environment`], [`interrupt`], [`machine`], [`program`], [`outputs`], [`local_data`], [`modules`] | what a run has around it |
//! | [`errors`] | errors of other processes |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod cluster;
mod coverage_agent;
pub mod coverage_recorder;
pub mod environment;
pub mod errors;
pub mod explain;
pub mod failures;
pub mod input;
pub mod interrupt;
pub mod local;
pub mod local_data;
pub mod machine;
pub mod metric_parts;
pub mod model_writer;
pub mod modules;
pub mod outputs;
#[cfg(feature = "parquet")]
mod parquet;
pub mod program;
pub mod resume;
pub mod run_loop;
pub mod saved_job;
pub mod score;
pub mod score_columns;
pub mod score_output;
pub mod task_count;
pub mod task_streams;
pub mod worker;

pub use self::environment::{Environment, load_model};

/// PS functions as WebAssembly modules.
#[cfg(feature = "wasm")]
pub use wasm;
