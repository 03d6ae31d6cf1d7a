//! Keeps membership, placement and jobs: a pure state machine, and the process around it.
//!
//! | module | contents |
//! |---|---|
//! | [`state`] | the state machine: alive members, queued and running jobs, watchers |
//! | [`job_link`] | the trait of what runs a job, and its link to the members of the job |
//! | [`runner`] | what the state machine and what runs a job say to each other |
//! | `sessions`, `session` | sessions of the parameter service: leases, matrices, placement of partitions |
//! | [`process`] | the process: sockets, one thread a job, the shutdown |
//! | [`record`], `state_folder` | what survives the master, and where it lies |
//! | [`settings`] | times and limits |

mod counts;
mod dispatch;
mod error;
mod injected_fault;
mod input;
mod job_calls;
pub mod job_link;
mod jobs;
mod leases;
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

pub use error::Error;
#[cfg(any(test, feature = "fault-injection"))]
pub use injected_fault::InjectedFault;
pub use job_link::{JobLink, Runner};
pub use process::{CheckedConfig, MasterConfig, run};
pub use runner::{JobEvent, JobResult, SessionCommand};
pub use session::{lanes_of, owners_of};
pub use settings::Settings;
pub use state::MasterState;
