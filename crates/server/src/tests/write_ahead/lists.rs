//! Lists outlive their lane: before the seal by the log alone, then by the image too.

use matrix::function::pack;
use matrix::{ElementType, FunctionCall, ListMatrix, PushRule, RowBlock};
use rpc::service::Effect;

use super::*;

fn call(name: &str, argument: Vec<u8>) -> FunctionCall {
    FunctionCall { name: name.into(), version: 1, from: Vec::new(), into: Vec::new(), argument }
}

impl World {
    fn of_lists() -> Self {
        let mut lane = LaneState::new(config());
        lane.start_recording();
        let mut world = Self { lane, now: std::time::Duration::ZERO, effects: Vec::new() };
        let spec = ListMatrix::spec("w", ElementType::F64, 1, PushRule::Add, 2);
        world.send(TOOL, hello_of(Role::Tool));
        world.send(
            TOOL,
            Message::OpenJob(OpenJob { owned_partitions: vec![vec![0, 1]], ..open(1, vec![spec]) }),
        );
        world.send(0, hello(JOB, 0));
        world
    }

    fn call(&mut self, index: u32, call: FunctionCall) -> Message {
        let push =
            PushFunction { request: 5, job: JOB, task: 0, clock: 0, index, matrix: 0, calls: vec![call] };
        only(self.send(0, Message::PushFunction(push)))
    }

    fn append(&mut self, index: u32, row: u64, entries: &[u64]) -> Message {
        let mut block = RowBlock::no_lists(ElementType::F64);
        block.push_list(row, entries, &vec![0.5; entries.len()]);
        self.call(index, call("append_lists", pack(&block)))
    }

    fn all_lists(&mut self) -> (Vec<u64>, OwnedValues) {
        let export = Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 };
        match only(self.send(TOOL, Message::Export(export))) {
            Message::ExportPage(page) => (page.keys, page.values),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn lists_of_a_lane_that_has_died_are_those_that_were_appended_once() {
    let mut world = World::of_lists();
    assert!(matches!(world.append(0, 7, &[4, 1]), Message::Done(_)));
    let early =
        only(world.send(TOOL, Message::Export(Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 })));
    assert!(matches!(&early, Message::Fault(fault) if fault.text.contains("not sealed")), "{early:?}");
    assert!(LaneImage::of(&world.lane).is_none(), "a later moment serves");
    let mut log = world.lane.take_recorded();
    let mut world = World::restarted(None, &log);
    let connected = world.send(0, hello(JOB, 0));
    assert!(
        matches!(&connected[0], Effect::Send { message: Message::Welcome(w), .. } if w.applied.index == 1)
    );
    // The task has not seen the answer, and repeats the append.
    assert!(matches!(world.append(0, 7, &[4, 1]), Message::Done(_)));
    assert!(matches!(world.append(1, 7, &[1, 9]), Message::Done(_)));
    assert!(matches!(world.call(2, call("seal_lists", Vec::new())), Message::Done(_)));
    let late = world.append(3, 7, &[2]);
    assert!(matches!(&late, Message::Fault(fault) if fault.text.contains("are sealed")), "{late:?}");
    // One row, 7, with three entries.
    let expected = (vec![1, 7, 3, 1, 4, 9], OwnedValues::F64(vec![1.0, 0.5, 0.5]));
    assert_eq!(world.all_lists(), expected);
    log.extend(world.lane.take_recorded());
    assert_eq!(World::restarted(None, &log).all_lists(), expected);
    let mut image = Vec::new();
    LaneImage::of(&world.lane).expect("sealed").write(&mut image).expect("a vector takes it");
    assert_eq!(World::restarted(Some(&image), &[]).all_lists(), expected);
}
