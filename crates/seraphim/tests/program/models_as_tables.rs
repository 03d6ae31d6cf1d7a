//! Promise: `export` writes each stored number of a model once, with the name of its feature, as CSV and as Parquet.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use std::fs::File;

use crate::common::{Folder, fail, succeed};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

/// Records of three classes with a number and a name that needs quotes.
fn train(folder: &Folder, arguments: &[&str]) -> String {
    let mut text = "size,town,label\n".to_owned();
    for i in 0..90 {
        let class = i % 3;
        let town = ["\"Rome, \"\"old\"\"\"", "Oslo", "Bonn"][class];
        text += &format!("{}.5,{town},{}\n", i % 7, ["red", "green", "blue"][class]);
    }
    let (data, model) = (folder.write("data.csv", text), folder.path("model"));
    succeed(
        &[&["train"], arguments, &["--data", &data, "--model", &model, "--quiet", "--overwrite"]].concat(),
    );
    model
}

fn lines(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.rsplitn(5, ',').map(str::to_owned).collect()).collect()
}

#[test]
fn weights_have_the_names_of_features_and_classes_in_csv_and_parquet() {
    let folder = Folder::new();
    let model = train(&folder, &["softmax", "--set", "epochs=3", "--set", "standardize=false"]);
    let text = succeed(&["export", &model]);
    assert!(text.starts_with("feature,key,blue,green,red\n"), "{text}");
    let names: Vec<String> = lines(&text).into_iter().skip(1).map(|fields| fields[4].clone()).collect();
    assert_eq!(names.len(), 4);
    for name in ["size", "town=Oslo", "town=Bonn", "\"town=Rome, \"\"old\"\"\""] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let parquet = folder.path("weights.parquet");
    let said = succeed(&["export", &model, "--output", &parquet]);
    assert!(
        said.starts_with("4 rows of weights written to ") && said.contains("--table writes intercept"),
        "{said}"
    );
    let reader = SerializedFileReader::new(File::open(&parquet).unwrap()).unwrap();
    let of_csv: Vec<Vec<String>> = lines(&text).into_iter().skip(1).collect();
    let mut rows = 0;
    for (row, csv) in reader.get_row_iter(None).unwrap().zip(&of_csv) {
        let fields: Vec<Field> = row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect();
        let Field::Str(name) = &fields[0] else { panic!("{fields:?}") };
        let quoted = csv[4].strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        assert_eq!(quoted.unwrap_or(&csv[4]).replace("\"\"", "\""), *name);
        assert_eq!(csv[3], fields[1].to_string());
        for (value, text) in fields[2..].iter().zip([&csv[2], &csv[1], &csv[0]]) {
            let Field::Float(value) = value else { panic!("{fields:?}") };
            assert_eq!(text.parse::<f32>().unwrap(), *value);
        }
        rows += 1;
    }
    assert_eq!(rows, 4);
    let intercept = succeed(&["export", &model, "--table", "intercept"]);
    assert!(intercept.starts_with("row,blue,green,red\n0,") && intercept.lines().count() == 2, "{intercept}");
}

#[test]
fn centres_and_factors_are_tables_too() {
    let folder = Folder::new();
    let model = train(&folder, &["kmeans", "--set", "k=3", "--skip-columns", "label"]);
    assert!(succeed(&["export", &model]).starts_with("feature,key,cluster_0,cluster_1,cluster_2\n"));
    assert!(succeed(&["export", &model, "--table", "norms"]).starts_with("row,cluster_0,"));
    let model = train(&folder, &["fm", "--set", "k=2", "--set", "positive_label=red"]);
    let factors = succeed(&["export", &model, "--table", "factors"]);
    assert!(
        factors.starts_with("feature,key,value_0,value_1\n") && factors.contains("town=Oslo,"),
        "{factors}"
    );
}

