//! When a function fails, its call returns an error that names the function, the location and the remedy. The rows do
//! not change, and the matrix and the agent continue to work.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::Arc;

use common::{W as M, WAIT_LIMIT, long};
use matrix::function::call::call_pull;
use matrix::function::map::{Clip, Map, Scalar, Set};
use matrix::function::reduce::{Dot, Reduce};
use matrix::function::vector_op::VectorOp;
use matrix::function::zip::{Axpy, CopyRow, Zip};
use matrix::function::{Arity, Block, Columns, Shape};
use matrix::{
    Agent, Axis, Consistency, ElementType, Error, FunctionCall, FunctionFault, FunctionTable, Initializer,
    Keys, LocalAgent, LocalConfig, LocalStore, Matrix, MatrixId, MatrixSpec, OwnedValues, PullFunction,
    PushFunction, PushId, PushRule, Schedule, Selection, Storage, Values, ValuesMut,
};

/// More than one block for each partition.
const COLUMNS: u64 = 20_000;

fn spec(consistency: Consistency) -> MatrixSpec {
    MatrixSpec { initializer: Initializer::Constant { value: 2.0 }, consistency, ..long(4, COLUMNS, 2) }
}

/// A push function that panics in one column.
struct Fragile {
    name: &'static str,
    at: u64,
    tries_first: bool,
}

impl PushFunction for Fragile {
    type Argument = f64;

    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> u32 {
        3
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(0)
    }

    fn writes(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn tries_first(&self) -> bool {
        self.tries_first
    }

    fn change(&self, value: &f64, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        block.each_column(|column, _, into| {
            into.fill(*value);
            assert!(column != self.at, "fragile at {column}");
        });
        Ok(())
    }
}

/// A pull function that panics in the half that its argument names.
struct FragilePull;

impl PullFunction for FragilePull {
    type Argument = u32;
    type Partial = ();
    type Answer = ();

    fn name(&self) -> &'static str {
        "fragile_pull"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, half: &u32, _shape: &Shape) -> Result<(), FunctionFault> {
        assert!(*half != 0, "in check");
        Ok(())
    }

    fn read(&self, half: &u32, _columns: &Columns<'_>) -> Result<(), FunctionFault> {
        assert!(*half != 1, "in read");
        Ok(())
    }

    fn merge(&self, half: &u32, _shape: &Shape, _parts: Vec<()>) -> Result<(), FunctionFault> {
        if *half == 2 {
            return Err(FunctionFault::user("in merge"));
        }
        Ok(())
    }
}

const LATE: Fragile = Fragile { name: "fragile", at: 18_000, tries_first: false };
const LATE_TRIED: Fragile = Fragile { name: "fragile_tried", at: 18_000, tries_first: true };

fn table() -> FunctionTable {
    let mut table = FunctionTable::builtin();
    table.add_push(LATE).unwrap().add_push(LATE_TRIED).unwrap().add_pull(FragilePull).unwrap();
    table
}

fn store(specs: Vec<MatrixSpec>, task_count: u32) -> Arc<LocalStore> {
    let config = LocalConfig { task_count, wait_limit: WAIT_LIMIT };
    let mut store = LocalStore::with_functions(config, table());
    for spec in specs {
        store.create(spec).unwrap();
    }
    Arc::new(store)
}

fn agent() -> LocalAgent {
    store(vec![spec(Consistency::Asp)], 1).agent(0)
}

fn row(agent: &mut LocalAgent, row: u32) -> Vec<f32> {
    let mut out = vec![0.0; COLUMNS as usize];
    agent.pull(M, all(row), ValuesMut::F32(&mut out)).unwrap();
    out
}

fn all(row: u32) -> Selection<'static> {
    Selection::Columns { row, keys: Keys::Range(0, COLUMNS) }
}

fn fault(result: Result<impl std::fmt::Debug, Error>) -> FunctionFault {
    match result {
        Err(Error::Function { fault, .. }) => *fault,
        other => panic!("not the fault of a function: {other:?}"),
    }
}

fn push<F: PushFunction>(
    agent: &mut LocalAgent,
    f: &F,
    from: &[u32],
    into: &[u32],
    a: &F::Argument,
) -> Result<(), Error> {
    agent.push_function(M, &[FunctionCall::push(f, from, into, a)])
}

