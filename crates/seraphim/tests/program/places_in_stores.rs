//! Promise: where a path is taken, an address of a store may stand, with the same result. `file://` stands for all stores here;
//! `cargo xtask stores` gives the same tests S3 and HDFS.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{Folder, bytes_of, clicks, fail, gzip, number, succeed};

/// Locations for a test, with a local folder that ends with it.
fn locations(folder: &Folder) -> Vec<String> {
    let more = std::env::var("SERAPHIM_STORES").unwrap_or_default();
    let own = |store: &str| format!("{store}/places-{}", std::process::id());
    std::iter::once(format!("file://{}", folder.path("store")))
        .chain(more.split_whitespace().map(own))
        .collect()
}

fn write(location: &str, path: &str, bytes: &[u8]) {
    store::open(location).unwrap().write(path, bytes).unwrap();
}

fn read(address: &str) -> Vec<u8> {
    let (store, name) = store::open_folder_of(address).unwrap();
    store.read(name).unwrap()
}

/// The files of a model at an address, without the manifest.
fn files(address: &str) -> Vec<(String, Vec<u8>)> {
    let store = store::open(address).unwrap();
    let entries = store.list("").unwrap().into_iter().filter(|entry| entry.name != "model.json");
    entries.map(|entry| (entry.name.clone(), store.read(&entry.name).unwrap())).collect()
}

#[test]
fn a_job_with_addresses_gives_what_it_gives_with_paths() {
    let folder = Folder::new();
    let parts = [clicks(400, 1), clicks(300, 2)];
    for (name, text) in ["data/a.libsvm", "data/day=1/b.libsvm"].iter().zip(&parts) {
        std::fs::create_dir_all(folder.path("data/day=1")).unwrap();
        folder.write(name, text);
    }
    let (data, test) = (folder.path("data"), folder.write("test.libsvm.gz", gzip(clicks(200, 3))));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    let train = ["train", "lr", "--quiet", "--tasks", "2", "--set", "epochs=3", "--set", "optimizer=ftrl"];
    succeed(&[&train[..], &["--data", &data, "--validate", &test, "--model", &model]].concat());
    succeed(&["predict", "--model", &model, "--data", &test, "--output", &scores, "--quiet"]);
    let (scores, evaluated) = (
        std::fs::read(scores).unwrap(),
        succeed(&["evaluate", "--model", &model, "--data", &test, "--json"]),
    );
    let expected: Vec<_> = files(&format!("file://{model}"));
    for location in locations(&folder) {
        write(&location, "data/a.libsvm", parts[0].as_bytes());
        write(&location, "data/day=1/b.libsvm", parts[1].as_bytes());
        write(&location, "data/_SUCCESS", b"");
        write(&location, "test.libsvm.gz", &gzip(clicks(200, 3)));
        let at = |path: &str| format!("{location}/{path}");
        let (model, report, test) = (at("model"), at("report.json"), at("test.libsvm.gz"));
        let words = ["--data", &at("data"), "--validate", &test, "--model", &model, "--report", &report];
        succeed(&[&train[..], &words].concat());
        assert!(files(&model) == expected, "{location}");
        let text = String::from_utf8(read(&report)).unwrap();
        assert!(number(&text, "/epochs/0/validation/log_loss") > 0.0, "{text}");
        for (output, more) in [("s1.csv", &[][..]), ("s2.csv", &["--servers", "2", "--workers", "2"])] {
            let words = ["predict", "--model", &model, "--data", &test, "--output", &at(output), "--quiet"];
            succeed(&[&words[..], more].concat());
            assert!(read(&at(output)) == scores, "{location} {output}");
        }
        let (data, output) = (at("data"), at("parts/"));
        let words = ["predict", "--model", &model, "--data", &data, "--output", &output, "--quiet"];
        succeed(&[&words[..], &["--servers", "2", "--workers", "2"]].concat());
        let names: Vec<String> = files(&at("parts")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["part-00000.csv", "part-00001.csv"], "{location}");
        let again = succeed(&["evaluate", "--model", &model, "--data", &test, "--json"]);
        assert_eq!(number(&again, "/metrics/loss").to_bits(), number(&evaluated, "/metrics/loss").to_bits());
        assert!(succeed(&["inspect", &model]).contains("lr"));
        let pattern = at("data/*.libsvm");
        let words = ["--data", &pattern, "--from", &model, "--model", &at("more")];
        succeed(&[&train[..], &words].concat());
        assert!(files(&at("more")) != expected);
        let taken = fail(2, &[&train[..], &["--data", &pattern, "--model", &model]].concat());
        assert!(taken.contains("already exists") && taken.contains("--overwrite"), "{taken}");
        succeed(&[&train[..], &["--data", &at("data"), "--model", &model, "--overwrite"]].concat());
        write(&model, "notes.txt", b"mine");
        let foreign =
            fail(2, &[&train[..], &["--data", &pattern, "--model", &model, "--overwrite"]].concat());
        assert!(foreign.contains("notes.txt"), "{foreign}");
        store::open(&location).unwrap().remove("").unwrap();
    }
    assert!(!bytes_of(&model).is_empty());
}

#[test]
fn an_address_that_cannot_be_is_said_with_its_name() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(50, 1));
    let place = |path: &str| format!("file://{}", folder.path(path));
    let (nowhere, model) = (place("nowhere/*.csv"), folder.path("m"));
    let missing = fail(5, &["train", "lr", "--data", &nowhere, "--model", &model]);
    assert!(missing.contains(&nowhere) && missing.contains("nothing matches"), "{missing}");
    let scheme = fail(2, &["train", "lr", "--data", "ftp://h/a", "--model", &model]);
    assert!(scheme.contains("\"ftp\"") && scheme.contains("this program knows paths"), "{scheme}");
    let scheme = fail(2, &["train", "lr", "--data", &data, "--model", "ftp://h/a"]);
    assert!(scheme.contains("\"ftp\""), "{scheme}");
    let absent = fail(4, &["evaluate", "--model", &place("m"), "--data", &data]);
    assert!(absent.contains("is not a model") && absent.contains("model.json"), "{absent}");
    folder.write("file", "a");
    let unwritable = fail(5, &["train", "lr", "--data", &data, "--model", &place("file/model")]);
    assert!(unwritable.contains("file/model"), "{unwritable}");
    let generated = fail(2, &["generate", "ctr", "--output", &place("made"), "--rows", "10"]);
    assert!(generated.contains("--output") && generated.contains("folder of this machine"), "{generated}");
}
