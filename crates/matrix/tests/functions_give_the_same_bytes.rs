//! Every built-in function equals its serial twin on plain vectors, to the byte, in one process and on lanes, for 1 to
//! 16 partitions cut anywhere.

#![allow(
    clippy::unwrap_used,
    clippy::type_complexity,
    reason = "a test: tables of functions and their twins"
)]

use std::sync::Arc;
use std::time::Duration;

use matrix::function::call::call_pull;
use matrix::function::extreme::{Extreme, FirstDifference, TopK};
use matrix::function::fill::{Diagonal, Identity, Random};
use matrix::function::map::{Clip, Map, Scalar, Set};
use matrix::function::products::InnerProducts;
use matrix::function::reduce::{CountNonZero, Dot, Gram, Reduce};
use matrix::function::sketch::Quantiles;
use matrix::function::vector_op::VectorOp;
use matrix::function::zip::{Axpy, Combine, CopyRow, Zip};
use matrix::function::{FunctionValue, pack};
use matrix::{
    Agent, Axis, Consistency, ElementType, Error, FunctionCall, FunctionTable, Initializer, KeyRun, Keys,
    LocalAgent, LocalConfig, LocalStore, Matrix, MatrixId, MatrixSpec, OwnedValues, Partitioner,
    PullFunction, PushFunction, PushId, PushRule, RowPositions, Selection, Storage, Values, ValuesMut,
    merge_partial_answers,
};
use proptest::prelude::*;

const ROWS: usize = 6;

