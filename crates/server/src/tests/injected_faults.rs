//! Each rule that can be disabled makes a difference.

use matrix::{Consistency, OwnedValues};
use rpc::message::{Import, Message};

use super::world::*;
use crate::{InjectedFault, LaneConfig};

fn world(injected_fault: InjectedFault, consistency: Consistency) -> World {
    let config = LaneConfig { injected_fault: Some(injected_fault), ..config() };
    World::with(config, open(2, vec![spec("w", consistency)]))
}

#[test]
fn without_staleness_nobody_waits() {
    let mut world = world(InjectedFault::StalenessIgnored, Consistency::Ssp { staleness: 0 });
    world.tick(0, 9);
    assert_eq!(pulled(world.pull(1, 0, 9)), [0.0; 2]);
}

#[test]
fn a_tick_that_overtakes_shows_a_clock_whose_push_is_missing() {
    let mut world = world(InjectedFault::TickOvertakesPush, Consistency::Ssp { staleness: 0 });
    world.tick(0, 1);
    world.push(0, 1, 0);
    world.tick(0, 2);
    assert_eq!(world.stats().clocks[0], Some(2));
    assert_eq!(world.rows(), [0.0; 2]);
}

#[test]
fn duplicates_are_applied() {
    let mut world = world(InjectedFault::DuplicatesApplied, Consistency::Asp);
    world.push(0, 0, 0);
    world.push(0, 0, 0);
    assert_eq!(world.rows(), [2.0; 2]);
}

#[test]
fn a_minimum_of_commits_lets_the_fast_one_pass() {
    let mut world = world(InjectedFault::MinimumByCommits, Consistency::Bsp);
    world.tick(0, 2);
    assert_eq!(pulled(world.pull(1, 0, 1)), [0.0; 2], "task 1 has not ticked");
}

#[test]
fn an_import_leaves_what_was_there() {
    let mut world = world(InjectedFault::ImportKeepsOldRows, Consistency::Asp);
    world.push(0, 0, 0);
    let (keys, values) = (Vec::new(), OwnedValues::F64(Vec::new()));
    let import = Import {
        request: 4,
        job: JOB,
        matrix: 0,
        first: true,
        row_count: 0,
        with_slots: false,
        keys,
        values,
    };
    world.send(TOOL, Message::Import(import));
    assert_eq!(world.rows(), [1.0; 2]);
}

#[test]
fn a_removed_task_holds_its_waiters() {
    let mut world = world(InjectedFault::RemovedTaskKeepsWaiters, Consistency::Bsp);
    world.tick(0, 1);
    world.pull(1, 0, 1);
    assert!(world.send(TOOL, leave(1)).is_empty());
}
