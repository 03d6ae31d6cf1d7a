//! Tests of factorization machines on `LocalStore`.

use std::collections::BTreeMap;

use data::{Batch, BatchBuilder, BatchSize, LabelRule, Shuffle, Survey};
use math::elementary::sigmoid;
use math::random::{Purpose, stream};
use matrix::{Consistency, MatrixId};

use super::{FAMILY, Model};
use algo::error::Error;
use algo::family;
use algo::job::{DataFacts, DataProfile, Epochs, Resolution};
use algo::metric::Metrics;
use algo::test_harness::{Harness, Record, Run, build, f32s};

const HARNESS: Harness = Harness(&[&FAMILY]);

/// Records with one of 12 users and one of 15 items, keys 0 to 26. What counts is the pair: each user and each item has
/// a direction, and the score is their product. A sum of weights cannot learn it.
fn pairs(seed: u64, count: usize) -> Vec<(f64, Record)> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut record = || {
        let (user, item) = (random.below(12), random.below(15));
        let angle = (user as f64 * 2.4 - item as f64 * 1.7).cos();
        let score = 4.0 * angle;
        let label = f32::from(random.uniform() < sigmoid(score));
        (score, (label, vec![(user, 1.0), (12 + item, 1.0)]))
    };
    (0..count).map(|_| record()).collect()
}

fn classes(seed: u64, count: usize) -> Vec<Record> {
    pairs(seed, count).into_iter().map(|(_, record)| record).collect()
}

/// The same records with the score, far from 0, as the label.
fn values(seed: u64, count: usize) -> Vec<Record> {
    pairs(seed, count)
        .into_iter()
        .map(|(score, (_, entries))| (1000.0 + 50.0 * score as f32, entries))
        .collect()
}

/// The same batches, where the first entry of each record has field 0 and the second one field 1.
fn with_fields(mut batches: Vec<Batch>) -> Vec<Batch> {
    for batch in &mut batches {
        batch.fields = (0..batch.entry_count() as u32).map(|entry| entry % 2).collect();
    }
    batches
}

fn tasks(records: &[Record], count: usize) -> Vec<Vec<Batch>> {
    records.chunks(records.len().div_ceil(count)).map(|share| with_fields(build(share, 50))).collect()
}

fn run(algorithm: &str, settings: &str, tasks: Vec<Vec<Batch>>) -> Result<Run, Error> {
    HARNESS.train(algorithm, settings, tasks, None, Consistency::Bsp)
}

/// Metrics on other records.
fn tested(run: &Run, records: &[Record]) -> Metrics {
    run.saved_and_loaded(&with_fields(build(records, 64))).1
}

/// AUC of the true scores of these records: what a perfect model reaches is near.
const GOOD_AUC: f64 = 0.9;

#[test]
fn both_learn_what_only_pairs_tell() {
    for algorithm in ["fm", "ffm"] {
        let settings = "k=4 epochs=12 learning_rate=0.3 l2=0.001 init_deviation=0.1";
        let learned = run(algorithm, settings, tasks(&classes(1, 3000), 2)).unwrap();
        let metrics = tested(&learned, &classes(2, 1500));
        assert!(metrics["auc"] > GOOD_AUC, "{algorithm}: {metrics:?}");
        assert!(metrics["log_loss"] < 0.5 && (metrics["calibration"] - 1.0).abs() < 0.2, "{metrics:?}");
    }
    // No feature is seen so often that it gets factors.
    let linear = run("fm", "epochs=12 admission=5000", tasks(&classes(1, 3000), 2)).unwrap();
    let auc = tested(&linear, &classes(2, 1500))["auc"];
    assert!(auc < 0.65, "a linear model cannot learn it: {auc}");
}

