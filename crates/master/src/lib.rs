//! Keeps membership, placement and jobs: a pure state machine, and the process around it.
//!
//! | module | contents |
//! |---|---|
//! | [`state`] | the state machine: alive members, queued and running jobs, watchers |
//! | [`runner`] | the trait of what runs a job, and its link to the members of the job |
//! | `sessions`, `session` | sessions of the parameter service: leases, matrices, placement of partitions |
//! | [`process`] | the process: sockets, one thread a job, the shutdown |
//! | [`record`], `state_folder` | what survives the master, and where it lies |
//! | [`settings`] | times and limits |

mod broken;
mod error;
mod input;
mod jobs;
mod members;
mod messages;
pub mod process;
pub mod record;
mod register;
pub mod runner;
mod service;
mod session;
mod sessions;
pub mod settings;
mod start;
pub mod state;
mod state_folder;
mod status;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "broken"))]
pub use broken::Broken;
pub use error::Error;
pub use process::{CheckedConfig, MasterConfig, run};
pub use runner::{JobEvent, JobLink, JobResult, Runner, SessionCommand};
pub use session::{lanes_of, owners_of};
pub use settings::Settings;
pub use state::MasterState;
