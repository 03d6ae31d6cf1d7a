//! Tests of the linear models on `LocalStore`.

mod admm;
mod auto;
mod balanced;
mod caching;
mod full;
mod model;
mod prefetching;
mod slow_task;
mod twin;
mod weighted;

use std::sync::Arc;

use data::{Batch, BatchSize, LabelRule, Shuffle};
use math::random::{Purpose, stream};
use matrix::{Consistency, MatrixId};

use super::FAMILY;
use super::optimizer::OPTIMIZERS;
use algo::coordinator::{EpochDecision, StepDecision};
use algo::error::Error;
use algo::family::{self, Families, SavedModel};
use algo::job::{DataFacts, Epochs};
use algo::labels::LabelScale;
use algo::test_harness::{self as harness, Harness, Run, batches, clicks};

const HARNESS: Harness = Harness(&[&FAMILY]);

#[test]
fn bsp_gives_the_same_bytes_on_every_run_for_a_number_of_tasks() {
    for name in ["lr", "svm", "linear"] {
        let bytes = || {
            // The tasks have 10, 7 and 3 batches, so that they end their epochs at different clocks.
            let tasks = [(1, 10), (2, 7), (3, 3)].map(|(seed, count)| clicks(seed, count, 20)).to_vec();
            let run = HARNESS.train(name, "epochs=3", tasks, None, Consistency::Bsp).unwrap();
            (run.store.export(MatrixId(0)).unwrap(), run.store.export(MatrixId(1)).unwrap(), run.training)
        };
        let first = bytes();
        for _ in 0..5 {
            assert_eq!(bytes(), first, "{name}");
        }
    }
}

#[test]
fn every_algorithm_learns_under_every_optimizer() {
    for row in FAMILY.algorithms {
        for optimizer in OPTIMIZERS.iter().filter(|optimizer| !optimizer.is_full_batch()) {
            let has_rate = optimizer.reads.iter().any(|spec| spec.name == "learning_rate");
            let rate = if has_rate { "learning_rate=0.05" } else { "" };
            let optimizer = optimizer.name;
            let settings = format!("optimizer={optimizer} epochs=8 standardize=false {rate}");
            let run =
                HARNESS.train(row.name, &settings, vec![clicks(1, 40, 25)], None, Consistency::Bsp).unwrap();
            let losses: Vec<f64> = run.training.iter().map(|metrics| metrics["loss"]).collect();
            assert!(losses[7] < losses[0], "{} with {optimizer}: {losses:?}", row.name);
        }
    }
}

#[test]
fn scores_of_validation_and_predict_are_equal_to_the_bit() {
    for name in ["lr", "softmax", "linear"] {
        let data = clicks(1, 20, 25);
        let run = HARNESS
            .train(
                name,
                "epochs=2 normalize=l2 standardize=true",
                vec![data.clone()],
                Some(&data),
                Consistency::Bsp,
            )
            .unwrap();
        let (scores, metrics) = run.saved_and_loaded(&data);
        assert_eq!(run.validation.last(), Some(&metrics), "{name}");
        assert_eq!(scores, run.saved_and_loaded(&data).0);
        assert!(scores.iter().all(|score| score.is_finite()));
    }
}

#[test]
fn training_labels_of_one_class_are_an_error() {
    for settings in ["epochs=1", "class_weights=balanced"] {
        for label in [0.0, 1.0] {
            let mut data = clicks(1, 3, 10);
            for batch in &mut data {
                batch.labels.fill(label);
            }
            let error =
                HARNESS.train("lr", settings, vec![data, Vec::new()], None, Consistency::Bsp).err().unwrap();
            assert!(
                matches!(error, Error::OneClass { record_count: 30, label: seen } if f64::from(seen) == label),
                "{error}"
            );
        }
    }
    let facts = DataFacts { classes: vec![3.0], record_count: 5, ..DataFacts::default() };
    let error = HARNESS.job("softmax", "").unwrap().model(&facts, None).unwrap_err();
    assert!(error.to_string().contains("one class only"), "{error}");
}

