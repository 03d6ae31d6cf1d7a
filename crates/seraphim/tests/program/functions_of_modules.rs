//! Promise: `--functions FILE.wasm` adds functions in this process and on servers, with the same bytes as the built-in
//! ones. A file that is no module is an error before anything starts.
#![cfg(feature = "wasm")]

use crate::common::{Folder, bytes_of, clicks, fail, succeed};

const USAGE: i32 = 2;

/// Trains a model with three rows of weights and returns its path.
fn trained(folder: &Folder) -> String {
    let lines: Vec<String> = (0..300).map(|i| format!("{} {}:1 {}:0.5", i % 3, i % 7, 8 + i % 5)).collect();
    let (data, model) = (folder.write("three.libsvm", lines.join("\n")), folder.path("model"));
    succeed(&["train", "softmax", "--data", &data, "--model", &model, "--quiet"]);
    model
}

fn axpy(folder: &Folder) -> String {
    folder
        .write("axpy.wasm", wat::parse_str(include_str!("../../../../examples/axpy.wat")).expect("good text"))
}

/// Returns the weights that a push function with two rows makes.
fn weights(folder: &Folder, model: &str, name: &str, more: &[&str]) -> Vec<u8> {
    let output = folder.path(name);
    let rows = ["apply", model, "--from", "0,1", "--into", "2", "--output", &output];
    succeed(&[&rows[..], more].concat());
    let files = bytes_of(&output).into_iter();
    let tensors = files.filter(|(path, _)| path.extension().is_some_and(|end| end == "safetensors"));
    let bytes: Vec<u8> = tensors.flat_map(|(_, bytes)| bytes).collect();
    assert!(!bytes.is_empty());
    bytes
}

#[test]
fn a_module_makes_the_bytes_of_the_built_in_here_and_on_servers() {
    let folder = Folder::new();
    let (model, file) = (trained(&folder), axpy(&folder));
    let own = weights(&folder, &model, "own", &["--function", "axpy", "--argument", "-0.3"]);
    let none = weights(&folder, &model, "none", &["--function", "axpy", "--argument", "0"]);
    assert_ne!(own, none, "the function does something");
    let call = ["--function", "wat_axpy", "--argument", "[-0.3]", "--functions", &file];
    for servers in ["0", "1", "2"] {
        let more = [&call[..], &["--servers", servers]].concat();
        assert_eq!(weights(&folder, &model, servers, &more), own, "{servers} servers");
    }
}

#[test]
fn functions_of_modules_are_listed() {
    let folder = Folder::new();
    let text = succeed(&["functions", "--functions", &axpy(&folder)]);
    assert!(text.lines().any(|line| line.split_whitespace().eq(["wat_axpy", "push", "2", "1"])), "{text}");
    assert!(text.contains("norm_2"), "the built-ins too: {text}");
}

#[test]
fn modules_travel_with_training_and_change_nothing_in_it() {
    let folder = Folder::new();
    let (data, file) = (folder.write("a.libsvm", clicks(300, 1)), axpy(&folder));
    let job =
        format!("algorithm = \"lr\"\ndata = [{data:?}]\ntasks = 2\nquiet = true\nfunctions = [{file:?}]\n");
    let job = folder.write("job.toml", job);
    let train = |name: &str, more: &[&str]| {
        let model = folder.path(name);
        succeed(&[&["train", "--data", &data, "--tasks", "2", "--model", &model, "--quiet"], more].concat());
        bytes_of(&model)
    };
    let plain = train("plain", &["lr"]);
    for (name, more) in [
        ("here", &["lr", "--functions", &file][..]),
        ("of-a-file", &[&job]),
        ("there", &[&job, "--servers", "2", "--workers", "2"]),
    ] {
        assert_eq!(train(name, more), plain, "{name}");
    }
}

#[test]
fn a_job_does_not_start_with_a_file_that_is_no_module() {
    let folder = Folder::new();
    let (bad, model) = (folder.write("bad.wasm", "no module"), folder.path("model"));
    // The data and the master are missing too, but those errors would come later.
    let job = ["lr", "--data", "nowhere.csv", "--model", &model, "--functions", &bad];
    for start in [&["train"][..], &["train", "--servers", "2"], &["submit", "--master", "127.0.0.1:1"]] {
        let error = fail(USAGE, &[start, &job].concat());
        assert!(error.contains("bad.wasm: no valid WebAssembly"), "{start:?}: {error}");
    }
    // Adds data that no function uses.
    let text = include_str!("../../../../examples/axpy.wat").trim_end().strip_suffix(')').expect("a module");
    let large = wat::parse_str(format!("{text} (data \"{}\"))", "x".repeat(3 << 20))).expect("good text");
    let large = folder.write("large.wasm", large);
    let error = fail(USAGE, &[&["train"][..], &job[..6], &[&large]].concat());
    assert!(error.contains("the limit of a job is 2621440"), "{error}");
    assert!(succeed(&["functions", "--functions", &large]).contains("wat_axpy"), "but a command takes it");
}

#[test]
fn a_file_that_is_no_module_is_named_before_anything_starts() {
    let folder = Folder::new();
    let (good, bad) = (axpy(&folder), folder.write("bad.wasm", "no module"));
    // The model is missing too, but that error would come later.
    let cases: [(&[&str], &str); 3] = [
        (&[&bad], "bad.wasm: no valid WebAssembly"),
        (&["nowhere.wasm"], "nowhere.wasm: the file cannot be read"),
        (&[&good, &good], "registered already"),
    ];
    for (files, expected) in cases {
        let flags: Vec<&str> = files.iter().flat_map(|file| ["--functions", file]).collect();
        for start in [&["apply", "no-model", "--function", "sum", "--servers", "2"][..], &["functions"]] {
            let error = fail(USAGE, &[start, &flags].concat());
            assert!(error.contains(expected), "{start:?}: {error}");
        }
    }
}
