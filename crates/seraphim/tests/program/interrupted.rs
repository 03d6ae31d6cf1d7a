//! Promise: Ctrl-C stops at the next step, saves the model so far and prints its path; the exit code is 130.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::{Folder, clicks, command, succeed};

#[test]
fn an_interrupted_training_saves_its_model() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    // So many epochs that only the signal can end the run.
    let arguments =
        ["train", "lr", "--data", &data, "--model", &model, "--tasks", "2", "--set", "epochs=10000"];
    let mut child = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The report of a later epoch proves that the run has made steps.
    let is_later = |line: String| line.starts_with("epoch ") && !line.starts_with("epoch 1/");
    let seen = lines.by_ref().map_while(Result::ok).any(is_later);
    assert!(seen, "training ended before it was interrupted");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // The test reads on, so that the child never waits for a full pipe.
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted") && said.contains(&model), "{said}");
    succeed(&["evaluate", "--model", &model, "--data", &data]);
    assert!(succeed(&["inspect", &model]).contains("interrupted"));
}