#[test]
fn no_records_are_an_error() {
    for settings in ["", "standardize=true"] {
        let error = HARNESS.train("lr", settings, vec![Vec::new()], None, Consistency::Bsp).err().unwrap();
        assert!(matches!(error, Error::NoRecords), "{error}");
    }
}

#[test]
fn auto_epochs_follow_the_number_of_records_of_all_tasks() {
    let tasks = vec![clicks(1, 10, 25), clicks(2, 30, 25)];
    let run = HARNESS.train("lr", "", tasks, None, Consistency::Bsp).unwrap();
    assert_eq!(run.training.len() as u64, super::AUTO_EPOCHS_LIMIT, "1,000 records are few");
    let epochs = HARNESS.job("lr", "").unwrap().needs().epochs;
    assert_eq!(
        (epochs.count(super::AUTO_RECORD_VISITS / 4), epochs.count(1 << 30), epochs.count(0)),
        (4, 1, 50)
    );
}

#[test]
fn a_record_of_weight_two_counts_as_two_records() {
    // 2 a is compared with a + a at other positions of a sum in f64, rounded to f32 in each of 8 steps.
    const TOLERANCE: f32 = 1e-6;
    let mut weighted = clicks(1, 4, 10);
    let mut doubled = Vec::new();
    for batch in &mut weighted {
        batch.weights = (0..10).map(|r| if r % 3 == 0 { 2.0 } else { 1.0 }).collect();
        doubled.push(batches(batch, |r| if r % 3 == 0 { 2 } else { 1 }));
    }
    let weights = |data: Vec<Batch>, settings: &str| {
        let run = HARNESS.train("lr", settings, vec![data], None, Consistency::Bsp).unwrap();
        harness::f32s(&run.store, MatrixId(0))
    };
    let pairs = [(weights(weighted, "epochs=2 shuffle=none"), weights(doubled, "epochs=2 shuffle=none"))];
    for (a, b) in pairs.iter().flat_map(|(a, b)| a.iter().zip(b)) {
        assert!((a - b).abs() < TOLERANCE, "{a} {b}");
    }
}

#[test]
fn class_weights_are_weights_of_records() {
    let plain = clicks(1, 6, 10);
    let mut weighted = plain.clone();
    for batch in &mut weighted {
        batch.weights = batch.labels.iter().map(|&label| if label == 1.0 { 5.0 } else { 1.0 }).collect();
    }
    let weights = |data: Vec<Batch>, settings: &str| {
        let run = HARNESS.train("lr", settings, vec![data], None, Consistency::Bsp).unwrap();
        harness::f32s(&run.store, MatrixId(0))
    };
    assert_eq!(weights(plain, "epochs=2 class_weights=1:5"), weights(weighted, "epochs=2"));
}

#[test]
fn least_squares_finds_the_plane() {
    // There is no noise: 30 passes converge to the plane within this tolerance.
    const TOLERANCE: f64 = 0.02;
    let mut random = stream(5, Purpose::Test, 0, 0);
    let truth = [1.5, -2.0, 0.25];
    let records: Vec<_> = (0..4000)
        .map(|_| {
            let x: Vec<f64> =
                (0..3).map(|j| 10.0 * f64::from(j) + random.normal() * f64::from(j + 1)).collect();
            let y = 3.0 + x.iter().zip(truth).map(|(x, w)| x * w).sum::<f64>();
            (y as f32, x.iter().zip(0..).map(|(&x, j)| (j, x as f32)).collect::<Vec<_>>())
        })
        .collect();
    let data = harness::build(&records, 50);
    for name in ["linear", "huber"] {
        let run = HARNESS.train(
            name,
            "epochs=30 standardize=true",
            vec![data.clone()],
            Some(&data),
            Consistency::Bsp,
        );
        let rmse = run.unwrap().validation[29]["rmse"];
        assert!(rmse < TOLERANCE, "{name}: {rmse}");
    }
}

