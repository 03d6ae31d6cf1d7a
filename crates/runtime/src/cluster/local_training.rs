//! Training of a program whose tasks run in this process, with the parameters on servers of this machine. Records in memory need not be
//! sent to anybody.

use std::sync::Arc;

use driver::config::ParameterPlace;
use driver::progress::ProgressListener;
use driver::report::Report;
use driver::{Error, ParametersRequest, SnapshotPurpose};
use job::TrainJob;
use matrix::{Agent, FunctionTable};
use model::Model;
use rpc::layout::JobLayout;
use rpc::message::Durability;
use serde_json::{Map, Value};

use crate::cluster::driver_parameters::request_of;
use crate::cluster::launch::LocalServers;
use crate::cluster::servers::Servers;
use crate::environment::Environment;
use crate::local;
use crate::modules::extend_table;
use crate::run_loop::Parameters;
use crate::worker::{MatrixAccess, TaskParameters};

/// Trains a model that stays in memory, with `server_count` servers that are started for it and end with it.
///
/// # Errors
/// Also if a server ends: nothing starts it again.
pub fn train_in_memory(
    job: &TrainJob,
    server_count: u32,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<(Report, Model), Error> {
    if job.durability != Durability::Checkpoint {
        return Err(Error::request(
            format!("durability={} of a training whose tasks are in this process", job.durability.name()),
            "leave it out, or submit the job to a cluster",
        ));
    }
    let processes = Arc::new(LocalServers::start(server_count, environment.program, environment.interrupt)?);
    let functions = Arc::new(extend_table(job.modules(), environment.functions)?);
    let place = ParameterPlace::Servers(processes.members());
    let parameters = OwnParameters { processes: Arc::clone(&processes), servers: None };
    let tasks = Arc::new(OwnConnections { processes, functions });
    local::train_with((place, tasks, Box::new(parameters)), job, environment, progress)
}

/// The servers as the tasks reach them.
struct OwnConnections {
    processes: Arc<LocalServers>,
    functions: Arc<FunctionTable>,
}

impl TaskParameters for OwnConnections {
    fn agent(
        &self,
        layout: &JobLayout,
        task: u32,
        functions: &FunctionTable,
    ) -> Result<Box<dyn Agent>, Error> {
        Ok(Box::new(self.processes.agent(layout, task, functions)?))
    }

    fn open(&self, layout: &JobLayout) -> Result<Box<dyn MatrixAccess>, Error> {
        Ok(Box::new(Servers::connect(layout, &[])?.with_functions(Arc::clone(&self.functions))))
    }

    /// The agent of a failed task is kept, so its clock no longer advances, and the driver ends the job.
    fn on_task_failed(&self, _task: u32, _reason: &str) {}

    fn cancel(&self, reason: &str) {
        self.processes.cancel(reason);
    }
}

/// The servers as the driver reaches them.
struct OwnParameters {
    processes: Arc<LocalServers>,
    servers: Option<Servers>,
}

impl Parameters for OwnParameters {
    fn request(&mut self, request: ParametersRequest) -> Result<Value, Error> {
        if let ParametersRequest::Create { layout, modules, .. } = request {
            let servers = Servers::connect(&layout, &[])?;
            self.servers.insert(servers).open_job_with(&modules)?;
            return Ok(Value::Null);
        }
        request_of(self.servers.as_mut().expect("the matrices are created first"), &request)
    }

    fn drop_snapshot(&mut self, purpose: SnapshotPurpose) {
        // An error is ignored: the next request finds it again.
        let _ = self.servers.as_mut().map(|servers| servers.drop_snapshot(purpose));
    }

    /// The servers end with the training.
    fn close(&mut self, failure: Option<&str>) {
        if let Some(reason) = failure {
            self.processes.cancel(reason);
        }
    }

    fn add_status(&self, _status: &mut Map<String, Value>) {}
}
