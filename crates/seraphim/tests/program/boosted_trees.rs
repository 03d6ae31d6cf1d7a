//! Boosted trees: the same bytes everywhere, on tables as people have them, and messages for data that cannot be learned.

use std::fmt::Write as _;

use math::random::{Purpose, stream};

use crate::common::disturbed::{newest, wait_until};
use crate::common::{Folder, command, fail, seraphim, succeed};

/// A table with numbers, missing ones, categories and a label of two names that follows from them.
fn customers(count: usize, seed: u64) -> String {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut text = "age,income,city,constant,empty,bought\n".to_owned();
    for _ in 0..count {
        let (age, income, city) = (18 + random.below(60), random.normal() * 900.0 + 3000.0, random.below(12));
        let score = f64::from(u8::from(age > 40)) * 2.0 + (income - 3000.0) / 900.0
            - f64::from(u8::from([2, 5, 7].contains(&city))) * 3.0;
        let income = if random.below(10) == 0 { String::new() } else { format!("{income:.2}") };
        let bought = if score + random.normal() > 0.5 { "yes" } else { "no" };
        writeln!(text, "{age},{income},town {city},1,,{bought}").expect("a string takes all");
    }
    text
}

fn weights(folder: &Folder, model: &str) -> Vec<u8> {
    std::fs::read(folder.path(model) + "/weights.safetensors").expect("a model")
}

fn train(folder: &Folder, model: &str, more: &[&str]) -> String {
    let (data, path) = (folder.path("train.csv"), folder.path(model));
    let fixed = ["train", "gbdt", "--data", &data, "--label", "bought", "--model", &path];
    succeed(&[&fixed[..], more].concat())
}

#[test]
fn trees_have_the_same_bytes_for_any_number_of_tasks_servers_and_workers() {
    let folder = Folder::new();
    folder.write("train.csv", customers(3000, 1));
    let samples = ["--set", "bagging_fraction=0.7", "--set", "feature_fraction=0.5"];
    for samples in [&[][..], &samples] {
        let settings = [&["--set", "iterations=15", "--overwrite"], samples].concat();
        train(&folder, "alone", &[&settings[..], &["--tasks", "1"]].concat());
        for (name, more) in [
            ("two", &["--tasks", "2"][..]),
            ("three", &["--tasks", "3", "--threads", "2"]),
            ("servers", &["--tasks", "3", "--servers", "2", "--workers", "2"]),
            ("one_server", &["--servers", "1", "--workers", "1"]),
            ("three_servers", &["--tasks", "4", "--servers", "3", "--workers", "1"]),
        ] {
            train(&folder, name, &[&settings[..], more].concat());
            assert!(weights(&folder, name) == weights(&folder, "alone"), "{name} {samples:?}: other bytes");
        }
    }
}

#[test]
fn twenty_iterations_are_ten_and_ten_more() {
    let folder = Folder::new();
    folder.write("train.csv", customers(2000, 2));
    train(&folder, "twenty", &["--set", "iterations=20"]);
    train(&folder, "ten", &["--set", "iterations=10"]);
    let from = folder.path("ten");
    for (name, tasks) in [("more", "1"), ("more_by_two", "2")] {
        train(&folder, name, &["--set", "iterations=10", "--from", &from, "--tasks", tasks]);
        assert!(weights(&folder, name) == weights(&folder, "twenty"), "{name}: other bytes");
    }
}

#[test]
fn columns_in_another_order_are_the_same_data() {
    let folder = Folder::new();
    let text = customers(1500, 3);
    folder.write("train.csv", &text);
    train(&folder, "plain", &["--set", "iterations=10"]);
    let reversed: String =
        text.lines().map(|line| line.split(',').rev().collect::<Vec<_>>().join(",") + "\n").collect();
    folder.write("reversed.csv", reversed);
    // The same trees with other numbers of features: the scores of every record are the same.
    let (plain, data) = (folder.path("plain"), folder.path("train.csv"));
    succeed(&["predict", "--model", &plain, "--data", &data, "--output", &folder.path("a.csv")]);
    succeed(&[
        "predict",
        "--model",
        &plain,
        "--data",
        &folder.path("reversed.csv"),
        "--output",
        &folder.path("b.csv"),
    ]);
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(read("a.csv"), read("b.csv"));
}

#[test]
fn trees_learn_what_a_line_cannot_and_unseen_values_are_told() {
    let folder = Folder::new();
    folder.write("train.csv", customers(4000, 4));
    folder.write("test.csv", customers(1000, 5) + "44,,nowhere,7,3,yes\n");
    let test = folder.path("test.csv");
    train(&folder, "trees", &["--validate", &test]);
    let (model, out) = (folder.path("trees"), folder.path("out.csv"));
    let evaluated = succeed(&["evaluate", "--model", &model, "--data", &test]);
    let auc = evaluated.lines().find_map(|line| line.strip_prefix("auc ")).expect("an AUC");
    assert!(auc.trim().parse::<f64>().unwrap() > 0.88, "{evaluated}");
    let others = folder.write("others.csv", customers(300, 8).replace("town", "village"));
    let told = seraphim(&["evaluate", "--model", &model, "--data", &others]);
    let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    assert!(told.contains("city=village "), "{told}");
    succeed(&["predict", "--model", &model, "--data", &test, "--output", &out]);
    assert_eq!(std::fs::read_to_string(out).unwrap().lines().count(), 1002);
    let importances = succeed(&["export", &model, "--table", "importances"]);
    assert!(importances.contains("income") && importances.contains("city=town 5"), "{importances}");
}

