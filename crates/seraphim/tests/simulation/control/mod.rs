//! The master in the simulation: members that register, beat, work, stand still, crash, come back and leave over bad
//! connections; clients that submit and cancel; runners that talk to their workers. A checker that sees what went in and
//! what came out, and nothing of the state, judges the run.

mod checker;
mod client_port;
mod history;
mod jobs;
mod master_driver;
mod member;
mod scenario;
pub(crate) mod world;

use master::Broken;

pub(crate) use checker::check;
pub(crate) use history::{Facts, Process};
pub(crate) use scenario::Scenario;

/// What is wrong with a run, and what it reached.
pub(crate) fn run(scenario: &Scenario, broken: Option<Broken>) -> (Vec<String>, Facts) {
    let history = world::World::new(scenario.clone(), broken).run();
    check(scenario, &history)
}

/// All that happens under a seed, as text.
pub(crate) fn history_text(scenario: &Scenario) -> String {
    format!("{:?}", world::World::new(scenario.clone(), None).run())
}