#[test]
fn training_goes_on_from_a_model_that_fits_and_refuses_another() {
    let facts = DataFacts { classes: vec![0.0, 1.0], record_count: 10, ..DataFacts::default() };
    let old = HARNESS.job("lr", "").unwrap().model(&facts, None).unwrap();
    let saved = |model: &dyn family::Model| SavedModel::new(model);
    assert_eq!(saved(&*HARNESS.job("lr", "l2=3").unwrap().model(&facts, Some(&*old)).unwrap()), saved(&*old));
    for (name, settings, what) in
        [("svm", "", "loss"), ("lr", "intercept=false", "intercept"), ("lr", "normalize=l2", "normalize")]
    {
        let error = HARNESS.job(name, settings).unwrap().new_model(&facts, Some(&*old)).unwrap_err();
        assert!(matches!(&error, Error::ModelMismatch { what: seen, .. } if seen == what), "{error}");
    }
    let three = DataFacts { classes: vec![0.0, 1.0, 2.0], ..facts.clone() };
    let old = HARNESS.job("softmax", "").unwrap().model(&three, None).unwrap();
    let fewer_classes = HARNESS.job("softmax", "").unwrap().model(&facts, Some(&*old)).unwrap();
    assert_eq!(saved(&*fewer_classes), saved(&*old), "fewer classes are fine");
    let other = DataFacts { classes: vec![0.0, 7.0], ..facts };
    let error = HARNESS.job("softmax", "").unwrap().model(&other, Some(&*old)).unwrap_err();
    assert!(matches!(error, Error::UnknownClass { label: 7.0, .. }), "{error}");
}

#[test]
fn a_stop_ends_all_tasks_at_this_step() {
    let tasks = vec![clicks(1, 50, 10), clicks(2, 5, 10)];
    let stop_at = |step: u64| {
        move |_: u32, done: u64| if done >= step { StepDecision::Stop } else { StepDecision::Continue }
    };
    let run = HARNESS
        .run("lr", "epochs=4", tasks, None, Consistency::Bsp, EpochDecision::Stop, stop_at(3))
        .unwrap();
    assert_eq!(run.training.len(), 1);
    assert!(run.record_count < 200, "{} records", run.record_count);
}

