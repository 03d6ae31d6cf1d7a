//! Carries out the effects of the driver of a job, until the job ends.

use std::time::{Duration, Instant};

use driver::messages::{BegunTraining, ToWorker};
use driver::{Effect, Error, Event, JobDriver, ParametersRequest, RunEnd, SnapshotPurpose};
use serde_json::{Map, Value};

use crate::interrupt::Interrupt;
use crate::machine;

/// Maximum time between two looks at the clock and at the user's wish to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The connection of a driver to the workers of its job, and to the user.
pub trait WorkerLink {
    fn send(&mut self, worker: u32, message: ToWorker);

    /// The next event, or [`Event::Timeout`] after `timeout`.
    fn receive(&mut self, timeout: Duration) -> Event;

    /// The loss of a member that explains a failure of the parameters, if there is one.
    fn lost_member(&mut self) -> Option<Error>;

    /// Records what the run has begun, so that a later run of the job goes on with it.
    fn report_training(&mut self, _begun: &BegunTraining) {}

    /// Shows the progress to the user.
    fn report_status(&mut self, status: Map<String, Value>);
}

/// The parameters of a job as the driver reaches them.
pub trait Parameters {
    /// Carries out a request. Returns the value of [`Event::ParametersDone`].
    fn request(&mut self, request: ParametersRequest) -> Result<Value, Error>;

    /// Frees a snapshot.
    fn drop_snapshot(&mut self, purpose: SnapshotPurpose);

    /// Frees the parameters; `failure` is the reason why the job failed.
    fn close(&mut self, failure: Option<&str>);

    /// Adds what is known of the parameters to the progress of the job.
    fn add_status(&self, status: &mut Map<String, Value>);
}

/// Runs a job to the end of the run. It stops when `interrupt` is raised.
pub fn drive(
    driver: &mut dyn JobDriver,
    link: &mut dyn WorkerLink,
    parameters: &mut dyn Parameters,
    interrupt: &Interrupt,
) -> Result<RunEnd, Error> {
    let mut effects = driver.start();
    let mut is_stop_requested = false;
    loop {
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Send { worker, message } => link.send(worker, message),
                Effect::Parameters(request) => {
                    answer = Some(match parameters.request(request) {
                        Ok(value) => Event::ParametersDone(value),
                        Err(error) => Event::Failed(link.lost_member().unwrap_or(error)),
                    });
                }
                Effect::TrainingKnown(begun) => link.report_training(&begun),
                Effect::DropSnapshot(purpose) => parameters.drop_snapshot(purpose),
                Effect::Close { failure } => parameters.close(failure.as_deref()),
                Effect::Status(mut status) => {
                    parameters.add_status(&mut status);
                    link.report_status(status);
                }
                Effect::End(result) => return result.map(with_peak_memory),
            }
        }
        let event = match answer {
            Some(answer) => answer,
            None if interrupt.is_raised() && !is_stop_requested => {
                is_stop_requested = true;
                Event::StopRequested
            }
            None => link.receive(POLL_INTERVAL),
        };
        effects = driver.on_event(Instant::now(), event);
    }
}

/// Adds to a report what only this process knows.
fn with_peak_memory(mut end: RunEnd) -> RunEnd {
    if let RunEnd::Finished(job) = &mut end {
        job.report.peak_memory_bytes = machine::peak_memory_bytes();
    }
    end
}