#[test]
fn real_labels_far_from_zero_are_learned() {
    let (training, others) = (values(3, 2000), values(4, 500));
    let mean = training.iter().map(|record| f64::from(record.0)).sum::<f64>() / 2000.0;
    let square = |record: &Record| (f64::from(record.0) - mean).powi(2);
    let deviation = (training.iter().map(square).sum::<f64>() / 2000.0).sqrt();
    let facts = DataFacts { label_mean: mean, label_deviation: deviation, ..DataFacts::default() };
    let settings = "loss=squared epochs=12 k=4 l2=0.001 init_deviation=0.1";
    let model = HARNESS.job("fm", settings).unwrap().model(&facts, None).unwrap();
    let learned = HARNESS.with_model("fm", settings, model, tasks(&training, 2)).unwrap();
    let r2 = tested(&learned, &others)["r2"];
    assert!(r2 > 0.95, "{r2}");
}

#[test]
fn every_push_rule_learns() {
    for settings in [
        "optimizer=sgd learning_rate=2 linear_optimizer=adagrad",
        "linear_optimizer=sgd linear_learning_rate=1 learning_rate=0.3",
        "l1=0.0001 linear_l1=1 learning_rate=0.3",
        "normalize=l2 learning_rate=0.5",
    ] {
        let settings = format!("{settings} k=4 epochs=20 l2=0.0005 init_deviation=0.2");
        let learned = run("fm", &settings, tasks(&classes(1, 3000), 1)).unwrap();
        let auc = tested(&learned, &classes(2, 1500))["auc"];
        assert!(auc > 0.85, "{settings}: {auc}");
    }
}

/// One task, batches of 50, AdaGrad and FTRL, written out in double precision with a map for each matrix.
#[test]
fn a_run_is_what_plain_loops_give() {
    const RATE: f64 = 0.25;
    const L2: f64 = 0.01;
    const ALPHA: f64 = 0.5;
    let batches = with_fields(build(&classes(5, 300), 50));
    for (algorithm, fields) in [("fm", 1), ("ffm", 2)] {
        let settings = format!("k=3 epochs=2 learning_rate={RATE} l2={L2} linear_l2=1");
        let learned = run(algorithm, &settings, vec![batches.clone()]).unwrap();
        let first = first_factors(algorithm, &settings);
        let mut twin = Twin::new(first, fields);
        for batch in batches.iter().chain(&batches) {
            twin.step(batch, (RATE, L2, ALPHA));
        }
        let factors = f32s(&learned.store, Model::FACTORS);
        assert_eq!(factors.len(), twin.factors.len());
        for (i, (actual, expected)) in factors.iter().zip(&twin.factors).enumerate() {
            assert!(
                (f64::from(*actual) - expected).abs() < 2e-4,
                "{algorithm}, factor {i}: {actual} {expected}"
            );
        }
        for (i, actual) in f32s(&learned.store, Model::WEIGHTS).iter().enumerate() {
            let expected = twin.weights[i].weight;
            assert!(
                (f64::from(*actual) - expected).abs() < 2e-4,
                "{algorithm}, weight {i}: {actual} {expected}"
            );
        }
    }
}

/// The values with which the rows of the factors of all 27 features begin: those after a push of zeros.
fn first_factors(algorithm: &str, settings: &str) -> Vec<f64> {
    let record = |key| (f32::from(key % 2 == 0), vec![(key, 1.0)]);
    let records: Vec<Record> = (0..27).map(record).collect();
    let mut batches = build(&records, 50);
    batches[0].fields = vec![0; 26].into_iter().chain([1]).collect();
    let one = settings.replace("epochs=2", "epochs=1");
    let run = run(algorithm, &one, vec![batches]).unwrap();
    f32s(&run.store, Model::FACTORS).into_iter().map(f64::from).collect()
}

/// A weight under FTRL-Proximal with beta = 1.
#[derive(Clone, Copy, Default)]
struct TwinWeight {
    weight: f64,
    z: f64,
    n: f64,
}

impl TwinWeight {
    fn update(&mut self, gradient: f64, alpha: f64, l2: f64) {
        let root = (self.n + gradient * gradient).sqrt();
        self.z += gradient - (root - self.n.sqrt()) / alpha * self.weight;
        self.n += gradient * gradient;
        self.weight = -self.z / ((1.0 + root) / alpha + l2);
    }
}

struct Twin {
    fields: usize,
    weights: Vec<TwinWeight>,
    intercept: TwinWeight,
    /// Features x fields x 3.
    factors: Vec<f64>,
    squares: Vec<f64>,
    is_pushed: Vec<bool>,
}

