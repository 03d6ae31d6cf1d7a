//! Given an agent and lanes whose connections break at any point; when it calls functions, some of which fail; then
//! each counts once, its answer is that of one process, and its error is returned by its own call and by no other.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{World, layout};
use matrix::function::map::{Map, Scalar};
use matrix::function::reduce::Reduce;
use matrix::function::unpack;
use matrix::function::vector_op::VectorOp;
use matrix::function::zip::Axpy;
use matrix::{
    Consistency, ElementType, Error, FunctionCall, FunctionTable, Keys, Matrix, MatrixId, MatrixSpec,
    OwnedValues, PullFunction as _, Selection, ValuesMut, VectorPool,
};
use proptest::prelude::*;
use rpc::Message;
use rpc::message::FaultKind;
use worker::{AgentState, CallOutput};

const COLUMNS: u64 = 2_000;
const M: MatrixId = MatrixId(0);

/// Three lanes with vectors of doubles in five partitions.
fn world(consistency: Consistency) -> World {
    world_of(&VectorPool::spec("v", ElementType::F64, 3, COLUMNS, 5, consistency))
}

fn world_of(spec: &MatrixSpec) -> World {
    let mut world = World::new(layout(vec![spec.clone()], 3, 4_000));
    let layout = world.agent.layout().clone();
    for (at, lane) in (0u16..).zip(&mut world.lanes) {
        lane.partitions = vec![
            Matrix::new(spec.clone(), &layout.lane_partitions(at)[0], &FunctionTable::builtin()).unwrap(),
        ];
    }
    world
}

fn push(world: &mut World, calls: &[FunctionCall]) -> Result<CallOutput, Error> {
    world.agent.push_function(world.now, M, calls);
    world.run()
}

fn pull(world: &mut World, call: &FunctionCall) -> Result<Vec<u8>, Error> {
    world.agent.pull_function(world.now, M, call);
    world.run().map(|outcome| match outcome {
        CallOutput::FunctionAnswer(bytes) => bytes,
        other => panic!("{other:?}"),
    })
}

fn sum(row: u32) -> FunctionCall {
    FunctionCall::pull(&Reduce::Sum, &[row], &())
}

fn sum_of(world: &mut World, row: u32) -> f64 {
    unpack(&pull(world, &sum(row)).unwrap()).unwrap()
}

fn add(row: u32, value: f64) -> FunctionCall {
    FunctionCall::push(&Scalar::Add, &[row], &[row], &value)
}

#[test]
fn a_call_is_one_message_to_each_lane_that_holds_something() {
    let spec = VectorPool::spec("v", ElementType::F64, 3, COLUMNS, 2, Consistency::Asp);
    let mut world = world_of(&spec);
    let calls = [add(0, 1.0), add(1, 2.0), FunctionCall::push(&Axpy, &[0, 1], &[1], &0.5)];
    push(&mut world, &calls).unwrap();
    assert_eq!(sum_of(&mut world, 1), 2.5 * COLUMNS as f64);
    let sent = |lane| {
        let own = world.sent.iter().filter(|(at, _)| *at == lane);
        own.map(|(_, message)| message.kind_name()).collect::<Vec<_>>()
    };
    assert_eq!(
        (sent(0), sent(1)),
        (vec!["PushFunction", "PullFunction"], vec!["PushFunction", "PullFunction"])
    );
    assert_eq!(sent(2), [""; 0], "it holds nothing of the matrix");
}

#[test]
fn a_lane_is_sent_what_its_columns_need_of_a_vector() {
    let mut world = world(Consistency::Asp);
    let values: Vec<f64> = (0..COLUMNS).map(|i| i as f64).collect();
    let put = FunctionCall::push(&VectorOp::Set, &[], &[2], &(0, OwnedValues::F64(values), 1.0));
    let length = put.argument.len();
    push(&mut world, &[put]).unwrap();
    assert_eq!(sum_of(&mut world, 2), (COLUMNS * (COLUMNS - 1) / 2) as f64);
    let bytes = world.sent.iter().map(|(_, message)| match message {
        Message::PushFunction(push) => push.calls[0].argument.len(),
        _ => 0,
    });
    let (longest, all) = bytes.fold((0, 0), |(longest, all), bytes| (longest.max(bytes), all + bytes));
    assert!(longest < length / 2 && all < length + 100, "{longest} and {all} of {length}");
}

