//! Promise: `seraphim reproduce MODEL` trains a model again from what its manifest says, wherever it is told to, and finds
//! the same bytes; if not, it says what differs.

use std::path::Path;

use crate::common::{Folder, clicks, command, fail, seraphim, succeed};

const ON_SERVERS: [&str; 4] = ["--servers", "2", "--workers", "2"];

fn train(algorithm: &str, data: &str, model: &str, more: &[&str]) {
    let fixed = ["train", algorithm, "--data", data, "--model", model, "--quiet"];
    succeed(&[&fixed[..], more].concat());
}

#[test]
fn models_of_every_family_are_reproduced_in_process_and_on_servers() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(500, 1));
    let rows: Vec<String> = (0..300).map(|i| format!("{},{},{}", i % 7, (i * i) % 11, i % 2)).collect();
    let table = folder.write("table.csv", format!("a,b,good\n{}\n", rows.join("\n")));
    for (name, algorithm, data, more) in [
        ("lr", "lr", &data, &["--set", "epochs=2", "--seed", "7", "--tasks", "3"][..]),
        ("table", "lr", &table, &["--label", "good", "--interactions", "a:b", "--keep-optimizer", "false"]),
        ("lbfgs", "lr", &data, &["--set", "optimizer=lbfgs", "--set", "l2=1", "--validate", &data]),
        ("fm", "fm", &data, &["--set", "k=3", "--set", "k=2", "--set", "epochs=1", "--tasks", "2"]),
        ("gbdt", "gbdt", &table, &["--set", "iterations=4", "--label", "good", "--set", "min_records=1"]),
        ("kmeans", "kmeans", &data, &["--set", "k=3", "--set", "max_iterations=4"]),
    ] {
        let model = folder.path(name);
        train(algorithm, data, &model, more);
        for more in [&[][..], &ON_SERVERS] {
            let said = succeed(&[&["reproduce", &model, "--quiet"], more].concat());
            assert!(said.contains(&format!("{model} is reproduced")), "{name}: {said}");
        }
        let spread = folder.path(&format!("{name}-spread"));
        train(algorithm, data, &spread, &[more, &ON_SERVERS].concat());
        assert!(succeed(&["reproduce", &spread, "--quiet"]).contains("is reproduced"), "{name}");
    }
    let next = folder.path("next");
    train("lr", &data, &next, &["--from", &folder.path("lr"), "--set", "epochs=1"]);
    assert!(succeed(&["reproduce", &next, "--quiet"]).contains("is reproduced"));
}

#[test]
fn the_model_that_was_trained_again_is_kept_only_if_it_is_wanted() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(200, 1));
    let (model, again) = (folder.path("model"), folder.path("again"));
    train("lr", &data, &model, &[]);
    let temporary = folder.path("temporary");
    std::fs::create_dir(&temporary).expect("the folder is ours");
    let done = command(&["reproduce", &model, "--quiet"]).env("TMPDIR", &temporary).status();
    assert!(done.expect("the binary was built for this test").success());
    assert!(crate::common::bytes_of(&temporary).is_empty(), "nothing is left of the temporary model");
    let json = succeed(&["reproduce", &model, "--quiet", "--json", "--output", &again]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["is_reproduced"], true, "{json}");
    assert!(crate::common::bytes_of(&model) == crate::common::bytes_of(&again));
    fail(2, &["reproduce", &model, "--quiet", "--output", &again]);
    // The data lie elsewhere now.
    let moved = folder.path("moved.libsvm");
    std::fs::rename(&data, &moved).expect("the folder is ours");
    assert!(succeed(&["reproduce", &model, "--quiet", "--data", &moved]).contains("is reproduced"));
}

