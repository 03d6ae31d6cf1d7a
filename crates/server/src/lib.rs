//! Owns partitions: a pure state machine for each thread, and the process around it.
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | the settings of a lane |
//! | [`state`] | [`LaneState`], which takes a time and a message and returns effects |
//! | `handshake`, `job_lifecycle`, `job` | opening of connections and jobs, the state of a job |
//! | `pull`, `push`, `function`, `clocks`, `barrier`, `rows` | requests of tasks and tools, one kind a file |
//! | `stats`, `log` | counters and log entries |
//! | `foreign_session`, `staged_chunks`, `commit`, `batch` | sessions of foreign hosts, with staged pushes |
//! | `changes` | the changes of a lane as frames: recorded on one lane, repeated on another |
//! | [`write_ahead`] | the write-ahead log: what changes a lane is written before it is acknowledged |
//! | [`replica`] | replicated jobs: a second server has the same partitions, and takes over |
//! | [`process`] | [`ServerConfig`], and [`run`], the process around the lanes |
//! | `connection`, `key_lists` | the state that a lane keeps for a connection |

mod barrier;
mod batch;
mod changes;
mod clocks;
mod closed_jobs;
mod commit;
pub mod config;
mod connection;
pub mod error;
mod foreign_session;
mod function;
mod handshake;
mod injected_fault;
mod job;
mod job_lifecycle;
mod key_lists;
mod log;
mod memory;
pub mod process;
mod pull;
mod push;
mod ready_work;
mod refusal;
pub mod replica;
mod rows;
mod staged_chunks;
pub mod state;
mod stats;
pub mod write_ahead;

pub use config::{LaneConfig, ModuleCache, ModuleLoader, OpenJobs};
pub use error::Error;
#[cfg(any(test, feature = "fault-injection"))]
pub use injected_fault::InjectedFault;
pub use process::{ServerConfig, run};
pub use replica::{ClusterEvent, ClusterEvents};
pub use state::LaneState;

#[cfg(test)]
mod tests;
