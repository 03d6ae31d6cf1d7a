//! Property test: messages in any order end in the serial state.

use matrix::{Consistency, OwnedValues};
use proptest::prelude::*;
use rpc::message::*;
use rpc::service::Service;

use super::world::*;

/// One step of a task: its pushes as key and value, and whether it begins with a pull.
type Step = (Vec<(u8, i8)>, bool);

fn script(task: u32, steps: &[Step]) -> Vec<Message> {
    let mut messages = Vec::new();
    for ((pushes, pulls), clock) in steps.iter().zip(0u64..) {
        if *pulls {
            messages.push(Message::Pull(pull(clock + 1, task, clock)));
        }
        for ((key, value), index) in pushes.iter().zip(0u32..) {
            let keys = KeyList::Listed(vec![u64::from(*key % 50)]);
            let runs = vec![PartitionRun { partition: 0, count: 1 }];
            let values = OwnedValues::F64(vec![f64::from(*value)]).into();
            messages.push(Message::Push(Push { runs, keys, values, ..push(task, clock, index, 0.0) }));
        }
        messages.push(tick(task, clock + 1));
    }
    messages.push(leave(task));
    messages
}

proptest! {
    /// Two tasks send in any interleaving. Each breaks its connection at times and sends again from the start. The
    /// final state is that of one task after the other, no task waits at the end, and each pull keeps the staleness
    /// bound.
    #[test]
    fn any_interleaving_ends_in_the_serial_state(
        scripts in prop::array::uniform2(prop::collection::vec((prop::collection::vec((0u8..50, -9i8..9), 0..3), any::<bool>()), 0..6)),
        order in prop::collection::vec((0usize..2, prop::bool::weighted(0.1)), 0..200),
        mode in 0u8..5,
    ) {
        let consistency = match mode {
            0 => Consistency::Bsp,
            1 => Consistency::Asp,
            s => Consistency::Ssp { staleness: u64::from(s) - 2 },
        };
        let mut serial = vec![0.0; 50];
        for (key, value) in scripts.iter().flatten().flat_map(|step| &step.0) {
            serial[usize::from(*key)] += f64::from(*value);
        }
        let mut world = World::new(2, consistency);
        let messages = [script(0, &scripts[0]), script(1, &scripts[1])];
        let (mut next, mut connection, mut fresh) = ([0, 0], [0, 1], 100);
        let rest = [0, 1].into_iter().flat_map(|task| std::iter::repeat_n((task, false), 200));
        for (task, breaks) in order.into_iter().chain(rest) {
            if breaks && next[task] < messages[task].len() {
                fresh += 1;
                world.lane.on_closed(world.now, connection[task], &mut Vec::new());
                (next[task], connection[task]) = (0, fresh);
                world.send(fresh, hello(JOB, task as u32));
            } else if let Some(message) = messages[task].get(next[task]) {
                next[task] += 1;
                world.send(connection[task], message.clone());
            }
        }
        let export = Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 };
        let Message::ExportPage(page) = only(world.send(TOOL, Message::Export(export))) else { panic!() };
        let OwnedValues::F64(values) = page.values else { panic!() };
        prop_assert_eq!(&values[..50], &serial[..]);
        let stats = world.stats();
        prop_assert_eq!(stats.held_count, 0);
        prop_assert_eq!(stats.clocks, vec![None, None]);
        prop_assert_eq!(world.lane.deferred_bytes, 0);
        let bound = match consistency {
            Consistency::Bsp => 0,
            Consistency::Ssp { staleness } => staleness as usize,
            Consistency::Asp => 16,
        };
        prop_assert_eq!(stats.staleness[bound + 1..].iter().sum::<u64>(), 0);
    }
}
