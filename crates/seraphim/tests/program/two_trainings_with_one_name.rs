//! Promise: of two trainings with the same `--model` the second is refused when it starts, and a training whose name was taken
//! while it ran saves its model beside it.
#![cfg(unix)]

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::common::cluster::{Cluster, Process};
use crate::common::{Folder, clicks, command, fail, seraphim, succeed};

/// A training that does not end by itself.
const LONG: [&str; 4] = ["--set", "epochs=1000000", "--checkpoint-every", "off"];

fn wait_for_claim(folder: &Folder) {
    let claim = folder.path(".model.claim");
    crate::common::disturbed::wait_until("no claim", || {
        std::fs::read_to_string(&claim).is_ok_and(|text| text.contains("process"))
    });
}

#[test]
fn the_second_one_is_refused_when_it_starts_and_may_begin_when_the_first_has_ended() {
    let folder = Folder::new();
    let text = clicks(300, 1);
    let data = folder.write("train.libsvm", &text);
    let model = folder.path("model");
    let fixed = ["lr", "--data", &data, "--model", &model, "--quiet"];
    let first = Process::start(&[&["train"][..], &fixed, &LONG].concat());
    wait_for_claim(&folder);
    let is_refused = |error: &str| {
        assert!(error.contains("another training that runs now (process"), "{error}");
    };
    is_refused(&fail(2, &[&["train"][..], &fixed].concat()));
    is_refused(&fail(2, &[&["train"][..], &fixed, &["--overwrite", "--servers", "1"]].concat()));
    let mut from_input = command(&["train", "lr", "--data", "-", "--format", "libsvm", "--model", &model]);
    let from_input = from_input.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut from_input = from_input.expect("the binary was built for this test");
    // It may have ended before it reads.
    let _ = from_input.stdin.take().expect("it is piped").write_all(text.as_bytes());
    let out = from_input.wait_with_output().expect("it is a child");
    assert_eq!(out.status.code(), Some(2));
    is_refused(&String::from_utf8_lossy(&out.stderr));
    let cluster = Cluster::start(1, 1, 0);
    let (code, _, error) = cluster.submit(&fixed).end();
    assert_eq!(code, Some(2), "{error}");
    is_refused(&error);
    first.signal("-INT");
    let (_, _, error) = first.end();
    assert!(Path::new(&model).join("model.json").exists(), "{error}");
    succeed(&[&["train"][..], &fixed, &["--overwrite"]].concat());
    let (code, _, error) = cluster.submit(&[&fixed[..], &["--overwrite"]].concat()).end();
    assert_eq!(code, Some(0), "{error}");
    assert!(!Path::new(&folder.path(".model.claim")).exists(), "nothing is left");
    let refused = cluster.submit(&fixed).end();
    assert!(refused.0 == Some(2) && refused.2.contains("already exists"), "{}", refused.2);
    assert!(!refused.2.contains("is queued"), "at once: {}", refused.2);
}

#[test]
fn a_training_whose_name_was_taken_saves_beside_it_and_says_where() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(300, 1));
    let (model, beside) = (folder.path("model"), folder.path("model-2"));
    let fixed = ["train", "lr", "--data", &data, "--model", &model];
    for more in [&[][..], &["--servers", "1", "--workers", "1"]] {
        let mut first = Process::start(&[&fixed[..], more, &LONG].concat());
        first.wait_for("epoch 1/");
        std::fs::create_dir(&model).expect("the name is free");
        std::fs::write(Path::new(&model).join("mine"), "x").expect("the folder is ours");
        first.signal("-INT");
        let (_, out, error) = first.end();
        assert!(out.contains("saved in") && out.contains("model-2"), "{out} {error}");
        assert!((out + &error).contains("is there now: this model is saved in"), "{error}");
        assert!(Path::new(&beside).join("model.json").exists());
        std::fs::remove_dir_all(&beside).expect("it is ours");
        std::fs::remove_dir_all(&model).expect("it is ours");
    }
    let done = seraphim(&[&fixed[..], &["--quiet"]].concat());
    assert_eq!(done.status.code(), Some(0));
}
