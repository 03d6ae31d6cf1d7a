//! Promise: when HDFS refuses or is away, the command says in one line what it could not do, where, and what to do. `cargo xtask stores`
//! starts HDFS, and runs the tests that need it.
#![cfg(feature = "hdfs")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{Folder, clicks, command, succeed};

/// A location in the HDFS that was started for this test.
fn hdfs(name: &str) -> String {
    let place = std::env::var("SERAPHIM_HDFS").expect("`cargo xtask stores` runs this test");
    format!("{place}/{name}-{}", std::process::id())
}

/// Runs the program as a user of HDFS. It must fail, and the line of its error must have these texts.
fn assert_tells(user: &str, words: &[&str], texts: &[&str]) {
    let output = command(words).env("HADOOP_USER_NAME", user).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{words:?}: {error}");
    let at = error.find("error: ").unwrap_or_else(|| panic!("no error in: {error}"));
    assert_eq!(error[at..].trim_end().lines().count(), 1, "{error}");
    for text in texts {
        assert!(error[at..].contains(text), "{words:?}: no {text:?} in {error}");
    }
}

#[test]
#[ignore = "`cargo xtask stores` starts HDFS and runs this test"]
fn what_another_user_may_not_read_or_write_is_refused_with_the_users_name() {
    let (folder, location) = (Folder::new(), hdfs("rights"));
    let (data, local) = (folder.write("a.libsvm", clicks(50, 1)), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--quiet", "--model", &local]);
    let at = |name: &str| format!("{location}/{name}");
    store::open(&location).unwrap().write("seen-by-all", b"1").unwrap();
    store::create_private_folder(&at("private")).unwrap();
    store::open(&at("private")).unwrap().write("a.libsvm", clicks(50, 1).as_bytes()).unwrap();
    let (model, hidden, scores) = (at("model"), at("private/a.libsvm"), at("scores.csv"));
    let advice = ["user=nobody", "let the owner of the folder allow it", "HADOOP_USER_NAME"];
    for (words, texts) in [
        (["train", "lr", "--data", &data, "--model", &model], ["access=WRITE", model.as_str()]),
        (
            ["train", "lr", "--data", &hidden, "--model", &folder.path("m")],
            ["access=EXECUTE", &at("private")],
        ),
        (
            ["predict", "--model", &local, "--data", &data, &format!("--output={scores}")],
            ["access=WRITE", &location],
        ),
    ] {
        assert_tells("nobody", &words, &[&advice[..], &texts].concat());
    }
    store::open(&location).unwrap().remove("").unwrap();
}

#[test]
#[ignore = "`cargo xtask stores` starts HDFS, puts it into safe mode and runs this test"]
fn in_safe_mode_nothing_is_written_and_the_way_out_is_told() {
    let folder = Folder::new();
    let (data, model) = (folder.write("a.libsvm", clicks(50, 1)), hdfs("model"));
    let texts = [&model, "safe mode", "`hdfs dfsadmin -safemode leave`"];
    assert_tells("nobody", &["train", "lr", "--data", &data, "--model", &model], &texts);
}

#[test]
fn a_name_node_that_is_away_is_named() {
    let folder = Folder::new();
    let (data, local) = (folder.write("a.libsvm", clicks(50, 1)), folder.path("model"));
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let at = format!("hdfs://{address}/clicks");
    let texts = [at.as_str(), "Connection refused", "see whether it runs there"];
    std::thread::scope(|scope| {
        scope.spawn(|| assert_tells("nobody", &["train", "lr", "--data", &data, "--model", &at], &texts));
        scope.spawn(|| assert_tells("nobody", &["train", "lr", "--data", &at, "--model", &local], &texts));
    });
}
