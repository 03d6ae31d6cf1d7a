//! Consensus ADMM: its tasks reach the minimum over all records.

use data::Batch;
use matrix::{Consistency, MatrixId};

use super::HARNESS;
use super::full::{dense, solution, tasks};
use super::harness::{Run, build, clicks, f32s};
use algo::coordinator::{EpochDecision, StepDecision};

/// Tolerance of weights against those of L-BFGS: ADMM runs until its relative residuals are 1e-6.
const NEAR: f64 = 1e-4;
/// Settings that run ADMM until then.
const LONG: &str = "max_iterations=5000 tolerance=1e-12";

fn run(name: &str, settings: &str, tasks: Vec<Vec<Batch>>) -> Run {
    HARNESS.train(name, settings, tasks, None, Consistency::Bsp).unwrap()
}

fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= NEAR * expected.abs().max(1.0), "{what}: {found}, {expected}");
    }
}

/// The keys of the tasks are 0 to 63, 40 to 103, and 200 to 263.
fn apart() -> Vec<Vec<Batch>> {
    let moved = |seed, by: u64| {
        let mut data = clicks(seed, 6, 20);
        data.iter_mut().flat_map(|batch| &mut batch.columns).for_each(|key| *key += by);
        data
    };
    vec![moved(1, 0), moved(2, 40), moved(3, 200)]
}

#[test]
fn the_solution_is_that_of_lbfgs_for_any_number_of_tasks() {
    let cases = [
        ("lr", ""),
        ("svm", "loss=squared_hinge"),
        ("linear", "standardize=false"),
        ("huber", "standardize=false delta=1.35"),
        ("lr", "standardize=true class_weights=0:1,1:3"),
    ];
    for (name, settings) in cases {
        let records = dense(5, 200, matches!(name, "linear" | "huber"));
        let fixed = format!("l2=0.7 {settings}");
        let minimum = "optimizer=lbfgs tolerance=1e-13 max_iterations=500";
        let expected = solution(&run(name, &format!("{fixed} {minimum}"), tasks(&records)));
        for more in ["", "rho=3", "adaptive_rho=false", "start=identity rho=30", "local_iterations=1"] {
            let settings = format!("{fixed} optimizer=admm {LONG} {more}");
            for data in [vec![build(&records, 9)], tasks(&records)] {
                let count = data.len();
                let found = run(name, &settings, data);
                assert_near(&solution(&found), &expected, &format!("{name} {settings}, {count} tasks"));
            }
        }
    }
}

#[test]
fn softmax_comes_to_the_same_minimum_too() {
    let data = || [(1, 10), (2, 7), (3, 3)].map(|(seed, count)| clicks(seed, count, 20)).to_vec();
    let expected = run("softmax", "optimizer=lbfgs l2=1 tolerance=1e-13 max_iterations=500", data());
    let found = run("softmax", &format!("optimizer=admm l2=1 {LONG}"), data());
    assert_near(&solution(&found), &solution(&expected), "softmax");
}

#[test]
fn zeros_are_those_of_owlqn() {
    let records = dense(8, 200, false);
    let mut zeros = 0;
    for penalty in ["l1=2", "l1=20", "l1=8 l2=3"] {
        let expected = run(
            "lr",
            &format!("optimizer=owlqn {penalty} tolerance=1e-13 max_iterations=500"),
            tasks(&records),
        );
        let found = run("lr", &format!("optimizer=admm {penalty} {LONG}"), tasks(&records));
        let (found, expected) = (solution(&found), solution(&expected));
        assert_near(&found, &expected, penalty);
        let places = |w: &[f64]| w.iter().map(|w| *w == 0.0).collect::<Vec<_>>();
        assert_eq!(places(&found), places(&expected), "{penalty}");
        zeros += places(&found).iter().filter(|zero| **zero).count();
    }
    assert!(zeros > 0, "a strong penalty makes zeros");
}

#[test]
fn a_feature_is_averaged_over_the_tasks_that_have_it() {
    for (penalty, minimum) in [("l2=1", "lbfgs"), ("l1=1 l2=0.1", "owlqn")] {
        let settings = format!("{penalty} optimizer={minimum} tolerance=1e-13 max_iterations=500");
        let one = run("lr", &settings, vec![apart().concat()]);
        let found = run("lr", &format!("{penalty} optimizer=admm {LONG}"), apart());
        assert_eq!(f32s(&found.store, MatrixId(0)).len(), 104 + 64);
        assert_near(&solution(&found), &solution(&one), penalty);
    }
    // Without a penalty the first consensus is not shorter in features that only one of two tasks has: it equals the
    // result of that task alone.
    let first =
        |tasks| run("lr", "optimizer=admm intercept=false max_iterations=1 start=identity rho=1", tasks);
    let [own, _, other] = apart().try_into().unwrap();
    let (alone, both) = (first(vec![own.clone()]), first(vec![own, other]));
    let alone = f32s(&alone.store, MatrixId(0));
    assert_eq!(f32s(&both.store, MatrixId(0))[..alone.len()], alone);
}

