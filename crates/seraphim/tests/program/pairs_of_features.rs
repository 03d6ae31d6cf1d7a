//! Factorization machines as a user runs them: formats, deployments, predictions, continued training, and what is
//! refused.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::format_collect, reason = "helpers of tests")]

use crate::common::parquet_file::{self, Table};
use crate::common::{Folder, fail, number, succeed, train_everywhere};
use math::random::{Purpose, stream};

const COLORS: [&str; 4] = ["blue", "green", "red", "white"];
const TOWNS: [&str; 4] = ["Lima", "Oslo", "Rome", "Suva"];

/// Records with a color and a town, and positions of both. The label is 1 for some pairs; neither alone tells it.
fn table(count: usize, seed: u64) -> (Table, Vec<(usize, usize)>) {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let (mut table, mut pairs) = (Table::default(), Vec::new());
    for _ in 0..count {
        let (color, town) = (random.below(4) as usize, random.below(4) as usize);
        table.labels.push(i32::from((color + town) % 2 == 0));
        table.colors.push(COLORS[color].to_owned());
        table.towns.push(TOWNS[town].to_owned());
        table.sizes.push(1.0);
        pairs.push((color, town));
    }
    (table, pairs)
}

fn lines(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect()
}

fn csv(table: &Table) -> String {
    let row = |i: usize| format!("{},{},{}\n", table.labels[i], table.colors[i], table.towns[i]);
    format!("label,color,town\n{}", lines(table.labels.len(), row))
}

fn libffm(table: &Table, pairs: &[(usize, usize)]) -> String {
    lines(pairs.len(), |i| format!("{} 0:{}:1 1:{}:1\n", table.labels[i], pairs[i].0, 4 + pairs[i].1))
}

/// Few records and few pairs: longer steps than usual.
const SETTINGS: &[&str] =
    &["--set", "learning_rate=0.5", "--set", "init_deviation=0.2", "--set", "epochs=20"];

#[test]
fn every_format_and_deployment_learns_the_pairs() {
    let folder = Folder::new();
    let (table, pairs) = table(600, 1);
    let text = folder.write("a.csv", csv(&table));
    let columns = folder.path("a.parquet");
    parquet_file::write(&columns, &table);
    let libffm = folder.write("a.libffm", libffm(&table, &pairs));
    let libsvm = folder.write(
        "a.libsvm",
        lines(600, |i| format!("{} {}:1 {}:1\n", table.labels[i], pairs[i].0, 4 + pairs[i].1)),
    );
    let vw = folder.write(
        "a.vw",
        lines(600, |i| format!("{} |c {} |t {}\n", table.labels[i], table.colors[i], table.towns[i])),
    );
    for (algorithm, files) in
        [("fm", &[&text, &columns, &libffm, &libsvm, &vw][..]), ("ffm", &[&text, &columns, &libffm])]
    {
        for data in files {
            let job = [algorithm, "--tasks", "3", "--label", "label", "--data", data.as_str()];
            let job = if data.ends_with("csv") || data.ends_with("parquet") {
                &job[..]
            } else {
                &[algorithm, "--tasks", "3", "--data", data.as_str()][..]
            };
            train_everywhere(&folder, &[job, SETTINGS].concat());
            let model = folder.path("everywhere");
            let metrics = succeed(&["evaluate", "--model", &model, "--data", data, "--json"]);
            assert!(number(&metrics, "/metrics/accuracy") > 0.99, "{algorithm} {data}: {metrics}");
        }
    }
}

#[test]
fn ssp_asp_and_admission_learn_them_too() {
    let folder = Folder::new();
    let (table, _) = table(600, 2);
    let data = folder.write("a.csv", csv(&table));
    let model = folder.path("model");
    for consistency in ["ssp:2", "asp"] {
        for more in ["admission=1", "admission=50"] {
            let job = [
                "train",
                "ffm",
                "--quiet",
                "--overwrite",
                "--data",
                &data,
                "--model",
                &model,
                "--tasks",
                "3",
            ];
            let how = ["--consistency", consistency, "--servers", "2", "--set", more];
            succeed(&[&job[..], &how, SETTINGS].concat());
            let metrics = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
            assert!(number(&metrics, "/metrics/accuracy") > 0.99, "{consistency} {more}: {metrics}");
        }
    }
}

