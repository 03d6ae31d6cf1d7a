//! What people call: train, predict, evaluate, export, apply, reproduce. The command line, programs and bindings of other
//! languages use this crate and none below it. Nothing is printed, nothing ends the process, and every error is a value.
//!
//! ```
//! use engine::{CsrArrays, RecordAttributes, Training};
//!
//! # fn main() -> Result<(), engine::Error> {
//! // Two records: features 3 and 7, and feature 7 alone.
//! let rows = CsrArrays {
//!     offsets: [0, 2, 3].into(),
//!     features: [3, 7, 7].into(),
//!     attributes: RecordAttributes { labels: [1.0, 0.0].into(), ..Default::default() },
//!     ..Default::default()
//! };
//! let model = Training::new("lr").set("epochs", 5).run(&rows.into())?;
//! let more = CsrArrays { offsets: [0, 1].into(), features: [3].into(), ..Default::default() };
//! assert!(model.predict(&more.into())?.values[0] > 0.5);
//! # Ok(())
//! # }
//! ```
//!
//! A run is the same as that of `seraphim train` in one process: the same data, settings and seed give the same bytes.
//! `docs/library.md` has examples, also of loops of your own over parameters.
//!
//! | module | contents |
//! |---|---|
//! | [`training`], [`trained_model`], [`dataset`], [`tables`] | training and models in a program; formats, families and functions |
//! | [`algorithms`] | the algorithms and their parameters, for other programs |
//! | [`job_file`], [`train`], [`predict`], [`evaluate`] | the jobs of the commands: read, trained, scored |
//! | [`parameters`] | matrices for a loop of a program's own, in its process or on servers of this machine |
//! | [`cluster`] | the processes of a cluster, and the clients of a master |
//! | [`export`], [`import`], [`apply`], [`recommend`], [`reproduce`] | what else is done with a model |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]

pub mod algorithms;
pub mod apply;
pub mod cluster;
mod comparison;
pub mod dataset;
pub mod evaluate;
pub mod export;
pub mod import;
pub mod job_file;
mod options;
pub mod parameters;
pub mod predict;
pub mod recommend;
pub mod reproduce;
pub mod tables;
pub mod train;
pub mod trained_model;
pub mod training;

#[cfg(feature = "parquet")]
pub use data::arrays::RecordBatch;
pub use data::arrays::{Buffer, CsrArrays, DenseArrays, Numbers, RecordAttributes};
pub use driver::epoch_monitor::metrics_text;
pub use driver::evaluation::Evaluation;
pub use driver::report::{EpochLine, Report};
pub use driver::{Error, amounts, error, labels, progress, report};
pub use job::{self, Exit};
pub use runtime::score::Scores;
pub use runtime::{self, Environment, interrupt, machine, outputs, program};
pub use {algo, checkpoint, data, kubernetes, math, matrix, model, store, yarn};

pub use self::dataset::Data;
pub use self::recommend::LoadedRecommender;
pub use self::tables::Tables;
pub use self::trained_model::TrainedModel;
pub use self::training::{Flow, Training};

/// PS functions as WebAssembly modules; `wasm::upload` makes the function table of a job from files.
#[cfg(feature = "wasm")]
pub use runtime::wasm;
