//! `class_weights=balanced`: the weight of a class is `records / (classes x records of the class)`, over all tasks.

use data::Batch;
use matrix::{Consistency, MatrixId};

use super::HARNESS;
use super::harness::{Record, Run, build, f32s};

/// 80 records of class 0 and 20 of class 1 (every fifth), with a feature that does not distinguish them and one that
/// does a little.
fn imbalanced() -> Vec<Batch> {
    let record = |i: usize| -> Record {
        let label = f32::from(u8::from(i % 5 == 4));
        (label, vec![((i % 3) as u64, 1.0), (3 + u64::from(i % 5 >= 3), 1.0)])
    };
    build(&(0..100).map(record).collect::<Vec<_>>(), 10)
}

fn run(name: &str, settings: &str, tasks: Vec<Vec<Batch>>) -> Run {
    HARNESS.train(name, &format!("epochs=40 shuffle=none {settings}"), tasks, None, Consistency::Bsp).unwrap()
}

fn weights(run: &Run) -> (Vec<f32>, Vec<f32>) {
    (f32s(&run.store, MatrixId(0)), f32s(&run.store, MatrixId(1)))
}

#[test]
fn they_equal_the_formula_over_all_tasks() {
    // 100 / (2 x 80) and 100 / (2 x 20), however the records are divided among the tasks.
    let given = "class_weights=0:0.625,1:2.5";
    let data = imbalanced();
    for tasks in [vec![data.clone()], vec![data[..3].to_vec(), data[3..].to_vec()]] {
        for name in ["lr", "svm"] {
            let balanced = weights(&run(name, "class_weights=balanced", tasks.clone()));
            assert_eq!(balanced, weights(&run(name, given, tasks.clone())), "{name}");
            assert_ne!(balanced, weights(&run(name, "", tasks.clone())), "{name}: they do something");
        }
    }
}

#[test]
fn they_equal_the_formula_for_many_classes() {
    let mut data = imbalanced();
    for batch in &mut data {
        // 50 records of class 0, 40 of class 1, 10 of class 2.
        batch.labels = vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 2.0];
    }
    let given = format!("class_weights=0:{},1:{},2:{}", 100.0 / 150.0, 100.0 / 120.0, 100.0 / 30.0);
    let balanced = weights(&run("softmax", "class_weights=balanced", vec![data.clone()]));
    assert_eq!(balanced, weights(&run("softmax", &given, vec![data])));
}

#[test]
fn predictions_are_centred_between_the_classes() {
    // After 40 passes over 10 batches FTRL is within this distance of the optimum.
    const TOLERANCE: f64 = 0.02;
    let data = imbalanced();
    // At the optimum the weighted slopes sum to 0 (the intercept's gradient): the weighted mean prediction is the
    // weighted share of class 1, which is 20 % without weights and one half with balanced ones.
    for (settings, class_weights, share) in
        [("", [1.0, 1.0], 0.2), ("class_weights=balanced", [0.625, 2.5], 0.5)]
    {
        let (scores, _) =
            run("lr", &format!("learning_rate=0.5 {settings}"), vec![data.clone()]).saved_and_loaded(&data);
        let labels = data.iter().flat_map(|batch| &batch.labels);
        let weight = |label: f64| class_weights[usize::from(label == 1.0)];
        let mean: f64 =
            scores.iter().zip(labels).map(|(score, &label)| score * weight(label)).sum::<f64>() / 100.0;
        assert!((mean - share).abs() < TOLERANCE, "{settings}: {mean}, expected {share}");
    }
}
