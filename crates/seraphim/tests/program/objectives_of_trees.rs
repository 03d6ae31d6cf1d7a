//! Objectives of boosted trees: the same bytes for any number of tasks, predictions in the unit of the labels, and messages
//! for labels that do not fit.

use std::fmt::Write as _;

use math::random::{Purpose, stream};

use crate::common::{Folder, fail, seraphim, succeed};

/// Numbers from 0 on with a few zeros, in groups that come back later in the file; `grade` is a whole number up to 4.
fn sales(count: usize, seed: u64) -> String {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut text = "a,b,c,kind,session,amount,positive,grade,bought,w\n".to_owned();
    for r in 0..count {
        let (a, b, c) = (random.normal(), random.normal(), random.below(9));
        let kind = random.below(6);
        let mean = (0.6 * a + 0.3 * b * b + if kind < 2 { 0.8 } else { 0.0 }).exp();
        let amount = (mean * -random.uniform().ln() - 0.2).max(0.0);
        let grade = ((2.0 * mean).floor() as u64).min(4);
        // Groups of about 25 records; every fifth record is in a group that is all over the file.
        let session = if r % 5 == 0 { 1000 + r % 3 } else { r / 20 };
        let (bought, weight) = (u8::from(amount > 1.0), 1 + random.below(3));
        let positive = amount + 0.1;
        writeln!(
            text,
            "{a:.3},{b:.3},{c},kind {kind},{session},{amount:.3},{positive:.3},{grade},{bought},{weight}"
        )
        .expect("a string takes all");
    }
    text
}

const LABELS: [&str; 5] = ["session", "amount", "positive", "grade", "bought"];

/// Trains on one of the label columns; the others are no features.
fn train(folder: &Folder, model: &str, label: &str, more: &[&str]) -> String {
    let (data, path) = (folder.path("train.csv"), folder.path(model));
    let others: Vec<&str> =
        LABELS.into_iter().filter(|name| *name != label && !more.contains(name)).collect();
    let skip = others.join(",");
    let fixed =
        ["train", "gbdt", "--data", &data, "--label", label, "--skip-columns", &skip, "--model", &path];
    succeed(&[&fixed[..], more].concat())
}

/// Objectives with their labels, and settings.
const OBJECTIVES: [(&str, &str, &[&str]); 10] = [
    ("logistic", "bought", &["--set", "scale_pos_weight=2.5"]),
    ("softmax", "grade", &[]),
    ("squared", "amount", &[]),
    ("absolute", "amount", &["--set", "bagging_fraction=0.7"]),
    ("huber", "amount", &["--set", "alpha=0.5"]),
    ("quantile", "amount", &["--set", "alpha=0.8", "--weight", "w"]),
    ("poisson", "amount", &["--weight", "w"]),
    ("gamma", "positive", &[]),
    ("tweedie", "amount", &["--set", "tweedie_variance_power=1.3"]),
    ("lambdarank", "grade", &["--group", "session"]),
];

#[test]
fn every_objective_has_the_same_bytes_for_any_number_of_tasks() {
    let folder = Folder::new();
    folder.write("train.csv", sales(2500, 1));
    for (objective, label, more) in OBJECTIVES {
        let name = format!("objective={objective}");
        let fixed = ["--set", &name, "--set", "iterations=6", "--overwrite"];
        let mut expected = None;
        for tasks in
            [&["--tasks", "1"][..], &["--tasks", "3"], &["--tasks", "7", "--servers", "2", "--workers", "2"]]
        {
            train(&folder, "model", label, &[&fixed[..], more, tasks].concat());
            let found = std::fs::read(folder.path("model") + "/weights.safetensors").unwrap();
            assert!(*expected.get_or_insert(found.clone()) == found, "{objective} {tasks:?}: other bytes");
        }
    }
}

