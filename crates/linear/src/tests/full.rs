//! Full-batch optimizers: they find the minimum, with the same bytes wherever the vectors are placed.

use data::Batch;
use math::elementary::sigmoid;
use math::random::{Purpose, stream};
use matrix::{Consistency, MatrixId};

use super::HARNESS;
use super::harness::{Record, Run, build, clicks, f32s};
use algo::coordinator::{EpochDecision, StepDecision};
use algo::error::Error;
use algo::loss::Loss;

/// Number of features of [`dense`].
const DIMENSIONS: usize = 6;
/// Weights are written as f32, and the last step decreases the objective by 1e-13 of it.
const TOLERANCE: f64 = 2e-6;

/// Records with six features of very different size; labels are 0 and 1, or real numbers.
pub(super) fn dense(seed: u64, count: usize, numbers: bool) -> Vec<Record> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut record = || {
        let entries: Vec<(u64, f32)> = (0..DIMENSIONS as u64)
            .map(|key| (key * 7, (random.normal() * (key + 1) as f64) as f32))
            .collect();
        let score: f64 =
            entries.iter().map(|(key, value)| (*key as f64 / 7.0 - 2.0) * f64::from(*value) / 5.0).sum();
        let label = if numbers {
            (score + random.normal()) as f32
        } else {
            f32::from(random.uniform() < sigmoid(score))
        };
        (label, entries)
    };
    (0..count).map(|_| record()).collect()
}

/// The records in several tasks, one of which has none.
pub(super) fn tasks(records: &[Record]) -> Vec<Vec<Batch>> {
    let third = records.len() / 3;
    vec![build(&records[..third], 7), Vec::new(), build(&records[third..], 11)]
}

/// Weights, then the intercept, which the model must have.
pub(super) fn solution(run: &Run) -> Vec<f64> {
    let mut weights = f32s(&run.store, MatrixId(0));
    weights.extend(f32s(&run.store, MatrixId(1)));
    weights.into_iter().map(f64::from).collect()
}

/// Gradient of `sum of losses + 0.5 l2 |w|^2`; the last value is that of the intercept, which has no l2.
fn gradient(loss: Loss, records: &[Record], l2: f64, w: &[f64]) -> Vec<f64> {
    let mut sums: Vec<f64> = w.iter().map(|w| l2 * w).collect();
    sums[DIMENSIONS] = 0.0;
    for (label, entries) in records {
        let score = w[DIMENSIONS] + entries.iter().zip(w).map(|((_, x), w)| f64::from(*x) * w).sum::<f64>();
        let slope = loss.value_and_slope(score, f64::from(*label)).1;
        entries.iter().zip(&mut sums).for_each(|((_, x), sum)| *sum += slope * f64::from(*x));
        sums[DIMENSIONS] += slope;
    }
    sums
}