#[test]
fn an_argument_that_no_frame_holds_is_refused_before_anything_is_sent() {
    let columns = 40 << 20;
    let mut spec = VectorPool::spec("v", ElementType::F32, 1, columns, 2, Consistency::Asp);
    spec.rows = 1;
    let mut world = World::new(layout(vec![spec], 1, 1 << 20));
    let long = OwnedValues::F32(vec![0.0; 17 << 20]);
    let put = FunctionCall::push(&VectorOp::Set, &[], &[0], &(0, long, 1.0));
    let error = push(&mut world, &[put]).unwrap_err().to_string();
    assert!(error.contains("\"set_vector\" on matrix \"v\": argument:"), "{error}");
    assert!(error.contains("at most 67108864: send it in several calls"), "{error}");
    assert!(world.sent.is_empty());
}

#[test]
fn what_the_agent_knows_to_be_wrong_is_not_sent_and_the_agent_goes_on() {
    let mut world = world(Consistency::Asp);
    let error = push(&mut world, &[FunctionCall { name: "scalar_ad".into(), ..add(0, 1.0) }]).unwrap_err();
    assert!(error.to_string().contains("did you mean \"scalar_add\"?"), "{error}");
    let error = pull(&mut world, &FunctionCall { from: vec![7], ..sum(0) }).unwrap_err();
    assert!(error.to_string().contains("row 7, expected below the 3 rows"), "{error}");
    world.agent.pull_function(world.now, MatrixId(4), &sum(0));
    assert!(matches!(world.run(), Err(Error::NoSuchMatrix { id: 4, .. })));
    assert!(world.sent.is_empty());
    assert_eq!(sum_of(&mut world, 0), 0.0);
}

#[test]
fn what_a_lane_cannot_carry_out_is_the_error_of_that_call_and_of_no_other() {
    let mut world = world(Consistency::Asp);
    // The lanes have another function table than the agent.
    world.agent = agent_with_own(&world);
    push(&mut world, &[add(0, -1.0)]).unwrap();
    let log = FunctionCall::push(&Map::Log, &[0], &[1], &());
    let error = push(&mut world, &[log]).unwrap_err();
    let Error::FunctionAtServer { server, text } = &error else { panic!("{error:?}") };
    assert_eq!(server, "tcp:host0:1 (lane 0)", "of all that failed the first lane");
    assert!(text.contains("row 1, column 0 is NaN, from -1"), "{text}");
    assert_eq!((sum_of(&mut world, 0), sum_of(&mut world, 1)), (-(COLUMNS as f64), 0.0));
    let error = pull(&mut world, &FunctionCall::pull(&Own, &[0], &())).unwrap_err();
    assert!(error.to_string().contains("this function is not registered"), "{error}");
    assert_eq!(sum_of(&mut world, 0), -(COLUMNS as f64), "answers that were under way mean nothing");
    push(&mut world, &[add(0, 1.0)]).unwrap();
    assert_eq!(sum_of(&mut world, 0), 0.0);
    assert_eq!(Own.name(), "own");
}

/// The kinds of the messages that were sent since the last call, lane by lane.
fn kinds(world: &mut World) -> Vec<Vec<&'static str>> {
    let sent = std::mem::take(&mut world.sent);
    let of =
        |lane| sent.iter().filter(|(at, _)| *at == lane).map(|(_, message)| message.kind_name()).collect();
    (0..3).map(of).collect()
}