impl Twin {
    fn new(factors: Vec<f64>, fields: usize) -> Self {
        let squares = vec![0.0; factors.len()];
        let weights = vec![TwinWeight::default(); 27];
        Self {
            fields,
            weights,
            intercept: TwinWeight::default(),
            squares,
            factors,
            is_pushed: vec![false; 27],
        }
    }

    /// The factors of one feature for the other of a pair; 0 before the first push.
    fn seen(&self, feature: usize, other_field: usize, f: usize) -> f64 {
        let at = (feature * self.fields + other_field % self.fields) * 3 + f;
        if self.is_pushed[feature] { self.factors[at] } else { 0.0 }
    }

    fn step(&mut self, batch: &Batch, (rate, l2, alpha): (f64, f64, f64)) {
        let mut linear = vec![0.0; 27];
        let mut pairs = vec![0.0; self.factors.len()];
        let (mut slopes, mut touched) = (0.0, vec![false; 27]);
        for r in 0..batch.record_count() {
            let [user, item] =
                [0, 1].map(|e| batch.columns[batch.indices[batch.entries(r)][e] as usize] as usize);
            let dot: f64 = (0..3).map(|f| self.seen(user, 1, f) * self.seen(item, 0, f)).sum();
            let score = self.intercept.weight + self.weights[user].weight + self.weights[item].weight + dot;
            let slope = sigmoid(score) - batch.labels[r];
            slopes += slope;
            for (own, own_field, other, other_field) in [(user, 0, item, 1), (item, 1, user, 0)] {
                linear[own] += slope;
                touched[own] = true;
                for f in 0..3 {
                    let at = (own * self.fields + other_field % self.fields) * 3 + f;
                    pairs[at] += slope * self.seen(other, own_field, f);
                    for field in 0..self.fields {
                        pairs[(own * self.fields + field) * 3 + f] += l2 * self.seen(own, field, f);
                    }
                }
            }
        }
        for feature in (0..27).filter(|&feature| touched[feature]) {
            self.weights[feature].update(linear[feature], alpha, 1.0);
            self.is_pushed[feature] = true;
            let range = feature * self.fields * 3..(feature + 1) * self.fields * 3;
            let rows = self.factors[range.clone()].iter_mut().zip(&mut self.squares[range.clone()]);
            for ((factor, square), gradient) in rows.zip(&pairs[range]) {
                *square += gradient * gradient;
                *factor -= rate / (square.sqrt() + 1.0) * gradient;
            }
        }
        self.intercept.update(slopes, alpha, 0.0);
    }
}

#[test]
fn rare_features_have_a_weight_and_no_factors() {
    let mut records = classes(6, 400);
    records.extend((0..3).map(|_| (1.0, vec![(500, 1.0), (3, 1.0)])));
    for (admission, expected) in [(1, 28), (3, 28), (4, 27)] {
        for count in [1, 2] {
            let settings = format!("epochs=1 admission={admission}");
            let run = run("fm", &settings, tasks(&records, count)).unwrap();
            assert_eq!(f32s(&run.store, Model::WEIGHTS).len(), 28);
            let factors = f32s(&run.store, Model::FACTORS);
            assert_eq!(factors.len(), 8 * expected, "admission={admission}, {count} tasks");
            assert!(run.notices.is_empty(), "{:?}", run.notices);
        }
    }
    let linear = run("fm", "epochs=2 admission=5000", tasks(&records, 2)).unwrap();
    assert!(
        linear.notices.iter().any(|notice| notice.contains("the model is linear")),
        "{:?}",
        linear.notices
    );
}

#[test]
fn every_number_of_tasks_gives_the_same_bytes_again() {
    let records = classes(8, 900);
    for count in [1, 2, 3] {
        for settings in ["epochs=3", "epochs=3 admission=20"] {
            let bytes = || {
                let run = run("ffm", settings, tasks(&records, count)).unwrap();
                (0..3).map(|id| f32s(&run.store, MatrixId(id))).collect::<Vec<_>>()
            };
            assert_eq!(bytes(), bytes(), "{count} tasks, {settings}");
        }
    }
}

