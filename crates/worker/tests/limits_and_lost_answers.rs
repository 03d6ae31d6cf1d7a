//! Promises of the agent at the limit of the window, and when the answer to its last request was lost.

mod common;

use common::{World, fault, layout, spec};
use matrix::{Consistency, Keys, MatrixId, MatrixSpec, Partitioner, Selection};
use rpc::message::FaultKind;
use worker::CallOutput;

const W: MatrixId = MatrixId(0);

fn world(window: u64) -> World {
    let spec = MatrixSpec {
        rows: 1 << 21,
        ..spec("w", Consistency::Asp, 1, Partitioner::Range { partition_count: 4 })
    };
    let mut world = World::new(layout(vec![spec], 1, window));
    world.lanes[0].window = window;
    world.step(0, 0, (0, 0));
    world
}

/// A range has no list of keys, so that only the values of the answers count: sixteen messages with 1 MiB each.
#[test]
fn a_pull_of_a_range_has_no_more_values_under_way_than_the_window_and_one_frame() {
    for (window, expected) in [(1, 1), (4 << 20, 4), (9 << 20, 9), (64 << 20, 16)] {
        let mut world = world(window);
        world.agent.pull(world.now, W, Selection::Rows(Keys::Range(0, 1 << 21)));
        world.carry_out();
        assert_eq!(world.sent.len(), expected, "window of {window} bytes");
        world.run().unwrap();
    }
}

#[test]
fn a_lane_that_says_that_the_task_has_left_ends_the_finish() {
    let mut world = world(1 << 20);
    world.agent.finish(world.now);
    world.carry_out();
    world.wires[0].to_lane.clear();
    // The answer to the leave was lost: it is the lane's answer to something that was sent before.
    world.agent.on_message(world.now, 0, fault(0, FaultKind::TaskLeft, 0));
    assert_eq!(world.agent.take_result(), Some(Ok(CallOutput::Done)));
}