#[test]
fn functions_that_may_fail_are_tried_at_all_lanes_before_they_are_pushed_to_one() {
    let mut world = world(Consistency::Asp);
    let root = || FunctionCall::push(&Map::Sqrt, &[0], &[0], &());
    let put = |at: u64, value: f64| {
        [FunctionCall::push(&VectorOp::Set, &[], &[0], &(at, OwnedValues::F64(vec![value]), 1.0))]
    };
    push(&mut world, &[add(0, 4.0)]).unwrap();
    assert_eq!(kinds(&mut world), [["PushFunction"]; 3], "what cannot fail is pushed at once");
    push(&mut world, &[root()]).unwrap();
    assert_eq!(kinds(&mut world), [["TryFunction", "PushFunction"]; 3]);
    assert_eq!(sum_of(&mut world, 0), 2.0 * COLUMNS as f64);

    push(&mut world, &put(COLUMNS - 1, -1.0)).unwrap();
    kinds(&mut world);
    // The same holds behind a function that cannot fail: its changes must not stay either.
    let program = [add(1, 1.0), root()];
    let error = push(&mut world, &program).unwrap_err().to_string();
    assert!(
        error.contains("tcp:host2:1 (lane 0)") && error.contains("column 1999 is NaN, from -1"),
        "{error}"
    );
    let is_empty =
        |message: &Message| matches!(message, Message::PushFunction(push) if push.calls.is_empty());
    assert_eq!(
        world.sent.iter().filter(|(_, message)| is_empty(message)).count(),
        3,
        "the last lane has said no"
    );
    assert_eq!(kinds(&mut world), [["TryFunction", "PushFunction"]; 3], "of nothing, for the name");
    assert_eq!(sum_of(&mut world, 0), 2.0 * (COLUMNS - 1) as f64 - 1.0);
    assert_eq!(sum_of(&mut world, 1), 0.0);
    // Nothing is left of the failed call.
    push(&mut world, &put(COLUMNS - 1, 1.0)).unwrap();
    push(&mut world, &program).unwrap();
    assert_eq!(sum_of(&mut world, 1), COLUMNS as f64);
}

#[test]
fn one_lane_and_staged_functions_are_not_tried_first() {
    let root = [FunctionCall::push(&Map::Sqrt, &[0], &[0], &())];
    let one = VectorPool::spec("v", ElementType::F64, 3, COLUMNS, 1, Consistency::Asp);
    let mut world = world_of(&one);
    push(&mut world, &root).unwrap();
    assert_eq!(kinds(&mut world).concat(), ["PushFunction"], "a lane tries on its partitions by itself");
    let mut world = self::world(Consistency::Bsp);
    push(&mut world, &root).unwrap();
    while world.move_all() {}
    assert_eq!(kinds(&mut world), [["PushFunction"]; 3]);
}

#[test]
fn a_lane_that_has_closed_the_job_ends_the_task_and_the_function_is_not_blamed() {
    let mut world = world_of(&VectorPool::spec("v", ElementType::F64, 3, COLUMNS, 1, Consistency::Asp));
    push(&mut world, &[add(0, 1.0)]).unwrap();
    assert_eq!(world.agent.resend_count(), 0);
    world.sent.clear();
    world.agent.push_function(world.now, M, &[add(0, 1.0)]);
    world.carry_out();
    let [(lane, message)] = &world.sent[..] else { panic!("one lane has the matrix") };
    let Message::PushFunction(sent) = message.clone() else { panic!("{message:?}") };
    assert_ne!(sent.request, 0, "the task waits for it");
    world.agent.on_message(world.now, *lane, common::fault(sent.request, FaultKind::Stopped, 0));
    let error = world.agent.take_result().expect("the call has ended").unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
}

struct Own;

impl matrix::PullFunction for Own {
    type Argument = ();
    type Partial = u64;
    type Answer = u64;

    fn name(&self) -> &'static str {
        "own"
    }

    fn reads(&self) -> matrix::function::Arity {
        matrix::function::Arity::Exactly(1)
    }

    fn read(&self, (): &(), _: &matrix::function::Columns<'_>) -> Result<u64, matrix::FunctionFault> {
        Ok(1)
    }

    fn merge(&self, (): &(), _: &matrix::function::Shape, _: Vec<u64>) -> Result<u64, matrix::FunctionFault> {
        Ok(1)
    }
}

fn own_functions() -> FunctionTable {
    let mut own = FunctionTable::builtin();
    own.add_pull(Own).unwrap();
    own
}

/// A new agent of the layout of `world` with [`Own`].
fn agent_with_own(world: &World) -> AgentState {
    AgentState::new(world.now, world.agent.layout().clone(), 0, own_functions()).unwrap()
}