/// Features that only the validation data have must not add random factors.
#[test]
fn validation_in_training_equals_evaluation_of_the_saved_model() {
    let mut others = classes(9, 200);
    others.extend((0..20).map(|i| (f32::from(i % 2 == 0), vec![(i % 12, 1.0), (900 + i, 1.0)])));
    let validation = with_fields(build(&others, 64));
    let learned = HARNESS
        .train("fm", "epochs=3", tasks(&classes(8, 600), 2), Some(&validation), Consistency::Bsp)
        .unwrap();
    assert_eq!(*learned.validation.last().unwrap(), learned.saved_and_loaded(&validation).1);
}

#[test]
fn weights_of_records_count() {
    let records = classes(10, 300);
    let twice: Vec<Record> = records.iter().flat_map(|record| [record.clone(), record.clone()]).collect();
    let mut weighted = with_fields(build(&records, 50));
    for batch in &mut weighted {
        batch.weights = vec![2.0; batch.record_count()];
    }
    let heavy = run("fm", "epochs=2", vec![weighted]).unwrap();
    let repeated = run("fm", "epochs=2", vec![with_fields(build(&twice, 100))]).unwrap();
    for (a, b) in f32s(&heavy.store, Model::FACTORS).iter().zip(f32s(&repeated.store, Model::FACTORS)) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let ones: Vec<Record> = (0..40).map(|i| (1.0, vec![(i, 1.0)])).collect();
    let error = run("fm", "epochs=1", vec![build(&ones, 10)]).map(drop).unwrap_err();
    assert!(matches!(error, Error::OneClass { .. }), "{error}");
    let error = run("fm", "epochs=1", vec![Vec::new()]).map(drop).unwrap_err();
    assert!(matches!(error, Error::NoRecords), "{error}");
    let error = run("ffm", "epochs=1", vec![build(&classes(1, 20), 10)]).map(drop).unwrap_err();
    assert!(error.to_string().contains("have no fields"), "{error}");
    let large: Vec<Record> = (0..20).map(|i| (f32::from(i < 12), vec![(u64::from(i >= 12), 1e38)])).collect();
    let error = run("fm", "epochs=1", vec![build(&large, 20)]).map(drop).unwrap_err().to_string();
    assert!(error.contains("epoch 1, step 1: the loss of a batch is inf"), "{error}");
    let diverging = "optimizer=sgd learning_rate=1e30 epochs=5";
    let error = run("fm", diverging, tasks(&classes(1, 200), 1)).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("diverged in epoch") && text.contains("Lower learning_rate (now 1e30"), "{text}");
}

#[test]
fn a_field_beyond_those_of_training_is_refused() {
    let learned = run("ffm", "epochs=1", tasks(&classes(1, 200), 1)).unwrap();
    let mut batches = with_fields(build(&classes(2, 10), 10));
    batches[0].fields[3] = 2;
    let mut agent = std::sync::Arc::clone(&learned.store).agent(0);
    let error = learned.model.scorer().predict(&mut agent, &batches[0], &mut Vec::new()).unwrap_err();
    assert!(
        error.to_string().starts_with("an entry has the field 2, and the model knows 2 fields"),
        "{error}"
    );
    let previous: &dyn family::Model = &*learned.model;
    let facts = DataFacts { field_count: 3, ..DataFacts::default() };
    let error = HARNESS.job("ffm", "").unwrap().model(&facts, Some(previous)).unwrap_err();
    assert!(error.to_string().contains("fields up to 2, and the earlier model knows 2 fields"), "{error}");
    let facts = DataFacts { field_count: 1 << 20, ..DataFacts::default() };
    let error = HARNESS.job("ffm", "").unwrap().model(&facts, None).unwrap_err();
    assert!(error.to_string().contains("4194304 factors"), "{error}");
    let facts = DataFacts { field_count: 1 << 32, ..DataFacts::default() };
    let error = HARNESS.job("ffm", "").unwrap().model(&facts, None).unwrap_err();
    assert!(error.to_string().contains("fields up to 4294967295"), "{error}");
    let facts = DataFacts { field_count: 2, ..DataFacts::default() };
    let error = HARNESS.job("ffm", "k=5").unwrap().new_model(&facts, Some(previous)).unwrap_err();
    assert!(error.to_string().contains("its k is 4, that of the job is 5"), "{error}");
}