/// A row that functions change in place is temporarily in the scratch buffer. Other steps must read its current values,
/// and a fault must restore it.
#[test]
fn a_row_that_is_changed_in_place_is_what_others_read() {
    let mut agent = agent();
    let program = [
        FunctionCall::push(&Map::Negate, &[0], &[0], &()),
        FunctionCall::push(&CopyRow, &[0], &[1], &()),
        FunctionCall::push(&Scalar::Add, &[0], &[0], &5.0),
        FunctionCall::push(&Scalar::Mul, &[1], &[1], &3.0),
        FunctionCall::push(&Zip::Sub, &[1, 0], &[0], &()),
    ];
    agent.push_function(M, &program).unwrap();
    // Row 0 becomes -2; row 1 copies -2; then -2 + 5 = 3 and -2 * 3 = -6; at last -6 - 3 = -9.
    assert_eq!(row(&mut agent, 0), vec![-9.0; COLUMNS as usize]);
    assert_eq!(row(&mut agent, 1), vec![-6.0; COLUMNS as usize]);
    let late = FunctionCall::push(&LATE, &[], &[2], &1.0);
    let failing = [program[0].clone(), late];
    fault(agent.push_function(M, &failing));
    let rows = row(&mut agent, 0);
    let half = COLUMNS as usize / 2;
    assert_eq!(rows[half..], vec![-9.0; half], "the partition of the fault is as it was");
}

#[test]
fn an_unknown_name_is_told_with_the_nearest() {
    let mut agent = agent();
    let mut call = FunctionCall::pull(&Dot, &[0, 1], &());
    call.name = "dott".into();
    let error = agent.pull_function(M, &call).unwrap_err();
    assert!(error.to_string().contains("did you mean \"dot\""), "{error}");
    call.name = "xyzzy".into();
    assert_eq!(fault(agent.pull_function(M, &call)), FunctionFault::Unknown { nearest: None });
    call.name = "frag1le".into();
    let nearest = fault(agent.push_function(M, std::slice::from_ref(&call)));
    assert_eq!(nearest, FunctionFault::Unknown { nearest: Some("fragile".into()) });
    let error = Matrix::new(spec(Consistency::Asp), &[0], &FunctionTable::builtin()).unwrap().pull_function(
        &table(),
        &call,
        0,
    );
    assert!(matches!(fault(error), FunctionFault::Unknown { .. }));
}

#[test]
fn another_version_and_another_kind_are_refused() {
    let mut agent = agent();
    let mut call = FunctionCall::push(&LATE, &[], &[0], &1.0);
    call.version = 2;
    let refused = fault(agent.push_function(M, std::slice::from_ref(&call)));
    assert_eq!(refused, FunctionFault::Version { asked: 2, known: 3 });
    let pulled = fault(agent.pull_function(M, &FunctionCall::push(&Set, &[], &[0], &1.0)));
    assert_eq!(pulled, FunctionFault::WrongKind { is: "push", asked: "pull" });
    let pushed = fault(agent.push_function(M, &[FunctionCall::pull(&Dot, &[0, 1], &())]));
    assert_eq!(pushed, FunctionFault::WrongKind { is: "pull", asked: "push" });
    assert_eq!(table().add_push(Set).unwrap_err(), FunctionFault::DuplicateName { name: "set".into() });
}

#[test]
fn arguments_and_rows_of_a_wrong_shape_are_refused() {
    let mut agent = agent();
    let mut refused = |calls: &[FunctionCall]| match fault(agent.push_function(M, calls)) {
        FunctionFault::Argument { what, .. } => what,
        other => panic!("{other}"),
    };
    let sent = |start, values| (start, values, 1.0);
    let long = sent(1, OwnedValues::F32(vec![1.0; COLUMNS as usize]));
    assert_eq!(refused(&[FunctionCall::push(&VectorOp::Add, &[], &[0], &long)]), "vector of the call");
    let far = sent(u64::MAX, OwnedValues::F32(vec![1.0]));
    assert_eq!(refused(&[FunctionCall::push(&VectorOp::Add, &[], &[0], &far)]), "vector of the call");
    let nan = sent(0, OwnedValues::F32(vec![f32::NAN]));
    assert_eq!(refused(&[FunctionCall::push(&VectorOp::Set, &[], &[0], &nan)]), "vector of the call");
    let wide = sent(0, OwnedValues::F64(vec![1.0]));
    assert_eq!(
        refused(&[FunctionCall::push(&VectorOp::Add, &[], &[0], &wide)]),
        "element type of the vector"
    );
    assert_eq!(refused(&[FunctionCall::push(&Axpy, &[0], &[1], &1.0)]), "rows to read");
    assert_eq!(refused(&[FunctionCall::push(&Axpy, &[0, 4], &[1], &1.0)]), "rows to read");
    assert_eq!(refused(&[FunctionCall::push(&CopyRow, &[0], &[1, 2], &())]), "rows to write");
    assert_eq!(refused(&[FunctionCall::push(&Set, &[], &[1, 1], &0.0)]), "rows to write");
    assert_eq!(refused(&[FunctionCall::push(&Scalar::Div, &[0], &[1], &0.0)]), "a");
    let mut short = FunctionCall::push(&Axpy, &[0, 1], &[1], &1.0);
    short.argument.pop();
    assert_eq!(refused(&[short]), "its bytes");
    assert_eq!(row(&mut agent, 0), vec![2.0; COLUMNS as usize]);
    let few = FunctionCall::pull(&Dot, &[0], &());
    assert!(matches!(fault(agent.pull_function(M, &few)), FunctionFault::Argument { .. }));
    assert_eq!(agent.pull_function(MatrixId(7), &few).unwrap_err(), Error::NoSuchMatrix { id: 7, count: 1 });
}

