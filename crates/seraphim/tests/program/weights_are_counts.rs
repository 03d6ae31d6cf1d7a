//! Promise: a record of weight 0 is as if it were not in the input, and a record of weight w is as w equal records. This
//! holds for every algorithm, scaling, optimizer and metric, in this process and on servers.

#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Folder, bytes_of, fail, number, succeed};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use math::random::{Purpose, stream};

/// Relative difference of coefficients: the optimizers end at a relative decrease of the objective of 1e-12, and the
/// error of a point is about the square root of that of the objective.
const COEFFICIENTS: f64 = 1e-4;
/// Relative difference of metrics, sums of a few hundred terms in another order; of models that differ as above.
const METRICS: f64 = 1e-4;

/// A record: its values, its label among three classes, and its weight.
struct Record {
    size: f64,
    price: f64,
    city: &'static str,
    class: usize,
    weight: usize,
}

/// Records with the weights 0 to 3. Those of weight 0 have values that would change everything.
fn records(seed: u64) -> Vec<Record> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let record = |i: usize| {
        let (size, price, noise) = (random.uniform(), 500.0 * random.uniform(), random.uniform());
        let (weight, city) = (i % 4, ["Rome", "Oslo", "Bonn"][random.below(3) as usize]);
        if weight == 0 {
            return Record { size: 7000.0, price: -1e6, city: "Nowhere", class: 2 - i / 4 % 2, weight };
        }
        let score = 2.0 * size - price / 400.0 + f64::from(u8::from(city == "Rome")) + noise;
        Record {
            size,
            price,
            city,
            class: if score < 1.2 { 0 } else { 1 + usize::from(score > 2.0) },
            weight,
        }
    };
    (0..120).map(record).collect()
}

fn label(algorithm: &str, record: &Record) -> f64 {
    match algorithm {
        "softmax" => record.class as f64,
        "linear" | "huber" => record.class as f64 * 50.0 + 5.0 * record.size,
        _ => f64::from(u8::from(record.class > 0)),
    }
}

/// What the file has: all records with their weights; those of weight above 0; each as often as its weight.
#[derive(Clone, Copy)]
enum Form {
    Weighted,
    WithoutZeros,
    Repeated,
}

/// The records as a table, or as lines of Vowpal Wabbit.
fn write(folder: &Folder, algorithm: &str, seed: u64, format: &str, form: Form) -> String {
    let mut text = if format == "csv" { "size,price,city,y,w\n".to_owned() } else { String::new() };
    let (mut numbers, mut cities): ([Vec<f64>; 4], Vec<String>) = Default::default();
    for record in records(seed) {
        let (count, weight) = match form {
            Form::Weighted => (1, record.weight),
            Form::WithoutZeros => (usize::from(record.weight > 0), record.weight),
            Form::Repeated => (record.weight, 1),
        };
        let Record { size, price, city, .. } = record;
        let label = label(algorithm, &record);
        for _ in 0..count {
            text += &match format {
                "csv" => format!("{size:.4},{price:.3},{city},{label},{weight}\n"),
                _ => format!("{label} {weight} |n size:{size:.4} price:{price:.3} |c {city}\n"),
            };
            for (column, number) in numbers.iter_mut().zip([size, price, label, weight as f64]) {
                column.push(number);
            }
            cities.push(city.to_owned());
        }
    }
    let name = format!("{algorithm}-{seed}-{}.{format}", form as usize);
    let path = folder.path(&name);
    match format {
        "parquet" => write_parquet(&path, &numbers, &cities),
        "arrow" => write_arrow(&path, numbers, cities),
        _ => return folder.write(&name, text),
    }
    path
}