#[test]
fn what_differs_is_named() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(200, 1));
    let model = folder.path("model");
    train("lr", &data, &model, &[]);
    folder.write("train.libsvm", clicks(200, 2));
    let out = seraphim(&["reproduce", &model, "--quiet"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("is not reproduced") && said.contains("the data differ: train.libsvm"), "{said}");
    assert!(!said.contains("weights.safetensors"), "nothing was trained: {said}");
    let more = folder.write("more.libsvm", clicks(100, 3));
    let out = seraphim(&["reproduce", &model, "--quiet", "--data", &data, "--data", &more, "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&out.stdout).expect("it is JSON");
    assert_eq!((out.status.code(), &said["is_reproduced"]), (Some(4), &serde_json::json!(false)));
    assert!(said["differences"].to_string().contains("1 file then, 2 now"), "{said}");
}

#[test]
fn another_version_or_value_in_the_manifest_is_told() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(200, 1));
    let model = folder.path("model");
    train("lr", &data, &model, &[]);
    let path = Path::new(&model).join("model.json");
    let whole = std::fs::read_to_string(&path).expect("it is a model");
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut manifest: serde_json::Value = serde_json::from_str(&whole).expect("it is JSON");
        manifest.as_object_mut().expect("it is an object").remove("crc32c");
        change(&mut manifest);
        std::fs::write(&path, crate::common::sealed(&manifest)).expect("it is ours");
        let out = seraphim(&["reproduce", &model, "--quiet"]);
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let (code, said) = changed(&|manifest| manifest["program_version"] = "0.0.9".into());
    assert!(code == Some(0) && said.contains("version 0.0.9 trained it"), "{said}");
    assert!(said.contains("weights.safetensors") && said.contains("apart from"), "{said}");
    let (code, said) = changed(&|manifest| manifest["note"] = "by hand".into());
    assert!(code == Some(4) && said.contains("note was \"by hand\", and is absent"), "{said}");
    let (code, said) = changed(&|manifest| manifest["trained"]["records"] = 7.into());
    assert!(code == Some(4) && said.contains("trained.records was 7, and is 200"), "{said}");
}

#[test]
fn a_digit_between_the_samples_of_a_large_file_is_named_as_a_reason() {
    let folder = Folder::new();
    // Samples of 64 KiB lie evenly over a file above 4 MiB.
    let text = clicks(150_000, 1);
    assert!(text.len() > 5 << 20, "{} bytes", text.len());
    let data = folder.write("train.libsvm", &text);
    let model = folder.path("model");
    train("lr", &data, &model, &["--set", "epochs=1"]);
    let mut bytes = text.into_bytes();
    let step = (bytes.len() - (64 << 10)) / 63;
    let at = (step * 31 + (65 << 10)..step * 32).find(|at| bytes[at - 1] == b' ').expect("a key begins");
    bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
    std::fs::write(&data, bytes).expect("it is ours");
    let out = seraphim(&["reproduce", &model, "--quiet"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("only samples are compared") && said.contains("(train.libsvm)"), "{said}");
    assert!(said.contains("weights.safetensors has other bytes, the first of them in"), "{said}");
}

#[test]
fn a_model_that_does_not_say_enough_is_refused() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(200, 1));
    let (model, applied) = (folder.path("model"), folder.path("applied"));
    train("lr", &data, &model, &[]);
    succeed(&["apply", &model, "--function", "clip", "--argument", "[-0.01, 0.01]", "--output", &applied]);
    let error = fail(2, &["reproduce", &applied]);
    assert!(error.contains("functions were applied to it"), "{error}");
    let text = std::fs::read_to_string(Path::new(&model).join("model.json")).expect("it is a model");
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let path = Path::new(&model).join("model.json");
    let write = |manifest: &serde_json::Value| {
        std::fs::write(&path, crate::common::sealed(manifest)).expect("it is ours");
    };
    manifest["trained"]["interrupted"] = true.into();
    write(&manifest);
    let error = fail(2, &["reproduce", &model]);
    assert!(error.contains("its training was interrupted"), "{error}");
    manifest["trained"]["interrupted"] = false.into();
    manifest["trained"].as_object_mut().expect("it is an object").remove("files");
    write(&manifest);
    let error = fail(2, &["reproduce", &model]);
    assert!(error.contains("does not say which files it was trained on"), "{error}");
}
