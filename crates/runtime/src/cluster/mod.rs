//! Training on servers and workers. The driver of a job runs beside the master, in one thread per job.
//!
//! | file | contents |
//! |---|---|
//! | [`job_runner`] | connects drivers with the master, the workers and the servers |
//! | [`master_process`], [`server_process`], [`server_log`] | the processes of a master and a server |
//! | [`announcement`], [`single_job`] | a master that a supervisor starts on any machine, for one job |
//! | [`worker`] | the process of a worker and its jobs |
//! | `server_parameters`, `driver_parameters` | the servers of a job as its tasks and its driver reach them |
//! | `lane_clients` | requests of code that is not a task, to all lanes or to one |
//! | [`servers`] | whole matrices on all lanes: open, import, export, snapshots, close; `pages`: their rows |
//! | `stats_poller` | what `status` shows of a running job |
//! | `metrics_endpoint` | the metrics of a worker |
//! | [`parameter_service`], `session`, `session_checkpoints` | the parameter service: its processes, the runner of one session, its checkpoints |
//! | [`local_training`] | tasks in this process, servers as processes of this machine |
//! | [`launch`] | master, servers and workers as processes of this machine |

pub mod announcement;
mod driver_parameters;
pub mod job_runner;
mod lane_clients;
pub mod launch;
pub mod local_training;
pub mod master_process;
pub mod metrics_endpoint;
pub mod parameter_service;
pub mod server_log;
mod server_parameters;
pub mod server_process;
pub mod servers;
mod session;
mod session_checkpoints;
pub mod single_job;
pub mod socket_folder;
mod stats_poller;
#[cfg(test)]
mod wide_rows_tests;
pub mod worker;

/// Sessions of programs.
pub use ::worker::{ParameterSession, PushIdentity};
