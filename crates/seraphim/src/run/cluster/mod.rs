//! Training on servers and workers. The **driver** runs beside the master, one thread a job: it has the data looked at,
//! the matrices made, the tasks started, every epoch judged and the model saved, and sees neither records nor
//! parameters. **Workers** do all of that on its word.
//!
//! | file | what it holds |
//! |---|---|
//! | [`say`] | what driver and workers say to each other |
//! | [`driver`] | the course of a job |
//! | `job_layout` | where the parameters of a job lie |
//! | [`worker`] | a worker: what it does with what it hears; `worker_job`: its part of one job |
//! | [`task_runner`] | the tasks of a job in one worker |
//! | `stats_poller` | what `status` shows of a job under way |
//! | `metrics_endpoint` | the metrics of a worker |
//! | `salvage`, `shutdown_barrier` | the end of a job whose master is gone |
//! | [`servers`] | whole matrices on all lanes: open, import, export, keep, close; `pages`: their rows |
//! | [`parameter_service`], `session` | the parameter service: its processes, the runner of one session |
//! | [`launch`] | master, servers and workers as processes of this machine |

pub mod driver;
mod job_layout;
pub mod launch;
pub mod messages;
mod metrics_endpoint;
mod pages;
pub mod parameter_service;
mod salvage;
pub mod servers;
mod session;
mod shutdown_barrier;
pub mod socket_folder;
mod stats_poller;
pub mod task_runner;
#[cfg(test)]
mod wide_rows_tests;
pub mod worker;
mod worker_job;
