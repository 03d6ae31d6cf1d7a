//! Promise: checkpoints may lie in an object store or in HDFS: a training whose command is killed continues from there to
//! the same bytes. `cargo xtask stores` starts the stores; without them only the refusal is tested.
#![cfg(unix)]

use crate::common::{Folder, clicks, fail};

#[test]
fn a_location_that_this_program_cannot_use_is_refused_before_the_first_step() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(100, 1));
    let words = ["train", "lr", "--data", &data, "--model", &folder.path("model")];
    let error = fail(5, &[&words[..], &["--checkpoints", "ftp://a/b"]].concat());
    assert!(error.contains("\"ftp\"") && error.contains("this program knows paths"), "{error}");
}

#[cfg(any(feature = "cloud", feature = "hdfs"))]
mod with_stores {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use crate::common::{Folder, bytes_of, clicks, command, seraphim, skip, succeed};

    /// The locations of stores that were started for this test.
    fn stores() -> Vec<String> {
        let all = std::env::var("SERAPHIM_STORES").unwrap_or_default();
        all.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_killed_training_continues_from_a_checkpoint_in_another_store() {
        let stores = stores();
        if stores.is_empty() {
            return skip::skip("no store of another system: `cargo xtask stores` starts them");
        }
        let folder = Folder::new();
        let data = folder.write("train.libsvm", clicks(3000, 1));
        let whole = folder.path("whole");
        let fixed = ["train", "lr", "--data", &data, "--tasks", "2", "--set", "epochs=4000", "--quiet"];
        succeed(&[&fixed[..], &["--model", &whole]].concat());
        for (i, store) in stores.iter().enumerate() {
            let place = format!("{store}/training-{}", std::process::id());
            for (name, more) in [("alone", &[][..]), ("spread", &["--servers", "2", "--workers", "2"])] {
                let (model, place) = (folder.path(&format!("{name}-{i}")), format!("{place}/{name}"));
                let checkpoints = ["--model", &model, "--checkpoints", &place, "--checkpoint-every", "100ms"];
                let words = [&fixed[..], &checkpoints, more].concat();
                let mut child =
                    command(&words).stderr(Stdio::inherit()).spawn().expect("the binary was built");
                let start = Instant::now();
                let list = || seraphim(&["checkpoints", "list", &place]);
                while !String::from_utf8_lossy(&list().stdout).contains("00000002 ") {
                    assert!(start.elapsed() < Duration::from_mins(1), "no checkpoint in {place}");
                    assert!(
                        child.try_wait().expect("it is a child").is_none(),
                        "it ended without two checkpoints"
                    );
                    std::thread::sleep(Duration::from_millis(20));
                }
                child.kill().expect("it lives");
                child.wait().expect("it is a child");
                succeed(&["checkpoints", "verify", &place]);
                succeed(&[&words[..], &["--resume", "latest"]].concat());
                assert!(bytes_of(&model) == bytes_of(&whole), "other bytes after {place}");
                succeed(&["checkpoints", "prune", &place, "--keep", "1"]);
                assert_eq!(
                    succeed(&["checkpoints", "list", &place]).lines().count(),
                    2,
                    "a title and a checkpoint"
                );
            }
        }
    }
}