#[test]
fn a_task_without_records_changes_no_byte() {
    let settings = "optimizer=admm l1=0.5 l2=0.1 max_iterations=20";
    let (first, second) = (|| clicks(1, 10, 20), || clicks(2, 7, 20));
    let two = run("lr", settings, vec![first(), second()]);
    let four = run("lr", settings, vec![Vec::new(), first(), Vec::new(), second()]);
    assert_eq!(solution(&two), solution(&four));
    assert_eq!(two.training, four.training);
}

#[test]
fn it_ends_when_the_tasks_agree_and_else_says_how_far_they_are() {
    let data = || vec![clicks(1, 20, 25), clicks(2, 20, 25)];
    let length = |tolerance: &str| {
        let found =
            run("lr", &format!("optimizer=admm l2=1 max_iterations=900 tolerance={tolerance}"), data());
        assert!(found.notices.is_empty(), "{:?}", found.notices);
        found.training.len()
    };
    let lengths = ["1e-4", "1e-6", "1e-8"].map(length);
    assert!(lengths[0] > 1 && lengths.is_sorted_by(|a, b| a < b) && lengths[2] < 900, "{lengths:?}");
    let cut = run("lr", "optimizer=admm l2=1 max_iterations=3 tolerance=1e-8", data());
    assert_eq!((cut.training.len(), cut.notices.len()), (3, 1), "{:?}", cut.notices);
    assert!(cut.notices[0].contains("primal residual") && cut.notices[0].contains("max_iterations"));
    let fixed = run("lr", "optimizer=admm l2=1 max_iterations=3 tolerance=0", data());
    assert!(fixed.notices.is_empty(), "who asks for three iterations gets three");
}

#[test]
fn validation_sees_the_consensus_of_its_iteration() {
    let data = clicks(1, 20, 25);
    let settings = "optimizer=admm l2=1 max_iterations=6 normalize=l2 standardize=true";
    let halves = vec![data[..9].to_vec(), data[9..].to_vec()];
    let run = HARNESS.train("lr", settings, halves, Some(&data), Consistency::Asp).unwrap();
    let (_, metrics) = run.saved_and_loaded(&data);
    assert_eq!(run.validation.last(), Some(&metrics));
    for (training, validation) in run.training.iter().zip(&run.validation) {
        let (training, validation) = (training["loss"], validation["loss"]);
        assert!((training - validation).abs() < 1e-6, "f64 and f32 weights: {training} {validation}");
    }
    let losses: Vec<f64> = run.training.iter().map(|metrics| metrics["loss"]).collect();
    assert!(losses.len() == 6 && losses.last() < losses.first(), "{losses:?}");
}

#[test]
fn a_stop_keeps_the_last_consensus() {
    let data = || vec![clicks(1, 20, 25), clicks(2, 20, 25)];
    let settings = "optimizer=admm l2=1 tolerance=0 max_iterations=50";
    // The stop comes in the survey, in a reading at the consensus, or during the local steps of a task.
    for batches in [1, 25, 90, 150, 333] {
        let stop =
            |_: u32, done: u64| if done >= batches { StepDecision::Stop } else { StepDecision::Continue };
        let found = HARNESS
            .run("lr", settings, data(), None, Consistency::Bsp, EpochDecision::Continue, stop)
            .unwrap();
        let iterations = found.training.len();
        assert!(iterations < 10, "{batches} of 40 batches a reading: {iterations}");
        if iterations < 2 {
            continue;
        }
        // The last report is that of the stop; the weights are the consensus of an earlier iteration.
        let same = (1..=iterations).any(|count| {
            let whole = run("lr", &format!("optimizer=admm l2=1 tolerance=0 max_iterations={count}"), data());
            solution(&whole) == solution(&found)
        });
        assert!(same, "{batches} batches, {iterations} iterations");
    }
}

#[test]
fn a_rho_that_does_not_suit_the_data_is_adapted() {
    let records = dense(5, 200, false);
    for rho in [0.01, 300.0] {
        let iterations = |adaptive: bool| {
            let settings = format!(
                "l2=0.7 optimizer=admm max_iterations=500 start=identity rho={rho} adaptive_rho={adaptive}"
            );
            run("lr", &settings, tasks(&records)).training.len()
        };
        let (adapted, fixed) = (iterations(true), iterations(false));
        assert!(adapted * 4 < fixed, "rho={rho}: {adapted} iterations, {fixed} without adapting");
    }
}