fn write_parquet(path: &str, [size, price, y, w]: &[Vec<f64>; 4], cities: &[String]) {
    use data::parquet_writer::{ColumnData, ColumnType, ParquetWriter};
    let kinds = [ColumnType::F64, ColumnType::F64, ColumnType::Text, ColumnType::F64, ColumnType::F64];
    let columns: Vec<_> = COLUMNS.into_iter().zip(kinds).collect();
    let mut writer = ParquetWriter::create(Path::new(path), &columns).unwrap();
    let [size, price, y, w] = [size, price, y, w].map(|column| ColumnData::F64(column));
    writer.write(&[size, price, ColumnData::Text(cities), y, w]).unwrap();
    writer.finish().unwrap();
}

fn write_arrow(path: &str, numbers: [Vec<f64>; 4], cities: Vec<String>) {
    let [size, price, y, w] = numbers.map(|column| Arc::new(Float64Array::from(column)) as ArrayRef);
    let cities: ArrayRef = Arc::new(StringArray::from(cities));
    let columns: [ArrayRef; 5] = [size, price, cities, y, w];
    let mut names = COLUMNS.into_iter();
    crate::common::arrow_file::write_columns(path, columns.map(|column| (names.next().unwrap(), column)));
}

const COLUMNS: [&str; 5] = ["size", "price", "city", "y", "w"];

/// Trains on one task. Returns the rows of the model with the names of their features, and the report.
fn train(
    folder: &Folder,
    algorithm: &str,
    data: &str,
    settings: &[&str],
    more: &[&str],
) -> (Vec<(PathBuf, Vec<u8>)>, String) {
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let fixed = ["train", algorithm, "--tasks", "1", "--quiet", "--overwrite", "--model", &model];
    let mut arguments = [&fixed[..], &["--report", &report, "--data", data], more].concat();
    if Path::new(data).extension().is_none_or(|format| format != "vw") {
        arguments.extend(["--label", "y", "--weight", "w"]);
    }
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    succeed(&arguments);
    let mut files = bytes_of(&model);
    files.retain(|(name, _)| {
        ["weights.safetensors", "dictionary.tsv"].iter().any(|kept| name.ends_with(kept))
    });
    (files, std::fs::read_to_string(report).unwrap())
}

/// Algorithms and settings with which a training is repeated to the byte.
const TRAININGS: [(&str, &[&str]); 17] = [
    ("lr", &[]),
    ("lr", &["optimizer=ftrl", "standardize=true"]),
    ("lr", &["optimizer=ftrl", "standardize=entries"]),
    ("lr", &["optimizer=sgd", "standardize=true"]),
    ("lr", &["optimizer=adam", "standardize=false", "normalize=l2"]),
    ("lr", &["class_weights=balanced"]),
    ("svm", &[]),
    ("svm", &["loss=hinge"]),
    ("softmax", &[]),
    ("softmax", &["optimizer=ftrl", "class_weights=balanced"]),
    ("linear", &[]),
    ("linear", &["optimizer=ftrl"]),
    ("huber", &["optimizer=ftrl"]),
    ("fm", &[]),
    ("fm", &["admission=2", "epochs=3"]),
    ("kmeans", &["k=3"]),
    ("kmeans", &["k=3", "method=mini_batch", "batch_size=20"]),
];

#[test]
fn a_record_of_weight_0_is_not_there() {
    let folder = Folder::new();
    for (algorithm, settings) in TRAININGS {
        for format in ["csv", "vw", "parquet", "arrow"] {
            if format == "vw" && ["softmax", "kmeans"].contains(&algorithm) {
                continue;
            }
            let with = write(&folder, algorithm, 1, format, Form::Weighted);
            let without = write(&folder, algorithm, 1, format, Form::WithoutZeros);
            let (model, report) = train(&folder, algorithm, &with, settings, &[]);
            let (expected, other) = train(&folder, algorithm, &without, settings, &[]);
            assert!(model == expected, "{algorithm} {settings:?} {format}");
            for pointer in ["/settings", "/input/records", "/epochs/0/training"] {
                let part = |json: &str| {
                    serde_json::from_str::<serde_json::Value>(json).unwrap().pointer(pointer).cloned()
                };
                assert_eq!(part(&report), part(&other), "{algorithm} {settings:?} {format} {pointer}");
            }
            assert!(report.contains("records of weight 0 count as if they were not there: 30"), "{report}");
        }
    }
}