#[test]
fn matrices_without_long_dense_rows_are_refused() {
    let by_row = MatrixSpec { axis: Axis::Row, columns: 4, name: "by row".into(), ..spec(Consistency::Asp) };
    let sparse = MatrixSpec { storage: Storage::Sparse, name: "sparse".into(), ..spec(Consistency::Asp) };
    let schedule = Schedule::Constant;
    let rule = PushRule::Momentum { rate: 0.1, momentum: 0.9, schedule, l1: 0.0, l2: 0.0 };
    let slots = MatrixSpec { rule, name: "slots".into(), ..spec(Consistency::Asp) };
    let mut agent = store(vec![by_row, sparse, slots], 1).agent(0);
    for i in 0..3 {
        let refused = fault(call_pull(&mut agent, MatrixId(i), &Dot, &[0, 1], &()));
        assert!(matches!(refused, FunctionFault::Matrix { .. }), "{refused}");
        let calls = [FunctionCall::push(&Set, &[], &[0], &1.0)];
        let refused = fault(agent.push_function(MatrixId(i), &calls));
        assert!(matches!(refused, FunctionFault::Matrix { .. }), "{refused}");
    }
}

#[test]
fn the_log_of_a_negative_value_is_told_with_its_place_and_all_rows_stay() {
    let mut agent = agent();
    let columns = [15_000];
    let part = Selection::Columns { row: 1, keys: Keys::Sorted(&columns) };
    agent.push(M, part, Values::F32(&[-3.0])).unwrap();
    let before = row(&mut agent, 1);
    for into in [1, 2] {
        let steps = [
            FunctionCall::push(&Scalar::Mul, &[1], &[1], &2.0),
            FunctionCall::push(&Map::Log, &[1], &[into], &()),
        ];
        let error = agent.push_function(M, &steps).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("\"log\"") && text.contains("column 15000") && text.contains("from -6"),
            "{text}"
        );
        let FunctionFault::NonFinite { row: at, column, .. } = fault(Err::<(), _>(error)) else {
            panic!("{text}")
        };
        assert_eq!((at, column), (into, 15_000));
        assert_eq!(row(&mut agent, 1), before, "both partitions, and the first step");
        assert_eq!(row(&mut agent, 2), vec![2.0; COLUMNS as usize]);
    }
}

#[test]
fn a_lane_that_fails_leaves_all_its_partitions_as_they_were() {
    let lane = Matrix::new(spec(Consistency::Asp), &[0, 1], &FunctionTable::builtin()).unwrap();
    let name = |index| PushId { clock: 0, task: 0, index };
    let minus = FunctionCall::push(&Set, &[], &[1], &-1.0);
    lane.push_function(&table(), &[minus], name(0)).unwrap();
    let before = lane.export(0).unwrap();
    let steps =
        [FunctionCall::push(&Map::Abs, &[1], &[2], &()), FunctionCall::push(&Map::Sqrt, &[1], &[1], &())];
    let refused = fault(lane.push_function(&table(), &steps, name(1)));
    assert!(matches!(refused, FunctionFault::NonFinite { row: 1, column: 0, .. }), "{refused}");
    assert_eq!(lane.export(0).unwrap(), before);
}

