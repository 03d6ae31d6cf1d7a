//! Promise: one command trains, a second evaluates, a third predicts, and what they say fits together.

#![allow(clippy::items_after_statements, reason = "a tolerance stands where it is used")]
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::format_push_string,
    reason = "small helpers of tests"
)]

mod common;

use std::io::Write as _;

use common::{Folder, clicks, fail, number, real_data, seraphim, succeed};
use math::random::{Purpose, stream};

#[test]
fn a_model_is_trained_evaluated_and_predicts() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(4000, 1));
    let test = folder.write("test.libsvm", clicks(1000, 2));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    succeed(&["train", "lr", "--data", &train, "--validate", &test, "--model", &model]);
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &test, "--json"]);
    // The true model has about .83; a model that has learnt nothing has .5.
    assert!(number(&metrics, "/metrics/auc") > 0.75, "{metrics}");
    succeed(&["predict", "--model", &model, "--data", &test, "--output", &scores]);
    let text = std::fs::read_to_string(&scores).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("label,score"));
    assert_eq!(lines.clone().count(), 1000);
    let labels: Vec<char> = lines.clone().filter_map(|line| line.chars().next()).collect();
    let expected: Vec<char> = clicks(1000, 2).lines().filter_map(|line| line.chars().next()).collect();
    assert_eq!(labels, expected, "scores are in the order of the data");
    let inspected = succeed(&["inspect", &model]);
    assert!(inspected.contains("lr model") && inspected.contains("largest weights"), "{inspected}");
}

#[test]
fn prediction_hangs_on_no_number_of_tasks() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(2000, 3));
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &train, "--model", &model]);
    let one = succeed(&["predict", "--model", &model, "--data", &train, "--output", "-", "--tasks", "1"]);
    let three = succeed(&["predict", "--model", &model, "--data", &train, "--output", "-", "--tasks", "3"]);
    assert_eq!(one, three);
}

/// Files of several chunks, some of which cannot be cut and go to the task with the least to do. The label of a record is
/// its number.
#[test]
fn scores_are_in_the_order_of_the_data_over_many_large_files() {
    /// Makes a record a kilobyte long, so that few of them fill a chunk of 4 MiB.
    const PADDING: usize = 1000;
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(400, 3));
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &train, "--model", &model]);
    let padding = "x".repeat(PADDING);
    let (mut next, mut files) = (0, Vec::new());
    for (name, records) in
        [("a.libsvm.gz", 1000), ("b.libsvm", 6000), ("c.libsvm.gz", 9000), ("d.libsvm.gz", 3000)]
    {
        let lines = (next..next + records).map(|i| format!("{i} {}:1 # {padding}\n", 1 + i % 50));
        let text: String = lines.collect();
        // Stored as it is: the size of the file is that of its text.
        let content = if name.ends_with("gz") { stored(&text) } else { text.into_bytes() };
        files.push(folder.write(name, content));
        next += records;
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    for tasks in ["1", "3"] {
        let predict = ["predict", "--model", &model, "--output", "-", "--tasks", tasks, "--data"];
        let scores = succeed(&[&predict[..], &files].concat());
        let labels = scores.lines().skip(1).map(|line| line.split(',').next().unwrap_or_default());
        let wrong = labels.clone().zip(0..).find(|(label, i)| label.parse() != Ok(*i));
        assert_eq!((labels.count(), wrong), (next, None), "{tasks} tasks");
    }
}

/// As gzip, not compressed.
fn stored(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn training_on_is_the_same_as_training_longer() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(2000, 4));
    let (once, twice, on) = (folder.path("once"), folder.path("twice"), folder.path("on"));
    let common = ["train", "lr", "--data", &train, "--tasks", "2", "--set", "shuffle=none"];
    let run = |extra: &[&str]| succeed(&[&common[..], extra].concat());
    run(&["--model", &once, "--set", "epochs=1"]);
    run(&["--model", &twice, "--set", "epochs=2"]);
    run(&["--model", &on, "--set", "epochs=1", "--from", &once]);
    let weights = |model: &str| std::fs::read(format!("{model}/weights.safetensors")).unwrap();
    assert_eq!(weights(&on), weights(&twice), "the optimizer's state came along");
}

/// Records whose label is 1 when two things are alike: no sum of single features tells them apart.
fn alike(line: impl Fn(u32, u32, u32) -> String) -> String {
    let things = (0..400u32).map(|i| (i % 2, i / 2 % 2));
    things.map(|(a, b)| line(u32::from(a == b), a, b) + "\n").collect()
}

