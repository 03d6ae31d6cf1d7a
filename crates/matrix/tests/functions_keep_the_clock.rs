//! A push function follows the rules of a push and a pull function those of a pull: under BSP functions are staged and
//! run in the order (task, index) among the other pushes; under SSP and ASP they run on arrival.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::Duration;

use common::{W as M, long, store_of, store_with};
use matrix::function::call::call_pull;
use matrix::function::map::{Map, Scalar, Set};
use matrix::function::reduce::Reduce;
use matrix::function::vector_op::VectorOp;
use matrix::function::zip::{Axpy, Zip};
use matrix::{
    Agent, Consistency, ElementType, Error, FunctionCall, FunctionTable, Initializer, Keys, LocalAgent,
    Matrix, MatrixSpec, OwnedValues, PushId, PushRule, Selection, Values, ValuesMut,
};

const COLUMNS: u64 = 9_000;

fn spec(element: ElementType, consistency: Consistency) -> MatrixSpec {
    let initializer = Initializer::Constant { value: 1.0 };
    MatrixSpec { element, initializer, rule: PushRule::Add, consistency, ..long(3, COLUMNS, 3) }
}

fn scale(agent: &mut LocalAgent, by: f64) {
    agent.push_function(M, &[FunctionCall::push(&Scalar::Mul, &[0], &[0], &by)]).unwrap();
}

fn add(agent: &mut LocalAgent, value: f32) {
    let part = Selection::Columns { row: 0, keys: Keys::Range(0, COLUMNS) };
    agent.push(M, part, Values::F32(&vec![value; COLUMNS as usize])).unwrap();
}

/// Returns the value that all columns of row 0 have.
fn value(agent: &mut LocalAgent) -> f32 {
    let mut out = vec![0.0; COLUMNS as usize];
    agent
        .pull(M, Selection::Columns { row: 0, keys: Keys::Range(0, COLUMNS) }, ValuesMut::F32(&mut out))
        .unwrap();
    assert!(out.iter().all(|x| *x == out[0]));
    let sum = call_pull(agent, M, &Reduce::Sum, &[0], &()).unwrap();
    assert_eq!(sum, f64::from(out[0]) * COLUMNS as f64, "a pull function sees what a pull sees");
    out[0]
}

#[test]
fn under_bsp_functions_come_between_pushes_in_the_order_of_tasks_whoever_comes_first() {
    for reverse in [false, true] {
        let spec = spec(ElementType::F32, Consistency::Bsp);
        let store = store_of(2, [spec]);
        let mut agents = [store.agent(0), store.agent(1)];
        let steps: [fn(&mut LocalAgent); 2] = [
            |first| {
                add(first, 2.0);
                scale(first, 10.0);
                add(first, 3.0);
            },
            |second| {
                add(second, 4.0);
                scale(second, 2.0);
            },
        ];
        let order = if reverse { [1, 0] } else { [0, 1] };
        for task in order {
            steps[task](&mut agents[task]);
            assert_eq!(value(&mut agents[task]), 1.0, "not before the tick");
        }
        for task in order {
            agents[task].tick().unwrap();
        }
        // ((1 + 2) * 10 + 3 + 4) * 2
        assert_eq!((value(&mut agents[0]), value(&mut agents[1])), (74.0, 74.0));
        scale(&mut agents[1], 3.0);
        assert_eq!(value(&mut agents[0]), 74.0, "the stamp of this clock is not seen");
    }
}

#[test]
fn a_lane_stages_functions_as_the_process_does() {
    let spec = spec(ElementType::F32, Consistency::Bsp);
    let lane = Matrix::new(spec, &[0, 1, 2], &FunctionTable::builtin()).unwrap();
    let table = FunctionTable::builtin();
    let push = |clock, task, index, by: f64, scalar: Scalar| {
        let call = FunctionCall::push(&scalar, &[0], &[0], &by);
        lane.push_function(&table, &[call], PushId { clock, task, index }).unwrap();
    };
    push(1, 0, 0, 100.0, Scalar::Mul);
    push(0, 1, 0, 2.0, Scalar::Mul);
    push(0, 0, 1, 5.0, Scalar::Add);
    push(0, 0, 0, 3.0, Scalar::Mul);
    for (bound, expected) in [(0, 1.0), (1, (1.0 * 3.0 + 5.0) * 2.0), (2, 1600.0)] {
        let OwnedValues::F32(values) = lane.export(bound).unwrap().values else { panic!("f32") };
        assert_eq!(values[..COLUMNS as usize], vec![expected; COLUMNS as usize], "clock {bound}");
    }
}

