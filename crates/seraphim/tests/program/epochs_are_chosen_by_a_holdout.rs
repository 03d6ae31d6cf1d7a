//! Promise: a factorization machine that would fit few records one by one holds some of them out, keeps the epoch that is
//! best for these, and says so. Nothing is held out where the user has decided about epochs or validation.

#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use crate::common::{Folder, bytes_of, number, succeed};
use math::random::{Purpose, stream};

/// Users and items with labels that depend on the item, and mostly on chance.
fn clicks(folder: &Folder, name: &str, count: usize, seed: u64) -> String {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut text = String::new();
    for _ in 0..count {
        let (user, item) = (random.below(300), random.below(100));
        let share = if item % 3 == 0 { 0.75 } else { 0.3 };
        text += &format!("{} {user}:1 {}:1\n", u8::from(random.uniform() < share), 300 + item);
    }
    folder.write(name, text)
}

fn train(folder: &Folder, data: &str, more: &[&str]) -> serde_json::Value {
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let fixed = ["train", "--data", data, "--tasks", "2", "--quiet", "--overwrite", "--model", &model];
    let algorithm = if more.contains(&"ffm") { &[][..] } else { &["fm"] };
    succeed(&[&fixed[..1], algorithm, &fixed[1..], &["--report", &report], more].concat());
    serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap()
}

fn weights(folder: &Folder) -> Vec<Vec<u8>> {
    let files = bytes_of(&folder.path("model")).into_iter();
    files.filter(|(name, _)| name.ends_with("weights.safetensors")).map(|(_, bytes)| bytes).collect()
}

fn share(report: &serde_json::Value) -> String {
    report["settings"]["validation_share"].as_str().unwrap().to_owned()
}

fn log_loss(folder: &Folder, data: &str) -> f64 {
    number(
        &succeed(&["evaluate", "--model", &folder.path("model"), "--data", data, "--json"]),
        "/metrics/log_loss",
    )
}

#[test]
fn few_records_are_fitted_as_long_as_it_helps_other_records() {
    let folder = Folder::new();
    let (data, test) = (clicks(&folder, "train.svm", 2000, 1), clicks(&folder, "test.svm", 2000, 2));
    let chosen = train(&folder, &data, &[]);
    assert_eq!((share(&chosen).as_str(), &chosen["settings"]["early_stopping"]), ("0.1", &"3".into()));
    let told = chosen["choices"].to_string();
    assert!(told.contains("a tenth of the 2000 records is held out"), "{told}");
    assert!(chosen["best_epoch"].as_u64().is_some_and(|best| best < 19), "{}", chosen["best_epoch"]);
    let (bytes, loss) = (weights(&folder), log_loss(&folder, &test));
    train(&folder, &data, &["--servers", "2", "--workers", "2"]);
    assert!(weights(&folder) == bytes, "on servers");
    train(&folder, &data, &["--set", "validation_share=0.1", "--set", "early_stopping=3"]);
    assert!(weights(&folder) == bytes, "with the settings that were chosen");
    assert_eq!(share(&train(&folder, &data, &["--set", "epochs=20"])), "0");
    assert!(loss < log_loss(&folder, &test) - 0.02, "{loss} with a hold-out");
}

#[test]
fn nothing_is_held_out_where_the_user_has_decided() {
    let folder = Folder::new();
    let data = clicks(&folder, "train.svm", 1000, 1);
    let test = clicks(&folder, "test.svm", 200, 2);
    for more in [
        &["--set", "epochs=20"][..],
        &["--validate", &test],
        &["--set", "early_stopping=2", "--validate", &test],
    ] {
        assert_eq!(share(&train(&folder, &data, more)), "0", "{more:?}");
    }
    assert_eq!(share(&train(&folder, &data, &["--set", "validation_share=0.2"])), "0.2");
    let few = clicks(&folder, "few.svm", 150, 3);
    assert_eq!(share(&train(&folder, &few, &[])), "0", "too few to compare epochs by a tenth of them");
}

#[test]
fn one_column_of_another_scale_is_scaled_and_not_the_records() {
    let folder = Folder::new();
    let mut random = stream(7, Purpose::Test, 0, 0);
    let mut text = String::new();
    for _ in 0..1500 {
        let (user, item, price) = (random.below(20), random.below(20), 1.0 + 4999.0 * random.uniform());
        let label = ((user + item) % 2 == 0) != (random.uniform() < 0.05);
        text += &format!("{} {user}:1 {}:1 40:{price:.2}\n", u8::from(label), 20 + item);
    }
    let data = folder.write("prices.svm", text);
    let found = train(&folder, &data, &[]);
    assert_eq!(
        (&found["settings"]["standardize"], &found["settings"]["normalize"]),
        (&"true".into(), &"none".into())
    );
    let accuracy = |report: &serde_json::Value| {
        report["epochs"].as_array().unwrap().last().unwrap()["training"]["accuracy"].as_f64().unwrap()
    };
    assert!(accuracy(&found) > 0.85, "{}", accuracy(&found));
    // What is advised where the records were scaled instead.
    let scaled = train(&folder, &data, &["--set", "normalize=l2", "--set", "standardize=false"]);
    assert!(
        scaled["notices"].to_string().contains("standardize=true normalize=none"),
        "{}",
        scaled["notices"]
    );
    let followed = train(&folder, &data, &["--set", "standardize=true", "--set", "normalize=none"]);
    assert!(accuracy(&followed) > accuracy(&scaled) + 0.2);
}
