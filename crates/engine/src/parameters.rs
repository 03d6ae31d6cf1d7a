//! Matrices for a loop of a program's own, in this process or on servers of this machine.

use std::sync::Arc;
use std::time::Duration;

use matrix::{Agent, FunctionTable, LocalConfig, LocalStore, MatrixSpec};
use rpc::layout::JobLayout;
use runtime::cluster::launch::LocalServers;
use runtime::cluster::servers::Servers;
use runtime::interrupt::Interrupt;
use runtime::program::Program;

use driver::Error;

/// Maximum wait of a task for the others.
const WAIT_LIMIT: Duration = Duration::from_mins(10);

/// The matrices of a loop.
pub struct ParameterStore {
    location: Location,
    functions: FunctionTable,
}

enum Location {
    Process(Arc<LocalStore>),
    Servers { processes: LocalServers, layout: Box<JobLayout> },
}

impl ParameterStore {
    /// Creates matrices for `task_count` tasks: in this process, or on this number of servers, which are processes of
    /// `program` and end with the store.
    ///
    /// # Errors
    /// If a spec is wrong, or a server cannot be started.
    pub fn new(
        matrices: Vec<MatrixSpec>,
        task_count: u32,
        server_count: u32,
        functions: FunctionTable,
        program: &Program,
    ) -> Result<Self, Error> {
        if server_count == 0 {
            let config = LocalConfig { task_count, wait_limit: WAIT_LIMIT };
            let mut store = LocalStore::with_functions(config, functions.clone());
            matrices.into_iter().try_for_each(|spec| store.create(spec).map(drop))?;
            return Ok(Self { location: Location::Process(Arc::new(store)), functions });
        }
        matrices.iter().try_for_each(|spec| spec.check(&functions))?;
        let processes = LocalServers::start(server_count, program, &Interrupt::new())?;
        let layout = Box::new(processes.layout(matrices, task_count, WAIT_LIMIT));
        Servers::connect(&layout, &[])?.with_functions(Arc::new(functions.clone())).open_job()?;
        Ok(Self { location: Location::Servers { processes, layout }, functions })
    }

    /// The access of a task, which one thread uses.
    pub fn agent(&self, task: u32) -> Result<Box<dyn Agent>, Error> {
        Ok(match &self.location {
            Location::Process(store) => Box::new(store.agent(task)),
            Location::Servers { processes, layout } => {
                Box::new(processes.agent(layout, task, &self.functions)?)
            }
        })
    }

    /// Ends the waits of all tasks.
    pub fn stop(&self, reason: &str) {
        match &self.location {
            Location::Process(store) => store.stop(reason),
            Location::Servers { processes, .. } => processes.cancel(reason),
        }
    }
}
