//! Functions of tasks: they are deferred as pulls are, have push ids as pushes have, and an error stays in its call.

use std::sync::{Arc, Weak};
use std::time::Duration;

use matrix::function::map::{Map, Scalar};
use matrix::function::reduce::Reduce;
use matrix::function::vector_op::VectorOp;
use matrix::function::{Arity, Block, Columns, Shape, unpack};
use matrix::{
    Axis, Consistency, ElementType, FunctionCall, FunctionFault, FunctionTable, Initializer, MatrixSpec,
    OwnPartitioner, OwnedValues, Partitioner, PullFunction as _, PushRule, Storage, merge_partial_answers,
};
use rpc::message::*;
use rpc::service::{Effect, Service};

use super::world::*;
use crate::{LaneConfig, LaneState, ModuleCache};

/// Two rows of eight columns in two partitions.
pub(super) fn rows(consistency: Consistency) -> MatrixSpec {
    MatrixSpec {
        rows: 2,
        columns: 8,
        axis: Axis::Column,
        partitioner: Partitioner::Explicit { starts: vec![0, 3] },
        ..spec("rows", consistency)
    }
}

pub(super) fn world(task_count: u32, consistency: Consistency) -> World {
    World::with(config(), open(task_count, vec![rows(consistency)]))
}

/// A function that panics, when it is bound and when it runs.
struct Panics;

impl matrix::PullFunction for Panics {
    type Argument = u64;
    type Partial = u64;
    type Answer = u64;

    fn name(&self) -> &'static str {
        "panics"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, when: &u64, _shape: &Shape) -> Result<(), FunctionFault> {
        assert!(*when != 0, "panics when it is checked");
        Ok(())
    }

    fn read(&self, _when: &u64, columns: &Columns<'_>) -> Result<u64, FunctionFault> {
        assert!(columns.range().start == 0, "panics at the second partition");
        Ok(1)
    }

    fn merge(&self, _when: &u64, _shape: &Shape, parts: Vec<u64>) -> Result<u64, FunctionFault> {
        Ok(parts.iter().sum())
    }
}

struct PanicsOnPush;

impl matrix::PushFunction for PanicsOnPush {
    type Argument = ();

    fn name(&self) -> &'static str {
        "panics_on_push"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn change(&self, (): &(), block: &mut Block<'_>) -> Result<(), FunctionFault> {
        let block = block.f64()?;
        block.into[0].fill(99.0);
        panic!("at column {}", block.start);
    }
}

fn call(matrix_call: FunctionCall) -> PullFunction {
    PullFunction { request: 5, job: JOB, task: 0, clock: 0, matrix: 0, wait_ms: 0, call: matrix_call }
}

fn sum(request: RequestId, task: u32, clock: u64) -> PullFunction {
    let call = call(FunctionCall::pull(&Reduce::Sum, &[0], &()));
    PullFunction { request, task, clock, ..call }
}

pub(super) fn change(request: RequestId, clock: u64, index: u32, calls: Vec<FunctionCall>) -> Message {
    Message::PushFunction(PushFunction { request, job: JOB, task: 0, clock, index, matrix: 0, calls })
}

pub(super) fn add(value: f64) -> Vec<FunctionCall> {
    vec![FunctionCall::push(&Scalar::Add, &[0], &[0], &value)]
}

/// The merged answer of the only message.
fn answer(effects: Vec<Effect>) -> f64 {
    match only(effects) {
        Message::PulledFunction(pulled) => merged(pulled),
        other => panic!("{other:?}"),
    }
}

fn merged(pulled: PulledFunction) -> f64 {
    assert_eq!(pulled.parts.iter().map(|part| part.partition).collect::<Vec<_>>(), [0, 1]);
    let call = FunctionCall::pull(&Reduce::Sum, &[0], &());
    let bytes =
        merge_partial_answers(&FunctionTable::builtin(), &rows(Consistency::Asp), &call, pulled.parts);
    unpack(&bytes.unwrap()).unwrap()
}