#[test]
fn interactions_are_learnt_and_come_with_the_model() {
    let folder = Folder::new();
    for (name, text, interactions) in [
        ("a.csv", "a,b,y\n".to_owned() + &alike(|y, a, b| format!("a{a},b{b},{y}")), "a:b"),
        ("a.vw", alike(|y, a, b| format!("{} |user a{a} |item b{b}", 2 * y as i32 - 1)), "ui"),
        ("a.ffm", alike(|y, a, b| format!("{y} 0:{a}:1 1:{}:1", 2 + b)), "0:1"),
    ] {
        let data = folder.write(name, text);
        let (plain, model) = (folder.path(&format!("{name}.plain")), folder.path(&format!("{name}.model")));
        let auc = |model: &str| {
            number(&succeed(&["evaluate", "--model", model, "--data", &data, "--json"]), "/metrics/auc")
        };
        succeed(&["train", "lr", "--data", &data, "--model", &plain]);
        let train = ["train", "lr", "--data", &data, "--validate", &data, "--interactions", interactions];
        let train = [&train[..], &["--set", "optimizer=ftrl"]].concat();
        let report = succeed(&[&train[..], &["--model", &model, "--json"]].concat());
        let rows = number(&report, "/model/stored_rows/weights");
        assert!((rows - 8.0).abs() < 0.5, "four features and four pairs: {rows}");
        assert!(auc(&plain) < 0.6, "{name}: {}", auc(&plain));
        assert!(auc(&model) > 0.999, "{name}: {}", auc(&model));
        let scores = succeed(&["predict", "--model", &model, "--data", &data, "--output", "-"]);
        let right = |line: &str| {
            let (label, score) = line.split_once(',').expect("a label and a score");
            label.starts_with('1') == (score.parse::<f64>().expect("a number") > 0.5)
        };
        assert!(scores.lines().skip(1).all(right), "{name}: {scores}");
    }
}

/// A table of prices, of sizes in square millimetres and of names, some sizes missing; and whether the price is above 500,000.
fn houses(records: u64, seed: u64) -> String {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut text = String::from("size,rooms,town,dear,price\n");
    for record in 0..records {
        let (size, rooms) = (5e7 + 2e8 * random.uniform(), 1 + random.below(6));
        let town = ["Rome", "Oslo", "Lima"][random.below(3) as usize];
        let base = if town == "Oslo" { 2e5 } else { 5e4 };
        let price = base + 2e-3 * size + 2e4 * rooms as f64 + 3e4 * random.normal();
        let shown = if record % 10 == 3 { String::new() } else { format!("{size:.0}") };
        let dear = u8::from(price > 5e5);
        text.push_str(&format!("{shown},{rooms},{town},{dear},{price:.0}\n"));
    }
    text
}

