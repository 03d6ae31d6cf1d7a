//! Promise: the same table gives the same model in every format. A column of numbers is scaled alike whether it has a number
//! or a name, or is the product of two others; an indicator is the same as a name in a column of text.

#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::common::{Folder, is_csv, number, succeed};
use math::random::{Purpose, stream};

/// Relative difference of losses at the minimum, where an optimizer ends by its tolerance of 1e-12.
const MINIMUM: f64 = 1e-6;
/// The same after steps of a push rule, whose sums have other orders in other formats.
const STEPS: f64 = 1e-4;

struct Row {
    numbers: [f64; 3],
    color: usize,
    label: usize,
}

/// Numbers of the scales 1000, 0.001 and 0 or 1, and one of three colors.
fn rows() -> Vec<Row> {
    let mut random = stream(5, Purpose::Test, 0, 0);
    let row = |_| {
        let numbers = [
            (1000.0 + 700.0 * random.uniform()).round(),
            (100.0 * random.uniform()).round() / 1e5,
            random.below(2) as f64,
        ];
        let color = random.below(3) as usize;
        let score = numbers[0] / 350.0 + 2000.0 * numbers[1] + numbers[2] + color as f64 - 7.5;
        Row { numbers, color, label: usize::from(score + random.uniform() > 0.5) }
    };
    (0..300).map(row).collect()
}

/// The table in three formats.
fn files(folder: &Folder) -> [String; 3] {
    let (mut csv, mut libsvm, mut vw) = ("a,b,c,color,y\n".to_owned(), String::new(), String::new());
    for Row { numbers: [a, b, c], color, label } in rows() {
        csv += &format!("{a},{b},{c},k{color},{label}\n");
        libsvm += &format!("{label} 1:{a} 2:{b} 3:{c} {}:1\n", 4 + color);
        vw += &format!("{label} |n a:{a} b:{b} c:{c} |color k{color}\n");
    }
    [folder.write("t.csv", csv), folder.write("t.libsvm", libsvm), folder.write("t.vw", vw)]
}

/// Trains, on one task if nothing else is said, and returns the training loss of the last epoch. The first argument is
/// the algorithm.
fn loss(folder: &Folder, data: &str, arguments: &[&str]) -> f64 {
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let fixed = ["--quiet", "--overwrite", "--model", &model, "--report", &report, "--data", data];
    let mut all = [&["train"], arguments, &fixed].concat();
    if !arguments.contains(&"--tasks") {
        all.extend(["--tasks", "1"]);
    }
    if is_csv(data) {
        all.extend(["--label", "y"]);
    }
    succeed(&all);
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    let last = report["epochs"].as_array().unwrap().last().unwrap().to_string();
    number(&last, "/training/loss")
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{what}: {found}, not {expected}");
}

#[test]
fn text_formats_and_tables_give_the_same_minimum() {
    let folder = Folder::new();
    let files = files(&folder);
    for algorithm in ["lr", "softmax", "linear", "huber", "svm"] {
        let optimizer = ["--set", "optimizer=lbfgs", "--set", "l2=1", "--set", "tolerance=1e-12"];
        let more = ["--set", "max_iterations=3000", "--set", "loss=squared_hinge"];
        let more = if algorithm == "svm" { &more[..] } else { &more[..2] };
        let of = |data: &str, standardize: &str| {
            let set = format!("standardize={standardize}");
            loss(&folder, data, &[&[algorithm], &optimizer[..], more, &["--set", &set]].concat())
        };
        let scaled = files.each_ref().map(|file| of(file, "true"));
        for (found, file) in scaled.iter().zip(&files) {
            assert_near(&format!("{algorithm} {file}"), *found, scaled[0], MINIMUM);
        }
        let by_entries = [of(&files[1], "entries"), of(&files[2], "entries")];
        assert_near(&format!("{algorithm} entries"), by_entries[1], by_entries[0], MINIMUM);
        let plain = of(&files[2], "false");
        assert!((plain - scaled[0]).abs() > 1e-3, "{algorithm}: scaling changes the minimum: {plain}");
    }
}

#[test]
fn steps_over_names_are_those_over_numbers() {
    let folder = Folder::new();
    let [_, libsvm, vw] = files(&folder);
    for arguments in [
        &["lr", "--set", "optimizer=ftrl", "--set", "standardize=true"][..],
        &["svm", "--set", "standardize=entries"],
        &["linear", "--set", "optimizer=sgd", "--set", "learning_rate=0.01"],
        &["lr"],
    ] {
        let [numbers, names] = [&libsvm, &vw].map(|data| loss(&folder, data, arguments));
        assert_near(&format!("{arguments:?}"), names, numbers, STEPS);
    }
}

#[test]
fn a_product_is_scaled_as_a_column_of_products() {
    let folder = Folder::new();
    let (mut plain, mut product, mut vw) = ("a,b,y\n".to_owned(), "a,b,ab,y\n".to_owned(), String::new());
    for Row { numbers: [a, b, _], label, .. } in rows() {
        let b = 1000.0 + b * 1e6;
        plain += &format!("{a},{b},{label}\n");
        product += &format!("{a},{b},{},{label}\n", a * b);
        vw += &format!("{label} |a x:{a} |b x:{b}\n");
    }
    let [plain, product] =
        [("plain.csv", plain), ("product.csv", product)].map(|(name, text)| folder.write(name, text));
    let vw = folder.write("plain.vw", vw);
    for optimizer in ["optimizer=lbfgs", "optimizer=ftrl"] {
        let set = |more: &'static str| ["lr", "--set", optimizer, "--set", "standardize=true", "--set", more];
        let more = if optimizer == "optimizer=lbfgs" { "tolerance=1e-12" } else { "learning_rate=0.1" };
        let expected = loss(&folder, &product, &set(more));
        let made = loss(&folder, &plain, &[&set(more)[..], &["--interactions", "a:b"]].concat());
        assert_near(optimizer, made, expected, STEPS);
        if optimizer == "optimizer=lbfgs" {
            let made = loss(&folder, &vw, &[&set(more)[..], &["--interactions", "ab"]].concat());
            assert_near("vw", made, expected, STEPS);
        }
    }
}

#[test]
fn only_columns_with_other_values_than_0_and_1_have_moments() {
    let folder = Folder::new();
    for data in files(&folder) {
        for servers in [&[][..], &["--servers", "2", "--workers", "1"]] {
            let arguments = ["lr", "--set", "standardize=true", "--tasks", "3"];
            loss(&folder, &data, &[&arguments[..], servers].concat());
            let text = succeed(&["export", &folder.path("model"), "--table", "moments"]);
            let names: BTreeMap<&str, usize> =
                text.lines().skip(1).map(|line| (line.split(',').next().unwrap(), 1)).collect();
            let expected = if is_csv(&data) { 3 } else { 2 };
            assert_eq!(names.len(), expected, "{data} {servers:?}: {text}");
        }
    }
}
