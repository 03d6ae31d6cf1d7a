//! Promise: no model and no checkpoint has a value that is infinite or NaN. A training that comes to one ends with an error
//! that names the step, the feature and the setting to change.

#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "helpers of tests")]

use std::path::Path;

use crate::common::{Folder, fail, seraphim, succeed};

/// Records with a value whose square is beyond single precision, in the column `huge`.
fn table(folder: &Folder) -> String {
    let mut text = "other,huge,y\n".to_owned();
    for i in 0..20 {
        // Its records have one label: gradients of two would cancel each other out.
        let huge = if i % 4 == 0 { "1.5e30" } else { "1" };
        text += &format!("{}.5,{huge},{}\n", i % 3, i % 2);
    }
    folder.write("huge.csv", text)
}

#[test]
fn a_training_that_diverges_in_its_last_step_saves_nothing() {
    let folder = Folder::new();
    let data = table(&folder);
    let model = folder.path("model");
    let plain = ["--set", "standardize=false"];
    let cases: [(&str, &[&str], &str); 5] = [
        ("lr", &["--set", "optimizer=ftrl"], "learning_rate (now 0.1)"),
        ("svm", &["--set", "optimizer=adagrad"], "learning_rate (now 0.1)"),
        ("softmax", &["--set", "optimizer=ftrl"], "learning_rate (now 0.1)"),
        ("svm", &["--set", "optimizer=sgd"], "learning_rate (now 0.1)"),
        ("fm", &["--set", "normalize=none"], "learning_rate (now"),
    ];
    for (algorithm, settings, advice) in cases {
        for epochs in ["1", "3"] {
            for servers in [&[][..], &["--servers", "1", "--workers", "1"]] {
                let epochs = format!("epochs={epochs}");
                let fixed =
                    ["train", algorithm, "--data", &data, "--label", "y", "--model", &model, "--quiet"];
                let arguments =
                    [&fixed[..], &plain, settings, &["--tasks", "1", "--set", &epochs], servers].concat();
                let output = seraphim(&arguments);
                if output.status.success() {
                    // It may also have found finite weights.
                    let text = succeed(&["export", &model]);
                    assert!(!text.contains("NaN") && !text.contains("inf"), "{arguments:?}: {text}");
                    assert!(algorithm == "svm", "{arguments:?} has not diverged");
                    std::fs::remove_dir_all(&model).unwrap();
                    continue;
                }
                let error = fail(3, &arguments);
                assert!(
                    error.contains("diverged")
                        && error.contains("'huge'")
                        && error.contains("step ")
                        && error.contains(advice),
                    "{arguments:?}: {error}"
                );
                assert!(!Path::new(&model).exists(), "{arguments:?}");
            }
        }
    }
}

#[test]
fn values_of_any_size_are_learned_where_columns_are_scaled() {
    let folder = Folder::new();
    let data = table(&folder);
    let mut vw = String::new();
    for i in 0..20 {
        let huge = if i % 5 == 0 { " huge:1.8e19" } else { "" };
        vw += &format!("{} | other:{}.5{huge}\n", i % 2, i % 3);
    }
    let vw = folder.write("huge.vw", vw);
    let model = folder.path("model");
    for algorithm in ["lr", "svm", "softmax", "fm"] {
        for (data, label) in [(&data, &["--label", "y"][..]), (&vw, &["--set", "standardize=true"])] {
            let fixed = ["train", algorithm, "--data", data, "--model", &model, "--quiet", "--overwrite"];
            succeed(&[&fixed[..], label].concat());
            let text = succeed(&["export", &model]);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{algorithm} {data}: {text}");
        }
    }
}

#[test]
fn a_weight_of_a_class_that_is_too_large_is_named() {
    let folder = Folder::new();
    let data = folder.write("two.svm", "1 1:1\n0 2:1\n1 1:1 3:1\n0 2:1 3:1\n");
    let model = folder.path("model");
    for (algorithm, weight, setting) in [
        ("lr", "1e39", "l2=1"),
        ("svm", "1e20", "loss=hinge"),
        ("svm", "1e39", "loss=hinge"),
        ("svm", "1e39", "loss=squared_hinge"),
    ] {
        let weights = format!("class_weights=0:{weight},1:1");
        let fixed = ["train", algorithm, "--data", &data, "--model", &model, "--quiet"];
        let error = fail(3, &[&fixed[..], &["--set", &weights, "--set", setting]].concat());
        assert!(error.contains("class_weights"), "{algorithm} {weight}: {error}");
        assert!(!Path::new(&model).exists());
    }
}

#[test]
fn a_checkpoint_of_a_training_that_has_diverged_is_not_written() {
    let folder = Folder::new();
    let data = table(&folder);
    let (model, checkpoints) = (folder.path("model"), folder.path("checkpoints"));
    let fixed = ["train", "lr", "--data", &data, "--label", "y", "--model", &model, "--quiet"];
    let settings = ["--set", "standardize=false", "--set", "optimizer=ftrl", "--set", "epochs=9"];
    let every = ["--checkpoints", &checkpoints, "--checkpoint-every", "1ticks"];
    fail(3, &[&fixed[..], &settings, &every].concat());
    let found = std::fs::read_dir(&checkpoints).map_or(0, |entries| {
        entries
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "json"))
            .count()
    });
    assert_eq!(found, 0, "a checkpoint of NaN");
}