#[test]
fn a_panic_leaves_the_rows_of_its_partition_or_of_all_when_the_function_is_tried() {
    let untouched = vec![2.0; COLUMNS as usize];
    let mut agent = agent();
    let panicked = fault(push(&mut agent, &LATE, &[], &[0, 3], &7.0));
    assert_eq!(panicked, FunctionFault::Panicked { message: "fragile at 18000".into() });
    let half = COLUMNS as usize / 2;
    for r in [0, 3] {
        let values = row(&mut agent, r);
        assert_eq!(values[half..], untouched[half..], "the partition of the panic, from its first block on");
        assert_eq!(values[..half], vec![7.0; half], "the one before was done");
    }
    let mut agent = self::agent();
    let panicked = fault(push(&mut agent, &LATE_TRIED, &[], &[0, 3], &7.0));
    assert!(matches!(panicked, FunctionFault::Panicked { .. }));
    assert_eq!((row(&mut agent, 0), row(&mut agent, 3)), (untouched.clone(), untouched));
    push(&mut agent, &Set, &[], &[0], &5.0).unwrap();
    assert_eq!(row(&mut agent, 0), vec![5.0; COLUMNS as usize], "the matrix goes on");
}

/// A row that is overwritten before it is read gets new memory. It must not replace the row when a later block fails.
#[test]
fn a_row_that_is_overwritten_stays_when_a_later_block_or_function_fails() {
    let mut agent = agent();
    let columns = [18_000];
    let part = Selection::Columns { row: 1, keys: Keys::Sorted(&columns) };
    agent.push(M, part, Values::F32(&[f32::MAX])).unwrap();
    let (read, half) = (row(&mut agent, 1), COLUMNS as usize / 2);
    let overflow = FunctionCall::push(&Zip::Add, &[1, 1], &[2], &());
    let then_late =
        [FunctionCall::push(&CopyRow, &[1], &[2], &()), FunctionCall::push(&LATE, &[], &[2, 3], &7.0)];
    for program in [&[overflow][..], &then_late] {
        fault(agent.push_function(M, program));
        for r in [2, 3] {
            assert_eq!(
                row(&mut agent, r)[half..],
                vec![2.0; half],
                "the partition of the fault is as it was"
            );
        }
        assert_eq!(row(&mut agent, 1), read);
    }
    // A row that is read first is changed, not overwritten.
    let changed =
        [FunctionCall::push(&Zip::Add, &[2, 2], &[3], &()), FunctionCall::push(&CopyRow, &[3], &[2], &())];
    let before = row(&mut agent, 2);
    agent.push_function(M, &changed).unwrap();
    let doubled: Vec<f32> = before.iter().map(|x| x + x).collect();
    assert_eq!((row(&mut agent, 2), row(&mut agent, 3)), (doubled.clone(), doubled));
}

/// With many rows the memory of a replaced row is that of the next one. What was in it must not be seen.
#[test]
fn memory_of_replaced_rows_is_used_again_without_its_values() {
    let wide = MatrixSpec { rows: 9, ..spec(Consistency::Asp) };
    let mut agent = store(vec![wide], 1).agent(0);
    for round in 0..4 {
        let value = f64::from(round) + 1.0;
        push(&mut agent, &Set, &[], &[0], &value).unwrap();
        push(&mut agent, &Zip::Add, &[0, 0], &[1], &()).unwrap();
        push(&mut agent, &Set, &[], &[2], &f64::from(f32::MAX)).unwrap();
        fault(push(&mut agent, &Zip::Add, &[2, 2], &[1], &()));
        let both = [
            FunctionCall::push(&CopyRow, &[1], &[3], &()),
            FunctionCall::push(&Zip::Add, &[1, 3], &[4], &()),
        ];
        agent.push_function(M, &both).unwrap();
        for (r, expected) in [(0, value), (1, 2.0 * value), (3, 2.0 * value), (4, 4.0 * value), (8, 2.0)] {
            assert_eq!(row(&mut agent, r), vec![expected as f32; COLUMNS as usize], "row {r}, round {round}");
        }
    }
}

#[test]
fn a_pull_function_that_panics_is_an_error_of_the_call() {
    let mut agent = agent();
    let mut fail = |half| fault(call_pull(&mut agent, M, &FragilePull, &[0], &half));
    assert_eq!(fail(0), FunctionFault::Panicked { message: "in check".into() });
    assert_eq!(fail(1), FunctionFault::Panicked { message: "in read".into() });
    assert_eq!(fail(2), FunctionFault::user("in merge"));
    assert_eq!(call_pull(&mut agent, M, &FragilePull, &[0], &3), Ok(()));
}

