//! Functions that sessions call: they run at once, without clocks, and committed functions count once.

use matrix::function::map::{Map, Scalar};
use matrix::function::reduce::CountNonZero;
use matrix::function::vector_op::VectorOp;
use matrix::{Consistency, FunctionCall};
use rpc::message::*;
use rpc::service::{ConnectionId, Effect};

use super::functions::{add, row_0, rows, values};
use super::sessions::{add as add_matrix, hello_of_session};
use super::world::*;
use crate::LaneConfig;

/// A session with two rows of eight columns. Connections 1 and 2 belong to it.
fn session(config: LaneConfig) -> World {
    let mut world = World::with(config, open(0, Vec::new()));
    assert!(matches!(only(world.send(TOOL, add_matrix(0, rows(Consistency::Asp)))), Message::Done(_)));
    for at in [1, 2] {
        world.send(at, hello_of_session(JOB));
    }
    world
}

fn change(request: RequestId, calls: Vec<FunctionCall>) -> Message {
    Message::PushFunction(PushFunction { request, job: JOB, task: 0, clock: 0, index: 0, matrix: 0, calls })
}

fn ask(request: RequestId, calls: Vec<FunctionCall>) -> Message {
    let (job, matrix) = (JOB, 0);
    Message::TryFunction(TryFunction { request, job, task: 0, clock: 0, index: 0, matrix, wait_ms: 0, calls })
}

fn read(request: RequestId) -> Message {
    let call = FunctionCall::pull(&CountNonZero, &[0], &());
    Message::PullFunction(PullFunction { request, job: JOB, task: 0, clock: 0, matrix: 0, wait_ms: 0, call })
}

fn commit(part: u32, attempt: u64, calls: Vec<FunctionCall>) -> Message {
    Message::CommitFunction(CommitFunction {
        request: 8,
        job: JOB,
        matrix: 0,
        token: 1,
        part,
        attempt,
        calls,
    })
}

fn root() -> FunctionCall {
    FunctionCall::push(&Map::Sqrt, &[0], &[0], &())
}

fn put(at: u64, value: f64) -> FunctionCall {
    FunctionCall::push(&VectorOp::Set, &[], &[0], &(at, values(&[value]), 1.0))
}

