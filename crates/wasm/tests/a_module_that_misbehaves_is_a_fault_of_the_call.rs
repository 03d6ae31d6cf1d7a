//! Whatever the code of a module does, the call returns an error that describes it, the rows do not change, and the
//! agent, the matrix and the other functions continue to work.

mod common;

use common::{agent_of, ask, change, f64_row, fill, module, module_with, numbers};
use matrix::{ElementType, LocalAgent, Values};
use wasm::Limits;

/// Returns a module with a push function `bad` of one row and the given body. The locals are the parameters of the
/// interface, by name.
fn bad(body: &str) -> String {
    format!(
        r#"(module
          (memory (export "memory") 1)
          (global $calls (mut i32) (i32.const 0))
          (func $deep (result i32) (i32.add (i32.const 1) (call $deep)))
          (func (export "reads:bad") (result i32) (i32.const 1))
          (func (export "writes:bad") (result i32) (i32.const 1))
          (func (export "arguments:bad") (result i32) (i32.const 0))
          (func (export "change:bad:f64")
            (param $from i32) (param $from_count i32) (param $into i32) (param $into_count i32)
            (param $length i32) (param $start i64) (param $argument i32) (param $argument_count i32)
            (result i32)
            (f64.store (local.get $into) (f64.const 123))
            (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            {body}))"#
    )
}

fn agent(text: &str) -> LocalAgent {
    let mut agent = agent_of(&module(text), ElementType::F64, 2);
    fill(&mut agent, 0, Values::F64(&numbers(0.5)));
    agent
}

/// Calls `bad` on row 0 twice. Both calls must fail with these words and change nothing.
fn fails(body: &str, words: &[&str]) {
    let mut agent = agent(&bad(body));
    for _ in 0..2 {
        let error = change(&mut agent, "bad", &[0], &[0], &[]).expect_err(body).to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error} lacks {words:?}");
        assert!(error.contains("bad") && error.contains("long"), "{error} names function and matrix");
    }
    assert_eq!(f64_row(&mut agent, 0), numbers(0.5), "{body}");
}

#[test]
fn an_endless_loop_is_stopped() {
    fails("(loop $for_ever (br $for_ever)) (i32.const 0)", &["stopped after", "fuel", "endless loop"]);
}

#[test]
fn copies_of_much_memory_count_as_steps() {
    let body = "(loop $for_ever (memory.fill (i32.const 0) (i32.const 1) (i32.const 60000)) (br $for_ever)) (i32.const 0)";
    fails(body, &["stopped after"]);
}

#[test]
fn a_trap_in_the_middle_of_a_change_leaves_the_rows() {
    // The function fails in a later block, so the earlier blocks must be restored.
    let late = "(if (i64.ge_u (local.get $start) (i64.const 4096)) (then unreachable)) (i32.const 0)";
    fails(late, &["trapped", "unreachable"]);
    fails("(drop (i32.div_u (i32.const 1) (i32.const 0))) (i32.const 0)", &["trapped", "divide by zero"]);
}

#[test]
fn a_trap_in_a_later_partition_leaves_the_earlier_ones_unless_the_module_says_that_it_cannot_fail() {
    let late = "(if (i64.ge_u (local.get $start) (i64.const 12000)) (then unreachable)) (i32.const 0)";
    fails(late, &["trapped", "unreachable"]);
    let reads = "(func (export \"reads:bad\")";
    let vouches = format!("(func (export \"tries_first:bad\") (result i32) (i32.const 0)) {reads}");
    let mut agent = agent(&bad(late).replacen(reads, &vouches, 1));
    change(&mut agent, "bad", &[0], &[0], &[]).expect_err("it traps all the same");
    assert_ne!(f64_row(&mut agent, 0), numbers(0.5), "it is not tried");
}

#[test]
fn an_address_outside_of_memory_is_a_trap() {
    fails("(drop (i32.load (i32.const -8))) (i32.const 0)", &["trapped", "out of bounds"]);
}

#[test]
fn a_call_that_never_ends_in_itself_is_stopped() {
    fails("(drop (call $deep)) (i32.const 0)", &["too deep"]);
}