/// A program skips the check of a step that keeps finite values finite, but it always checks values that it has not
/// computed itself.
#[test]
fn an_overflow_is_told_though_a_later_step_would_hide_it() {
    let clip = FunctionCall::push(&Clip, &[0], &[0], &(-1.0, 1.0));
    let abs = FunctionCall::push(&Map::Abs, &[0], &[0], &());
    let grow = FunctionCall::push(&Scalar::Mul, &[0], &[0], &f64::from(f32::MAX));
    let mut agent = agent();
    let before = row(&mut agent, 0);
    for steps in [vec![grow.clone(), clip.clone()], vec![abs.clone(), grow.clone(), clip.clone()]] {
        let FunctionFault::NonFinite { row: at, column: 0, .. } = fault(agent.push_function(M, &steps))
        else {
            panic!("an overflow at the first column")
        };
        assert_eq!((at, row(&mut agent, 0)), (0, before.clone()));
    }
    // These bounds are out of the range of single precision.
    let far = FunctionCall::push(&Clip, &[0], &[0], &(1e200, 1e300));
    let refused = fault(agent.push_function(M, &[abs.clone(), far, abs.clone()]));
    assert!(matches!(refused, FunctionFault::NonFinite { .. }), "{refused}");
    // The sum of two pushes is infinite: the stored values are checked too.
    let adding = MatrixSpec { rule: PushRule::Add, ..spec(Consistency::Asp) };
    let mut agent = store(vec![adding], 1).agent(0);
    let most = vec![f32::MAX; COLUMNS as usize];
    for _ in 0..2 {
        agent.push(M, all(0), Values::F32(&most)).unwrap();
    }
    let refused = fault(agent.push_function(M, &[abs, clip]));
    assert!(matches!(refused, FunctionFault::NonFinite { .. }), "{refused}");
}

/// A step that left finite values in one block says nothing about the next block, which it has not run on yet.
#[test]
fn an_infinite_value_in_a_later_block_is_told_too() {
    let adding = MatrixSpec { rule: PushRule::Add, ..spec(Consistency::Asp) };
    let mut agent = store(vec![adding], 1).agent(0);
    // The first partition has 10,000 columns; this column is in its third block of 4,096.
    let columns = [9_000];
    for _ in 0..2 {
        agent
            .push(M, Selection::Columns { row: 0, keys: Keys::Sorted(&columns) }, Values::F32(&[f32::MAX]))
            .unwrap();
    }
    let refused = fault(push(&mut agent, &Map::Abs, &[0], &[0], &()));
    assert!(matches!(refused, FunctionFault::NonFinite { row: 0, column: 9_000, .. }), "{refused}");
}

#[test]
fn an_overflow_is_told_and_its_partition_stays() {
    let mut agent = agent();
    let columns = [14_999];
    let part = Selection::Columns { row: 0, keys: Keys::Sorted(&columns) };
    agent.push(M, part, Values::F32(&[f32::MAX])).unwrap();
    let before = row(&mut agent, 0);
    let refused = fault(push(&mut agent, &Zip::Add, &[0, 0], &[0], &()));
    assert!(matches!(refused, FunctionFault::NonFinite { row: 0, column: 14_999, .. }), "{refused}");
    let half = COLUMNS as usize / 2;
    assert_eq!(row(&mut agent, 0)[half..], before[half..]);
    let wide = MatrixSpec { element: ElementType::F64, ..spec(Consistency::Asp) };
    let mut agent = store(vec![wide], 1).agent(0);
    push(&mut agent, &Set, &[], &[0], &1e300).unwrap();
    assert_eq!(fault(call_pull(&mut agent, M, &Reduce::Norm2, &[0], &())), FunctionFault::NonFiniteAnswer);
}

#[test]
fn a_staged_function_that_fails_is_told_to_all_who_read_from_then_on() {
    let store = store(vec![spec(Consistency::Bsp)], 2);
    let (mut first, mut second) = (store.agent(0), store.agent(1));
    push(&mut first, &Scalar::Sub, &[0], &[0], &5.0).unwrap();
    push(&mut first, &Map::Log, &[0], &[1], &()).unwrap();
    for agent in [&mut first, &mut second] {
        agent.tick().unwrap();
    }
    let mut out = vec![0.0; COLUMNS as usize];
    for agent in [&mut first, &mut second] {
        let told = fault(agent.pull(M, all(2), ValuesMut::F32(&mut out)));
        assert!(matches!(told, FunctionFault::NonFinite { row: 1, column: 0 | 10_000, .. }), "{told}");
        assert!(matches!(
            fault(call_pull(agent, M, &Reduce::Sum, &[2], &())),
            FunctionFault::NonFinite { .. }
        ));
    }
    assert!(matches!(fault(store.export(M)), FunctionFault::NonFinite { .. }), "no model of half a step");
}