#[test]
fn coefficients_are_for_values_as_they_are_in_the_data() {
    let folder = Folder::new();
    let mut text = "size,weight,town,label\n".to_owned();
    for i in 0..200 {
        let (size, weight, town) = (i % 17, 1000 + (i * 7) % 13, i % 2);
        let label = 3.0 + 0.5 * f64::from(size) - 0.01 * f64::from(weight) + 2.0 * f64::from(town);
        text += &format!("{size},{weight},{},{label}\n", ["Oslo", "Rome"][town as usize]);
    }
    let (data, model) = (folder.write("prices.csv", text), folder.path("model"));
    let coefficient = |text: &str, name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name},")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).rsplit(',').next().unwrap().parse().unwrap()
    };
    for standardize in ["true", "false"] {
        let settings = ["linear", "--set", "optimizer=lbfgs", "--set", "l2=0", "--set", "max_iterations=500"];
        let scaled = ["--set", &format!("standardize={standardize}"), "--set", "tolerance=1e-12"];
        let place = ["--data", &data, "--model", &model, "--quiet", "--overwrite"];
        succeed(&[&["train"], &settings[..], &scaled, &place].concat());
        let table = succeed(&["export", &model, "--table", "coefficients"]);
        assert!(table.starts_with("feature,key,value\n") && table.contains("\n(intercept),-1,"), "{table}");
        let [size, weight] = ["size", "weight"].map(|name| coefficient(&table, name));
        let difference = coefficient(&table, "town=Rome") - coefficient(&table, "town=Oslo");
        assert!((size - 0.5).abs() < 1e-3 && (weight + 0.01).abs() < 1e-3, "{table}");
        assert!((difference - 2.0).abs() < 1e-2, "{table}");
        // They give the scores of the model.
        let record = folder.write("one.csv", "size,weight,town\n3,1005,Rome\n");
        let scored = succeed(&[
            "predict",
            "--model",
            &model,
            "--data",
            &record,
            "--no-label",
            "--output",
            "-",
            "--quiet",
        ]);
        let score: f64 = scored.lines().nth(1).unwrap().parse().unwrap();
        let sum = coefficient(&table, "(intercept)")
            + 3.0 * size
            + 1005.0 * weight
            + coefficient(&table, "town=Rome");
        assert!((score - sum).abs() < 1e-3, "{score} {sum}");
    }
    let model = train(&folder, &["fm", "--set", "k=2", "--set", "positive_label=red"]);
    let said = fail(2, &["export", &model, "--table", "coefficients"]);
    assert!(
        said.contains("(\"coefficients\"): this model is not linear in the values of its records"),
        "{said}"
    );
}

#[test]
fn nothing_else_is_written_over() {
    let folder = Folder::new();
    let model = train(&folder, &["lr", "--set", "positive_label=red", "--set", "epochs=1"]);
    let refused = |code, arguments: &[&str], words: &str| {
        let said = fail(code, &[&["export"], arguments].concat());
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    refused(
        2,
        &[&model, "--table", "wights"],
        "the model has no such table (\"wights\"); give one of weights, intercept, moments, coefficients",
    );
    refused(4, &[&folder.path("none")], "there is no such directory");
    let table = folder.path("table.csv");
    succeed(&["export", &model, "--output", &table]);
    let before = std::fs::read(&table).unwrap();
    refused(2, &[&model, "--output", &table], "add --overwrite");
    succeed(&["export", &model, "--output", &table, "--overwrite"]);
    assert_eq!(std::fs::read(&table).unwrap(), before);
    for name in ["weights", "intercept"] {
        let parquet = folder.path(&format!("{name}.parquet"));
        for _ in 0..2 {
            succeed(&["export", &model, "--table", name, "--output", &parquet, "--overwrite"]);
        }
    }
    let scores = folder.path("arrows.parquet");
    let rows = ["--data", &folder.path("data.csv"), "--keep-columns", "town", "--output", &scores, "--quiet"];
    succeed(&[&["predict", "--model", &model], &rows[..]].concat());
    refused(2, &[&model, "--output", &scores, "--overwrite"], "is not a table of an earlier `export`");
    let data = folder.path("data.csv");
    refused(2, &[&model, "--output", &data, "--overwrite"], "is not a table of an earlier `export`");
    refused(2, &[&model, "--output", &format!("{model}/table.csv")], "lies inside the model");
    refused(5, &[&model, "--output", &folder.path("no/folder/table.csv")], "no/folder");
    let left = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter().all(|name| !name.to_string_lossy().starts_with('.')),
        "a temporary file is left"
    );
}
