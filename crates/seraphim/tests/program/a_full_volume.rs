//! Promise: when a volume is full, the command says which path and what to do, and leaves nothing unfinished under the name of an output.
//! Each command has a small volume of its own, in a namespace of mounts that ends with it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::process::{Command, Output};

use crate::common::{Folder, skip, succeed};

/// Mounts a volume of 64 KiB at `$1`, puts a file of `$2` bytes into it, runs `$3` and later words, and lists the files in the volume.
const ON_VOLUME: &str = "volume=$1; filler=$2; shift 2
mount -t tmpfs -o size=64k tmpfs \"$volume\" || exit 125
[ \"$filler\" = 0 ] || head -c \"$filler\" /dev/zero > \"$volume/filler\" 2>/dev/null
\"$@\"; code=$?
find \"$volume\" -type f ! -name filler
exit $code";
/// More than the volume holds.
const ALL: &str = "100000";

/// Runs words with the folder `volume` as a full volume, or as one that `filler` leaves room in.
fn on_volume(volume: &str, filler: &str, words: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", ON_VOLUME, "sh", volume, filler]);
    command.args(words).output().expect("Linux has unshare")
}

/// A folder with the empty folder `volume`, data, and a model that is larger than a volume; nothing, marked as skipped, if this machine
/// allows no such volume.
fn prepare() -> Option<(Folder, String, String, String)> {
    let folder = Folder::new();
    let volume = folder.path("volume");
    std::fs::create_dir(&volume).unwrap();
    if !on_volume(&volume, "0", &["true"]).status.success() {
        skip::skip("this machine allows no namespace of mounts with a volume of its own");
        return None;
    }
    let mut text = String::new();
    for i in 0..4000 {
        write!(text, "{}", i % 2).unwrap();
        (1..=8).for_each(|j| write!(text, " {}:1", i * 8 + j).unwrap());
        text.push('\n');
    }
    let (data, model) = (folder.write("wide.libsvm", text), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--model", &model, "--quiet"]);
    Some((folder, volume, data, model))
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_seraphim");

/// Runs the program, which must fail and say `name`; asserts that no file is left in the volume.
fn assert_tells(volume: &str, filler: &str, words: &[&str], name: &str) {
    let output = on_volume(volume, filler, &[&[PROGRAM], words].concat());
    let (error, left) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(5), "{words:?}: {error}");
    let line = error.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    for part in [name, "No space left on device", "free some space"] {
        assert!(line.contains(part), "{words:?}: no {part:?} in {error}");
    }
    assert!(!left.contains(volume), "{words:?} leaves {left}");
}

#[test]
#[ignore = "it mounts a volume, which not every machine allows: `cargo xtask stores` runs it"]
fn a_model_or_scores_that_do_not_fit_leave_nothing() {
    let Some((folder, volume, data, model)) = prepare() else { return };
    let at = |name: &str| format!("{volume}/{name}");
    let (address, spread) = (format!("file://{volume}"), ["--servers", "1", "--workers", "2"]);
    for place in [&volume, &address] {
        let name = |name: &str| format!("{place}/{name}");
        let train = ["train", "lr", "--data", &data, "--quiet", "--model", &name("model")];
        let predict = ["predict", "--model", &model, "--data", &data, "--quiet", "--output"];
        for deployment in [&[][..], &spread] {
            assert_tells(&volume, "0", &[&train[..], deployment].concat(), place);
            for output in ["scores.csv", "scores/"] {
                assert_tells(&volume, "0", &[&predict[..], &[&name(output)], deployment].concat(), place);
            }
        }
    }
    let export = ["export", &model, "--output", &at("table.csv")];
    assert_tells(&volume, "0", &export, &at("table.csv"));
    let temporary = format!("TMPDIR={volume}");
    let stored = format!("file://{}", folder.path("scores.csv"));
    let words = ["predict", "--model", &model, "--data", &data, "--quiet", "--output", &stored];
    let output = on_volume(&volume, "0", &[&["env", &temporary, PROGRAM], &words[..]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains(&at(".scores.csv")) && error.contains("free some space"), "{error}");
    assert!(!std::path::Path::new(&folder.path("scores.csv")).exists());
}

#[test]
#[ignore = "it mounts a volume, which not every machine allows: `cargo xtask stores` runs it"]
fn a_report_that_does_not_fit_leaves_nothing() {
    let Some((folder, volume, data, _)) = prepare() else { return };
    let report = format!("{volume}/report.json");
    let words =
        ["train", "lr", "--data", &data, "--quiet", "--model", &folder.path("other"), "--report", &report];
    assert_tells(&volume, ALL, &words, &report);
}

#[test]
#[ignore = "it mounts a volume, which not every machine allows: `cargo xtask stores` runs it"]
fn a_training_goes_on_without_the_checkpoints_that_do_not_fit() {
    let Some((folder, volume, data, _)) = prepare() else { return };
    let (model, checkpoints) = (folder.path("other"), format!("{volume}/checkpoints"));
    let fixed = ["train", "lr", "--data", &data, "--set", "epochs=100", "--model", &model];
    let words = [&[PROGRAM], &fixed[..], &["--checkpoints", &checkpoints, "--checkpoint-every", "1ms"]];
    let output = on_volume(&volume, "0", &words.concat());
    let (error, left) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{error}");
    for part in ["training goes on without it", &checkpoints, "No space left on device", "free some space"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    assert!(!left.contains(&volume), "{left}");
}