#[test]
fn a_record_of_weight_0_is_not_there_with_fields_and_on_servers_and_in_validation() {
    let folder = Folder::new();
    for (algorithm, settings) in
        [("ffm", &[][..]), ("lr", &[]), ("lr", &["optimizer=ftrl"]), ("kmeans", &["k=3"])]
    {
        let [with, without] =
            [Form::Weighted, Form::WithoutZeros].map(|form| write(&folder, algorithm, 1, "csv", form));
        let servers = &["--servers", "2", "--workers", "1"][..];
        let expected = train(&folder, algorithm, &without, settings, &[]).0;
        for more in [&[][..], servers] {
            assert!(train(&folder, algorithm, &with, settings, more).0 == expected, "{algorithm} {more:?}");
        }
    }
    let [with, without] =
        [Form::Weighted, Form::WithoutZeros].map(|form| write(&folder, "lr", 2, "csv", form));
    let data = write(&folder, "lr", 1, "csv", Form::WithoutZeros);
    let stopped = |validate: &str| {
        let settings = ["optimizer=ftrl", "early_stopping=2", "early_stopping_metric=auc"];
        train(&folder, "lr", &data, &settings, &["--validate", validate])
    };
    let ((model, report), (expected, other)) = (stopped(&with), stopped(&without));
    assert!(model == expected);
    assert_eq!(number(&report, "/best_epoch"), number(&other, "/best_epoch"));
    let shares = ["optimizer=ftrl", "validation_share=0.3", "epochs=3"];
    let [with, without] =
        [Form::Weighted, Form::WithoutZeros].map(|form| write(&folder, "lr", 1, "csv", form));
    assert!(train(&folder, "lr", &with, &shares, &[]).0 == train(&folder, "lr", &without, &shares, &[]).0);
}

/// The coefficients, or the centres, of the model by the names of their rows.
fn table(folder: &Folder, algorithm: &str) -> BTreeMap<String, Vec<f64>> {
    let model = folder.path("model");
    let name = if algorithm == "kmeans" { "centres" } else { "coefficients" };
    let text = succeed(&["export", &model, "--table", name]);
    let row = |line: &str| {
        let mut fields = line.split(',');
        let name = fields.next().unwrap().to_owned();
        (name, fields.skip(1).map(|field| field.parse().unwrap()).collect())
    };
    text.lines().skip(1).map(row).collect()
}

fn assert_near(name: &str, found: f64, expected: f64, tolerance: f64) {
    let scale = expected.abs().max(1e-3);
    assert!((found - expected).abs() <= tolerance * scale, "{name}: {found}, not {expected}");
}

