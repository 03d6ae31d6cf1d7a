//! Promise: a command reports what it needs before it starts to work; `--json` prints one document on standard output
//! and nothing else.

use crate::common::{Folder, bytes_of, clicks, fail, seraphim, succeed};

/// Tolerance of the AUC: steps of 1e-9 do not change the order of scores with a larger distance.
const STILL: f64 = 1e-6;
const USAGE: i32 = 2;
const DATA: i32 = 3;
const MODEL: i32 = 4;
const IO: i32 = 5;

fn trained(folder: &Folder) -> (String, String) {
    let (data, model) = (folder.write("a.libsvm", clicks(300, 1)), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--model", &model]);
    (data, model)
}

#[test]
fn json_is_one_document_for_every_command() {
    let folder = Folder::new();
    let (data, model) = trained(&folder);
    let (other, scores, clicks) = (folder.path("other"), folder.path("scores.csv"), folder.path("clicks"));
    for arguments in [
        &["train", "lr", "--data", &data, "--validate", &data, "--model", &other][..],
        &["predict", "--model", &model, "--data", &data, "--output", &scores],
        &["evaluate", "--model", &model, "--data", &data],
        &["inspect", &model],
        &["algorithms"],
        &["algorithms", "softmax"],
        &[
            "generate",
            "ctr",
            "--rows",
            "100",
            "--test-rows",
            "10",
            "--dimensions",
            "500",
            "--output",
            &clicks,
        ],
    ] {
        let text = succeed(&[arguments, &["--json"]].concat());
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{arguments:?}: {text}");
    }
    let both = ["predict", "--model", &model, "--data", &data, "--output", "-", "--json"];
    assert!(fail(USAGE, &both).contains("both write to standard output"));
}

#[test]
fn early_stopping_needs_something_to_validate_on() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(300, 1));
    let model = folder.path("model");
    let train = ["train", "lr", "--data", &data, "--model", &model, "--set", "early_stopping=2"];
    let error = fail(USAGE, &train);
    assert!(error.contains("--validate") && error.contains("validation_share"), "{error}");
    let said = succeed(&[&train[..], &["--set", "validation_share=0.2"]].concat());
    assert!(said.contains("validation"), "{said}");
}

#[test]
fn training_goes_on_with_another_rule_from_the_weights_alone() {
    let folder = Folder::new();
    let (data, model) = (folder.write("a.libsvm", clicks(300, 1)), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--model", &model, "--set", "optimizer=ftrl"]);
    let on = |name: &str, set: &str| {
        let next = folder.path(name);
        succeed(&["train", "lr", "--data", &data, "--from", &model, "--model", &next, "--set", set])
    };
    for set in ["optimizer=adam", "optimizer=sgd", "learning_rate=0.01"] {
        let said = on(set, set);
        assert_eq!(said.contains("from its weights alone"), set != "optimizer=sgd", "{set}: {said}");
    }
    assert!(!on("same", "epochs=3").contains("weights alone"));
    // A learning rate of almost 0 leaves the weights almost unchanged, so this shows that they were loaded.
    let before = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
    on("slow", "learning_rate=0.000000001");
    let after = succeed(&["evaluate", "--model", &folder.path("slow"), "--data", &data, "--json"]);
    let auc = |json: &str| crate::common::number(json, "/metrics/auc");
    assert!((auc(&before) - auc(&after)).abs() < STILL, "{before} {after}");
    let svm = ["train", "svm", "--data", &data, "--from", &model, "--model", &folder.path("svm")];
    assert!(fail(MODEL, &svm).contains("loss"));
}

#[test]
fn a_place_that_cannot_take_a_model_is_found_before_the_work() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(100, 1));
    let empty = folder.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut here = crate::common::command(&["train", "lr", "--data", &data, "--model", "."]);
    let output = here.current_dir(&empty).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(IO), "{error}");
    assert!(!error.contains("training"), "it began: {error}");
    assert!(bytes_of(&empty).is_empty());
    succeed(&["train", "lr", "--data", &data, "--model", &empty]);
}

#[test]
fn a_report_is_left_by_no_failed_run() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", "1 1:1\n1 2:1\n");
    let report = folder.path("report.json");
    fail(DATA, &["train", "lr", "--data", &data, "--model", &folder.path("m"), "--report", &report]);
    assert!(!std::path::Path::new(&report).exists());
}

