//! The master in the simulation: members that register, send heartbeats, work, pause, crash, come back and leave over
//! bad connections; clients that submit and cancel; runners that exchange messages with their workers. A checker that
//! sees the input and output of the master, and nothing of its state, checks the run.

mod checker;
mod client_port;
mod history;
mod jobs;
mod master_driver;
mod member;
mod scenario;
pub(crate) mod world;

use master::InjectedFault;
use rpc::message::Base64Bytes;

pub(crate) use checker::check;
pub(crate) use history::{Facts, Process};
pub(crate) use scenario::Scenario;

/// The contents of a message between a runner and a worker: a list of numbers.
fn bytes(numbers: &[u64]) -> Base64Bytes {
    Base64Bytes(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

fn numbers(body: &Base64Bytes) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes"));
    body.0.chunks_exact(8).map(number).collect()
}

/// Returns the faults of a run, and the counts of what happened.
pub(crate) fn run(scenario: &Scenario, injected_fault: Option<InjectedFault>) -> (Vec<String>, Facts) {
    let history = world::World::new(scenario.clone(), injected_fault).run();
    check(scenario, &history)
}

/// Returns the history of a seed as text.
pub(crate) fn history_text(scenario: &Scenario) -> String {
    format!("{:?}", world::World::new(scenario.clone(), None).run())
}
