//! Owns partitions: a pure state machine for each thread, and the process around it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the settings of a lane |
//! | [`state`] | [`LaneState`], which takes a time and a message and returns effects |
//! | `session`, `open`, `job`, `pull`, `push`, `function`, `clocks`, `barrier`, `rows`, `stats` | its concerns, one conversation a file |
//! | `foreign`, `staged`, `commit`, `batch` | sessions of foreign hosts: matrices that come and go, staged pushes |
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
mod foreign;
mod function;
mod job;
mod key_lists;
mod log;
mod open;
pub mod process;
mod pull;
mod push;
mod refusal;
mod rows;
mod session;
mod staged;
pub mod state;
mod stats;

#[cfg(feature = "broken")]
pub use broken::Broken;
pub use config::{JobModules, LaneConfig, ModulesOf, OpenJobs};
pub use error::Error;
pub use process::{ServerConfig, run};
pub use state::LaneState;

#[cfg(test)]
mod tests;