#[test]
fn early_stopping_keeps_the_best_iterations() {
    let folder = Folder::new();
    folder.write("train.csv", customers(800, 6));
    let settings =
        ["--set", "early_stopping=3", "--set", "validation_share=0.3", "--set", "learning_rate=0.5"];
    let shown = train(&folder, "stopped", &settings);
    assert!(!shown.contains("epoch 100"), "{shown}");
    let best = shown.lines().find(|line| line.contains("best")).unwrap_or_else(|| panic!("{shown}"));
    let model = folder.path("stopped");
    let ensemble = succeed(&["export", &model, "--table", "ensemble"]);
    let iterations: f64 = ensemble.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap();
    // The three epochs after the best one are taken back.
    assert!(best.contains(&format!("after {} epochs", iterations + 3.0)), "{best}\n{ensemble}");
}

#[test]
fn data_that_cannot_be_learned_are_refused_and_odd_ones_are_not() {
    let folder = Folder::new();
    let model = folder.path("none");
    for (code, data, settings, words) in [
        (3, "a,y\n1,2.5\n2,1\n", &["--set", "objective=logistic"][..], "2.5"),
        (3, "a,y\n1,1\n2,1\n3,1\n", &[], "class"),
        (2, "a,y\n1,1\n2,0\n3,1\n", &["--consistency", "asp"], "bsp"),
        (3, "a,y\n1e39,1\n2,0\n", &[], "1e39"),
        (3, "a,y\ninf,1\n2,0\n", &[], "inf"),
    ] {
        folder.write("bad.csv", data);
        let path = folder.path("bad.csv");
        let fixed = ["train", "gbdt", "--data", &path, "--label", "y", "--model", &model];
        let message = fail(code, &[&fixed[..], settings].concat());
        assert!(message.contains(words), "{data}: {message}");
        assert!(!std::path::Path::new(&model).exists());
    }
    // One label that hides the others is told.
    let labels: String =
        (0..200).fold("a,y\n".to_owned(), |text, i| text + &format!("{i},{}\n", i % 7)) + "3,1e7\n";
    folder.write("outlier.csv", labels);
    let (data, outlier) = (folder.path("outlier.csv"), folder.path("outlier"));
    let words =
        ["train", "gbdt", "--data", &data, "--label", "y", "--set", "objective=squared", "--model", &outlier];
    let told = seraphim(&words);
    assert!(String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).contains("gradients have 15 bits"));
    // Records of weight 0 are not there.
    let rows = (0..300).map(|i| format!("{},{},{}\n", i % 17, i % 5, u8::from(i % 17 > 8)));
    let with =
        |weight: &str| rows.clone().fold("a,b,y,w\n".to_owned(), |text, row| text + row.trim_end() + weight);
    folder.write("all.csv", with(",1\n"));
    folder.write("more.csv", with(",1\n") + "3.5,1.5,1,0\n-9,77,0,0\n");
    for name in ["all", "more"] {
        let (data, model) = (folder.path(&format!("{name}.csv")), folder.path(name));
        succeed(&["train", "gbdt", "--data", &data, "--label", "y", "--weight", "w", "--model", &model]);
    }
    assert!(weights(&folder, "all") == weights(&folder, "more"));
    // Records sorted by label, tasks without records, a column that is missing everywhere.
    let sorted: Vec<String> = (0..200).map(|i| format!("{i},,{}\n", u8::from(i >= 100))).collect();
    folder.write("sorted.csv", "a,b,y\n".to_owned() + &sorted.concat());
    let path = folder.path("sorted.csv");
    for (name, tasks) in [("one", "1"), ("many", "40")] {
        let model = folder.path(name);
        succeed(&["train", "gbdt", "--data", &path, "--label", "y", "--model", &model, "--tasks", tasks]);
    }
    assert!(weights(&folder, "one") == weights(&folder, "many"));
}

#[test]
fn a_training_that_is_stopped_goes_on_to_the_same_bytes() {
    let folder = Folder::new();
    folder.write("train.csv", customers(3000, 7));
    let settings = ["--set", "iterations=60", "--tasks", "2"];
    train(&folder, "whole", &settings);
    let (data, model, checkpoints) =
        (folder.path("train.csv"), folder.path("model"), folder.path("checkpoints"));
    let fixed = ["train", "gbdt", "--data", &data, "--label", "bought", "--model", &model];
    let place = ["--checkpoints", &checkpoints, "--checkpoint-every", "10ms"];
    let mut child = command(&[&fixed[..], &settings, &place].concat()).spawn().expect("the program starts");
    wait_until("there is a checkpoint", || newest(&checkpoints) >= 1);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let resumed = ["--resume", "latest"];
    succeed(&[&fixed[..], &settings, &place[..2], &resumed].concat());
    assert!(weights(&folder, "model") == weights(&folder, "whole"));
}
