//! Owns partitions: a pure state machine for each thread, and the process around it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the settings of a lane |
//! | [`state`] | [`LaneState`], which takes a time and a message and returns effects |
//! | `session`, `job`, `pull`, `push`, `clocks`, `barrier`, `rows`, `stats` | its concerns, one conversation a file |
//! | `connection`, `key_lists` | what it remembers of a connection |

mod barrier;
mod broken;
mod clocks;
pub mod config;
mod connection;
mod job;
mod key_lists;
mod pull;
mod push;
mod refusal;
mod rows;
mod session;
pub mod state;
mod stats;

#[cfg(feature = "broken")]
pub use broken::Broken;
pub use config::LaneConfig;
pub use state::LaneState;

#[cfg(test)]
mod tests;