#[test]
fn a_function_of_your_own_is_answered_where_agent_and_lanes_have_it() {
    let mut world = world(Consistency::Asp);
    world.lanes.iter_mut().for_each(|lane| lane.functions = own_functions());
    world.agent = agent_with_own(&world);
    let answer: u64 = unpack(&pull(&mut world, &FunctionCall::pull(&Own, &[0], &())).unwrap()).unwrap();
    assert_eq!(answer, 1);
}

#[test]
fn what_was_asked_ahead_is_thrown_away_after_an_own_function() {
    let spec = VectorPool::spec("v", ElementType::I64, 1, COLUMNS, 1, Consistency::Asp);
    let mut world = World::new(layout(vec![spec.clone()], 1, 1 << 20));
    world.lanes[0].partitions = vec![Matrix::new(spec, &[0], &FunctionTable::builtin()).unwrap()];
    // The small lane answers a pull with the columns of its spec for each key. For a vector this is one.
    world.lanes[0].specs[0].columns = 1;
    let part = Selection::Columns { row: 0, keys: Keys::Range(3, 5) };
    let ticket = world.agent.prefetch(world.now, M, part, 0);
    while world.move_all() {}
    let ones = OwnedValues::I64(vec![1, 1]);
    push(&mut world, &[FunctionCall::push(&VectorOp::Add, &[], &[0], &(3, ones, 1.0))]).unwrap();
    world.lanes[0].rows.extend([((0, 0, 3), 1), ((0, 0, 4), 1)]);
    world.agent.wait(world.now, &ticket);
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    let mut out = [0; 2];
    world.agent.read_pulled(ValuesMut::I64(&mut out)).unwrap();
    assert_eq!(out, [1, 1], "a task sees what its own functions did");
}

#[test]
fn a_lane_that_answers_with_parts_of_others_is_broken() {
    let mut world = world(Consistency::Asp);
    world.agent.pull_function(world.now, M, &sum(0));
    let mut said = false;
    for lane in (0..3).cycle().take(12) {
        world.step(lane, 0, (0, 0));
        for message in &mut world.wires[lane].to_agent {
            if let Message::PulledFunction(pulled) = message {
                pulled.parts[0].partition = (pulled.parts[0].partition + 2) % 5;
                said = true;
            }
        }
        world.step(lane, 1, (0, 0));
    }
    let error = world.agent.take_result().unwrap().unwrap_err();
    assert!(said && error.to_string().contains("partitions that it does not own"), "{error}");
}

#[derive(Clone, Debug)]
enum Act {
    Add(u32, i32),
    /// Sets a value of one column, at one lane.
    Put(u32, u64, i32),
    /// Fails when a value of the row is below 0 at any lane. Then nothing changes at any lane.
    Root(u32),
    Sum(u32),
    Tick,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0u32..3, -2i32..5).prop_map(|(row, value)| Act::Add(row, value)),
        2 => (0u32..3, 0..COLUMNS, -30i32..5).prop_map(|(row, at, value)| Act::Put(row, at, value)),
        3 => (0u32..3).prop_map(Act::Root),
        3 => (0u32..3).prop_map(Act::Sum),
        1 => Just(Act::Tick),
    ];
    prop::collection::vec(act, 1..25)
}

/// The columns of each lane.
fn columns_of_lanes(world: &World) -> Vec<std::ops::Range<usize>> {
    let layout = world.agent.layout();
    let placement = layout.matrices[0].placement(&FunctionTable::builtin()).unwrap();
    let range = |p: u32| placement.range(p as usize).unwrap();
    let held = (0u16..3).map(|lane| layout.lane_partitions(lane).remove(0));
    held.map(|held| range(held[0]).start as usize..range(held[held.len() - 1]).end as usize).collect()
}

fn moves() -> impl Strategy<Value = Vec<(usize, u8, usize, usize)>> {
    let kind = prop_oneof![6 => Just(0u8), 6 => Just(1u8), 1 => Just(2u8), 1 => Just(3u8)];
    prop::collection::vec((0usize..3, kind, 0usize..4, 0usize..3), 0..200)
}