fn report_of(path: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("the file was written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The settings that the data decide, each once with its reason, are those of the report and of the model, and as flags they train
/// the same bytes.
#[test]
fn what_is_chosen_is_said_and_saved_and_trains_the_same_bytes() {
    let folder = Folder::new();
    let table = folder.write("houses.csv", houses(800, 5));
    let numbered = folder.write("clicks.libsvm", clicks(2000, 6));
    let cases: [(&str, &str, &[&str], &str); 5] = [
        ("lr", &table, &["--label", "dear", "--skip-columns", "price"], "lbfgs"),
        ("linear", &table, &["--label", "price", "--skip-columns", "dear"], "lbfgs"),
        ("linear", &table, &["--label", "price", "--skip-columns", "dear", "--set", "beta=2"], "ftrl"),
        ("svm", &table, &["--label", "dear", "--skip-columns", "price"], "ftrl"),
        ("lr", &numbered, &["--tasks", "3"], "lbfgs"),
    ];
    for (i, (algorithm, data, flags, optimizer)) in cases.into_iter().enumerate() {
        let (auto, given) = (folder.path(&format!("auto{i}")), folder.path(&format!("given{i}")));
        let report = folder.path("report.json");
        let words = ["train", algorithm, "--data", data, "--model", &auto, "--report", &report];
        let output = seraphim(&[&words[..], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = report_of(&report);
        let settings = report["settings"].as_object().unwrap();
        assert_eq!(settings["optimizer"], optimizer, "{said}");
        assert!(said.contains(&format!("optimizer={optimizer}: ")), "{said}");
        assert!(report["choices"].as_array().unwrap().len() >= 2, "{report}");
        let manifest = report_of(&format!("{auto}/model.json"));
        assert_eq!(manifest["settings"], report["settings"]);
        let read = |name: &&String| {
            let text = settings[*name].as_str().unwrap();
            ["optimizer", "l2", "standardize", "normalize"].contains(&name.as_str())
                || (*name == "beta" && text != "1")
        };
        let pairs: Vec<String> = settings
            .keys()
            .filter(read)
            .map(|name| format!("{name}={}", settings[name].as_str().unwrap()))
            .collect();
        let flags: Vec<&str> =
            flags.iter().copied().filter(|flag| !flag.contains('=') && *flag != "--set").collect();
        let mut words = vec!["train", algorithm, "--data", data, "--model", &given];
        words.extend(flags);
        words.extend(pairs.iter().flat_map(|pair| ["--set", pair.as_str()]));
        succeed(&words);
        let weights = |model: &str| std::fs::read(format!("{model}/weights.safetensors")).unwrap();
        assert!(weights(&auto) == weights(&given), "{algorithm} {pairs:?}: other bytes");
    }
}

/// Given prices of half a million and columns of a hundred million, every optimizer learns.
#[test]
fn columns_and_labels_of_any_scale_are_learnt() {
    let folder = Folder::new();
    let (train, test) =
        (folder.write("train.csv", houses(2000, 7)), folder.write("test.csv", houses(500, 8)));
    let run = |name: &str, algorithm: &str, flags: &[&str]| {
        let model = folder.path(name);
        succeed(&[&["train", algorithm, "--data", &train, "--model", &model][..], flags].concat());
        succeed(&["evaluate", "--model", &model, "--data", &test, "--json"])
    };
    let price = ["--label", "price", "--skip-columns", "dear"];
    for (name, algorithm, more) in [
        ("auto", "linear", &[][..]),
        ("ftrl", "linear", &["--set", "optimizer=ftrl"]),
        ("huber", "huber", &["--set", "optimizer=ftrl"]),
    ] {
        let metrics = run(name, algorithm, &[&price[..], more].concat());
        // Noise and missing sizes leave about .84.
        assert!(number(&metrics, "/metrics/r2") > 0.75, "{name}: {metrics}");
    }
    let dear = ["--label", "dear", "--skip-columns", "price"];
    for (name, more) in [("dear", &[][..]), ("dear_ftrl", &["--set", "optimizer=ftrl"])] {
        let metrics = run(name, "lr", &[&dear[..], more].concat());
        assert!(number(&metrics, "/metrics/auc") > 0.9, "{name}: {metrics}");
    }
}

/// A column that says something by being empty.
#[test]
fn a_missing_number_counts_as_the_mean_and_is_a_feature_of_its_own() {
    let folder = Folder::new();
    let mut text = String::from("x,y,label\n");
    for i in 0..400 {
        let missing = i % 4 == 0;
        let x = if missing { String::new() } else { (i % 7).to_string() };
        text.push_str(&format!("{x},{},{}\n", i % 5, u8::from(missing != (i % 40 == 0))));
    }
    let (data, model) = (folder.write("data.csv", text), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--label", "label", "--model", &model]);
    assert!(std::fs::read_to_string(format!("{model}/dictionary.tsv")).unwrap().contains("x=missing"));
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
    assert!(number(&metrics, "/metrics/accuracy") > 0.9, "{metrics}");
}

#[test]
fn a_model_that_has_learned_nothing_says_so() {
    let folder = Folder::new();
    let data = folder.write("houses.csv", houses(800, 9));
    let report = folder.path("report.json");
    let model = folder.path("model");
    let set = ["--set", "optimizer=adagrad", "--set", "learning_rate=300", "--set", "epochs=3"];
    let words = ["train", "lr", "--data", &data, "--label", "dear", "--model", &model, "--report", &report];
    let output = succeed(&[&words[..], &["--skip-columns", "price"], &set].concat());
    assert!(output.contains("note: ") && output.contains("has learned nothing"), "{output}");
    let notices = report_of(&report)["notices"].to_string();
    assert!(notices.contains("learning_rate (now 300)"), "{notices}");
}

#[test]
fn values_too_large_for_an_optimizer_are_an_error_of_the_data() {
    let folder = Folder::new();
    let mut text = String::from("x,label\n");
    (0..60).for_each(|i| text.push_str(&format!("{}3e38,{}\n", if i % 3 == 0 { "-" } else { "" }, i % 2)));
    let data = folder.write("data.csv", text);
    let run = |name: &str, set: &[&str]| {
        let model = folder.path(name);
        let words = ["train", "lr", "--data", &data, "--label", "label", "--model", &model];
        seraphim(&[&words[..], set].concat())
    };
    for optimizer in ["optimizer=lbfgs", "optimizer=admm"] {
        let output = run("plain", &["--set", optimizer, "--set", "standardize=false"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{optimizer}: {error}");
        assert!(error.contains("standardize=true"), "{optimizer}: {error}");
    }
    assert!(run("scaled", &[]).status.success());
}

/// A set, its algorithm, the ending of its files, flags, a metric and its bar.
type Default = (&'static str, &'static str, &'static str, &'static [&'static str], &'static str, f64);

/// The bars of the defaults: what scikit-learn 1.9 reaches with its defaults, less .003.
const DEFAULTS: &[Default] = &[
    ("a9a", "lr", "libsvm.gz", &[], "/metrics/auc", 0.8991),
    ("agaricus", "lr", "libsvm.gz", &[], "/metrics/auc", 0.997),
    ("adult_raw", "lr", "csv.gz", &["--label", "income"], "/metrics/auc", 0.9043),
    ("higgs7k", "lr", "tsv.gz", &["--label", "0"], "/metrics/auc", 0.6902),
    ("frappe", "lr", "libsvm.gz", &[], "/metrics/auc", 0.9279),
    ("california", "linear", "csv.gz", &["--label", "target"], "/metrics/r2", 0.5995),
    ("abalone", "linear", "libsvm.gz", &[], "/metrics/r2", 0.4919),
    ("multi5", "softmax", "tsv.gz", &["--label", "0"], "/metrics/accuracy", 0.203),
];

#[test]
fn defaults_reach_what_others_reach() {
    let folder = Folder::new();
    let check =
        |name: &str, algorithm: &str, [train, test]: [&str; 2], flags: &[&str], metric: &str, bar: f64| {
            let model = folder.path(name);
            succeed(&[&["train", algorithm, "--data", train, "--model", &model][..], flags].concat());
            let metrics = succeed(&["evaluate", "--model", &model, "--data", test, "--json"]);
            assert!(number(&metrics, metric) >= bar, "{name}: {metrics}");
        };
    let example =
        |part: &str| format!("{}/../../examples/breast_cancer/{part}.csv", env!("CARGO_MANIFEST_DIR"));
    let files = [example("train"), example("test")];
    check("example", "lr", [&files[0], &files[1]], &["--label", "benign"], "/metrics/auc", 0.99);
    for (set, algorithm, ending, flags, metric, bar) in DEFAULTS {
        let Some(data) = real_data(set) else { continue };
        let file = |part: &str| data.join(format!("{part}.{ending}")).to_str().unwrap().to_owned();
        check(set, algorithm, [&file("train"), &file("test")], flags, metric, *bar);
    }
}

#[test]
fn a9a_is_learnt_without_any_setting() {
    let Some(data) = real_data("a9a") else { return };
    /// The best known is .9022; the promise is to be within .001 of it.
    const AUC: f64 = 0.9012;
    let folder = Folder::new();
    let model = folder.path("model");
    let file = |name: &str| data.join(name).to_str().unwrap().to_owned();
    succeed(&["train", "lr", "--data", &file("train.libsvm.gz"), "--model", &model]);
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &file("test.libsvm.gz"), "--json"]);
    assert!(number(&metrics, "/metrics/auc") >= AUC, "{metrics}");
}

/// Label and score of each record, as `predict` writes them.
fn scored(model: &str, data: &str) -> Vec<(String, String)> {
    let text = succeed(&["predict", "--model", model, "--data", data, "--output", "-"]);
    let pair = |line: &str| line.split_once(',').map(|(label, rest)| (label.to_owned(), rest.to_owned()));
    text.lines().skip(1).filter_map(pair).collect()
}

#[test]
fn evaluate_decides_at_the_threshold_and_shows_the_confusion_matrix() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(1500, 5));
    for (algorithm, thresholds) in [("lr", ["0.5", "0.3", "0.8"]), ("svm", ["0", "-0.4", "0.6"])] {
        let model = folder.path(algorithm);
        let settings = ["--set", "optimizer=adagrad", "--set", "epochs=2"];
        succeed(&[&["train", algorithm, "--data", &data, "--model", &model][..], &settings].concat());
        let records = scored(&model, &data);
        for threshold in thresholds {
            let evaluated = succeed(&[
                "evaluate",
                "--model",
                &model,
                "--data",
                &data,
                "--json",
                "--threshold",
                threshold,
            ]);
            let threshold: f64 = threshold.parse().unwrap();
            let mut counts = [[0.0; 2]; 2];
            for (label, score) in &records {
                let said = score.parse::<f64>().unwrap() > threshold;
                counts[usize::from(label == "1")][usize::from(said)] += 1.0;
            }
            let [[tn, fp], [fn_, tp]] = counts;
            let metric = |name: &str| number(&evaluated, &format!("/metrics/{name}"));
            assert_eq!(metric("accuracy"), (tp + tn) / (tp + tn + fp + fn_), "{algorithm} {threshold}");
            assert_eq!(metric("precision"), tp / (tp + fp));
            assert_eq!(metric("recall"), tp / (tp + fn_));
            assert_eq!(metric("f1"), 2.0 * tp / (2.0 * tp + fp + fn_));
            for (cell, expected) in [("0/0", tn), ("0/1", fp), ("1/0", fn_), ("1/1", tp)] {
                assert_eq!(number(&evaluated, &format!("/confusion/counts/{cell}")), expected);
            }
        }
        let three = ["1", "3"].map(|tasks| {
            succeed(&["evaluate", "--model", &model, "--data", &data, "--tasks", tasks, "--threshold", "0.3"])
        });
        assert_eq!(three[0], three[1]);
        assert!(three[0].contains("confusion matrix") && three[0].contains("1 above 0.3"), "{}", three[0]);
        let default = succeed(&["evaluate", "--model", &model, "--data", &data]);
        let first = thresholds[0];
        assert_eq!(default, succeed(&["evaluate", "--model", &model, "--data", &data, "--threshold", first]));
    }
    let evaluate = |threshold: &str| {
        fail(2, &["evaluate", "--model", &folder.path("lr"), "--data", &data, "--threshold", threshold])
    };
    assert!(evaluate("1.5").contains("from 0 to 1"));
    assert!(evaluate("high").contains("a number"));
}

#[test]
fn the_confusion_matrix_of_classes_counts_every_pair() {
    let folder = Folder::new();
    let names = ["cat", "dog", "eel"];
    let mut table = String::from("a,b,animal\n");
    for (i, line) in clicks(600, 6).lines().enumerate() {
        table += &format!("{},{},{}\n", line.len() % 7, (i * 7) % 5, names[(line.len() + i / 3) % 3]);
    }
    let data = folder.write("train.csv", table);
    let model = folder.path("model");
    succeed(&["train", "softmax", "--data", &data, "--label", "animal", "--model", &model]);
    let evaluated = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
    let mut counts = [[0.0; 3]; 3];
    let class = |name: &str| names.iter().position(|known| *known == name).unwrap();
    for (label, rest) in scored(&model, &data) {
        counts[class(&label)][class(rest.split(',').next().unwrap())] += 1.0;
    }
    for (row, counts) in counts.iter().enumerate() {
        for (column, expected) in counts.iter().enumerate() {
            assert_eq!(number(&evaluated, &format!("/confusion/counts/{row}/{column}")), *expected);
        }
    }
    let evaluated: serde_json::Value = serde_json::from_str(&evaluated).unwrap();
    assert_eq!(evaluated["confusion"]["labels"], serde_json::json!(names));
    let text = succeed(&["evaluate", "--model", &model, "--data", &data]);
    assert!(text.contains("  cat  ") && text.contains("a row a label"), "{text}");
    let error = fail(2, &["evaluate", "--model", &model, "--data", &data, "--threshold", "0.5"]);
    assert!(error.contains("two classes"), "{error}");
}

#[test]
fn the_calibration_table_compares_predictions_with_what_was_seen() {
    /// Sums of batches in another order, in f64.
    const ROUNDING: f64 = 1e-12;
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(1500, 7));
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let settings = ["--set", "optimizer=adagrad", "--set", "epochs=2", "--tasks", "3", "--report", &report];
    let files = ["--data", &data, "--validate", &data, "--model", &model];
    succeed(&[&["train", "lr"][..], &files, &settings].concat());
    let evaluated = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
    let report = std::fs::read_to_string(report).unwrap();
    let mut bins = [(0u32, 0.0, 0.0); 10];
    for (label, score) in scored(&model, &data) {
        let score: f64 = score.parse().unwrap();
        let bin = (1..10).filter(|edge| score > f64::from(*edge) / 10.0).count();
        bins[bin].0 += 1;
        bins[bin].1 += score;
        bins[bin].2 += f64::from(u8::from(label == "1"));
    }
    let filled: Vec<_> = bins.iter().enumerate().filter(|(_, bin)| bin.0 > 0).collect();
    for (row, (bin, (records, predicted, seen))) in filled.iter().enumerate() {
        for (json, place) in [(&evaluated, ""), (&report, "/epochs/1")] {
            let value = |name: &str| number(json, &format!("{place}/calibration_table/{row}/{name}"));
            assert_eq!(value("low"), *bin as f64 / 10.0);
            assert_eq!(value("records"), f64::from(*records));
            assert!((value("mean_predicted") - predicted / f64::from(*records)).abs() < ROUNDING);
            assert!((value("observed_share") - seen / f64::from(*records)).abs() < ROUNDING);
        }
    }
    let json: serde_json::Value = serde_json::from_str(&evaluated).unwrap();
    assert_eq!(json["calibration_table"].as_array().map(Vec::len), Some(filled.len()));
    let text = succeed(&["evaluate", "--model", &model, "--data", &data]);
    assert!(text.contains("observed share"), "{text}");
}

#[test]
fn early_stopping_watches_the_metric_that_is_asked_for() {
    let folder = Folder::new();
    let (train, test) = (clicks(300, 8), clicks(300, 9));
    let (data, validate) = (folder.write("train.libsvm", train), folder.write("test.libsvm", &test));
    let common = ["--data", &data, "--validate", &validate, "--tasks", "2", "--set", "shuffle=none"];
    let optimizer = ["--set", "optimizer=adagrad", "--set", "learning_rate=1", "--set", "epochs=12"];
    for (metric, higher) in [("auc", true), ("accuracy", true), ("log_loss", false), ("precision", true)] {
        for deployment in [&[][..], &["--servers", "1", "--workers", "2"]] {
            let (model, report) = (folder.path("model"), folder.path("report.json"));
            let metric_setting = format!("early_stopping_metric={metric}");
            let stopping = ["--set", "early_stopping=2", "--set", &metric_setting, "--overwrite"];
            let places = ["--model", &model, "--report", &report];
            succeed(&[&["train", "lr"][..], &common, &optimizer, &stopping, &places, deployment].concat());
            let report: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
            let epochs = report["epochs"].as_array().unwrap();
            let values: Vec<f64> =
                epochs.iter().map(|epoch| epoch["validation"][metric].as_f64().unwrap()).collect();
            // The first of the best: an equal value is no improvement.
            let better = |a: f64, b: f64| if higher { a > b } else { a < b };
            let best =
                (1..values.len()).fold(0, |best, i| if better(values[i], values[best]) { i } else { best });
            assert_eq!(report["best_epoch"], best, "{metric}: {values:?}");
            assert!(values.len() == 12 || values.len() == best + 3, "{metric}: {values:?}");
            let evaluated = succeed(&["evaluate", "--model", &model, "--data", &validate, "--json"]);
            let saved = number(&evaluated, &format!("/metrics/{metric}"));
            assert!((saved - values[best]).abs() < 1e-12, "{metric}: the best weights were saved");
        }
    }
    let one_class: String =
        test.lines().filter(|line| line.starts_with('1')).map(|line| line.to_owned() + "\n").collect();
    let one_class = folder.write("ones.libsvm", one_class);
    let settings = ["--set", "early_stopping=2", "--set", "early_stopping_metric=auc"];
    let model = folder.path("other");
    let files = ["--data", &data, "--validate", &one_class, "--model", &model];
    let error = fail(3, &[&["train", "lr"][..], &files, &settings].concat());
    assert!(error.contains("early_stopping_metric=auc is not defined"), "{error}");
    let refused = |algorithm: &str, settings: &[&str]| {
        fail(2, &[&["train", algorithm, "--data", &data, "--model", &model][..], settings].concat())
    };
    let error = refused("linear", &["--set", "early_stopping=1", "--set", "early_stopping_metric=auc"]);
    assert!(error.contains("loss | rmse | mae | r2"), "{error}");
    let error = refused("lr", &["--set", "early_stopping_metric=auc"]);
    assert!(error.contains("early_stopping is 0"), "{error}");
}
