//! Measures what a lane costs beyond its matrix: the time of one message in milliseconds, beside that of `Matrix`
//! alone with the same keys.
//!
//! `cargo run --release -p server --example lane_speed`

use std::time::{Duration, Instant};

use matrix::{
    Axis, Consistency, ElementType, FunctionTable, Initializer, KeyRun, Matrix, MatrixSpec, OwnedValues,
    Partitioner, PushId, PushRule, RowPositions, Storage,
};
use rpc::Message;
use rpc::message::{Hello, KeyList, OpenJob, PartitionRun, Pull, Push, Role};
use rpc::service::{Effect, Service};
use server::{LaneConfig, LaneState};

const COUNT: usize = 1 << 20;
const ROUNDS: usize = 15;

fn spec(storage: Storage) -> MatrixSpec {
    let partition_count = 1;
    MatrixSpec {
        name: "w".into(),
        element: ElementType::F32,
        rows: if storage == Storage::Dense { COUNT as u64 } else { 1 << 40 },
        columns: 1,
        axis: Axis::Row,
        storage,
        partitioner: match storage {
            Storage::Dense => Partitioner::Range { partition_count },
            Storage::Sparse | Storage::List | Storage::UniqueList => Partitioner::Hash { partition_count },
        },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

fn lane(spec: MatrixSpec) -> LaneState {
    let mut lane = LaneState::new(LaneConfig {
        lane: 0,
        lanes: 1,
        incarnation: 1,
        memory_limit_bytes: 8 << 30,
        window_bytes: 64 << 20,
        deferred_limit_bytes: 64 << 20,
        staged_limit_bytes: 1 << 20,
        key_list_limit_bytes: 256 << 20,
        #[cfg(feature = "fault-injection")]
        injected_fault: None,
    });
    let open = OpenJob {
        request: 1,
        job: 1,
        task_count: 1,
        wait_limit_ms: 1000,
        durability: rpc::message::Durability::Checkpoint,
        standby: None,
        matrices: vec![spec],
        owned_partitions: vec![vec![0]],
        home: true,
        modules: Vec::new(),
    };
    let hello = |role| Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 0 });
    send(&mut lane, 9, hello(Role::Tool));
    send(&mut lane, 9, Message::OpenJob(open));
    send(&mut lane, 0, hello(Role::Task { job: 1, task: 0 }));
    lane
}

fn send(lane: &mut LaneState, at: u64, message: Message) -> Vec<Effect> {
    let mut out = Vec::new();
    lane.on_message(Duration::ZERO, at, message, &mut out);
    out
}

/// The median time of `work` in milliseconds. The time of `make`, which makes its argument, is not counted.
fn median<T, R>(mut make: impl FnMut(usize) -> T, mut work: impl FnMut(T) -> R) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let argument = make(round);
            let start = Instant::now();
            let result = work(argument);
            let time = start.elapsed().as_secs_f64() * 1e3;
            drop(result);
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn measure(name: &str, storage: Storage, keys: &[u64], list: &KeyList) -> (String, f64, f64, f64, f64) {
    let runs = vec![PartitionRun { partition: 0, count: keys.len() as u32 }];
    let values = OwnedValues::F32(vec![1.0; keys.len()]);
    let mut lane = lane(spec(storage));
    let push = |i: usize| {
        let (runs, keys, values) = (runs.clone(), list.clone(), values.clone());
        let index = i as u32;
        Message::Push(Push {
            request: 0,
            job: 1,
            task: 0,
            clock: 0,
            index,
            matrix: 0,
            table: 0,
            runs,
            keys,
            values: values.into(),
        })
    };
    let pull = |_| {
        let (runs, keys) = (runs.clone(), list.clone());
        Message::Pull(Pull {
            request: 1,
            job: 1,
            task: 0,
            clock: 0,
            matrix: 0,
            table: 0,
            wait_ms: 0,
            runs,
            keys,
            wire: rpc::WireType::F32,
        })
    };
    let pushed = median(push, |message| send(&mut lane, 0, message));
    let pulled = median(pull, |message| send(&mut lane, 0, message));
    let mut held = Matrix::new(spec(storage), &[0], &FunctionTable::builtin()).expect("a good spec");
    let run = KeyRun { partition: 0, table: 0, keys };
    let name_of = |index| PushId { clock: 0, task: 0, index };
    let mut known = RowPositions::default();
    let remembers = matches!(list, KeyList::Range { .. });
    let mut found = || if remembers { std::mem::take(&mut known) } else { RowPositions::default() };
    let held_push = median(
        |i| name_of(i as u32),
        |name| held.push(run, &mut found(), name, values.as_values()).expect("a good push"),
    );
    let mut found = RowPositions::default();
    let held_pull = median(
        |_| (),
        |()| {
            if !remembers {
                found = RowPositions::default();
            }
            let mut out = OwnedValues::with_capacity(ElementType::F32, keys.len());
            held.pull(run, &mut found, 0, &mut out).expect("a good pull");
            out
        },
    );
    (name.to_owned(), pulled, held_pull, pushed, held_push)
}

/// Pushes of 100 random keys that a lane merges in a second.
fn small_pushes() -> f64 {
    let mut lane = lane(spec(Storage::Sparse));
    let count = 1 << 16;
    let messages: Vec<Message> = (0..count)
        .map(|index| {
            let key =
                |i: u64| ((u64::from(index) << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & !127 | i;
            let mut keys: Vec<u64> = (0..100).map(key).collect();
            keys.sort_unstable();
            let runs = vec![PartitionRun { partition: 0, count: 100 }];
            let (keys, values) = (KeyList::Listed(keys), OwnedValues::F32(vec![1.0; 100]).into());
            let (request, job, task, clock, matrix, table) = (0, 1, 0, 0, 0, 0);
            Message::Push(Push { request, job, task, clock, index, matrix, table, runs, keys, values })
        })
        .collect();
    let start = Instant::now();
    for message in messages {
        assert!(send(&mut lane, 0, message).is_empty(), "refused");
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

#[allow(clippy::print_stdout, reason = "a table for people")]
fn main() {
    let contiguous: Vec<u64> = (0..COUNT as u64).collect();
    let mut random: Vec<u64> =
        (0..COUNT as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24).collect();
    random.sort_unstable();
    random.dedup();
    let listed = KeyList::Listed(random.clone());
    println!("{:<24} {:>8} {:>8} {:>8} {:>8}", "1M keys, f32; ms", "pull", "alone", "push", "alone");
    for (name, pull, held_pull, push, held_push) in [
        measure("range, dense", Storage::Dense, &contiguous, &KeyList::Range { start: 0, end: COUNT as u64 }),
        measure("random listed, sparse", Storage::Sparse, &random, &listed),
    ] {
        println!("{name:<24} {pull:>8.2} {held_pull:>8.2} {push:>8.2} {held_push:>8.2}");
    }
    println!("pushes of 100 random keys a second, {} rows at most: {:.0}", 1 << 24, small_pushes());
}