#[test]
fn divergence_says_what_to_do() {
    let settings = "optimizer=sgd learning_rate=1e9 standardize=false";
    let error =
        HARNESS.train("linear", settings, vec![clicks(1, 400, 10)], None, Consistency::Bsp).err().unwrap();
    assert!(error.to_string().contains("learning_rate"), "{error}");
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let cases = [
        ("lr", "class_weights=1", "label:weight"),
        ("linear", "positive_label=1", "models of two classes"),
        ("linear", "class_weights=balanced", "not classes"),
        ("lr", "optimizer=ftrl schedule=exponential", "determines its own step sizes"),
        ("lr", "optimizer=sgd schedule=exponential schedule_decay=2", "(0, 1]"),
        ("lr", "optimizer=fttrl", "ftrl | adagrad"),
        ("svm", "loss=log", "squared_hinge | hinge"),
        ("huber", "delta=0", "> 0"),
        ("lr", "momentum=1", "[0, 1)"),
        ("lr", "delta=1", "no parameter"),
    ];
    for (name, settings, expected) in cases {
        let error =
            HARNESS.job(name, settings).err().unwrap_or_else(|| panic!("{name} {settings} was taken"));
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(
        Families::new(&[&FAMILY]).unwrap().algorithm("lgr").unwrap_err().to_string().contains("did you mean")
    );
}

#[test]
fn a_parameter_is_explained_with_its_readers_and_its_choices() {
    let families = Families::new(&[&FAMILY]).unwrap();
    let lr = families.algorithm("lr").unwrap();
    let help = |name: &str| {
        let spec = lr.parameters.iter().find(|spec| spec.name == name).unwrap();
        lr.help_text(spec)
    };
    assert!(help("optimizer").starts_with("Push rule of the weights, or a full-batch optimizer; auto: "));
    assert!(help("optimizer").contains("; ftrl: FTRL-Proximal, a step size for each coordinate; adagrad: "));
    assert_eq!(help("beta"), "ftrl: smooths the first steps");
    assert!(lr.parameters.iter().all(|spec| lr.help_text(spec).len() > 10));
}

#[test]
fn a_job_says_what_it_needs_of_its_data() {
    let needs = |algorithm, settings| HARNESS.job(algorithm, settings).unwrap().needs();
    let plain = needs("lr", "optimizer=ftrl standardize=false");
    assert_eq!((plain.scan, plain.count_features, plain.keep_zeros), (false, false, false));
    assert_eq!((plain.label_rule, plain.early_stopping), (LabelRule::Binary { positive: None }, None));
    assert!(needs("lr", "optimizer=ftrl").keep_zeros, "nothing is known of the columns yet");
    let scaled = needs("lr", "optimizer=ftrl standardize=true");
    assert_eq!((scaled.scan, scaled.count_features, scaled.keep_zeros), (true, false, true));
    let minimized = needs("lr", "optimizer=lbfgs standardize=false");
    assert_eq!((minimized.scan, minimized.count_features, minimized.keep_zeros), (true, true, false));
    for (name, label_rule) in
        [("softmax", LabelRule::Class), ("linear", LabelRule::Real), ("huber", LabelRule::Real)]
    {
        let needs = needs(name, "optimizer=ftrl standardize=false");
        assert_eq!((needs.scan, needs.label_rule), (true, label_rule), "{name}: the scan reads the labels");
    }
    assert!(needs("svm", "optimizer=ftrl standardize=false class_weights=balanced").scan);
    let given = "optimizer=ftrl batch_size=7 epochs=3 shuffle=records validation_share=0.25 early_stopping=2 dimensions=9";
    let given = needs("lr", given);
    assert_eq!((given.batch_size, given.epochs), (BatchSize::Fixed(7), Epochs::Fixed(3)));
    assert_eq!((given.shuffle, given.validation_share), (Shuffle::Records, 0.25));
    assert_eq!(given.key_limit, Some(data::KeyLimit { limit: 9, setting: "dimensions" }));
    assert!(given.early_stopping.is_some());
}

#[test]
fn a_regression_predicts_on_the_scale_of_its_labels() {
    let data = clicks(1, 10, 25);
    let run = HARNESS.train("linear", "epochs=2", vec![data.clone()], None, Consistency::Bsp).unwrap();
    let plain = run.saved_and_loaded(&data).0;
    let scale = LabelScale { mean: 300.0, deviation: 50.0 };
    let model = run.model.of::<super::Model>().unwrap().clone();
    let scaled = Run { model: Arc::new(super::Model { label_scale: Some(scale), ..model }), ..run };
    let expected: Vec<f64> = plain.iter().map(|prediction| 300.0 + 50.0 * prediction).collect();
    assert_eq!(scaled.saved_and_loaded(&data).0, expected);
}

#[test]
fn labels_that_are_scaled_by_the_model_train_as_those_that_were_scaled_before() {
    // A weight changes by the rounding of f32 in each of 20 steps.
    const TOLERANCE: f32 = 1e-5;
    let scale = LabelScale { mean: 300.0, deviation: 50.0 };
    let scaled = clicks(1, 10, 25);
    let mut labelled = scaled.clone();
    for batch in &mut labelled {
        batch.labels.iter_mut().for_each(|label| *label = 300.0 + 50.0 * *label);
    }
    let settings = "optimizer=sgd learning_rate=0.05 epochs=2 standardize=false";
    let before = HARNESS.train("linear", settings, vec![scaled], None, Consistency::Bsp).unwrap();
    let model = before.model.of::<super::Model>().unwrap().clone();
    let model = Arc::new(super::Model { label_scale: Some(scale), ..model });
    let inside = HARNESS.with_model("linear", settings, model, vec![labelled]).unwrap();
    let [before, inside] = [before, inside].map(|run| harness::f32s(&run.store, MatrixId(0)));
    assert_eq!(before.len(), inside.len());
    assert!(before.iter().any(|weight| weight.abs() > 0.01));
    for (before, inside) in before.iter().zip(&inside) {
        assert!((before - inside).abs() < TOLERANCE, "{before} {inside}");
    }
}
