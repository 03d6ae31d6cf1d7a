//! Owns partitions: a pure state machine for each thread, and the process around it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the settings of a lane |
//! | [`state`] | [`LaneState`], which takes a time and a message and returns effects |
//! | `handshake`, `job_lifecycle`, `job`, `pull`, `push`, `function`, `clocks`, `barrier`, `rows`, `stats` | its concerns, one conversation a file |
//! | `foreign_session`, `staged_chunks`, `commit`, `batch` | sessions of foreign hosts: matrices that come and go, staged pushes |
//! | [`process`] | [`ServerConfig`], and [`run`], the process around the lanes |
//! | `connection`, `key_lists` | what it remembers of a connection |

mod barrier;
mod batch;
mod broken;
mod clocks;
mod commit;
pub mod config;
mod connection;
pub mod error;
mod foreign_session;
mod function;
mod handshake;
mod job;
mod job_lifecycle;
mod key_lists;
mod log;
pub mod process;
mod pull;
mod push;
mod refusal;
mod rows;
mod staged_chunks;
pub mod state;
mod stats;

#[cfg(feature = "broken")]
pub use broken::Broken;
pub use config::{LaneConfig, ModuleCache, ModuleLoader, OpenJobs};
pub use error::Error;
pub use process::{ServerConfig, run};
pub use state::LaneState;

#[cfg(test)]
mod tests;
