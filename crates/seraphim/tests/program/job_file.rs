//! Promise: a job file has the same keys as the command line, and flags override it.

use crate::common::{Folder, bytes_of, clicks, fail, succeed};

#[test]
fn a_job_file_is_the_command_line() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(500, 1));
    let (by_file, by_flags, mixed) = (folder.path("file"), folder.path("flags"), folder.path("mixed"));
    let job = folder.write(
        "job.toml",
        format!(
            "algorithm = 'lr'\ndata = ['{data}']\nmodel = '{by_file}'\ntasks = 2\nseed = 7\n[set]\nl2 = 0.5\n"
        ),
    );
    succeed(&["train", &job]);
    let flags = ["--tasks", "2", "--seed", "7", "--set", "l2=0.5"];
    succeed(&[&["train", "lr", "--data", &data, "--model", &by_flags][..], &flags].concat());
    assert!(bytes_of(&by_file) == bytes_of(&by_flags));
    succeed(&["train", &job, "--model", &mixed, "--set", "l2=50"]);
    let text = std::fs::read_to_string(format!("{mixed}/model.json")).unwrap();
    assert!(text.contains("\"l2\": \"50\""), "{text}");
}

#[test]
fn an_unknown_key_names_the_nearest_and_the_file() {
    let folder = Folder::new();
    let job = folder.write("job.toml", "algorithm = 'lr'\nconsistancy = 'bsp'\n");
    let error = fail(2, &["train", &job]);
    assert!(
        error.contains("consistancy") && error.contains("\"consistency\"") && error.contains("job.toml"),
        "{error}"
    );
    let job = folder.write("broken.toml", "algorithm = \n");
    let error = fail(2, &["train", &job]);
    assert!(error.contains("broken.toml") && error.contains("line 1"), "{error}");
    fail(5, &["train", &folder.path("absent.toml")]);
}