#[test]
fn prediction_without_labels() {
    let folder = Folder::new();
    let data = folder.write("a.csv", "x,city,label\n1,Rome,0\n2,\"New, York\",1\n3,Rome,1\n0,,0\n");
    let bare = folder.write("b.csv", "x,city\n1,Rome\n2,\"New, York\"\n3,Rome\n0,\n");
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &data, "--model", &model]);
    let predict = ["predict", "--model", &model, "--output", "-", "--data"];
    let error = fail(USAGE, &[&predict[..], &[&bare]].concat());
    assert!(error.contains("'label'") && error.contains("--no-label"), "{error}");
    let labelled = succeed(&[&predict[..], &[&data]].concat());
    let unlabelled = succeed(&[&predict[..], &[&bare, "--no-label"]].concat());
    let scores = labelled.lines().map(|line| line.rsplit(',').next().unwrap());
    assert!(scores.eq(unlabelled.lines()), "{labelled}\n{unlabelled}");
    assert!(labelled.starts_with("label,score\n") && unlabelled.starts_with("score\n"));
    let output = seraphim(&[&predict[..], &[&folder.write("c.csv", "x,city,label\nten,Rome,0\n")]].concat());
    assert_eq!(output.status.code(), Some(DATA));
    assert!(output.stdout.is_empty(), "no heading without scores");
}

#[test]
fn columns_that_training_did_not_have_are_named() {
    let folder = Folder::new();
    let data = folder.write("a.csv", "x,z,label\n1,0,0\n2,1,1\n3,1,1\n0,0,0\n");
    let wider = folder.write("b.csv", "x,extra,z,label\n1,7,0,0\n2,7,1,1\n");
    let model = folder.path("model");
    let error = fail(DATA, &["train", "lr", "--data", &data, "--validate", &wider, "--model", &model]);
    assert!(error.contains("'extra'") && error.contains("--skip-columns"), "{error}");
    succeed(&["train", "lr", "--data", &data, "--model", &model]);
    let evaluate = ["evaluate", "--model", &model, "--data", &wider];
    assert!(fail(DATA, &evaluate).contains("'extra'"));
    succeed(&[&evaluate[..], &["--skip-columns", "extra"]].concat());
    let short = folder.write("c.csv", "x,z,label\n1,0,0\n2,1\n3,1,1\n");
    let error = fail(DATA, &["train", "lr", "--data", &short, "--model", &folder.path("m")]);
    assert!(
        error.contains("c.csv:3:") && error.contains("3 fields") && error.contains("2 fields"),
        "{error}"
    );
}

#[test]
fn features_that_training_did_not_have_are_a_notice() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(300, 1));
    let wider = folder.write("b.libsvm", "1 1:1 900:1\n0 30:1 77777777777:1\n");
    let said =
        succeed(&["train", "lr", "--data", &data, "--validate", &wider, "--model", &folder.path("model")]);
    assert!(said.contains("validation: the features of 2 of 4 entries (50 %) are unknown"), "{said}");
    assert!(said.contains("'900' (1 of them)") && said.contains("the same numbers"), "{said}");
}

#[test]
fn a_model_without_one_of_its_files_is_a_bad_model() {
    let folder = Folder::new();
    let (data, model) = trained(&folder);
    std::fs::remove_file(format!("{model}/weights.safetensors")).unwrap();
    let error = fail(MODEL, &["evaluate", "--model", &model, "--data", &data]);
    assert!(error.contains("weights.safetensors") && error.contains("does not exist"), "{error}");
}

#[test]
fn a_model_may_be_moved() {
    let folder = Folder::new();
    let (data, model) = trained(&folder);
    let evaluate = |model: &str| {
        let all = succeed(&["evaluate", "--model", model, "--data", &data, "--json"]);
        crate::common::number(&all, "/metrics/log_loss").to_bits()
    };
    let before = evaluate(&model);
    let elsewhere = folder.path("elsewhere");
    std::fs::rename(&model, &elsewhere).unwrap();
    assert_eq!(evaluate(&elsewhere), before);
}