#[test]
fn names_of_labels_early_stopping_and_predictions() {
    let folder = Folder::new();
    let (table, _) = table(600, 3);
    let row = |i: usize| {
        let label = if table.labels[i] == 1 { "yes" } else { "no" };
        format!("{label},{},{}\n", table.colors[i], table.towns[i])
    };
    let data = folder.write("a.csv", format!("bought,color,town\n{}", lines(600, row)));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    let job = ["train", "ffm", "--data", &data, "--label", "bought", "--model", &model, "--json"];
    let stop = ["--set", "validation_share=0.2", "--set", "early_stopping=2", "--set", "positive_label=no"];
    let report = succeed(&[&job[..], SETTINGS, &stop].concat());
    assert!(number(&report, "/epochs/0/validation/accuracy") > 0.0, "{report}");
    succeed(&[
        "predict",
        "--model",
        &model,
        "--data",
        &data,
        "--keep-columns",
        "bought",
        "--output",
        &scores,
    ]);
    let text = std::fs::read_to_string(&scores).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("bought,label,score"), "{text}");
    for line in lines {
        let score: f64 = line.rsplit(',').next().unwrap().parse().unwrap();
        assert_eq!(line.starts_with("no"), score > 0.5, "{line}");
    }
}

#[test]
fn prices_are_learned_as_numbers() {
    let folder = Folder::new();
    let (table, pairs) = table(600, 4);
    let price = |i: usize| 200.0 + 30.0 * ((pairs[i].0 * pairs[i].1) % 4) as f64;
    let row = |i: usize| format!("{},{},{}\n", price(i), table.colors[i], table.towns[i]);
    let data = folder.write("a.csv", format!("price,color,town\n{}", lines(600, row)));
    let model = folder.path("model");
    for algorithm in ["fm", "ffm"] {
        let job = ["train", algorithm, "--overwrite", "--quiet", "--data", &data, "--label", "price"];
        let how = ["--set", "loss=squared", "--set", "l2=0.001", "--model", &model, "--servers", "1"];
        succeed(&[&job[..], &how, SETTINGS].concat());
        let metrics = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
        assert!(number(&metrics, "/metrics/r2") > 0.9, "{algorithm}: {metrics}");
    }
}

#[test]
fn training_goes_on_from_an_earlier_model() {
    let folder = Folder::new();
    let (table, pairs) = table(300, 5);
    let data = folder.write("a.libffm", libffm(&table, &pairs));
    let (first, second) = (folder.path("first"), folder.path("second"));
    let job = |model: &str| {
        let words = ["train", "ffm", "--json", "--quiet", "--overwrite", "--data", &data, "--model", model];
        words.map(str::to_owned).to_vec()
    };
    let loss = |model: &str, more: &[&str]| {
        let words = job(model);
        let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
        succeed(&[&words[..], SETTINGS].concat());
        number(&succeed(&["evaluate", "--model", model, "--data", &data, "--json"]), "/metrics/loss")
    };
    let before = loss(&first, &[]);
    let after = loss(&second, &["--from", &first]);
    assert!(after < before, "{after} after {before}");
    let words = job(&second);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let error = fail(4, &[&words[..], &["--from", &first, "--set", "k=7"]].concat());
    assert!(error.contains("its k is 4, that of the job is 7"), "{error}");
    let more = folder.write("more.libffm", "1 0:1:1 2:5:1\n0 0:2:1 1:6:1\n");
    let error =
        fail(3, &["train", "ffm", "--data", &more, "--from", &first, "--model", &second, "--overwrite"]);
    assert!(error.contains("fields up to 2, and the earlier model knows 2 fields"), "{error}");
    for command in [
        &["evaluate", "--model", &first, "--data", &more][..],
        &["predict", "--output", "-", "--model", &first, "--data", &more],
    ] {
        let error = fail(3, command);
        assert!(
            error.contains("more.libffm:1:9") && error.contains("one of the 2 fields of the model"),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let folder = Folder::new();
    let (table, pairs) = table(50, 6);
    let model = folder.path("model");
    let libsvm = folder.write("a.libsvm", lines(50, |i| format!("{} {}:1\n", table.labels[i], pairs[i].0)));
    let csv = folder.write("a.csv", csv(&table));
    let infinite = folder.write("b.libffm", "1 0:1:1\n0 0:2:inf\n");
    for deployment in [&[][..], &["--servers", "1"]] {
        let train = |code: i32, algorithm: &str, data: &str, sets: &[&str]| {
            let job = ["train", algorithm, "--quiet", "--data", data, "--model", &model];
            let error = fail(code, &[&job[..], sets, deployment].concat());
            assert!(!std::path::Path::new(&model).exists());
            error
        };
        assert!(train(3, "ffm", &libsvm, &[]).contains("have no fields, which ffm needs"));
        assert!(train(3, "fm", &infinite, &[]).contains("b.libffm:2"));
        assert!(train(2, "fm", &csv, &["--set", "k=0"]).contains("[1, 1024]"));
        assert!(train(2, "fm", &csv, &["--set", "factors=3"]).contains("no parameter"));
        let diverging = ["--set", "optimizer=sgd", "--set", "learning_rate=1e30", "--set", "epochs=9"];
        let error = train(3, "fm", &csv, &diverging);
        assert!(
            error.contains("diverged in epoch") && error.contains("Lower learning_rate (now 1e30"),
            "{error}"
        );
    }
}
