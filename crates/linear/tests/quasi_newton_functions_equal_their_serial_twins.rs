//! The functions of L-BFGS, OWL-QN and ADMM equal plain loops over plain vectors, to the byte, for 1 to 9 partitions
//! cut anywhere.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use linear::descent::function::consensus::ConsensusStep;
use linear::descent::function::orthant::OrthantProducts;
use linear::descent::function::quasi_newton::{
    HISTORY_ROWS, HISTORY_SCALARS, PAIR_SCALARS, Penalty, QuasiNewtonProducts,
};
use linear::descent::function::step::{CurvatureScale, Direction, OrthantStep, PenaltyGradient};
use matrix::function::call::call_pull;
use matrix::function::sum::RangeSum;
use matrix::{
    Agent, Axis, Consistency, ElementType, FunctionCall, FunctionTable, Initializer, Keys, LocalAgent,
    LocalConfig, LocalStore, MatrixId, MatrixSpec, Partitioner, PushFunction, PushRule, Selection, Storage,
    Values, ValuesMut,
};
use proptest::prelude::*;

const M: MatrixId = MatrixId(0);
/// The rows z, g, d, z0, g0, two steps, two changes; then two rows to write.
const ROWS: usize = 11;
const OUT: u32 = 9;

fn agent(columns: usize, starts: &[u64], rows: &[Vec<f64>]) -> LocalAgent {
    let spec = MatrixSpec {
        name: "vectors".into(),
        element: ElementType::F64,
        rows: ROWS as u64,
        columns: columns as u64,
        axis: Axis::Column,
        storage: Storage::Dense,
        partitioner: Partitioner::Explicit { starts: starts.to_vec() },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    };
    let config = LocalConfig { task_count: 1, wait_limit: Duration::from_secs(5) };
    let mut functions = FunctionTable::builtin();
    linear::descent::function::register(&mut functions).unwrap();
    let mut store = LocalStore::with_functions(config, functions);
    store.create(spec).unwrap();
    let mut agent = Arc::new(store).agent(0);
    for (row, values) in (0u32..).zip(rows) {
        let part = Selection::Columns { row, keys: Keys::Range(0, columns as u64) };
        agent.push(M, part, Values::F64(values)).unwrap();
    }
    agent
}

fn result<F: PushFunction>(
    agent: &mut LocalAgent,
    columns: usize,
    function: &F,
    from: &[u32],
    into: &[u32],
    argument: &F::Argument,
) -> Vec<Vec<f64>> {
    agent.push_function(M, &[FunctionCall::push(function, from, into, argument)]).unwrap();
    let row = |row: &u32| {
        let mut out = vec![0.0; columns];
        let part = Selection::Columns { row: *row, keys: Keys::Range(0, columns as u64) };
        agent.pull(M, part, ValuesMut::F64(&mut out)).unwrap();
        out
    };
    into.iter().map(row).collect()
}

/// Fills z and z0 with -1, 0 and 1, so that zeros and changes of sign occur.
fn rows(seed: u64, columns: usize) -> Vec<Vec<f64>> {
    let mut random = math::random::stream(seed, math::random::Purpose::Test, 0, 0);
    let mut value = |row: usize| match row {
        0 | 3 => random.below(3) as f64 - 1.0,
        2 => 0.25 + random.below(4) as f64,
        _ => random.normal(),
    };
    (0..HISTORY_ROWS + 4).map(|row| (0..columns).map(|_| value(row)).collect()).collect()
}

fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut sum = RangeSum::new(0);
    terms.for_each(|term| sum.add(&[term]));
    RangeSum::total(&[sum]).unwrap()
}

/// Andrew and Gao, eq. 4, with the two one-sided slopes.
fn pseudo(z: f64, g: f64, l1: f64) -> f64 {
    let left = g + if z > 0.0 { l1 } else { -l1 };
    let right = g + if z < 0.0 { -l1 } else { l1 };
    if left > 0.0 {
        left
    } else if right < 0.0 {
        right
    } else {
        0.0
    }
}