fn committed(effects: Vec<Effect>) -> u64 {
    match only(effects) {
        Message::Committed(Committed { request: 8, attempt }) => attempt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_connections_of_a_session_call_functions_at_once() {
    let mut world = session(config());
    assert!(matches!(only(world.send(1, change(5, add(1.5)))), Message::Done(Done { request: 5, .. })));
    assert_eq!(world.send(2, change(0, add(1.0))), [], "no answer was wanted");
    assert_eq!(row_0(&mut world), [2.5; 8], "twice sent is twice done: they have no names");
    let Message::PulledFunction(pulled) = only(world.send(2, read(6))) else { panic!("it is answered") };
    let parts: Vec<u64> =
        pulled.parts.iter().map(|p| u64::from_le_bytes(p.bytes[..].try_into().unwrap())).collect();
    assert_eq!((pulled.request, pulled.minimum, parts), (6, u64::MAX, vec![3, 5]));
    let stats = world.stats();
    assert_eq!((stats.push_function_count, stats.pull_function_count), (2, 1));
}

#[test]
fn what_fails_changes_nothing_on_the_lane_and_says_why() {
    let mut world = session(config());
    world.send(1, change(5, vec![FunctionCall::push(&Scalar::Add, &[0], &[0], &4.0), put(7, -9.0)]));
    let before = row_0(&mut world);
    for message in [ask(6, vec![root()]), change(6, vec![root()]), read(6), change(0, vec![root()])] {
        let out = world.send(1, message.clone());
        if let Message::PullFunction(_) = message {
            continue;
        }
        let expected = if message == change(0, vec![root()]) { 0 } else { 6 };
        assert_eq!((fault(&out).request, fault(&out).kind), (expected, FaultKind::Function));
        assert!(fault(&out).text.contains("row 0, column 7 is NaN, from -9"), "{}", fault(&out).text);
        assert_eq!(out.len(), 1, "the connection stays");
        assert_eq!(row_0(&mut world), before);
    }
    assert!(matches!(only(world.send(1, ask(7, add(1.0)))), Message::Done(Done { request: 7, .. })));
    assert_eq!(row_0(&mut world), before, "a try changes nothing");
    let unknown = FunctionCall { name: "roots".into(), ..root() };
    assert_eq!(fault(&world.send(1, change(6, vec![unknown]))).kind, FaultKind::Function);
    let far = PushFunction { request: 6, job: JOB, task: 0, clock: 0, index: 0, matrix: 4, calls: add(1.0) };
    assert_eq!(fault(&world.send(1, Message::PushFunction(far))).kind, FaultKind::NotFound);
}

#[test]
fn functions_that_are_committed_count_once_whoever_commits() {
    let mut world = session(config());
    assert_eq!(committed(world.send(1, commit(0, 7, add(1.0)))), 7);
    assert_eq!(committed(world.send(2, commit(0, 8, add(1.0)))), 7, "another attempt came too late");
    assert_eq!(committed(world.send(1, commit(0, 7, add(1.0)))), 7, "a repeat");
    assert_eq!(row_0(&mut world), [1.0; 8]);
    // A commit of chunks competes with a commit of functions for the same part.
    let chunks = |part, attempt| {
        Message::Commit(Commit { request: 8, job: JOB, matrix: 0, token: 1, part, attempt, chunks: 0 })
    };
    assert_eq!(committed(world.send(1, chunks(0, 9))), 7);
    assert_eq!(committed(world.send(1, chunks(1, 9))), 9);
    assert_eq!(committed(world.send(1, commit(1, 10, add(1.0)))), 9);
    assert_eq!(row_0(&mut world), [1.0; 8]);
    let counts = world.lane.jobs[&JOB].staged_chunks.counts;
    assert_eq!((counts.commits, counts.late_commits), (2, 3));
    world.send(1, Message::CloseToken(CloseToken { request: 3, job: JOB, matrix: 0, token: 1 }));
    assert_eq!(fault(&world.send(1, commit(2, 1, add(1.0)))).kind, FaultKind::TokenClosed);
    assert_eq!(world.lane.staged_bytes(), 0);
}

#[test]
fn a_commit_of_functions_that_fail_changes_nothing_and_is_free_for_the_next() {
    let mut world = session(config());
    world.send(1, change(5, vec![put(7, -9.0)]));
    let before = row_0(&mut world);
    // The first partition could run the function: without a try, its change would stay there.
    let overflow = FunctionCall::push(&Scalar::Mul, &[0], &[0], &1e308);
    for calls in [vec![root()], vec![put(0, 1.0), overflow]] {
        let out = world.send(1, commit(0, 7, calls));
        assert_eq!((fault(&out).request, fault(&out).kind), (8, FaultKind::Function), "{out:?}");
        assert!(fault(&out).text.contains("commit (matrix 0, token 1, part 0, attempt 7)"), "{out:?}");
        assert_eq!(row_0(&mut world), before);
    }
    assert_eq!(committed(world.send(2, commit(0, 8, add(1.0)))), 8);
}

#[test]
fn an_attempt_has_chunks_or_functions() {
    let mut world = session(config());
    let (runs, keys) = (vec![PartitionRun { partition: 0, count: 1 }], KeyList::Listed(vec![1]));
    let chunk = PushStaged {
        request: 4,
        job: JOB,
        token: 1,
        part: 0,
        attempt: 7,
        chunk: 0,
        matrix: 0,
        table: 0,
        runs,
        keys,
        values: values(&[5.0]),
    };
    assert!(matches!(only(world.send(1, Message::PushStaged(chunk))), Message::Done(_)));
    let out = world.send(1, commit(0, 7, add(1.0)));
    assert_eq!(fault(&out).kind, FaultKind::Invalid);
    assert!(fault(&out).text.contains("1 chunks are staged, the commit is for 0"), "{}", fault(&out).text);
    assert_eq!(committed(world.send(1, commit(0, 8, add(1.0)))), 8, "another attempt may");
    assert_eq!(row_0(&mut world), [1.0; 8]);
}

#[test]
fn functions_go_into_batches_and_their_answers_count_for_the_limit() {
    let mut world = session(config());
    let messages = vec![change(11, add(1.0)), read(12), ask(13, add(1.0)), commit(0, 7, add(1.0))];
    let Message::Batch(batch) = only(world.send(1, Message::Batch(Batch { request: 20, messages }))) else {
        panic!("a batch is answered by a batch");
    };
    let kinds: Vec<&str> = batch.messages.iter().map(Message::kind_name).collect();
    assert_eq!(kinds, ["Done", "PulledFunction", "Done", "Committed"]);
    assert_eq!(row_0(&mut world), [2.0; 8]);
}

#[test]
fn only_the_session_itself_calls_its_functions() {
    let mut world = session(config());
    let stranger: ConnectionId = TOOL;
    for message in [change(5, add(1.0)), ask(5, add(1.0)), read(5), commit(0, 7, add(1.0))] {
        let out = world.send(stranger, message);
        assert_eq!(fault(&out).kind, FaultKind::Invalid, "{out:?}");
    }
    let elsewhere =
        PushFunction { request: 5, job: 8, task: 0, clock: 0, index: 0, matrix: 0, calls: add(1.0) };
    let out = world.send(1, Message::PushFunction(elsewhere));
    assert!(fault(&out).text.contains("names session 8, but its connection belongs to session 7"), "{out:?}");
    assert_eq!(row_0(&mut world), [0.0; 8]);
}
