//! A function of a module gives the same bytes as the built-in function with the same formula, for every element type
//! and any partitioning.

mod common;

use common::{COLUMNS, M, agent_of, ask, change, f32_row, f64_row, fill, module, numbers};
use matrix::function::call::call_pull as ask_built_in;
use matrix::function::reduce::Dot;
use matrix::function::zip::{Axpy, Zip};
use matrix::{Agent as _, ElementType, FunctionCall, Values};

const AXPY: &str = include_str!("../../../examples/axpy.wat");

/// Pull functions: a dot product as terms, the largest value and the number of columns with their own partial answers,
/// and a sum of integers.
const PULLS: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "reads:my_dot") (result i32) (i32.const 2))
  (func (export "terms:my_dot:f32")
    (param $from i32) (param i32) (param $terms i32) (param $length i32) (param i64 i32 i32) (result i32)
    (local $y i32)
    (local.set $y (i32.add (local.get $from) (i32.shl (local.get $length) (i32.const 2))))
    (loop $next
      (f64.store (local.get $terms)
        (f64.mul (f64.promote_f32 (f32.load (local.get $from))) (f64.promote_f32 (f32.load (local.get $y)))))
      (local.set $from (i32.add (local.get $from) (i32.const 4)))
      (local.set $y (i32.add (local.get $y) (i32.const 4)))
      (local.set $terms (i32.add (local.get $terms) (i32.const 8)))
      (local.set $length (i32.sub (local.get $length) (i32.const 1)))
      (br_if $next (local.get $length)))
    (i32.const 0))

  (func (export "reads:extent") (result i32) (i32.const 1))
  (func (export "version:extent") (result i32) (i32.const 7))
  ;; A part is [largest, columns] as two doubles at address 0.
  (func (export "read:extent:f32") (param $from i32) (param i32) (param $length i32) (param i64 i32 i32) (result i64)
    (f64.store (i32.const 0) (f64.const -1e300))
    (f64.store (i32.const 8) (f64.convert_i32_u (local.get $length)))
    (loop $next
      (f64.store (i32.const 0) (f64.max (f64.load (i32.const 0)) (f64.promote_f32 (f32.load (local.get $from)))))
      (local.set $from (i32.add (local.get $from) (i32.const 4)))
      (local.set $length (i32.sub (local.get $length) (i32.const 1)))
      (br_if $next (local.get $length)))
    (i64.const 0x1000000000))
  (func (export "merge:extent") (param $left i32) (param i32) (param $right i32) (param i32 i32 i32) (result i64)
    (f64.store (i32.const 0) (f64.max (f64.load (local.get $left)) (f64.load (local.get $right))))
    (f64.store (i32.const 8)
      (f64.add (f64.load offset=8 (local.get $left)) (f64.load offset=8 (local.get $right))))
    (i64.const 0x1000000000))
  ;; The answer: the largest times the number of the argument.
  (func (export "answer:extent") (param $part i32) (param i32) (param $argument i32) (param i32) (result i64)
    (f64.store (i32.const 16) (f64.mul (f64.load (local.get $part)) (f64.load (local.get $argument))))
    (f64.store (i32.const 24) (f64.load offset=8 (local.get $part)))
    (i64.const 0x1000000010))

  (func (export "reads:double") (result i32) (i32.const 1))
  (func (export "writes:double") (result i32) (i32.const -1))
  (func (export "change:double:i64")
    (param $from i32) (param i32) (param $into i32) (param $rows i32) (param $length i32) (param i64 i32 i32) (result i32)
    (local $left i32) (local $at i32)
    (loop $row
      (local.set $left (local.get $length))
      (local.set $at (local.get $from))
      (loop $next
        (i64.store (local.get $into) (i64.mul (i64.const 2) (i64.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (local.set $into (i32.add (local.get $into) (i32.const 8)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $next (local.get $left)))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows)))
    (i32.const 0)))"#;

#[test]
fn axpy_of_singles_has_the_bytes_of_the_built_in() {
    let mut agent = agent_of(&module(AXPY), ElementType::F32, 3);
    let rows = [0.1, 0.2].map(|seed| numbers(seed).iter().map(|x| *x as f32).collect::<Vec<_>>());
    for (row, values) in rows.iter().enumerate() {
        fill(&mut agent, row as u32, Values::F32(values));
    }
    change(&mut agent, "wat_axpy", &[0, 1], &[2], &[0.3]).expect("rows that fit");
    agent.push_function(M, &[FunctionCall::push(&Axpy, &[0, 1], &[3], &0.3)]).expect("rows that fit");
    let (ours, built_in) = (f32_row(&mut agent, 2), f32_row(&mut agent, 3));
    assert!(ours.iter().any(|x| *x != 0.0));
    assert_eq!(ours, built_in);

    // The function writes the row that it reads, as optimizers do.
    change(&mut agent, "wat_axpy", &[0, 1], &[1], &[0.3]).expect("rows that fit");
    assert_eq!(f32_row(&mut agent, 1), built_in);
}

#[test]
fn axpy_of_doubles_has_the_bytes_of_the_built_in() {
    let mut agent = agent_of(&module(AXPY), ElementType::F64, 2);
    fill(&mut agent, 0, Values::F64(&numbers(0.1)));
    fill(&mut agent, 1, Values::F64(&numbers(0.2)));
    change(&mut agent, "wat_axpy", &[0, 1], &[2], &[-1.7]).expect("rows that fit");
    agent.push_function(M, &[FunctionCall::push(&Axpy, &[0, 1], &[3], &-1.7)]).expect("rows that fit");
    assert_eq!(f64_row(&mut agent, 2), f64_row(&mut agent, 3));
}

#[test]
fn axpy_in_singles_has_the_bytes_of_a_plain_loop() {
    let mut agent = agent_of(&module(AXPY), ElementType::F32, 2);
    let [x, y] = [0.1, 0.2].map(|seed| numbers(seed).iter().map(|x| *x as f32).collect::<Vec<_>>());
    fill(&mut agent, 0, Values::F32(&x));
    fill(&mut agent, 1, Values::F32(&y));
    change(&mut agent, "wat_axpy_singles", &[0, 1], &[1], &[0.3]).expect("rows that fit");
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 0.3f32 * x + y).collect();
    assert_eq!(f32_row(&mut agent, 1), expected);
}