/// The expected answer of `orthant_products` for three pairs; `moves` is 1 or 0.
fn orthant_products(
    (l1, w, v, v0): (f64, &[f64], &[f64], &[f64]),
    steps: [&[f64]; 3],
    changes: [&[f64]; 3],
    moves: &[f64],
) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| sum((0..a.len()).map(|i| moves[i] * a[i] * b[i]));
    let all = |a: &[f64], b: &[f64]| sum(a.iter().zip(b).map(|(a, b)| a * b));
    let mut expected = vec![
        sum(w.iter().map(|w| l1 * w.abs())),
        sum(w.iter().map(|w| 0.5 * 0.3 * w * w)),
        all(v0, steps[2]),
        all(v, v),
    ];
    for step in steps {
        expected.extend(changes.map(|change| dot(step, change)));
    }
    for (i, change) in changes.iter().enumerate() {
        expected.extend(changes[..=i].iter().map(|other| dot(change, other)));
    }
    expected.extend(steps.map(|step| dot(step, v)));
    expected.extend(changes.map(|change| dot(change, v)));
    expected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn they_equal_plain_loops_for_any_cut(
        columns in prop_oneof![1usize..40, 500usize..2_000, 4_000usize..6_000],
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        free in any::<prop::sample::Index>(),
        l1 in prop_oneof![Just(0.0), Just(0.5)],
        seed in any::<u64>(),
    ) {
        let mut starts: Vec<u64> = at.iter().map(|cut| cut.index(columns) as u64).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        let plain = rows(seed, columns);
        let mut agent = agent(columns, &starts, &plain);
        let free = free.index(columns + 1);
        let penalty: Penalty = (l1, 0.3, free as u64);
        let l1_of = |i: usize| if i < free { l1 * plain[2][i] } else { 0.0 };
        let each = |f: &dyn Fn(usize) -> f64| (0..columns).map(f).collect::<Vec<f64>>();
        let v = each(&|i| pseudo(plain[0][i], plain[1][i], l1_of(i)));
        let v0 = each(&|i| pseudo(plain[3][i], plain[4][i], l1_of(i)));
        let s = each(&|i| plain[0][i] - plain[3][i]);
        let y = each(&|i| plain[1][i] - plain[4][i]);
        let w = each(&|i| if i < free { plain[2][i] * plain[0][i] } else { 0.0 });
        let dot = |a: &[f64], b: &[f64]| sum(a.iter().zip(b).map(|(a, b)| a * b));

        let found = call_pull(&mut agent, M, &QuasiNewtonProducts, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &penalty).unwrap();
        prop_assert_eq!(found.len(), HISTORY_SCALARS + 2 * PAIR_SCALARS);
        let mut expected = vec![
            sum(w.iter().map(|w| l1 * w.abs())),
            sum(w.iter().map(|w| 0.5 * 0.3 * w * w)),
            dot(&v0, &s), dot(&s, &y), dot(&s, &v), dot(&y, &y), dot(&y, &v), dot(&v, &v),
        ];
        for pair in 0..2 {
            let (step, change) = (&plain[5 + pair], &plain[7 + pair]);
            expected.extend([dot(step, &y), dot(step, &v), dot(change, &s), dot(change, &y), dot(change, &v)]);
        }
        prop_assert_eq!(found, expected);

        let moves = |i: usize| if plain[0][i] != 0.0 || v[i] != 0.0 { 1.0 } else { 0.0 };
        let found = call_pull(&mut agent, M, &OrthantProducts, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &penalty).unwrap();
        prop_assert_eq!(found, orthant_products((l1, &w, &v, &v0), [&plain[5], &plain[6], &s], [&plain[7], &plain[8], &y], &each(&moves)));

        let factors = vec![0.5, -2.0];
        let direction = each(&|i| {
            let sum = 0.0 + -0.7 * v[i] + 0.5 * plain[5][i] + -2.0 * plain[6][i];
            if l1 > 0.0 && i < free && plain[0][i] == 0.0 && sum * v[i] >= 0.0 { 0.0 } else { sum }
        });
        let found = result(&mut agent, columns, &Direction, &[0, 1, 2, 5, 6], &[OUT], &(penalty, -0.7, factors));
        prop_assert_eq!(&found[0], &direction);

        let stepped = each(&|i| {
            let (before, after) = (plain[3][i], plain[3][i] + 0.9 * plain[5][i]);
            let orthant = if before == 0.0 { -v0[i] } else { before };
            if l1 > 0.0 && i < free && after * orthant <= 0.0 { 0.0 } else { after }
        });
        let found = result(&mut agent, columns, &OrthantStep, &[3, 4, 2, 5], &[OUT], &(penalty, 0.9));
        prop_assert_eq!(&found[0], &stepped);

        let gradient = each(&|i| if i < free { 0.3 * plain[2][i] * plain[2][i] * plain[0][i] } else { 0.0 });
        let found = result(&mut agent, columns, &PenaltyGradient, &[0, 2], &[OUT], &penalty);
        prop_assert_eq!(&found[0], &gradient);

        let root = |i: usize| (plain[2][i] + if i < free { 0.3 } else { 0.0 }).sqrt();
        let found = result(&mut agent, columns, &CurvatureScale, &[2, 0], &[OUT, OUT + 1], &penalty);
        prop_assert_eq!(&found[0], &each(&|i| 1.0 / root(i)));
        prop_assert_eq!(&found[1], &each(&|i| plain[0][i] * root(i)));
    }

    #[test]
    fn the_consensus_equals_a_plain_loop_for_any_cut(
        columns in prop_oneof![1usize..40, 500usize..2_000],
        cut in any::<prop::sample::Index>(),
        free in any::<prop::sample::Index>(),
        l1 in prop_oneof![Just(0.0), Just(0.5)],
        seed in any::<u64>(),
    ) {
        let mut plain = rows(seed, columns);
        // Each column has 0 to 2 tasks.
        plain[0].iter_mut().for_each(|count| *count += 1.0);
        let starts = if cut.index(columns) == 0 { vec![0] } else { vec![0, cut.index(columns) as u64] };
        let mut agent = agent(columns, &starts, &plain);
        let free = free.index(columns + 1);
        let each = |i: usize| {
            let (count, pull, d) = (plain[0][i], 0.6 * plain[1][i], plain[2][i]);
            let (l1, l2) = if i < free { (l1 * d, 0.3 * d * d) } else { (0.0, 0.0) };
            let z = pull.signum() * (pull.abs() - l1).max(0.0) / (0.6 * count + l2);
            if count == 0.0 && l2 == 0.0 { 0.0 } else { z }
        };
        let expected: Vec<f64> = (0..columns).map(each).collect();
        let argument = ((l1, 0.3, free as u64), 0.6);
        let found = result(&mut agent, columns, &ConsensusStep, &[1, 0, 2], &[OUT], &argument);
        prop_assert_eq!(&found[0], &expected);
    }
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    let plain = rows(1, 8);
    let mut agent = agent(8, &[0], &plain);
    let good: Penalty = (0.0, 0.0, 8);
    let text =
        call_pull(&mut agent, M, &QuasiNewtonProducts, &[0, 1, 2, 3, 4, 5], &good).unwrap_err().to_string();
    assert!(text.contains("2 for each pair"), "{text}");
    let text =
        call_pull(&mut agent, M, &OrthantProducts, &[0, 1, 2, 3, 4, 5], &good).unwrap_err().to_string();
    assert!(text.contains("2 for each pair"), "{text}");
    let text = call_pull(&mut agent, M, &QuasiNewtonProducts, &[0, 1, 2, 3, 4], &(-1.0, 0.0, 8))
        .unwrap_err()
        .to_string();
    assert!(text.contains("l1") && text.contains(">= 0"), "{text}");
    let mut push = |call| agent.push_function(M, &[call]).unwrap_err().to_string();
    let text = push(FunctionCall::push(&Direction, &[0, 1, 2, 3], &[9], &(good, 1.0, vec![])));
    assert!(text.contains("one for each row"), "{text}");
    let text = push(FunctionCall::push(&OrthantStep, &[0, 1, 2, 3], &[9], &(good, f64::NAN)));
    assert!(text.contains("finite"), "{text}");
    for rho in [0.0, -1.0, f64::INFINITY] {
        let text = push(FunctionCall::push(&ConsensusStep, &[0, 1, 2], &[9], &(good, rho)));
        assert!(text.contains("rho") && text.contains("> 0"), "{text}");
    }
}

#[test]
fn a_column_in_which_nothing_curves_has_the_scale_1() {
    let mut agent = agent(3, &[0], &[vec![0.0, 4.0, 0.0], vec![5.0, 6.0, 7.0]]);
    let found = result(&mut agent, 3, &CurvatureScale, &[0, 1], &[OUT, OUT + 1], &(0.0, 0.25, 1));
    assert_eq!(found, [vec![2.0, 0.5, 1.0], vec![2.5, 12.0, 7.0]]);
}