/// The numbers of a column of a table of predictions.
fn column(folder: &Folder, file: &str, name: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(folder.path(file)).expect("predictions");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at =
        lines.next().and_then(|header| header.iter().position(|column| *column == name)).expect("the column");
    lines.map(|line| line[at].parse().expect("a number")).collect()
}

#[test]
fn counts_and_positive_numbers_are_predicted_in_their_unit_and_raw_scores_are_logarithms() {
    /// Of predictions with the digits that the file has.
    const ROUNDING: f64 = 1e-5;
    let folder = Folder::new();
    folder.write("train.csv", sales(1500, 2));
    let data = folder.path("train.csv");
    for (objective, label, power) in
        [("poisson", "amount", 1.0), ("gamma", "positive", 2.0), ("tweedie", "amount", 1.5)]
    {
        train(&folder, objective, label, &["--set", &format!("objective={objective}")]);
        let model = folder.path(objective);
        let predict = |file: &str, more: &[&str]| {
            let out = folder.path(file);
            let fixed = ["predict", "--model", &model, "--data", &data, "--output", &out, "--overwrite"];
            succeed(&[&fixed[..], more].concat());
            column(&folder, file, "score")
        };
        let (values, raw) = (predict("values.csv", &[]), predict("raw.csv", &["--raw-scores"]));
        assert!(values.iter().zip(&raw).all(|(value, raw)| (raw.exp() - value).abs() < ROUNDING * value));
        let labels = column(&folder, "train.csv", label);
        // The gradients (value - label) / value^(power - 1) of all records sum to about 0.
        let sum = |numbers: &[f64]| -> f64 {
            numbers.iter().zip(&values).map(|(number, value)| number * value.powf(1.0 - power)).sum()
        };
        let ratio = sum(&values) / sum(&labels);
        assert!((ratio - 1.0).abs() < 0.05, "{objective}: {ratio}");
    }
}

#[test]
fn a_quantile_is_above_its_share_of_the_labels() {
    let folder = Folder::new();
    folder.write("train.csv", sales(3000, 3));
    let data = folder.path("train.csv");
    let labels = column(&folder, "train.csv", "amount");
    // Also where iterations learn from a sample by gradients.
    for (alpha, low, high, rate) in
        [("0.5", 0.45, 0.55, "0"), ("0.9", 0.87, 0.94, "0"), ("0.9", 0.87, 0.94, "0.05")]
    {
        let (name, setting) = (format!("q{alpha}{rate}"), format!("alpha={alpha}"));
        let rate = format!("top_rate={rate}");
        train(&folder, &name, "amount", &["--set", "objective=quantile", "--set", &setting, "--set", &rate]);
        let out = folder.path("out.csv");
        succeed(&[
            "predict",
            "--model",
            &folder.path(&name),
            "--data",
            &data,
            "--output",
            &out,
            "--overwrite",
        ]);
        let scores = column(&folder, "out.csv", "score");
        let below = scores.iter().zip(&labels).filter(|(score, label)| label <= score).count();
        let share = below as f64 / labels.len() as f64;
        assert!((low..=high).contains(&share), "{alpha}: {share}");
    }
}