#[test]
fn several_functions_of_a_module_and_built_ins_run_in_one_visit() {
    let mut agent = agent_of(&module(AXPY), ElementType::F64, 2);
    fill(&mut agent, 0, Values::F64(&numbers(0.1)));
    fill(&mut agent, 1, Values::F64(&numbers(0.2)));
    let program = [
        common::push_call("wat_axpy", &[0, 1], &[2], &[0.5]),
        FunctionCall::push(&Zip::Mul, &[2, 2], &[2], &()),
        common::push_call("wat_axpy", &[2, 0], &[2], &[2.0]),
    ];
    agent.push_function(M, &program).expect("rows that fit");
    let (x, y) = (numbers(0.1), numbers(0.2));
    let expected = |i: usize| {
        let z = 0.5 * x[i] + y[i];
        2.0 * (z * z) + x[i]
    };
    let expected: Vec<f64> = (0..COLUMNS as usize).map(expected).collect();
    assert_eq!(f64_row(&mut agent, 2), expected);
}

#[test]
fn a_sum_has_the_bytes_of_the_built_in_for_any_cut() {
    for partitions in [1, 2, 3, 7] {
        let mut agent = agent_of(&module(PULLS), ElementType::F32, partitions);
        for row in [0, 1] {
            let values: Vec<f32> = numbers(f64::from(row)).iter().map(|x| *x as f32).collect();
            fill(&mut agent, row, Values::F32(&values));
        }
        let ours: f64 = ask(&mut agent, "my_dot", &[0, 1], &[]).expect("rows that fit");
        let built_in = ask_built_in(&mut agent, M, &Dot, &[0, 1], &()).expect("rows that fit");
        assert_eq!(ours.to_bits(), built_in.to_bits(), "{partitions} partitions");
    }
}

#[test]
fn parts_are_merged_over_blocks_and_partitions() {
    for partitions in [1, 3] {
        let mut agent = agent_of(&module(PULLS), ElementType::F32, partitions);
        let mut values = vec![-5.0f32; COLUMNS as usize];
        values[9_000] = 1.5;
        fill(&mut agent, 3, Values::F32(&values));
        let mut call = common::push_call("extent", &[3], &[], &[4.0]);
        call.version = 7;
        let bytes = agent.pull_function(M, &call).expect("rows that fit");
        let answer: Vec<f64> = matrix::function::unpack(&bytes).expect("numbers");
        assert_eq!(answer, [6.0, COLUMNS as f64], "{partitions} partitions");
    }
}

#[test]
fn integers_and_several_rows_go_in_and_come_out() {
    let mut agent = agent_of(&module(PULLS), ElementType::I64, 2);
    let values: Vec<i64> = (0..COLUMNS as i64).map(|i| i * i - 7).collect();
    fill(&mut agent, 0, Values::I64(&values));
    change(&mut agent, "double", &[0], &[1, 3], &[]).expect("rows that fit");
    let total = |agent: &mut _, row| {
        let reduce = matrix::function::reduce::Reduce::Sum;
        ask_built_in(agent, M, &reduce, &[row], &()).expect("a row")
    };
    let expected = 2.0 * total(&mut agent, 0);
    assert_eq!((total(&mut agent, 1), total(&mut agent, 3)), (expected, expected));
    assert_eq!(total(&mut agent, 2), 0.0);
}