/// Newton's method: the Hessian comes from central differences of the gradient, and the equations are solved by
/// elimination.
fn newton(loss: Loss, records: &[Record], l2: f64, mut w: Vec<f64>) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let k = DIMENSIONS + 1;
    for _ in 0..60 {
        let mut table: Vec<Vec<f64>> = (0..k)
            .map(|i| {
                let moved = |step: f64| {
                    let mut moved = w.clone();
                    moved[i] += step;
                    gradient(loss, records, l2, &moved)
                };
                let (plus, minus) = (moved(STEP), moved(-STEP));
                plus.iter().zip(minus).map(|(a, b)| (a - b) / (2.0 * STEP)).collect()
            })
            .collect();
        for (row, g) in table.iter_mut().zip(gradient(loss, records, l2, &w)) {
            row.push(g);
        }
        for i in 0..k {
            let pivot = table[i].clone();
            for row in table.iter_mut().enumerate().filter(|(j, _)| *j != i).map(|(_, row)| row) {
                let factor = row[i] / pivot[i];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
        for i in 0..k {
            w[i] -= table[i][k] / table[i][i];
        }
    }
    w
}

#[test]
fn the_minimum_is_that_of_newtons_method() {
    let cases = [
        ("lr", "", Loss::Logistic),
        ("svm", "loss=squared_hinge", Loss::SquaredHinge),
        ("linear", "standardize=false", Loss::Squared),
        ("huber", "standardize=false delta=1.35", Loss::Huber { delta: 1.35 }),
    ];
    for (name, settings, loss) in cases {
        let records = dense(5, 200, matches!(loss, Loss::Squared | Loss::Huber { .. }));
        // Huber's loss is linear far from the minimum, so Newton's method starts from the solution of least squares,
        // which is close enough.
        let begin = if matches!(loss, Loss::Huber { .. }) { Loss::Squared } else { loss };
        let begin = newton(begin, &records, 0.7, vec![0.0; DIMENSIONS + 1]);
        let expected = newton(loss, &records, 0.7, begin);
        for optimizer in ["lbfgs", "lbfgs start=identity", "lbfgs history=1", "gd max_iterations=5000"] {
            let settings =
                format!("max_iterations=500 tolerance=1e-13 l2=0.7 {settings} optimizer={optimizer}");
            let run = HARNESS.train(name, &settings, tasks(&records), None, Consistency::Bsp).unwrap();
            for (found, expected) in solution(&run).iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0),
                    "{name} {settings}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn svrg_comes_near_the_minimum_and_says_when_steps_are_too_long() {
    // SVRG converges by a constant factor per pass.
    const NEAR: f64 = 1e-3;
    let records = dense(5, 200, false);
    let expected = newton(Loss::Logistic, &records, 0.7, vec![0.0; DIMENSIONS + 1]);
    let settings = "optimizer=svrg l2=0.7 max_iterations=200 tolerance=1e-10";
    let run = HARNESS
        .train("lr", &format!("{settings} learning_rate=0.3"), tasks(&records), None, Consistency::Bsp)
        .unwrap();
    for (found, expected) in solution(&run).iter().zip(&expected) {
        assert!((found - expected).abs() <= NEAR * expected.abs().max(1.0), "{found}, {expected}");
    }
    let numbers = dense(5, 200, true);
    let settings = "optimizer=svrg standardize=false learning_rate=50";
    let error = HARNESS.train("linear", settings, tasks(&numbers), None, Consistency::Bsp).err().unwrap();
    assert!(matches!(error, Error::Diverged { .. }) && error.to_string().contains("now 50"), "{error}");
}

#[test]
fn owlqn_leaves_no_slope_but_that_of_the_corners() {
    let records = dense(8, 200, false);
    for (l1, l2) in [(2.0, 0.0), (20.0, 0.0), (8.0, 3.0)] {
        let settings = format!("optimizer=owlqn l1={l1} l2={l2} max_iterations=500 tolerance=1e-13");
        let run = HARNESS.train("lr", &settings, tasks(&records), None, Consistency::Bsp).unwrap();
        let w = solution(&run);
        let slopes = gradient(Loss::Logistic, &records, l2, &w);
        // Weights are f32; the curvature of the largest column is about 200 x 36 / 4.
        let rounding = 1e-3;
        let mut zeros = 0;
        for (w, slope) in w.iter().zip(&slopes).take(DIMENSIONS) {
            if *w == 0.0 {
                zeros += 1;
                assert!(slope.abs() <= l1 + rounding, "l1 {l1}: {slope} at 0");
            } else {
                assert!((slope + l1 * w.signum()).abs() <= rounding, "l1 {l1}: {slope} at {w}");
            }
        }
        assert!(slopes[DIMENSIONS].abs() <= rounding, "the intercept has no penalty");
        assert!(l1 < 20.0 || zeros > 0, "a strong penalty makes zeros");
    }
}

#[test]
fn the_bytes_are_the_same_for_any_number_of_partitions_and_in_every_run() {
    for (name, settings) in [
        ("lr", "optimizer=lbfgs l2=0.5 history=4"),
        ("lr", "optimizer=owlqn l1=0.8"),
        ("softmax", "optimizer=lbfgs l2=1 normalize=l2"),
        ("svm", "optimizer=gd loss=squared_hinge class_weights=balanced"),
        ("lr", "optimizer=svrg l2=1"),
        ("lr", "optimizer=admm l1=0.8 l2=0.2"),
        ("softmax", "optimizer=admm l2=1 normalize=l2"),
    ] {
        let bytes = |partition_count| {
            let data = [(1, 10), (2, 7), (3, 3)].map(|(seed, count)| clicks(seed, count, 20)).to_vec();
            let run = HARNESS
                .train_on(partition_count, name, &format!("{settings} max_iterations=12"), data)
                .unwrap();
            (run.store.export(MatrixId(0)).unwrap(), run.store.export(MatrixId(1)).unwrap(), run.training)
        };
        let first = bytes(1);
        for partition_count in [4, 4, 7] {
            assert_eq!(bytes(partition_count), first, "{name} {settings}");
        }
    }
}

#[test]
fn weights_do_not_hang_on_how_records_are_shared_out() {
    let settings = "optimizer=lbfgs l2=1 tolerance=1e-13 max_iterations=300 standardize=true";
    let records = dense(3, 120, false);
    let one = HARNESS.train("lr", settings, vec![build(&records, 9)], None, Consistency::Bsp).unwrap();
    let many = HARNESS.train("lr", settings, tasks(&records), None, Consistency::Bsp).unwrap();
    for (a, b) in solution(&one).iter().zip(solution(&many)) {
        assert!((a - b).abs() < TOLERANCE, "{a} {b}");
    }
}

#[test]
fn features_that_only_some_tasks_have_keep_apart() {
    let moved = |seed, by: u64| -> Vec<Batch> {
        let mut data = clicks(seed, 6, 20);
        for batch in &mut data {
            batch.columns.iter_mut().for_each(|key| *key += by);
        }
        data
    };
    // The keys are 0 to 63, 40 to 103, and 200 to 263; in the second order the last keys come first.
    let shares = || vec![moved(1, 0), moved(2, 40), moved(3, 200)];
    let settings = "optimizer=lbfgs l2=1 tolerance=1e-13 max_iterations=300";
    let run = |tasks: Vec<Vec<Batch>>| HARNESS.train("lr", settings, tasks, None, Consistency::Bsp).unwrap();
    let one = run(vec![shares().concat()]);
    let keys = one.store.export(MatrixId(0)).unwrap().keys;
    assert_eq!(keys.len(), 104 + 64);
    let (forth, back) = (run(shares()), run(shares().into_iter().rev().collect()));
    for run in [&forth, &back] {
        assert_eq!(run.store.export(MatrixId(0)).unwrap().keys, keys);
        for (a, b) in solution(&one).iter().zip(solution(run)) {
            assert!((a - b).abs() < TOLERANCE, "{a} {b}");
        }
    }
}

#[test]
fn named_features_have_columns_like_numbered_ones() {
    let records = dense(4, 100, false);
    let named: Vec<Record> = records
        .iter()
        .map(|(label, entries)| {
            (*label, entries.iter().map(|(key, x)| ((1 << 62) + (key << 40), *x)).collect())
        })
        .collect();
    let weights = |records: &[Record]| {
        let settings = "optimizer=lbfgs l2=1";
        solution(&HARNESS.train("lr", settings, tasks(records), None, Consistency::Bsp).unwrap())
    };
    assert_eq!(weights(&records), weights(&named));
}

#[test]
fn validation_sees_the_weights_of_its_iteration() {
    let data = clicks(1, 20, 25);
    let settings = "optimizer=lbfgs l2=1 max_iterations=6 normalize=l2 standardize=true";
    let run = HARNESS.train("lr", settings, vec![data.clone()], Some(&data), Consistency::Bsp).unwrap();
    let (_, metrics) = run.saved_and_loaded(&data);
    assert_eq!(run.validation.last(), Some(&metrics));
    for (training, validation) in run.training.iter().zip(&run.validation) {
        let (training, validation) = (training["loss"], validation["loss"]);
        assert!((training - validation).abs() < 1e-6, "f64 and f32 weights: {training} {validation}");
    }
    let losses: Vec<f64> = run.training.iter().map(|metrics| metrics["loss"]).collect();
    assert!(losses.len() > 2 && losses.last() < losses.first(), "{losses:?}");
}

#[test]
fn a_stop_keeps_the_best_point() {
    let stop = |_: u32, done: u64| if done >= 150 { StepDecision::Stop } else { StepDecision::Continue };
    let settings = "optimizer=lbfgs l2=1";
    let data = vec![clicks(1, 20, 25), clicks(2, 20, 25)];
    let run =
        HARNESS.run("lr", settings, data, None, Consistency::Bsp, EpochDecision::Continue, stop).unwrap();
    assert!(run.training.len() < 10, "150 of 40 batches a pass");
    assert!(f32s(&run.store, MatrixId(0)).iter().any(|weight| *weight != 0.0));
}

#[test]
fn no_records_and_one_class_are_errors_here_too() {
    let error =
        HARNESS.train("lr", "optimizer=lbfgs", vec![Vec::new()], None, Consistency::Bsp).err().unwrap();
    assert!(matches!(error, Error::NoRecords), "{error}");
    let mut data = clicks(1, 3, 10);
    for batch in &mut data {
        batch.labels.fill(1.0);
    }
    let error = HARNESS.train("lr", "optimizer=lbfgs", vec![data], None, Consistency::Bsp).err().unwrap();
    assert!(matches!(error, Error::OneClass { record_count: 30, .. }), "{error}");
}

#[test]
fn settings_that_mean_nothing_to_the_optimizer_are_refused() {
    for (name, settings, expected) in [
        ("lr", "optimizer=lbfgs history=0", "[1, 1000]"),
        ("lr", "optimizer=owlqn", "set l1 > 0"),
        ("lr", "optimizer=owlqn l1=1 history=101", "limit of owlqn is 100"),
        ("lr", "optimizer=lbfgs l1=1", "use owlqn"),
        ("lr", "optimizer=gd l1=1", "use owlqn"),
        ("lr", "optimizer=svrg l1=1", "use owlqn"),
        ("svm", "optimizer=lbfgs loss=hinge", "squared_hinge"),
        ("lr", "optimizer=lbfgs epochs=3", "max_iterations"),
        ("lr", "optimizer=lbfgs schedule=inverse_time", "line search"),
        ("lr", "optimizer=lbfgs clip=1", "another objective"),
        ("lr", "optimizer=gd gradient=mean", "sum of losses"),
        ("lr", "optimizer=lbfgs max_iterations=0", "[1, 1000000]"),
        ("lr", "optimizer=lbfgs tolerance=-1", ">= 0"),
        ("svm", "optimizer=admm loss=hinge", "squared_hinge"),
        ("lr", "optimizer=admm epochs=3", "max_iterations"),
        ("lr", "optimizer=admm clip=1", "another objective"),
        ("lr", "optimizer=admm schedule=inverse_time", "step sizes"),
        ("lr", "optimizer=admm rho=0", "> 0"),
        ("lr", "optimizer=admm rho=-1", "> 0"),
        ("lr", "optimizer=admm rho=NaN", "> 0"),
        ("lr", "optimizer=admm rho=inf", "> 0"),
        ("lr", "optimizer=admm local_iterations=0", "[1, 1000]"),
        ("lr", "optimizer=admm adaptive_rho=often", "true"),
        ("lr", "optimizer=admm l1=NaN", ">= 0"),
    ] {
        let error =
            HARNESS.job(name, settings).err().unwrap_or_else(|| panic!("{name} {settings} was taken"));
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_minimum_is_reached_without_a_word_and_an_iteration_limit_before_it_is_said() {
    let run = |limit: &str| {
        let data = vec![clicks(1, 20, 25), clicks(2, 20, 25)];
        HARNESS.train("lr", &format!("optimizer=lbfgs l2=1 {limit}"), data, None, Consistency::Bsp).unwrap()
    };
    let whole = run("");
    assert!(whole.notices.is_empty() && whole.training.len() < 100, "{:?}", whole.notices);
    let cut = run("max_iterations=2");
    assert_eq!((cut.training.len(), cut.notices.len()), (2, 1), "{:?}", cut.notices);
    assert!(cut.notices[0].contains("max_iterations"), "{:?}", cut.notices);
}

#[test]
fn values_whose_squares_are_no_f32_are_refused_with_their_sum() {
    let run = |value: f32| {
        let records: Vec<Record> = (0..40)
            .map(|i| (f32::from(i % 3 == 0), vec![(1, if i % 2 == 0 { value } else { -value })]))
            .collect();
        HARNESS.train(
            "lr",
            "optimizer=lbfgs l2=1 standardize=false",
            vec![build(&records, 10)],
            None,
            Consistency::Bsp,
        )
    };
    assert!(run(1e18).is_ok());
    let error = run(1e20).err().expect("the sum of squares is 4e41");
    assert!(matches!(error, Error::LargeValues { sum, .. } if (3.9e41..4.1e41).contains(&sum)), "{error}");
}
