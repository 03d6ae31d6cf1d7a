//! Push functions that are tried before they are pushed: a try returns what the push would return, changes nothing, and
//! leaves nothing behind.

use std::time::Duration;

use matrix::function::map::{Map, Scalar};
use matrix::function::vector_op::VectorOp;
use matrix::{Consistency, FunctionCall};
use rpc::message::*;
use rpc::service::Service;

use super::functions::{add, change, row_0, values, world};
use super::world::*;

fn ask(request: RequestId, clock: u64, index: u32, calls: Vec<FunctionCall>) -> TryFunction {
    TryFunction { request, job: JOB, task: 0, clock, index, matrix: 0, wait_ms: 0, calls }
}

fn root() -> Vec<FunctionCall> {
    vec![FunctionCall::push(&Map::Sqrt, &[0], &[0], &())]
}

fn put(at: u64, value: f64) -> Vec<FunctionCall> {
    vec![FunctionCall::push(&VectorOp::Set, &[], &[0], &(at, values(&[value]), 1.0))]
}

#[test]
fn a_try_says_what_a_push_would_and_changes_nothing() {
    let mut world = world(1, Consistency::Asp);
    world.send(0, change(1, 0, 0, add(4.0)));
    let good = only(world.send(0, Message::TryFunction(ask(2, 0, 1, root()))));
    let applied = PushPosition { clock: 0, index: 1 };
    assert_eq!(good, Message::Done(Done { request: 2, minimum: 0, applied }), "the name is still free");
    assert_eq!(row_0(&mut world), [4.0; 8]);
    // The function fails in the second partition. The changes of the first partition and of the call before it are
    // undone.
    world.send(0, change(3, 0, 1, put(7, -9.0)));
    let program = [vec![FunctionCall::push(&Scalar::Add, &[0], &[1], &5.0)], root()].concat();
    let refused = world.send(0, Message::TryFunction(ask(4, 0, 2, program.clone())));
    let said = fault(&refused).clone();
    assert_eq!((said.request, said.kind), (4, FaultKind::Function));
    assert!(said.text.contains("row 0, column 7 is NaN, from -9"), "{}", said.text);
    assert_eq!(row_0(&mut world), [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, -9.0]);
    let pushed = world.send(0, change(4, 0, 2, program));
    assert_eq!(fault(&pushed), &said, "the push gets the same fault");
    assert_eq!(world.stats().push_function_count, 3, "tries are no pushes");
    let mut metrics = rpc::Metrics::default();
    world.lane.metrics(&mut metrics);
    let text = ::control::metrics_text(metrics);
    assert!(text.contains("seraphim_requests_total{lane=\"0\",kind=\"try_function\"} 2"), "{text}");
}

#[test]
fn a_try_of_what_counts_already_is_answered_as_that_was() {
    let mut world = world(1, Consistency::Asp);
    world.send(0, change(1, 0, 0, add(0.5)));
    let log = || vec![FunctionCall::push(&Map::Log, &[0], &[0], &())];
    assert!(matches!(only(world.send(0, change(2, 0, 1, log()))), Message::Done(_)));
    // The task dies here, and another attempt repeats its requests: now the rows are below 0.
    world.send(5, hello(JOB, 0));
    let again = only(world.send(5, Message::TryFunction(ask(3, 0, 1, log()))));
    assert!(matches!(again, Message::Done(Done { request: 3, .. })), "{again:?}");
    let next = world.send(5, Message::TryFunction(ask(4, 0, 2, log())));
    assert_eq!(fault(&next).kind, FaultKind::Function);
    let failed = world.send(5, change(5, 0, 2, log()));
    let again = world.send(5, Message::TryFunction(ask(6, 0, 2, log())));
    assert_eq!(fault(&again), &Fault { request: 6, ..fault(&failed).clone() });
}

#[test]
fn a_name_that_was_used_up_by_nothing_is_told_why() {
    let mut world = world(1, Consistency::Asp);
    world.send(0, change(1, 0, 0, put(7, -9.0)));
    let refused = world.send(0, Message::TryFunction(ask(2, 0, 1, root())));
    assert_eq!(world.send(0, change(0, 0, 1, Vec::new())), [], "a push of nothing");
    assert!(matches!(only(world.send(0, change(3, 0, 2, add(9.0)))), Message::Done(_)), "the next name");
    // Another attempt repeats the request. Now the function could run, but it must not.
    world.send(5, hello(JOB, 0));
    let again = world.send(5, Message::TryFunction(ask(4, 0, 1, root())));
    assert_eq!(fault(&again), &Fault { request: 4, ..fault(&refused).clone() });
    assert_eq!(row_0(&mut world)[6..], [9.0, 0.0]);
    // The reason for a refused try, whose push id is still free, is dropped when another push uses this push id.
    world.send(5, change(5, 0, 3, put(7, -1.0)));
    world.send(5, Message::TryFunction(ask(6, 0, 4, root())));
    world.send(5, change(7, 0, 4, add(1.0)));
    let again = only(world.send(5, change(8, 0, 4, add(1.0))));
    assert!(matches!(again, Message::Done(Done { request: 8, .. })), "{again:?}");
}

#[test]
fn a_try_waits_as_the_push_would_and_is_forgotten_with_its_connection() {
    let mut world = world(2, Consistency::Ssp { staleness: 1 });
    world.tick(0, 2);
    let waiting = TryFunction { wait_ms: 300, ..ask(3, 2, 0, root()) };
    assert_eq!(world.send(0, Message::TryFunction(waiting.clone())), [], "task 1 is two clocks behind");
    let released = world.tick(1, 1);
    assert!(matches!(only(released), Message::Done(Done { request: 3, minimum: 1, .. })));
    world.tick(0, 3);
    world.send(0, Message::TryFunction(TryFunction { clock: 3, ..waiting.clone() }));
    world.now += Duration::from_millis(300);
    let mut out = Vec::new();
    world.lane.on_time(world.now, &mut out);
    assert_eq!(fault(&out).kind, FaultKind::WaitedTooLong);
    assert!(fault(&out).text.contains("to try functions on matrix \"rows\""), "{}", fault(&out).text);
    world.send(0, Message::TryFunction(TryFunction { clock: 3, ..waiting }));
    assert!(world.lane.deferred_bytes > 0);
    world.lane.on_closed(world.now, 0, &mut out);
    assert_eq!((world.lane.deferred_bytes, world.stats().held_count), (0, 0));
}

#[test]
fn only_tasks_try_functions_and_of_staged_ones_the_calls_alone() {
    let mut world = world(1, Consistency::Bsp);
    let refused = world.send(TOOL, Message::TryFunction(ask(1, 0, 0, root())));
    assert_eq!(fault(&refused).kind, FaultKind::Invalid);
    let refused = world.send(0, Message::TryFunction(TryFunction { matrix: 3, ..ask(2, 0, 0, root()) }));
    assert_eq!(fault(&refused).kind, FaultKind::NotFound);
    let wrong = vec![FunctionCall { version: 9, ..root().remove(0) }];
    let refused = world.send(0, Message::TryFunction(ask(3, 0, 0, wrong)));
    assert!(fault(&refused).text.contains("version 9 was requested"), "{}", fault(&refused).text);
    world.send(0, change(0, 0, 0, put(0, -1.0)));
    let done = only(world.send(0, Message::TryFunction(ask(4, 0, 1, root()))));
    assert!(matches!(done, Message::Done(Done { request: 4, .. })), "what the rows will hold nobody knows");
}