#[test]
fn a_job_says_what_it_needs_of_its_data() {
    let needs = |algorithm, settings| HARNESS.job(algorithm, settings).unwrap().needs();
    let plain = needs("fm", "standardize=false");
    assert_eq!(plain.label_rule, LabelRule::Binary { positive: None });
    assert_eq!((plain.scan, plain.uses_fields, plain.keep_zeros), (false, false, false));
    assert_eq!((plain.batch_size, plain.shuffle), (BatchSize::Growing, Shuffle::Batches));
    assert_eq!(plain.epochs, Epochs::Auto { record_visits: 600_000, limit: 20 });
    assert!(needs("fm", "").keep_zeros && !needs("fm", "").scan, "nothing is known of the columns yet");
    assert!(needs("fm", "standardize=true").scan && needs("fm", "standardize=true").keep_zeros);
    assert!(needs("fm", "standardize=false positive_label=1").scan);
    assert!(needs("ffm", "standardize=false").scan && needs("ffm", "").uses_fields);
    let real = needs("fm", "standardize=false loss=squared");
    assert_eq!((real.label_rule, real.scan), (LabelRule::Real, true));
    let other = needs("fm", "batch_size=7 epochs=3 shuffle=records validation_share=0.25 early_stopping=2");
    assert_eq!((other.batch_size, other.epochs), (BatchSize::Fixed(7), Epochs::Fixed(3)));
    assert_eq!((other.shuffle, other.validation_share), (Shuffle::Records, 0.25));
    assert!(other.early_stopping.is_some() && plain.early_stopping.is_none());
    let named = HARNESS.job("fm", "positive_label=yes").unwrap();
    let names = ["no", "yes"].map(str::to_owned);
    assert_eq!(named.label_rule(&names).unwrap(), LabelRule::Binary { positive: Some(1.0) });
    assert_eq!(HARNESS.job("fm", "loss=squared").unwrap().label_rule(&[]).unwrap(), LabelRule::Real);
}

/// The chosen settings and the reasons for records of `length` entries of `value`.
fn chosen(
    settings: &str,
    is_table: bool,
    length: u64,
    value: f32,
) -> (BTreeMap<String, String>, Vec<String>) {
    let records: Vec<Record> =
        (0..20).map(|_| (1.0, (0..length).map(|key| (key, value)).collect())).collect();
    chosen_of(settings, is_table, &records)
}

/// What is chosen for sparse records.
fn chosen_for(settings: &str, records: &[Record]) -> (BTreeMap<String, String>, Vec<String>) {
    chosen_of(settings, false, records)
}

/// Records of `length` of `columns` columns.
fn records(length: u64, value: f32, columns: u64) -> Vec<Record> {
    let key = |r: u64, i: u64| (r * 7 + i * 3) % columns;
    (0..20).map(|r| (1.0, (0..length).map(|i| (key(r, i), value)).collect())).collect()
}

fn chosen_of(settings: &str, is_table: bool, records: &[Record]) -> (BTreeMap<String, String>, Vec<String>) {
    let mut survey = Survey::default();
    for batch in build(records, 20) {
        survey.add(&batch);
    }
    let known = DataProfile {
        is_table,
        size_bytes: Some(1),
        is_bsp: true,
        has_validation: true,
        survey: Some(&survey),
        class_count: 2,
        ..DataProfile::default()
    };
    match HARNESS.job("fm", settings).unwrap().resolve_settings(&known, None).unwrap() {
        Resolution::Resolved(resolved) => (resolved.settings.texts(), resolved.reasons),
        Resolution::NeedsSurvey => panic!("there is a survey"),
    }
}