#[test]
fn a_record_of_weight_w_is_as_w_records() {
    const EXACT: [&str; 2] = ["tolerance=1e-12", "max_iterations=2000"];
    const ADMM: &[&str] = &["optimizer=admm", "l2=1", "tolerance=1e-12", "max_iterations=2000"];
    let trainings: [(&str, &[&str]); 14] = [
        ("lr", &EXACT),
        ("lr", &["optimizer=lbfgs", "standardize=entries", "tolerance=1e-12"]),
        ("lr", &["optimizer=lbfgs", "class_weights=balanced", "l2=1", "tolerance=1e-12"]),
        ("lr", &["optimizer=owlqn", "l1=2", "tolerance=1e-12"]),
        ("lr", &["optimizer=gd", "l2=1", "tolerance=1e-12", "max_iterations=5000"]),
        ("lr", ADMM),
        ("svm", &["loss=squared_hinge", "optimizer=lbfgs", "l2=1", "tolerance=1e-12"]),
        ("softmax", &EXACT),
        ("linear", &EXACT),
        ("huber", &["optimizer=lbfgs", "l2=1", "delta=10", "tolerance=1e-12"]),
        ("kmeans", &["k=3"]),
        ("kmeans", &["k=3", "init=random"]),
        ("kmeans", &["k=3", "distance=cosine", "tolerance=0"]),
        ("kmeans", &["k=150"]),
    ];
    let folder = Folder::new();
    for (algorithm, settings) in trainings {
        let data = [Form::Weighted, Form::Repeated].map(|form| write(&folder, algorithm, 1, "csv", form));
        let [(found, report), (expected, other)] = data.map(|data| {
            let report = train(&folder, algorithm, &data, settings, &[]).1;
            (table(&folder, algorithm), report)
        });
        let what = format!("{algorithm} {settings:?}");
        let names = |table: &BTreeMap<String, Vec<f64>>| table.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{what}");
        // With more clusters than distinct records, which of them stay empty depends on the order of the records.
        if settings != ["k=150"] {
            for (name, row) in &found {
                for (found, expected) in row.iter().zip(&expected[name]) {
                    assert_near(&format!("{what} {name}"), *found, *expected, COEFFICIENTS);
                }
            }
        }
        let last = |json: &str| {
            let json: serde_json::Value = serde_json::from_str(json).unwrap();
            let (epochs, settings) = (json["epochs"].as_array().unwrap().clone(), json["settings"].clone());
            (epochs.last().unwrap()["training"].as_object().unwrap().clone(), settings)
        };
        let ((found, chosen), (expected, others)) = (last(&report), last(&other));
        assert_eq!(chosen, others, "{what}");
        for (name, value) in &found {
            let (found, expected) = (value.as_f64().unwrap(), expected[name].as_f64().unwrap());
            // An inertia near 0 is rounding of the squares of prices.
            let tolerance = if name == "inertia" && found < 1.0 { 1e6 } else { METRICS };
            assert_near(&format!("{what} {name}"), found, expected, tolerance);
        }
    }
}

#[test]
fn weights_that_grow_with_the_penalty_give_the_same_minimum() {
    let folder = Folder::new();
    let lines = |factor: f64| {
        let line = |record: Record| {
            let Record { size, price, city, weight, .. } = record;
            let label = label("lr", &record);
            format!("{size:.4},{price:.3},{city},{label},{}\n", weight as f64 * factor)
        };
        "size,price,city,y,w\n".to_owned() + &records(1).into_iter().map(line).collect::<Vec<_>>().concat()
    };
    let trained = |factor: f64| {
        let data = folder.write("scaled.csv", lines(factor));
        let l2 = format!("l2={factor}");
        train(&folder, "lr", &data, &["optimizer=lbfgs", "tolerance=1e-12", &l2], &[]);
        table(&folder, "lr")
    };
    let expected = trained(1.0);
    for factor in [0.01, 1000.0] {
        for (name, row) in trained(factor) {
            assert_near(&format!("{factor} {name}"), row[0], expected[&name][0], COEFFICIENTS);
        }
    }
}

#[test]
fn weights_that_are_all_0_are_refused() {
    let folder = Folder::new();
    let csv = folder.write("zeros.csv", "x,y,w\n1,0,0\n2,1,0\n");
    let vw = folder.write("zeros.vw", "1 0 | a:2\n-1 0 | b:3\n");
    let model = folder.path("model");
    for algorithm in ["lr", "svm", "linear", "fm", "kmeans"] {
        for optimizer in [&[][..], &["--set", "optimizer=ftrl"]] {
            if !optimizer.is_empty() && ["fm", "kmeans"].contains(&algorithm) {
                continue;
            }
            let columns = ["--data", &csv, "--label", "y", "--weight", "w"];
            for data in [&columns[..], &["--data", &vw]] {
                let arguments = [&["train", algorithm, "--model", &model], data, optimizer].concat();
                let error = fail(3, &arguments);
                assert!(error.contains("the weight 0"), "{algorithm} {optimizer:?}: {error}");
            }
        }
    }
}
