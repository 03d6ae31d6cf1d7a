//! The process of a master, with the runner of its jobs.

use std::sync::Arc;
use std::time::Duration;

use driver::Error;
use driver::progress::SilentProgress;
use master::MasterConfig;
use rpc::serve::Ports;
use rpc::stop::Stop;
use rpc::transport::Address;

use crate::cluster::job_runner::JobRunner;
use crate::environment::Environment;
use crate::interrupt::Interrupt;

/// Time between two checks of the interrupt flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Manages members and jobs until `environment.interrupt` is raised. `checkpoints` is the place of the checkpoints of
/// sessions.
pub fn manage(
    config: MasterConfig,
    checkpoints: Option<String>,
    environment: Environment<'_>,
) -> Result<(), Error> {
    let (interrupt, token) = (environment.interrupt, config.token.clone());
    let lease = config.settings.lease;
    let stop = Stop::new();
    let (raised, flag) = (stop.clone(), interrupt.clone());
    std::thread::spawn(move || {
        while !flag.is_raised() && !raised.wait(POLL_INTERVAL) {}
        raised.raise();
    });
    // Jobs that are recorded do not end with this process.
    let interrupt = if config.state.is_some() { Interrupt::new() } else { interrupt.clone() };
    let runner = JobRunner::new(Arc::new(SilentProgress), token, interrupt, environment.families.clone());
    let runner = runner.with_lease(lease).with_session_checkpoints(checkpoints, environment.functions);
    let runner = Arc::new(runner);
    let config = config.check().map_err(Error::process)?;
    let ready = |ports: &Ports| {
        let (addresses, http) = ports.addresses();
        tracing::info!(addresses = text(&addresses), http = text(&http), "master is ready");
    };
    master::run(config, runner, stop, ready).map_err(Error::process)
}

fn text(addresses: &[Address]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
