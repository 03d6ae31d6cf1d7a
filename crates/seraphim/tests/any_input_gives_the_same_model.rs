//! Promise: plain or compressed, one file or many, a folder, a pattern or standard input: the same records give the same
//! model.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::Write as _;
use std::process::Stdio;

use common::{Folder, clicks, command, succeed};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn weights(model: &str) -> Vec<u8> {
    std::fs::read(format!("{model}/weights.safetensors")).unwrap()
}

/// The weights of a model that is trained on `data` by one task: then only the records and their order count.
fn trained(folder: &Folder, data: &[&str]) -> Vec<u8> {
    let model = folder.path("model");
    let inputs =
        [&["train", "lr", "--model", &model, "--overwrite", "--tasks", "1", "--data"], data].concat();
    succeed(&inputs);
    weights(&model)
}

#[test]
fn files_folders_patterns_and_standard_input() {
    let folder = Folder::new();
    let (first, second) = (clicks(400, 1), clicks(300, 2));
    let whole = folder.write("whole.libsvm", format!("{first}{second}"));
    let expected = trained(&folder, &[&whole]);
    let packed = folder.write("whole.libsvm.gz", gzip(&format!("{first}{second}")));
    assert!(trained(&folder, &[&packed]) == expected, "gzip");
    std::fs::create_dir(folder.path("parts")).unwrap();
    let a = folder.write("parts/a.libsvm", &first);
    let b = folder.write("parts/b.libsvm.gz", gzip(&second));
    folder.write("parts/_SUCCESS", "");
    assert!(trained(&folder, &[&a, &b]) == expected, "two files");
    assert!(trained(&folder, &[&a, "--data", &b]) == expected, "two flags");
    assert!(trained(&folder, &[&folder.path("parts")]) == expected, "a folder");
    assert!(trained(&folder, &[&folder.path("parts/?.libsvm*")]) == expected, "a pattern");
    let model = folder.path("piped");
    let arguments = ["train", "lr", "--data", "-", "--model", &model, "--tasks", "1", "--quiet"];
    let mut child = command(&arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{first}{second}").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(weights(&model) == expected, "standard input");
}

#[test]
fn values_left_out_are_one() {
    let folder = Folder::new();
    let text = clicks(400, 3);
    let valued = folder.write("valued.libsvm", &text);
    let dummy = folder.write("dummy.libsvm", text.replace(":1 ", " ").replace(":1\n", "\n"));
    assert!(trained(&folder, &[&valued]) == trained(&folder, &[&dummy]));
}