/// Runs steps of the network until the call ends.
fn finish_call(
    world: &mut World,
    moves: &mut std::vec::IntoIter<(usize, u8, usize, usize)>,
) -> Result<CallOutput, Error> {
    loop {
        if let Some(outcome) = world.agent.take_result() {
            world.carry_out();
            return outcome;
        }
        let Some((lane, kind, there, back)) = moves.next() else { return world.run() };
        world.step(lane, kind, (there, back));
        if kind == 3 {
            world.wait();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_function_counts_once_whatever_breaks(acts in acts(), moves in moves(), staged in any::<bool>()) {
        let mut world = world(if staged { Consistency::Bsp } else { Consistency::Asp });
        world.lanes.iter_mut().for_each(|lane| lane.window = 300);
        let mut moves = moves.into_iter();
        let lanes = columns_of_lanes(&world);
        let mut rows = vec![vec![0.0f64; COLUMNS as usize]; 3];
        // Under BSP a read sees the state at the end of the last clock.
        let mut seen = rows.clone();
        for act in acts {
            match act {
                Act::Add(row, value) => {
                    rows[row as usize].iter_mut().for_each(|x| *x += f64::from(value));
                    world.agent.push_function(world.now, M, &[add(row, f64::from(value))]);
                    prop_assert_eq!(finish_call(&mut world, &mut moves), Ok(CallOutput::Done));
                }
                Act::Put(row, at, value) => {
                    rows[row as usize][at as usize] = f64::from(value);
                    let vector = (at, OwnedValues::F64(vec![f64::from(value)]), 1.0);
                    let put = FunctionCall::push(&VectorOp::Set, &[], &[row], &vector);
                    world.agent.push_function(world.now, M, &[put]);
                    prop_assert_eq!(finish_call(&mut world, &mut moves), Ok(CallOutput::Done));
                }
                Act::Root(_) if staged => {}
                Act::Root(row) => {
                    let root = FunctionCall::push(&Map::Sqrt, &[row], &[row], &());
                    world.agent.push_function(world.now, M, &[root]);
                    let done = finish_call(&mut world, &mut moves);
                    let row = &mut rows[row as usize];
                    let fails = |lane: &std::ops::Range<usize>| row[lane.clone()].iter().any(|x| *x < 0.0);
                    let expected = lanes.iter().position(fails).map(|lane| format!("tcp:host{lane}:1 (lane 0)"));
                    let failed = match &done {
                        Err(Error::FunctionAtServer { server, .. }) => Some(server.clone()),
                        other => { prop_assert_eq!(other, &Ok(CallOutput::Done)); None }
                    };
                    prop_assert_eq!(&failed, &expected);
                    if expected.is_none() {
                        for x in row.iter_mut() {
                            *x = x.sqrt();
                        }
                    }
                }
                Act::Sum(row) => {
                    world.agent.pull_function(world.now, M, &sum(row));
                    let Ok(CallOutput::FunctionAnswer(bytes)) = finish_call(&mut world, &mut moves) else { panic!() };
                    let row = if staged { &seen[row as usize] } else { &rows[row as usize] };
                    let (expected, size): (f64, f64) = (row.iter().sum(), row.iter().map(|x| x.abs()).sum());
                    let actual: f64 = unpack(&bytes).unwrap();
                    // Doubles are summed in another order.
                    prop_assert!((actual - expected).abs() <= 1e-9 * size, "{} for {}", actual, expected);
                }
                Act::Tick => {
                    world.agent.tick(world.now);
                    prop_assert_eq!(finish_call(&mut world, &mut moves), Ok(CallOutput::Done));
                    seen.clone_from(&rows);
                }
            }
        }
        world.agent.finish(world.now);
        prop_assert_eq!(finish_call(&mut world, &mut moves), Ok(CallOutput::Done));
    }
}

#[test]
fn the_answer_to_a_function_tells_how_old_the_rows_may_be() {
    let mut world = world(Consistency::Asp);
    for _ in 0..5 {
        world.agent.tick(world.now);
        world.run().unwrap();
    }
    sum_of(&mut world, 0);
    let oldest = world.lanes.iter().map(common::FakeLane::minimum).min().unwrap();
    assert_eq!(world.agent.take_staleness(), Some(5 - oldest.min(5)));
    assert_eq!(world.agent.take_staleness(), None, "it is taken once");
}