#[test]
fn step_sizes_and_scaling_follow_from_the_records() {
    let values = |(settings, _): (BTreeMap<String, String>, Vec<String>)| {
        ["standardize", "normalize", "learning_rate", "linear_learning_rate"]
            .map(|name| settings[name].clone())
    };
    assert_eq!(values(chosen("", false, 10, 1.0)), ["false", "none", "0.5", "0.5"]);
    assert_eq!(values(chosen("", false, 40, 1.0)), ["false", "none", "0.031", "0.125"]);
    assert_eq!(values(chosen("", false, 2, 1.0)), ["false", "none", "0.5", "0.5"]);
    assert_eq!(values(chosen("", false, 4000, 1.0)), ["false", "none", "0.01", "0.05"]);
    assert_eq!(values(chosen("", false, 10, 30.0)), ["true", "none", "0.5", "0.5"]);
    let sparse = values(chosen_for("", &records(10, 30.0, 50)));
    assert_eq!(sparse, ["false", "l2", "1", "1"], "counts of words");
    let mut uneven = records(10, 1.0, 50);
    for record in &mut uneven {
        record.1.push((999, 100.0));
    }
    assert_eq!(
        values(chosen_for("", &uneven)),
        ["true", "none", "0.413", "0.455"],
        "a price beside indicators"
    );
    assert_eq!(values(chosen("", true, 20, 30.0)), ["true", "none", "0.125", "0.25"]);
    assert_eq!(values(chosen("loss=squared", false, 10, 1.0)), ["false", "none", "0.1", "0.1"]);
    let given = "learning_rate=3 normalize=none standardize=false";
    assert_eq!(values(chosen(given, true, 10, 1.0)), ["false", "none", "3", "0.5"]);
    let (_, reasons) = chosen("", true, 20, 30.0);
    assert_eq!(
        reasons,
        [
            "standardize=true: the input is a table with columns of numbers",
            "learning_rate=0.125, linear_learning_rate=0.25: the mean squared length of the records is 20.0"
        ]
    );
    let unread = |size_bytes| {
        let known = DataProfile { size_bytes, is_bsp: true, has_validation: true, ..DataProfile::default() };
        HARNESS.job("fm", "").unwrap().resolve_settings(&known, None).unwrap()
    };
    assert_eq!(unread(Some(1 << 20)), Resolution::NeedsSurvey);
    for size in [None, Some(3 << 30)] {
        let Resolution::Resolved(resolved) = unread(size) else { panic!("it is not read before") };
        assert_eq!(resolved.settings.text("learning_rate"), Some("0.031"));
        assert!(resolved.reasons[0].contains("records of 40 entries are assumed"), "{:?}", resolved.reasons);
    }
}

#[test]
fn columns_of_other_scales_are_standardized() {
    let mut random = stream(11, Purpose::Test, 0, 0);
    let mut record = || {
        let (size, price) = (random.uniform() * 2.0 - 1.0, random.uniform() * 2.0 - 1.0);
        (f32::from(size * price > 0.0), vec![(1, 5000.0 * size as f32), (2, 0.001 * price as f32)])
    };
    let records: Vec<Record> = (0..3000).map(|_| record()).collect();
    let settings = "standardize=true epochs=10 learning_rate=0.5 init_deviation=0.1";
    let other_unit: Vec<Record> = records
        .iter()
        .map(|(label, entries)| (*label, vec![entries[0], (2, entries[1].1 * 1024.0)]))
        .collect();
    for count in [1, 2] {
        let scores = |records: &[Record]| {
            let learned = run("fm", settings, tasks(&records[..2000], count)).unwrap();
            let (scores, metrics) = learned.saved_and_loaded(&with_fields(build(&records[2000..], 64)));
            assert!(metrics["auc"] > 0.98, "{count} tasks: {metrics:?}");
            scores
        };
        let pairs = scores(&records).into_iter().zip(scores(&other_unit));
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-3), "the unit of a column does not matter");
    }
}

#[test]
fn records_without_entries_have_the_intercept_as_their_score() {
    let learned = run("fm", "epochs=1", tasks(&classes(1, 200), 1)).unwrap();
    let mut builder = BatchBuilder::new();
    builder.end_record(1.0, 1.0, None);
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    let (scores, _) = learned.saved_and_loaded(&[batch]);
    let intercept = f64::from(f32s(&learned.store, Model::INTERCEPT)[0]);
    assert_eq!(scores, [sigmoid(intercept)]);
}
