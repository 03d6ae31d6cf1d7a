//! Where a job runs, and what earlier runs of it have found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algo::Families;
use rpc::message::{JobId, Member};

use crate::job_progress::Incidents;
use crate::messages::BegunTraining;
use crate::progress::ProgressListener;

/// Times for a record in seconds, by the name of the worker.
pub type RecordTimes = BTreeMap<String, f64>;

/// A worker of a job.
#[derive(Clone, Debug)]
pub struct WorkerInfo {
    pub id: u32,
    /// Its name in messages to the user; none for the only worker of a job in one process.
    pub name: Option<String>,
    /// Number of tasks that it runs well at the same time; at least 1.
    pub slots: u32,
}

/// Where a job runs.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    pub job: JobId,
    /// At least one.
    pub workers: Vec<WorkerInfo>,
    pub parameters: ParameterPlace,
    /// Number of tasks that can compute at once, for the report.
    pub threads: usize,
    /// Learns of the progress, unless the job is quiet.
    pub progress: Arc<dyn ProgressListener>,
    pub families: Families,
    /// The number of the run of the job, from 1: a job that has lost a member is run again.
    pub run: u32,
    /// What an earlier run has begun.
    pub begun: Option<BegunTraining>,
    /// The times for a record that earlier runs have measured: the tasks are spread over the workers by them.
    pub record_times: RecordTimes,
    /// How often tasks have moved to other workers in earlier runs.
    pub move_count: u32,
    /// How long the job ran before this run.
    pub earlier_time: Duration,
    /// What happened in earlier runs.
    pub incidents: Incidents,
}

/// Where the parameters of a job are.
#[derive(Clone, Debug)]
pub enum ParameterPlace {
    /// In the process of the only worker.
    Process {
        /// Number of tasks that compute at the same time.
        threads: u32,
        /// Memory of the machine in bytes, if it is known.
        memory_bytes: Option<u64>,
    },
    Servers(Vec<Member>),
}