/// The values of row 0, exported by a tool.
pub(super) fn row_0(world: &mut World) -> Vec<f64> {
    let export = Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 };
    match only(world.send(TOOL, Message::Export(export))) {
        Message::ExportPage(ExportPage { values: OwnedValues::F64(values), .. }) => values[..8].to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_function_changes_the_rows_and_another_reads_them() {
    let mut world = world(1, Consistency::Asp);
    let done = Done { request: 9, minimum: 0, applied: PushPosition { clock: 0, index: 1 } };
    assert_eq!(only(world.send(0, change(9, 0, 0, add(1.5)))), Message::Done(done));
    assert_eq!(answer(world.send(0, Message::PullFunction(sum(3, 0, 0)))), 12.0);
    let stats = world.stats();
    assert_eq!((stats.pull_count, stats.push_count), (1, 1));
    assert_eq!((stats.pull_function_count, stats.push_function_count), (1, 1));
    let mut metrics = rpc::Metrics::default();
    world.lane.metrics(&mut metrics);
    let text = ::control::metrics_text(metrics);
    for line in [
        "seraphim_pull_functions_total{lane=\"0\",job=\"7\"} 1",
        "seraphim_push_functions_total{lane=\"0\",job=\"7\"} 1",
        "seraphim_requests_total{lane=\"0\",kind=\"push_function\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn a_pull_function_waits_as_a_pull_does_and_sees_what_a_pull_sees() {
    let mut world = world(2, Consistency::Bsp);
    assert_eq!(world.send(0, change(0, 0, 0, add(1.0))), []);
    world.tick(0, 1);
    assert_eq!(world.send(0, Message::PullFunction(sum(3, 0, 1))), [], "task 1 has not ticked");
    assert_eq!(world.stats().held_count, 1);
    world.now += Duration::from_millis(7);
    let released = world.tick(1, 1);
    match only(released) {
        Message::PulledFunction(pulled) => {
            assert_eq!((pulled.request, pulled.minimum, pulled.deferred_ns), (3, 1, 7_000_000));
            assert_eq!(pulled.applied, PushPosition { clock: 0, index: 1 });
            assert_eq!(merged(pulled), 8.0);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pull_function_that_waits_too_long_says_for_whom() {
    let mut world = world(2, Consistency::Bsp);
    world.tick(0, 1);
    let ask = PullFunction { wait_ms: 300, ..sum(3, 0, 1) };
    assert_eq!(world.send(0, Message::PullFunction(ask)), []);
    world.now += Duration::from_millis(300);
    let mut out = Vec::new();
    world.lane.on_time(world.now, &mut out);
    let fault = fault(&out);
    assert_eq!((fault.request, fault.kind), (3, FaultKind::WaitedTooLong));
    assert!(fault.text.contains("to pull \"sum\" from matrix \"rows\""), "{}", fault.text);
    assert_eq!(world.stats().held_count, 0);
}

#[test]
fn under_bsp_functions_and_pushes_are_carried_out_in_the_order_of_their_names() {
    let mut world = world(2, Consistency::Bsp);
    let scale = |task, index, factor: f64| {
        let calls = vec![FunctionCall::push(&Scalar::Mul, &[0], &[0], &factor)];
        Message::PushFunction(PushFunction { request: 0, job: JOB, task, clock: 0, index, matrix: 0, calls })
    };
    let plus = |task, index| {
        let runs = vec![PartitionRun { partition: 0, count: 1 }];
        let values = OwnedValues::F64(vec![1.0]).into();
        Message::Push(Push { runs, keys: KeyList::Listed(vec![2]), values, ..push(task, 0, index, 0.0) })
    };
    // Task 1 sends first: the order of arrival must not count.
    world.send(1, plus(1, 0));
    world.send(1, scale(1, 1, 10.0));
    world.send(0, plus(0, 0));
    world.send(0, scale(0, 1, 3.0));
    world.send(0, plus(0, 2));
    world.tick(0, 1);
    world.tick(1, 1);
    // (((0 + 1) * 3 + 1) + 1) * 10.
    assert_eq!(row_0(&mut world)[2], 50.0);
}

#[test]
fn a_function_that_comes_again_counts_once_and_is_answered_again() {
    let mut world = world(1, Consistency::Asp);
    world.send(0, change(1, 0, 0, add(1.0)));
    let done = Done { request: 2, minimum: 0, applied: PushPosition { clock: 0, index: 1 } };
    assert_eq!(only(world.send(0, change(2, 0, 0, add(1.0)))), Message::Done(done));
    assert_eq!(row_0(&mut world), [1.0; 8]);
    assert_eq!(world.stats().duplicate_count, 1);
    let gap = world.send(0, change(3, 0, 2, add(1.0)));
    assert_eq!(fault(&gap).kind, FaultKind::Invalid);
    assert!(closes(&gap, 0));
}

#[test]
fn a_function_that_fails_has_used_up_its_name_and_says_the_same_again() {
    let mut world = world(1, Consistency::Asp);
    world.send(
        0,
        change(1, 0, 0, vec![FunctionCall::push(&VectorOp::Set, &[], &[0], &(4, values(&[-1.0]), 1.0))]),
    );
    let log = || vec![FunctionCall::push(&Map::Log, &[0], &[0], &())];
    let refused = world.send(0, change(2, 0, 1, log()));
    let first = fault(&refused).clone();
    assert_eq!((first.request, first.kind), (2, FaultKind::Function));
    assert!(first.text.contains("function \"log\" on matrix \"rows\""), "{}", first.text);
    assert!(first.text.contains("row 0, column 0 is -inf"), "{}", first.text);
    let again = world.send(0, change(3, 0, 1, log()));
    assert_eq!(fault(&again), &Fault { request: 3, ..first });
    // The next function has the next push id, and the rows are unchanged.
    assert!(matches!(only(world.send(0, change(4, 0, 2, add(1.0)))), Message::Done(_)));
    assert_eq!(row_0(&mut world), [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
}

pub(super) fn values(values: &[f64]) -> OwnedValues {
    OwnedValues::F64(values.to_vec())
}

#[test]
fn what_nobody_can_carry_out_is_refused_and_the_lane_goes_on() {
    let mut functions = FunctionTable::builtin();
    functions.add_pull(Panics).unwrap().add_push(PanicsOnPush).unwrap();
    let mut world = world(1, Consistency::Asp);
    let lane = std::mem::replace(&mut world.lane, LaneState::new(config()));
    world.lane = lane.with_functions(functions);
    let good = FunctionCall::pull(&Reduce::Sum, &[0], &());
    let cases = [
        (FunctionCall { name: "summ".into(), ..good.clone() }, "did you mean \"sum\"?"),
        (FunctionCall { version: 2, ..good.clone() }, "version 2 was requested, but version 1 is registered"),
        (FunctionCall { from: vec![2], ..good.clone() }, "row 2, expected below the 2 rows"),
        (FunctionCall { argument: vec![1], ..good.clone() }, "1 extra bytes"),
        (FunctionCall::pull(&Panics, &[0], &0), "it panicked: panics when it is checked"),
        (FunctionCall::pull(&Panics, &[0], &1), "it panicked: panics at the second partition"),
        (FunctionCall::push(&Scalar::Add, &[0], &[0], &1.0), "it is a push function"),
    ];
    for (asked, expected) in cases {
        let refused = world.send(0, Message::PullFunction(call(asked)));
        assert_eq!((fault(&refused).request, fault(&refused).kind), (5, FaultKind::Function));
        assert!(fault(&refused).text.contains(expected), "{}", fault(&refused).text);
        assert_eq!(refused.len(), 1, "the connection stays");
    }
    let refused = world.send(0, change(1, 0, 0, vec![FunctionCall::push(&PanicsOnPush, &[], &[0], &())]));
    assert!(fault(&refused).text.contains("it panicked: at column 0"), "{}", fault(&refused).text);
    assert_eq!(row_0(&mut world), [0.0; 8], "what the panic left is undone");
    let unknown = world.send(0, Message::PullFunction(PullFunction { matrix: 1, ..sum(2, 0, 0) }));
    assert_eq!(fault(&unknown).kind, FaultKind::NotFound);
    assert_eq!(answer(world.send(0, Message::PullFunction(sum(3, 0, 0)))), 0.0);
    assert_eq!(Panics.name(), "panics");
}

#[test]
fn a_lane_makes_matrices_with_the_partitioners_of_its_functions_alone() {
    let blocks = OwnPartitioner { name: "blocks", partition_of: |key, _| (key / 50) as u32 };
    let partitioner = Partitioner::Own { name: blocks.name.into(), partition_count: 2 };
    let own = MatrixSpec { partitioner, storage: Storage::Sparse, ..spec("own", Consistency::Asp) };
    let open = OpenJob { job: JOB + 1, ..open(1, vec![own]) };
    let mut world = world(1, Consistency::Asp);
    let refused = world.send(TOOL, Message::OpenJob(open.clone()));
    assert_eq!(fault(&refused).kind, FaultKind::Invalid);
    assert!(fault(&refused).text.contains("\"blocks\""), "{}", fault(&refused).text);
    let mut functions = FunctionTable::builtin();
    functions.add_partitioner(blocks).unwrap();
    let lane = std::mem::replace(&mut world.lane, LaneState::new(config()));
    world.lane = lane.with_functions(functions);
    assert!(matches!(only(world.send(TOOL, Message::OpenJob(open))), Message::Done(_)));
}

/// Loads modules; a valid module is the bytes `panics` in this test.
fn modules_of(table: &FunctionTable, modules: &[Base64Bytes]) -> Result<FunctionTable, String> {
    let mut table = table.clone();
    for module in modules {
        if module.0 != b"panics" {
            return Err(format!("no module of {module:?}"));
        }
        table.add_pull(Panics).map_err(|fault| fault.to_string())?;
    }
    Ok(table)
}

#[test]
fn a_job_has_the_functions_that_it_brings_and_no_other_job_has_them() {
    let brings = |job: JobId, module: &[u8]| OpenJob {
        job,
        modules: vec![Base64Bytes(module.to_vec())],
        ..open(1, vec![rows(Consistency::Asp)])
    };
    let mut world = world(1, Consistency::Asp);
    let refused = world.send(TOOL, Message::OpenJob(brings(8, b"panics")));
    let text = &fault(&refused).text;
    assert!(text.contains("job 8: this server was built without WebAssembly modules"), "{text}");
    let lane = std::mem::replace(&mut world.lane, LaneState::new(config()));
    world.lane = lane.with_modules(Some(ModuleCache::new(modules_of)));
    let refused = world.send(TOOL, Message::OpenJob(brings(8, b"else")));
    assert!(fault(&refused).text.contains("no module of 4 bytes"), "{}", fault(&refused).text);
    assert!(!world.lane.jobs.contains_key(&8));
    for _ in 0..2 {
        let opened = only(world.send(TOOL, Message::OpenJob(brings(8, b"panics"))));
        assert!(matches!(opened, Message::Done(_)), "{opened:?}");
    }
    world.send(1, hello(8, 0));
    let asked = |job| PullFunction { job, ..call(FunctionCall::pull(&Panics, &[0], &1)) };
    let there = world.send(1, Message::PullFunction(asked(8)));
    assert!(fault(&there).text.contains("it panicked: panics at the second partition"), "{there:?}");
    let elsewhere = world.send(0, Message::PullFunction(asked(JOB)));
    assert!(fault(&elsewhere).text.contains("this function is not registered"), "{elsewhere:?}");
}

#[test]
fn the_lanes_of_a_process_share_what_they_make_of_modules() {
    let shared = ModuleCache::new(modules_of);
    let brings = |job| {
        let modules = vec![Base64Bytes(b"panics".to_vec())];
        Message::OpenJob(OpenJob { job, modules, ..open(1, vec![rows(Consistency::Asp)]) })
    };
    let functions = |world: &World, job: JobId| world.lane.jobs[&job].functions.clone().expect("its own");
    let mut lanes = [0, 1].map(|_| {
        let mut world = world(1, Consistency::Asp);
        world.lane = LaneState::new(config()).with_modules(Some(shared.clone()));
        world.send(TOOL, Message::Hello(Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 }));
        assert!(matches!(only(world.send(TOOL, brings(8))), Message::Done(_)));
        world
    });
    assert!(Arc::ptr_eq(&functions(&lanes[0], 8), &functions(&lanes[1], 8)));
    // Another job with the same modules shares the table. When all these jobs are closed, the table is freed.
    lanes[0].send(TOOL, brings(9));
    let last = Arc::downgrade(&functions(&lanes[0], 9));
    assert!(Weak::ptr_eq(&last, &Arc::downgrade(&functions(&lanes[1], 8))));
    for (world, job) in [(0, 8), (0, 9), (1, 8)] {
        assert!(last.upgrade().is_some());
        lanes[world].send(TOOL, Message::CloseJob(CloseJob { request: 1, job, reason: "a test".into() }));
    }
    assert!(last.upgrade().is_none());
}

#[test]
fn modules_count_as_memory_of_their_job() {
    let config = LaneConfig { memory_limit_bytes: 4000, ..config() };
    let mut world = World::with(config.clone(), open(1, vec![rows(Consistency::Asp)]));
    world.lane = LaneState::new(config).with_modules(Some(ModuleCache::new(modules_of)));
    world.send(TOOL, Message::Hello(Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 }));
    let brings = |job, module: &[u8]| {
        let modules = vec![Base64Bytes(module.to_vec())];
        Message::OpenJob(OpenJob { job, modules, ..open(1, vec![rows(Consistency::Asp)]) })
    };
    let refused = world.send(TOOL, brings(8, &[0; 5000]));
    assert_eq!(fault(&refused).kind, FaultKind::TooLarge);
    assert!(fault(&refused).text.contains(" + modules 5000 = "), "{}", fault(&refused).text);
    world.send(TOOL, Message::OpenJob(OpenJob { job: 7, ..open(1, vec![rows(Consistency::Asp)]) }));
    let without = world.lane.memory.bytes();
    world.send(TOOL, brings(8, b"panics"));
    assert_eq!(world.lane.memory.bytes(), 2 * without + 6);
}

#[test]
fn only_tasks_call_functions() {
    let mut world = world(1, Consistency::Asp);
    let refused = world.send(TOOL, Message::PullFunction(sum(3, 0, 0)));
    assert_eq!(fault(&refused).kind, FaultKind::Invalid);
    let refused = world.send(TOOL, change(4, 0, 0, add(1.0)));
    assert_eq!(fault(&refused).kind, FaultKind::Invalid);
    assert_eq!(row_0(&mut world), [0.0; 8]);
}

#[test]
fn arguments_that_are_staged_count_as_memory() {
    let long = values(&[1.0; 8]);
    let mut spec = rows(Consistency::Bsp);
    (spec.element, spec.initializer, spec.storage) = (ElementType::F64, Initializer::Zero, Storage::Dense);
    spec.rule = PushRule::Add;
    let config = LaneConfig { memory_limit_bytes: 600, ..config() };
    let mut world = World::with(config, open(2, vec![spec]));
    let put = || vec![FunctionCall::push(&VectorOp::Set, &[], &[0], &(0, long.clone(), 1.0)); 100];
    world.send(0, change(0, 0, 0, put()));
    // The memory is counted before a push of this length.
    let many = vec![put(); 20].concat();
    let refused = world.send(0, change(0, 0, 1, many));
    assert_eq!(fault(&refused).kind, FaultKind::TooLarge, "{refused:?}");
}