#[test]
fn under_asp_functions_apply_on_arrival_and_under_ssp_they_wait_for_the_bound() {
    let asp = store_of(2, [spec(ElementType::F32, Consistency::Asp)]);
    let (mut first, mut second) = (asp.agent(0), asp.agent(1));
    scale(&mut first, 5.0);
    assert_eq!(value(&mut second), 5.0);
    let consistency = Consistency::Ssp { staleness: 1 };
    let ssp = store_with(2, Duration::from_millis(50), [spec(ElementType::F32, consistency)]);
    let (mut first, second) = (ssp.agent(0), ssp.agent(1));
    first.tick().unwrap();
    scale(&mut first, 5.0);
    assert_eq!(value(&mut first), 5.0, "one clock ahead is allowed");
    first.tick().unwrap();
    let call = FunctionCall::push(&Set, &[], &[0], &1.0);
    let pushed = first.push_function(M, std::slice::from_ref(&call)).unwrap_err();
    let pulled = call_pull(&mut first, M, &Reduce::Sum, &[0], &()).unwrap_err();
    for error in [pushed, pulled] {
        assert!(matches!(error, Error::WaitTimeout { .. }), "{error}");
    }
    drop(second);
    first.push_function(M, &[call]).unwrap();
    first.finish().unwrap();
    let after = call_pull(&mut first, M, &Reduce::Sum, &[0], &()).unwrap_err();
    assert!(matches!(after, Error::Task { call: "pull_function", .. }), "{after}");
}

#[test]
fn a_program_of_several_functions_is_the_functions_one_after_the_other() {
    let make = || store_of(1, [spec(ElementType::F32, Consistency::Asp)]).agent(0);
    let sent: Vec<f32> = (0..COLUMNS).map(|i| (i % 97) as f32 / 7.0).collect();
    let steps = [
        FunctionCall::push(&VectorOp::Set, &[], &[0], &(0, OwnedValues::F32(sent), 1.0)),
        FunctionCall::push(&Map::Sqrt, &[0], &[1], &()),
        FunctionCall::push(&Axpy, &[1, 0], &[0], &-0.5),
        FunctionCall::push(&Zip::Mul, &[0, 1], &[2], &()),
        FunctionCall::push(&Map::Negate, &[2], &[2], &()),
    ];
    let (mut together, mut apart) = (make(), make());
    together.push_function(M, &steps).unwrap();
    for step in &steps {
        apart.push_function(M, std::slice::from_ref(step)).unwrap();
    }
    for row in 0..3 {
        let pull = |agent: &mut LocalAgent| {
            let mut out = vec![0.0; COLUMNS as usize];
            let part = Selection::Columns { row, keys: Keys::Range(0, COLUMNS) };
            agent.pull(M, part, ValuesMut::F32(&mut out)).unwrap();
            out
        };
        let values = pull(&mut together);
        assert_eq!(values, pull(&mut apart));
        assert!(values.iter().any(|x| *x != values[0]));
    }
}

#[test]
fn integers_are_exact() {
    let mut agent = store_of(1, [spec(ElementType::I64, Consistency::Asp)]).agent(0);
    let big = (1i64 << 53) + 1;
    let values = OwnedValues::I64(vec![-big; COLUMNS as usize]);
    let steps = [
        FunctionCall::push(&VectorOp::Set, &[], &[0], &(0, values, 1.0)),
        FunctionCall::push(&Zip::Add, &[0, 1], &[1], &()),
        FunctionCall::push(&Map::Abs, &[0], &[2], &()),
    ];
    agent.push_function(M, &steps).unwrap();
    for (row, expected) in [(0, -big), (1, 1 - big), (2, big)] {
        let mut out = vec![0i64; COLUMNS as usize];
        let part = Selection::Columns { row, keys: Keys::Range(0, COLUMNS) };
        agent.pull(M, part, ValuesMut::I64(&mut out)).unwrap();
        assert_eq!(out, vec![expected; COLUMNS as usize], "row {row}");
    }
    for call in [
        FunctionCall::push(&Map::Exp, &[0], &[0], &()),
        FunctionCall::push(&Zip::Div, &[0, 0], &[0], &()),
        FunctionCall::push(&Axpy, &[0, 0], &[0], &1.0),
        FunctionCall::push(&Set, &[], &[0], &0.5),
    ] {
        let error = agent.push_function(M, &[call]).unwrap_err();
        assert!(matches!(error, Error::Function { .. }), "{error}");
    }
}
