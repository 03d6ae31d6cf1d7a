//! Training on servers and workers. The **driver** runs beside the master in one thread per job: it has the workers
//! inspect the data, creates the matrices, starts the tasks, decides after every epoch, and has a worker save the
//! model. It handles neither records nor parameters. **Workers** do the work that the driver requests.
//!
//! | file | contents |
//! |---|---|
//! | [`messages`] | messages between driver and workers |
//! | [`driver`] | one job as the driver runs it |
//! | `job_layout` | which lanes own the partitions of a job |
//! | [`worker`] | a worker and its jobs; `worker_job`: one job on one worker |
//! | [`task_runner`] | the tasks of a job on one worker |
//! | `stats_poller` | what `status` shows of a running job |
//! | `metrics_endpoint` | the metrics of a worker |
//! | `salvage`, `shutdown_barrier` | the end of a job whose master is lost |
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