#[test]
fn memory_above_the_limit_is_not_given() {
    fails("(drop (memory.grow (i32.const 60000))) (i32.const 0)", &["memory", "67108864 bytes"]);
}

#[test]
fn rows_that_do_not_fit_beside_the_memory_of_the_module_are_told() {
    let limits = Limits { memory_bytes: 1 << 16, ..Limits::default() };
    let module = module_with(&bad("(i32.const 0)"), &limits).expect("it fits without rows");
    let mut agent = agent_of(&module, ElementType::F64, 2);
    let error = change(&mut agent, "bad", &[0], &[0], &[]).expect_err("no room for rows").to_string();
    assert!(error.contains("65536") && error.contains("reduce the memory"), "{error}");
}

#[test]
fn a_status_is_told() {
    fails("(i32.const 42)", &["status 42"]);
}

#[test]
fn a_result_that_is_not_finite_is_told_with_its_place() {
    fails(
        "(f64.store offset=8 (local.get $into) (f64.const nan)) (i32.const 0)",
        &["row 0", "column 1", "NaN"],
    );
    fails(
        "(f64.store offset=8 (local.get $into) (f64.const inf)) (i32.const 0)",
        &["row 0", "column 1", "inf"],
    );
}

#[test]
fn arguments_and_element_types_for_which_there_is_no_code_are_refused_before_anything_runs() {
    let mut agent = agent(&bad("(i32.const 0)"));
    let error = change(&mut agent, "bad", &[0], &[0], &[1.0]).expect_err("one number too many").to_string();
    assert!(error.contains("numbers in the argument: 1, expected 0"), "{error}");
    let error = change(&mut agent, "bad", &[0, 1], &[0], &[]).expect_err("a row too many").to_string();
    assert!(error.contains("rows to read"), "{error}");
    let mut agent = agent_of(&module(&bad("(i32.const 0)")), ElementType::F32, 1);
    let error = change(&mut agent, "bad", &[0], &[0], &[]).expect_err("singles").to_string();
    assert!(error.contains("f32") && error.contains("expected f64"), "{error}");
}

#[test]
fn an_instance_is_not_used_again_after_a_fault() {
    // The function fails in the first call of an instance; a second call of the same instance would succeed.
    let body = "(if (i32.eq (global.get $calls) (i32.const 1)) (then unreachable)) (i32.const 0)";
    fails(body, &["unreachable"]);
}

/// Returns a module with a pull function `far` whose partial answer has the given packed address and length.
fn far(place: &str) -> String {
    format!(
        r#"(module
          (memory (export "memory") 1)
          (func (export "reads:far") (result i32) (i32.const 1))
          (func (export "read:far:f64") (param i32 i32 i32 i64 i32 i32) (result i64) (i64.const {place}))
          (func (export "merge:far") (param i32 i32 i32 i32 i32 i32) (result i64) (i64.const 0x800000000)))"#
    )
}

#[test]
fn a_part_outside_of_memory_is_told() {
    for place in ["0x00000008ffffffff", "0xffffffff00000000", "-1"] {
        let error = ask::<Vec<f64>>(&mut agent(&far(place)), "far", &[0], &[]).expect_err(place).to_string();
        assert!(error.contains("outside of its memory"), "{error}");
    }
    let answer = ask::<Vec<f64>>(&mut agent(&far("0x800000000")), "far", &[0], &[]);
    assert_eq!(answer.expect("eight bytes that are there"), [0.0]);
}

#[test]
fn an_answer_that_is_no_number_is_refused() {
    let nan = far("0x800000000").replace(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") 1)(data (i32.const 0) \"\\00\\00\\00\\00\\00\\00\\f8\\7f\")",
    );
    let error = ask::<Vec<f64>>(&mut agent(&nan), "far", &[0], &[]).expect_err("NaN").to_string();
    assert!(error.contains("not finite"), "{error}");
    let short = far("0x800000000").replace("(i64.const 0x800000000))", "(i64.const 0x700000000))");
    let error = ask::<Vec<f64>>(&mut agent(&short), "far", &[0], &[]).expect_err("7 bytes").to_string();
    assert!(error.contains("7 bytes"), "{error}");
}
