//! Training on servers and workers. The **driver** runs beside the master, one thread a job: it has the data looked at,
//! the matrices made, the tasks started, every epoch judged and the model saved, and sees neither records nor
//! parameters. **Workers** do all of that on its word.
//!
//! | file | what it holds |
//! |---|---|
//! | [`say`] | what driver and workers say to each other |
//! | [`driver`] | the course of a job |
//! | `place` | where the parameters of a job lie |
//! | [`worker`] | a worker: what it does with what it hears; `part`: its part of one job |
//! | [`tasks`] | the tasks of a job in one worker |
//! | `watch` | what `status` shows of a job under way |
//! | `face` | the metrics of a worker |
//! | `orphan`, `meeting` | the end of a job whose master is gone |
//! | [`servers`] | whole matrices on all lanes: open, import, export, keep, close; `pages`: their rows |
//! | [`service`], `session` | the parameter service: its processes, the runner of one session |
//! | [`launch`] | master, servers and workers as processes of this machine |

pub mod driver;
mod face;
pub mod launch;
mod meeting;
mod orphan;
mod pages;
mod part;
mod place;
pub mod say;
pub mod servers;
pub mod service;
mod session;
pub mod sockets;
pub mod tasks;
mod watch;
#[cfg(test)]
mod wide_rows_tests;
pub mod worker;
