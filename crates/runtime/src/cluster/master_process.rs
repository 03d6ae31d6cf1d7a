//! The process of a master, with the runner of its jobs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use driver::Error;
use driver::progress::SilentProgress;
use job::Exit;
use master::MasterConfig;
use rpc::serve::Ports;
use rpc::stop::Stop;
use rpc::transport::Address;

use crate::cluster::announcement::Announcement;
use crate::cluster::job_runner::JobRunner;
use crate::cluster::single_job::ResultFile;
use crate::environment::Environment;
use crate::interrupt::Interrupt;

/// Time between two checks of the interrupt flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What a master writes for others.
#[derive(Clone, Debug, Default)]
pub struct MasterFiles {
    /// The place of the checkpoints of sessions.
    pub session_checkpoints: Option<String>,
    /// The file with its addresses.
    pub announcement: Option<String>,
    /// The file for the result of its only job.
    pub result: Option<ResultFile>,
}

/// Manages members and jobs until `environment.interrupt` is raised, or the only job has ended.
pub fn manage(config: MasterConfig, files: MasterFiles, environment: Environment<'_>) -> Result<(), Error> {
    let MasterFiles { session_checkpoints: checkpoints, announcement, result } = files;
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
    let runner =
        JobRunner::new(Arc::new(SilentProgress), token.clone(), interrupt, environment.families.clone());
    let runner = runner.with_lease(lease).with_session_checkpoints(checkpoints, environment.functions);
    let runner = Arc::new(runner);
    // What its supervisor starts again goes on with the job.
    let must_write = result.is_some().then(Stop::new);
    let (records, is_written) = (config.state.clone(), must_write.clone().unwrap_or_default());
    let config = config.check().map_err(Error::process)?;
    let (ending, mut failure) = (stop.clone(), None);
    let ready = |ports: &Ports| {
        let (addresses, http) = ports.addresses();
        tracing::info!(addresses = text(&addresses), http = text(&http), "master is ready");
        let (Some(frames), Some(http)) = (addresses.first().cloned(), http.first().cloned()) else { return };
        let own = http.clone();
        if let Some(location) = announcement
            && let Err(error) = (Announcement { frames, http }).write(&location)
        {
            failure = Some(error);
            return ending.raise();
        }
        if let Some(result) = result {
            std::thread::spawn(move || result.watch(own, &token, &is_written, &ending));
        }
    };
    let ended = master::run(config, runner, stop, ready).map_err(Error::process);
    failure.map_or(ended, Err)?;
    match (must_write, records) {
        (Some(is_written), _) if !is_written.is_raised() => {
            let text =
                "this master has ended before its job, which goes on with the next one that has its --state"
                    .into();
            Err(Error::Cluster { text, exit: Exit::Interrupted })
        }
        (Some(_), Some(records)) => remove_records(&records),
        _ => Ok(()),
    }
}

/// Removes the records of a job that has ended, whose supervisor starts no other master.
fn remove_records(path: &Path) -> Result<(), Error> {
    let removed = store::open(&path.display().to_string()).and_then(|store| store.remove(""));
    Ok(removed.map_err(model::Error::Store)?)
}

fn text(addresses: &[Address]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
