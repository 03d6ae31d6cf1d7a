//! Keeps membership, placement and jobs: a pure state machine, and the process around it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`state`] | the state machine: who lives, which jobs wait and run, who watches |
//! | [`runner`] | what runs a job: a trait, and the link that it has to the members of the job |
//! | `sessions`, `session` | sessions of the parameter service: leases, matrices, where their partitions lie |
//! | [`process`] | the process: sockets, one thread a job, the end |
//! | [`settings`] | times and limits |

mod broken;
mod error;
mod input;
mod jobs;
mod members;
mod messages;
pub mod process;
mod register;
pub mod runner;
mod service;
mod session;
mod sessions;
pub mod settings;
mod start;
pub mod state;
mod status;
#[cfg(test)]
mod tests;

#[cfg(feature = "broken")]
pub use broken::Broken;
pub use error::Error;
pub use process::{CheckedConfig, MasterConfig, run};
pub use runner::{JobEvent, JobLink, JobResult, Runner, SessionCommand};
pub use session::lanes_of;
pub use settings::Settings;
pub use state::MasterState;