fn spec(columns: usize, starts: &[u64]) -> MatrixSpec {
    MatrixSpec {
        name: "vectors".into(),
        element: ElementType::F32,
        rows: ROWS as u64,
        columns: columns as u64,
        axis: Axis::Column,
        storage: Storage::Dense,
        partitioner: Partitioner::Explicit { starts: starts.to_vec() },
        initializer: Initializer::Zero,
        rule: PushRule::Assign,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

/// The same rows three times: as plain vectors, in one process, and on one lane for each partition. Each lane gets only
/// what it needs of the arguments.
struct Three {
    plain: Vec<Vec<f32>>,
    agent: LocalAgent,
    lanes: Vec<Matrix>,
    spec: MatrixSpec,
    table: FunctionTable,
    pushes: u32,
}

const M: MatrixId = MatrixId(0);

impl Three {
    fn new(starts: &[u64], plain: Vec<Vec<f32>>) -> Self {
        let columns = plain[0].len();
        let spec = spec(columns, starts);
        let config = LocalConfig { task_count: 1, wait_limit: Duration::from_secs(5) };
        let mut store = LocalStore::new(config);
        store.create(spec.clone()).unwrap();
        let mut agent = Arc::new(store).agent(0);
        let partitions: Vec<u32> = (0..starts.len() as u32).collect();
        let held = |p: &u32| Matrix::new(spec.clone(), &[*p], &FunctionTable::builtin()).unwrap();
        let mut lanes: Vec<_> = partitions.iter().map(held).collect();
        let placement = spec.placement(&FunctionTable::builtin()).unwrap();
        for (row, values) in (0u32..).zip(&plain) {
            let part = Selection::Columns { row, keys: Keys::Range(0, columns as u64) };
            agent.push(M, part, Values::F32(values)).unwrap();
            for p in &partitions {
                let range = placement.range(*p as usize).unwrap();
                let keys: Vec<u64> = range.clone().collect();
                let run = KeyRun { partition: *p, table: row, keys: &keys };
                let name = PushId { clock: 0, task: 0, index: 0 };
                let own = Values::F32(&values[range.start as usize..range.end as usize]);
                lanes[*p as usize].push(run, &mut RowPositions::default(), name, own).unwrap();
            }
        }
        Self { plain, agent, lanes, spec, table: FunctionTable::builtin(), pushes: 100 }
    }

    fn row(&mut self, row: u32) -> Vec<f32> {
        let columns = self.plain[0].len();
        let mut out = vec![0.0; columns];
        let part = Selection::Columns { row, keys: Keys::Range(0, columns as u64) };
        self.agent.pull(M, part, ValuesMut::F32(&mut out)).unwrap();
        let mut exported: Vec<(u64, f32)> = Vec::new();
        for lane in &mut self.lanes {
            let rows = lane.export(u64::MAX).unwrap();
            let OwnedValues::F32(values) = rows.values else { panic!("f32") };
            exported.extend(rows.keys.into_iter().zip(values));
        }
        exported.sort_by_key(|(key, _)| *key);
        let own = exported[row as usize * columns..][..columns].iter().map(|(_, value)| value.to_bits());
        assert!(own.eq(out.iter().map(|x| x.to_bits())), "lanes have what the process has");
        out
    }

    fn ask<F: PullFunction>(&mut self, function: &F, from: &[u32], argument: &F::Argument) -> F::Answer {
        let answer = call_pull(&mut self.agent, M, function, from, argument).unwrap();
        let call = FunctionCall::pull(function, from, argument);
        let parts = self.lanes.iter_mut().flat_map(|lane| lane.pull_function(&self.table, &call, 9).unwrap());
        let bytes = merge_partial_answers(&self.table, &self.spec, &call, parts.collect()).unwrap();
        assert_eq!(bytes, pack(&answer), "{}: lanes answer as the process", function.name());
        answer
    }

    fn push(&mut self, steps: &[FunctionCall]) -> Result<(), Error> {
        self.pushes += 1;
        let name = PushId { clock: 0, task: 0, index: self.pushes };
        let placement = self.spec.placement(&FunctionTable::builtin()).unwrap();
        for (p, lane) in self.lanes.iter_mut().enumerate() {
            let columns = placement.range(p).unwrap();
            let split: Vec<_> =
                steps.iter().map(|step| step.split(&self.table, columns.clone()).unwrap()).collect();
            lane.push_function(&self.table, &split, name)?;
        }
        self.agent.push_function(M, steps)
    }

    fn run<F: PushFunction>(&mut self, function: &F, from: &[u32], into: &[u32], argument: &F::Argument) {
        self.push(&[FunctionCall::push(function, from, into, argument)]).unwrap();
    }

    /// Runs a function from rows 0 and 1 into row 2 and returns row 2.
    fn result<F: PushFunction>(&mut self, function: &F, from: &[u32], argument: &F::Argument) -> Vec<f32> {
        self.run(function, from, &[2], argument);
        self.row(2)
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// The sum as the module doc of `function::sum` defines it, in plain loops over all columns at once.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut terms: Vec<f64> = terms.collect();
    let full_count = terms.len() / 256;
    terms.resize(terms.len().next_multiple_of(256), 0.0);
    let leaves: Vec<f64> = terms.chunks(256).map(leaf).collect();
    let (mut full, last) = leaves.split_at(full_count);
    let mut total = 0.0;
    while !full.is_empty() {
        let (tree, rest) = full.split_at(1 << full.len().ilog2());
        total += node(tree);
        full = rest;
    }
    last.iter().fold(total, |total, leaf| total + leaf)
}

/// Sums a leaf: sixteen interleaved sums, folded by halves.
fn leaf(terms: &[f64]) -> f64 {
    let mut sums: Vec<f64> =
        (0..16).map(|lane| terms.iter().skip(lane).step_by(16).fold(0.0, |a, b| a + b)).collect();
    while sums.len() > 1 {
        let (low, high) = sums.split_at(sums.len() / 2);
        sums = low.iter().zip(high).map(|(a, b)| a + b).collect();
    }
    sums[0]
}

/// Sums a complete tree of leaves.
fn node(leaves: &[f64]) -> f64 {
    match leaves {
        [leaf] => *leaf,
        _ => node(&leaves[..leaves.len() / 2]) + node(&leaves[leaves.len() / 2..]),
    }
}

fn same<T: FunctionValue>(name: &str, answer: &T, expected: &T) {
    assert_eq!(pack(answer), pack(expected), "{name}");
}

fn rows(seed: u64, columns: usize) -> Vec<Vec<f32>> {
    let mut random = math::random::stream(seed, math::random::Purpose::Test, 0, 0);
    let mut value = |row: usize| match random.below(5) {
        0 => 0.0,
        1 => (random.below(7) as f32 - 3.0) / 2.0,
        _ => (random.normal() * [1.0, 3.0, 0.1, 1e4, 1.0, 5.0][row]) as f32,
    };
    (0..ROWS).map(|row| (0..columns).map(|_| value(row)).collect()).collect()
}

fn cuts(columns: usize, cuts: &[prop::sample::Index]) -> Vec<u64> {
    let mut starts: Vec<u64> = cuts.iter().map(|cut| cut.index(columns) as u64).chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn reductions_agree(all: &mut Three) {
    let (x, y) = (all.plain[0].clone(), all.plain[1].clone());
    let (wide, other) = (|| x.iter().map(|x| f64::from(*x)), || y.iter().map(|x| f64::from(*x)));
    same("sum", &all.ask(&Reduce::Sum, &[0], &()), &sum(wide()));
    same("norm_1", &all.ask(&Reduce::AbsoluteSum, &[0], &()), &sum(wide().map(f64::abs)));
    same("square_sum", &all.ask(&Reduce::SquareSum, &[0], &()), &sum(wide().map(|x| x * x)));
    same("norm_2", &all.ask(&Reduce::Norm2, &[0], &()), &sum(wide().map(|x| x * x)).sqrt());
    let dot = sum(wide().zip(other()).map(|(x, y)| x * y));
    same("dot", &all.ask(&Dot, &[0, 1], &()), &dot);
    let gram = all.ask(&Gram, &[1, 0, 3], &());
    assert_eq!(gram.len(), 6);
    same("gram", &gram[Gram::index(1, 0, 3)], &dot);
    let third = sum(all.plain[3].iter().map(|x| f64::from(*x) * f64::from(*x)));
    same("gram", &gram[Gram::index(2, 2, 3)], &third);
    inner_products_agree(all);
    same("count", &all.ask(&CountNonZero, &[0], &()), &(x.iter().filter(|x| **x != 0.0).count() as u64));
    let first = |best: fn(f64, f64) -> bool| {
        let mut at = 0;
        wide().enumerate().for_each(|(i, v)| at = if best(v, f64::from(x[at])) { i } else { at });
        (at as u64, f64::from(x[at]))
    };
    same("min", &all.ask(&Extreme::Min, &[0], &()), &first(|a, b| a < b));
    same("max", &all.ask(&Extreme::Max, &[0], &()), &first(|a, b| a > b));
    same("norm_inf", &all.ask(&Extreme::Magnitude, &[0], &()), &first(|a, b| a.abs() > b.abs()));
    let mut sorted: Vec<(u64, f64)> = (0..).zip(wide()).collect();
    sorted.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
    let top = |sorted: &[(u64, f64)]| sorted.iter().take(9).copied().collect::<Vec<_>>();
    same("top_k", &all.ask(&TopK::Value, &[0], &9), &top(&sorted));
    sorted.sort_by(|a, b| b.1.abs().partial_cmp(&a.1.abs()).unwrap().then(a.0.cmp(&b.0)));
    same("top_k_magnitude", &all.ask(&TopK::Magnitude, &[0], &9), &top(&sorted));
    assert_eq!(all.ask(&TopK::Value, &[0], &0), []);
    let difference = x.iter().zip(&y).position(|(x, y)| x != y).map(|at| at as u64);
    same("first_difference", &all.ask(&FirstDifference, &[0, 1], &()), &difference);
    same("first_difference", &all.ask(&FirstDifference, &[0, 0], &()), &None);
    quantiles_agree(all, &x);
}

/// Each product of the first rows with all rows has the bytes of its own sum. The rows are more than a group.
fn inner_products_agree(all: &mut Three) {
    let from = [1, 0, 3, 5, 2, 0, 4];
    let n = from.len();
    for left in 1..=n {
        let products = all.ask(&InnerProducts, &from, &(left as u64));
        assert_eq!(products.len(), left * n - left * (left - 1) / 2);
        for (i, j) in (0..left).flat_map(|i| (i..n).map(move |j| (i, j))) {
            let (x, y) = (&all.plain[from[i] as usize], &all.plain[from[j] as usize]);
            let expected = sum(x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)));
            same("inner_products", &products[Gram::index(i, j, n)], &expected);
        }
    }
}

fn quantiles_agree(all: &mut Three, x: &[f32]) {
    let wanted = vec![0.0, 0.1, 0.5, 0.9, 1.0];
    let error = 0.01;
    let found = all.ask(&Quantiles, &[0], &(error, wanted.clone()));
    let mut sorted: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    sorted.sort_by(f64::total_cmp);
    for (q, found) in wanted.iter().zip(&found) {
        let exact = sorted[(q * (sorted.len() - 1) as f64) as usize];
        // A rounding error of the logarithm may move a value at the border of a bucket by one bucket.
        assert!((found - exact).abs() <= error * exact.abs() * 1.000001, "{q}: {found} for {exact}");
    }
    assert_eq!((found[0], found[4]), (sorted[0], sorted[sorted.len() - 1]), "extremes are exact");
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

fn one_row_maps_agree(all: &mut Three) {
    let x = all.plain[0].clone();
    let twin = |f: &dyn Fn(f64) -> f64| bits(&x.iter().map(|x| f(f64::from(*x)) as f32).collect::<Vec<_>>());
    let maps: [(Map, &dyn Fn(f64) -> f64); 8] = [
        (Map::Abs, &f64::abs),
        (Map::Ceil, &f64::ceil),
        (Map::Floor, &f64::floor),
        (Map::Round, &f64::round),
        (Map::Exp, &f64::exp),
        (Map::Expm1, &f64::exp_m1),
        (Map::Sign, &sign),
        (Map::Negate, &|x| -x),
    ];
    for (map, f) in maps {
        assert_eq!(bits(&all.result(&map, &[0], &())), twin(f), "{}", map.name());
    }
    // 0.5 has the same value in single and double precision, 0.3 has not.
    for a in [0.3, 0.5] {
        scalars_agree(all, a);
    }
    all.run(&Map::Abs, &[0], &[3], &());
    for (map, f) in [(Map::Log1p, f64::ln_1p as fn(f64) -> f64), (Map::Sqrt, f64::sqrt)] {
        assert_eq!(bits(&all.result(&map, &[3], &())), twin(&|x| f(x.abs())), "{}", map.name());
    }
    all.run(&Scalar::Add, &[3], &[3], &1.0);
    let log = |x: f64| f64::from((x.abs() + 1.0) as f32).ln();
    assert_eq!(bits(&all.result(&Map::Log, &[3], &())), twin(&log), "log");
}

fn scalars_agree(all: &mut Three, a: f64) {
    let x = all.plain[0].clone();
    let twin = |f: &dyn Fn(f64) -> f64| bits(&x.iter().map(|x| f(f64::from(*x)) as f32).collect::<Vec<_>>());
    let soft = |x: f64| sign(x) * (x.abs() - a).max(0.0);
    let scalars: [(Scalar, f64, &dyn Fn(f64) -> f64); 7] = [
        (Scalar::Add, a, &|x| x + a),
        (Scalar::Sub, a, &|x| x - a),
        (Scalar::Mul, a, &|x| x * a),
        (Scalar::Div, a, &|x| x / a),
        (Scalar::Power, 2.0, &|x| x.powf(2.0)),
        (Scalar::SoftThreshold, a, &soft),
        (Scalar::Compress, a, &|x| if x.abs() < a { 0.0 } else { x }),
    ];
    for (scalar, a, f) in scalars {
        assert_eq!(
            all.result(&scalar, &[0], &a).iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<_>>(),
            twin(&|x| f(x)).iter().map(|b| (f32::from_bits(*b) + 0.0).to_bits()).collect::<Vec<_>>(),
            "{}",
            scalar.name()
        );
    }
    for (low, high) in [(-a, 1.5), (-a, a)] {
        assert_eq!(bits(&all.result(&Clip, &[0], &(low, high))), twin(&|x| x.clamp(low, high)), "clip");
    }
    assert_eq!(bits(&all.result(&Set, &[], &0.7)), twin(&|_| 0.7), "set");
}

fn several_rows_agree(all: &mut Three) {
    let (x, y, z) = (all.plain[0].clone(), all.plain[1].clone(), all.plain[4].clone());
    let twin = |f: &dyn Fn(f64, f64) -> f64| {
        bits(&x.iter().zip(&y).map(|(x, y)| f(f64::from(*x), f64::from(*y)) as f32).collect::<Vec<_>>())
    };
    let zips: [(Zip, &dyn Fn(f64, f64) -> f64); 5] = [
        (Zip::Add, &|x, y| x + y),
        (Zip::Sub, &|x, y| x - y),
        (Zip::Mul, &|x, y| x * y),
        (Zip::Min, &|x, y| if y < x { y } else { x }),
        (Zip::Max, &|x, y| if y > x { y } else { x }),
    ];
    for (zip, f) in zips {
        assert_eq!(bits(&all.result(&zip, &[0, 1], &())), twin(f), "{}", zip.name());
    }
    assert_eq!(bits(&all.result(&Axpy, &[0, 1], &0.3)), twin(&|x, y| 0.3 * x + y), "axpy");
    assert_eq!(bits(&all.result(&CopyRow, &[1], &())), bits(&y), "copy");
    let combined: Vec<f32> = x
        .iter()
        .zip(&y)
        .zip(&z)
        .map(|((x, y), z)| (0.0 + 0.5 * f64::from(*x) + -2.0 * f64::from(*y) + 0.1 * f64::from(*z)) as f32)
        .collect();
    assert_eq!(bits(&all.result(&Combine, &[0, 1, 4], &vec![0.5, -2.0, 0.1])), bits(&combined), "combine");
    let factors = vec![0.5, -2.0, 0.1, 0.0, 3.0, -0.7];
    let plain: Vec<Vec<f32>> = (0..ROWS as u32).map(|row| all.row(row)).collect();
    let of_six: Vec<f32> = (0..x.len())
        .map(|i| factors.iter().zip(&plain).fold(0.0, |sum, (a, row)| sum + a * f64::from(row[i])) as f32)
        .collect();
    assert_eq!(bits(&all.result(&Combine, &[0, 1, 2, 3, 4, 5], &factors)), bits(&of_six), "combine of six");
    all.run(&CopyRow, &[1], &[2], &());
    all.run(&Axpy, &[0, 2], &[2], &0.3);
    assert_eq!(bits(&all.row(2)), twin(&|x, y| 0.3 * x + y), "a row may be read and written");
    all.run(&Map::Exp, &[4], &[5], &());
    let safe: Vec<f32> = z.iter().map(|z| f64::from(*z).exp() as f32).collect();
    let divided: Vec<f32> = x.iter().zip(&safe).map(|(x, z)| x / z).collect();
    assert_eq!(bits(&all.result(&Zip::Div, &[0, 5], &())), bits(&divided), "div");
}

fn sent_and_fills_agree(all: &mut Three) {
    let (x, sent) = (all.plain[0].clone(), all.plain[1].clone());
    let columns = x.len();
    let (start, end) = (columns / 3, columns - columns / 4);
    let functions: [(VectorOp, fn(f64, f64) -> f64); 6] = [
        (VectorOp::Add, |x, v| x + v),
        (VectorOp::Sub, |x, v| x - v),
        (VectorOp::Min, |x, v| if v < x { v } else { x }),
        (VectorOp::Max, |x, v| if v > x { v } else { x }),
        (VectorOp::AddScaled, |x, v| x + 0.3 * v),
        (VectorOp::Set, |_, v| v),
    ];
    for (function, f) in functions {
        let mut expected = x.clone();
        for i in start..end {
            expected[i] = f(f64::from(x[i]), f64::from(sent[i])) as f32;
        }
        all.run(&CopyRow, &[0], &[2], &());
        let vector = (start as u64, OwnedValues::F32(sent[start..end].to_vec()), 0.3);
        assert_eq!(bits(&all.result(&function, &[], &vector)), bits(&expected), "{}", function.name());
    }
    all.run(&Identity, &[], &[4, 2], &());
    let one = |at: usize| (0..columns).map(|i| if i == at { 1.0 } else { 0.0 }).collect::<Vec<f32>>();
    assert_eq!((all.row(4), all.row(2)), (one(0), one(1)), "identity");
    let diagonal = OwnedValues::F32(vec![2.0, 3.0].into_iter().take(columns).collect());
    all.run(&Diagonal, &[], &[4, 2], &(0, diagonal));
    let scaled = |at: usize, by: f32| one(at).into_iter().map(|x| x * by).collect::<Vec<_>>();
    assert_eq!((all.row(4), all.row(2)), (scaled(0, 2.0), scaled(1, 3.0)), "diagonal");
}

/// The expected values of the random fills in the test below: each column draws from a stream of its own.
fn drawn(row: u32, column: u64) -> f64 {
    let name = [&b"uniform"[..], b"uniform", b"normal", b"xavier", b"kaiming"][row as usize];
    let key = math::hash::named_key(name, &row.to_le_bytes());
    let mut random = math::random::stream(7, math::random::Purpose::Initialize, key, column);
    match row {
        0 | 1 => -2.0 + 5.0 * random.uniform(),
        2 => 1.0 + 0.5 * random.normal(),
        3 => (6.0f64 / 150.0).sqrt() * (2.0 * random.uniform() - 1.0),
        _ => (2.0f64 / 100.0).sqrt() * random.normal(),
    }
}

#[test]
fn sums_of_whole_numbers_are_exact_for_any_length() {
    for columns in [1, 15, 255, 256, 257, 511, 1023, 1024, 1300, 4097] {
        let plain: Vec<Vec<f32>> = vec![(1..=columns).map(|x| x as f32).collect(); ROWS];
        let mut all = Three::new(&cuts(columns, &[]), plain);
        let expected = (columns * (columns + 1) / 2) as f64;
        assert_eq!(all.ask(&Reduce::Sum, &[0], &()), expected, "{columns} columns");
        assert_eq!(sum((1..=columns).map(|x| x as f64)), expected, "the reference for {columns} columns");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn built_ins_equal_their_serial_twins_for_any_cut(
        columns in prop_oneof![1usize..40, 200usize..3_000, 4_000usize..10_000],
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..15),
        seed in any::<u64>(),
    ) {
        let starts = cuts(columns, &at);
        let mut all = Three::new(&starts, rows(seed, columns));
        reductions_agree(&mut all);
        one_row_maps_agree(&mut all);
        several_rows_agree(&mut all);
        sent_and_fills_agree(&mut all);
    }

    #[test]
    fn random_fills_are_the_same_for_any_cut(at in prop::collection::vec(any::<prop::sample::Index>(), 0..15)) {
        let columns = 5_000;
        let fill = |starts: &[u64]| {
            let mut all = Three::new(starts, vec![vec![0.0; columns]; ROWS]);
            let calls = [
                FunctionCall::push(&Random::Uniform, &[], &[0, 1], &(7, -2.0, 3.0)),
                FunctionCall::push(&Random::Normal, &[], &[2], &(7, 1.0, 0.5)),
                FunctionCall::push(&Random::Xavier, &[], &[3], &(7, 100.0, 50.0)),
                FunctionCall::push(&Random::Kaiming, &[], &[4], &(7, 100.0, 0.0)),
            ];
            all.push(&calls).unwrap();
            (0..5).map(|row| all.row(row)).collect::<Vec<_>>()
        };
        let rows = fill(&[0]);
        prop_assert_eq!(&rows, &fill(&cuts(columns, &at)));
        for (row, values) in (0u32..).zip(&rows) {
            let expected: Vec<f32> = (0..columns as u64).map(|column| drawn(row, column) as f32).collect();
            prop_assert_eq!(values, &expected, "row {}", row);
        }
        prop_assert_ne!(&rows[0], &rows[1], "rows differ");
        let moments = |row: &[f32]| {
            let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / columns as f64;
            let squares = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
            (mean, (squares / columns as f64).sqrt())
        };
        let bound = (6.0f64 / 150.0).sqrt();
        let expected = [(0.5, 5.0 / 12f64.sqrt()), (1.0, 0.5), (0.0, bound / 3f64.sqrt()), (0.0, (0.02f64).sqrt())];
        for (row, (mean, deviation)) in rows[1..].iter().zip(expected) {
            let found = moments(row);
            // Five standard errors; the standard error of a deviation is at most deviation / sqrt(2 n).
            let error = 5.0 * deviation / (columns as f64).sqrt();
            prop_assert!((found.0 - mean).abs() < error && (found.1 - deviation).abs() < error, "{found:?}");
        }
    }
}
