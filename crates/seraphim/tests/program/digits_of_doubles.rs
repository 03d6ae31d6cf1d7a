//! Promise: numbers that differ in digits which single precision does not keep are learned and predicted with them, as
//! features and as labels, in one process and on servers.

#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use crate::common::{Folder, number, succeed};

/// Seconds since 1970; in single precision 100 of them are two numbers.
const START: u64 = 1_764_200_000;

/// Records `(class, value, time, place)`: 100 seconds that decide the class and, with the place, the value.
fn records() -> impl Iterator<Item = (u64, u64, u64, u64)> {
    (0..100).map(|i| (u64::from(i >= 50), START + 3 * i, START + i, i * 37 % 100))
}

/// Trains and evaluates on the same data; returns the metric.
fn metric(folder: &Folder, data: &str, arguments: &[&str], metric: &str) -> f64 {
    let model = folder.path("model");
    let fixed = ["--data", data, "--model", &model, "--quiet", "--overwrite"];
    succeed(&[&["train"], arguments, &fixed].concat());
    number(
        &succeed(&["evaluate", "--model", &model, "--data", data, "--json"]),
        &format!("/metrics/{metric}"),
    )
}

#[test]
fn times_of_seconds_separate_classes() {
    let folder = Folder::new();
    let (mut csv, mut dates, mut dense) = ("t,x,y\n".to_owned(), "t,x,y\n".to_owned(), String::new());
    for (class, _, time, place) in records() {
        csv += &format!("{time},{place},{class}\n");
        dates += &format!(
            "2025-11-26T23:{:02}:{:02}Z,{place},{class}\n",
            (time - START) / 60,
            (time - START) % 60
        );
        dense += &format!("{class} {time} {place}\n");
    }
    let files = [("t.csv", csv, "csv"), ("d.csv", dates, "csv"), ("t.txt", dense, "dense")];
    for (name, text, format) in files {
        let data = folder.write(name, text);
        for settings in ["lr", "lr --set optimizer=ftrl", "svm", "fm", "softmax"] {
            for cluster in ["--tasks 2", "--tasks 2 --servers 2 --workers 2"] {
                let all = format!("{settings} {cluster} --format {format}");
                let all: Vec<&str> = all.split(' ').collect();
                let of = if settings == "softmax" { "accuracy" } else { "auc" };
                let found = metric(&folder, &data, &all, of);
                assert!(found > 0.96, "{name} {settings} {cluster}: {found}");
            }
        }
    }
}

#[test]
fn times_of_seconds_are_predicted() {
    let folder = Folder::new();
    let (mut csv, mut libsvm, mut vw) = ("x,y\n".to_owned(), String::new(), String::new());
    for (_, value, time, _) in records() {
        let x = time - START;
        csv += &format!("{x},{value}\n");
        libsvm += &format!("{value} 1:{x}\n");
        vw += &format!("{value} |n x:{x}\n");
    }
    for (name, text) in [("t.csv", csv), ("t.libsvm", libsvm), ("t.vw", vw)] {
        let data = folder.write(name, text);
        for (settings, most) in [
            ("linear", 1e-3),
            ("huber --set optimizer=lbfgs", 1e-3),
            ("fm --set loss=squared --set epochs=300", 3.0),
        ] {
            for cluster in ["--tasks 2", "--tasks 2 --servers 2 --workers 2"] {
                let all = format!("{settings} {cluster}");
                let all: Vec<&str> = all.split(' ').collect();
                let found = metric(&folder, &data, &all, "rmse");
                assert!(found < most, "{name} {settings} {cluster}: {found}");
            }
        }
    }
}

/// A prediction is the sum of intercept and coefficient x value, for values as they are in the data.
#[test]
fn coefficients_are_those_of_the_data() {
    let folder = Folder::new();
    let mut csv = "t,y\n".to_owned();
    records().for_each(|(_, value, time, _)| csv += &format!("{time},{value}\n"));
    let (data, model) = (folder.write("t.csv", csv), folder.path("model"));
    let table = folder.path("coefficients.csv");
    succeed(&["train", "linear", "--data", &data, "--model", &model, "--quiet"]);
    succeed(&["export", &model, "--table", "coefficients", "--output", &table]);
    let text = std::fs::read_to_string(table).unwrap();
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(',').next().unwrap().parse().unwrap()
    };
    // value = START + 3 (t - START)
    let (slope, intercept) = (value("t,"), value("(intercept),"));
    assert!((slope - 3.0).abs() < 1e-3, "{slope}");
    let first = intercept + slope * START as f64;
    assert!((first - START as f64).abs() < 1e-2, "{first}");
}