#[test]
fn ranking_learns_the_order_within_groups_and_stops_by_its_metric() {
    let folder = Folder::new();
    folder.write("train.csv", sales(3000, 4));
    folder.write("test.csv", sales(1000, 5));
    let (test, model) = (folder.path("test.csv"), folder.path("ranks"));
    let settings = ["--set", "objective=lambdarank", "--group", "session", "--validate", &test];
    let stopping = ["--set", "early_stopping=5", "--set", "early_stopping_metric=ndcg@5"];
    train(&folder, "ranks", "grade", &[&settings[..], &stopping].concat());
    let shown = succeed(&["evaluate", "--model", &model, "--data", &test]);
    let metric = |name: &str| -> f64 {
        let line =
            shown.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{shown}"));
        line.trim().parse().unwrap()
    };
    assert!(metric("ndcg@10 ") > 0.8 && metric("ndcg@1 ") > 0.6 && metric("loss ") < 0.2, "{shown}");
    // The same metrics for any division of the records.
    let divided = succeed(&["evaluate", "--model", &model, "--data", &test, "--threads", "2"]);
    let numbers =
        |text: &str| text.lines().filter(|line| line.contains("ndcg")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(numbers(&shown), numbers(&divided));
    // Groups of one record have nothing to learn.
    let alone: String = (0..100).fold("a,g,y\n".to_owned(), |text, r| text + &format!("{r},{r},{}\n", r % 3));
    let (data, single) = (folder.write("alone.csv", alone), folder.path("single"));
    let words =
        ["train", "gbdt", "--data", &data, "--label", "y", "--group", "g", "--set", "objective=lambdarank"];
    let told = seraphim(&[&words[..], &["--model", &single, "--tasks", "3"]].concat());
    let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    assert!(told.contains("no split gains anything"), "{told}");
}

#[test]
fn labels_and_settings_that_do_not_fit_an_objective_are_refused() {
    let folder = Folder::new();
    let model = folder.path("none");
    let rows = |labels: &[&str]| {
        labels
            .iter()
            .enumerate()
            .fold("a,g,y\n".to_owned(), |text, (r, label)| text + &format!("{r},{},{label}\n", r / 2))
    };
    for (code, labels, settings, words) in [
        (
            3,
            &["1", "-2", "3"][..],
            &["objective=poisson"][..],
            &["bad.csv:3:", "at least 0", "poisson", "-2"][..],
        ),
        (3, &["1", "-0.5", "3"], &["objective=tweedie"], &["bad.csv:3:", "at least 0", "tweedie"]),
        (3, &["1", "2", "0"], &["objective=gamma"], &["bad.csv:4:", "above 0", "gamma"]),
        (3, &["1", "0.5", "0"], &["objective=logistic"], &["bad.csv:3:", "0.5"]),
        (3, &["1", "0.5", "0"], &["objective=lambdarank"], &["bad.csv:3:", "whole number from 0 to 31"]),
        (3, &["1", "32", "0"], &["objective=lambdarank"], &["bad.csv:3:", "32"]),
        (3, &["1", "-1", "0"], &["objective=lambdarank"], &["bad.csv:3:", "-1"]),
        (3, &["1", "2", "0"], &["objective=lambdarank"], &["--group", "qid"]),
        (3, &["0", "0", "0"], &["objective=poisson"], &["all labels are 0"]),
        (2, &["1", "2", "0"], &["objective=quantile", "alpha=1.5"], &["alpha", "between 0 and 1"]),
        (2, &["1", "2", "0"], &["objective=squared", "alpha=0.5"], &["alpha", "huber, quantile"]),
        (
            2,
            &["1", "2", "0"],
            &["objective=mae", "monotone_constraints=1,0"],
            &["objective=absolute", "percentiles"],
        ),
        (2, &["1", "2", "0"], &["objective=rank_xendcg"], &["rank_xendcg", "lambdarank"]),
        (
            2,
            &["1", "2", "0"],
            &["objective=tweedie", "tweedie_variance_power=2"],
            &["tweedie_variance_power"],
        ),
        (
            2,
            &["1", "2", "0"],
            &["objective=poisson", "early_stopping=5", "early_stopping_metric=auc"],
            &["rmse"],
        ),
    ] {
        folder.write("bad.csv", rows(labels));
        let path = folder.path("bad.csv");
        let mut all = vec!["train", "gbdt", "--data", &path, "--label", "y", "--model", &model];
        all.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let message = fail(code, &all);
        assert!(words.iter().all(|word| message.contains(word)), "{settings:?}: {message}");
        assert!(!std::path::Path::new(&model).exists());
    }
}

#[test]
fn the_objective_follows_from_the_labels_and_the_reason_is_told() {
    let folder = Folder::new();
    let mut random = stream(6, Purpose::Test, 0, 0);
    let rows: Vec<(f64, f64, u64)> =
        (0..400).map(|_| (random.normal(), random.normal(), random.below(3))).collect();
    let table = |label: &dyn Fn(f64) -> String| {
        rows.iter().fold("a,b,c,y\n".to_owned(), |text, (a, b, c)| {
            text + &format!("{a},{b},{c},{}\n", label(a * b + a))
        })
    };
    let model = folder.path("auto");
    let weights = |name: &str| std::fs::read(folder.path(name) + "/weights.safetensors").unwrap();
    let data = folder.path("data.csv");
    let words = |more: &[&str]| {
        let fixed =
            ["train", "gbdt", "--data", &data, "--label", "y", "--overwrite", "--set", "iterations=5"];
        fixed.iter().chain(more).map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let run = |more: &[&str]| {
        let words = words(more);
        let done = seraphim(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let shown = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        assert!(done.status.success(), "{shown}");
        shown
    };
    let two =
        |low: &'static str, high: &'static str| move |s: f64| if s > 0.0 { high } else { low }.to_owned();
    let names = |s: f64| ["low", "middle", "high"][(s + 1.0).clamp(0.0, 2.0) as usize].to_owned();
    let grades = |s: f64| (s + 1.0).clamp(0.0, 2.0).floor().to_string();
    for (label, objective, told) in [
        (&two("0", "1") as &dyn Fn(f64) -> String, "logistic", "objective=logistic: the labels are 0 and 1"),
        (&two("-1", "1"), "logistic", "objective=logistic: the labels are -1 and 1"),
        (&two("no", "yes"), "logistic", "objective=logistic: the labels are two names"),
        (&two("1", "2"), "squared", "2 whole numbers from 1 to 2; set positive_label=2"),
        (&names, "softmax", "objective=softmax: the labels are 3 names"),
        (&grades, "squared", "3 whole numbers from 0 to 2; set objective=softmax"),
        (&|s: f64| s.to_string(), "squared", "objective=squared: the labels are numbers from"),
    ] {
        folder.write("data.csv", table(label));
        let shown = run(&["--model", &model]);
        assert!(shown.contains(told), "{shown}");
        let inspected = succeed(&["inspect", &model]);
        assert!(inspected.contains(objective), "{inspected}");
        let given = format!("objective={objective}");
        run(&["--model", &folder.path("given"), "--set", &given]);
        assert!(weights("auto") == weights("given"), "{told}: other bytes than {given}");
        for more in [&["--tasks", "3"][..], &["--servers", "2", "--workers", "2"], &["--memory-limit", "0"]] {
            run(&[&["--model", &folder.path("many")], more].concat());
            assert!(weights("auto") == weights("many"), "{told} {more:?}: other bytes");
        }
    }
    // A label column that nobody has named may have numbers.
    folder.write("data.csv", table(&|s: f64| s.to_string()));
    let guessed = succeed(&["train", "gbdt", "--data", &data, "--model", &model, "--overwrite"]);
    assert!(guessed.contains("rmse"), "{guessed}");
    // Settings of two classes say what the labels are, and a model says what it has learned.
    folder.write("data.csv", table(&two("1", "2")));
    assert!(run(&["--model", &model, "--set", "positive_label=2"]).contains("objective=logistic"));
    folder.write("data.csv", table(&two("0", "1")));
    run(&["--model", &model, "--set", "objective=squared"]);
    let more = run(&["--model", &folder.path("more"), "--from", &model]);
    assert!(more.contains("objective=squared: as in the model"), "{more}");
    // Validation data with another label are refused.
    let other = folder.write("other.csv", "a,b,c,y\n1,2,0,1\n1,2,0,7\n");
    let words = words(&["--model", &folder.path("none"), "--validate", &other]);
    let message = fail(3, &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(message.contains('7'), "{message}");
}
