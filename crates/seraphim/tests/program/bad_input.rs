//! Promise: bad input is an error that states what is wrong, where it is and what to do, with the documented exit code.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write as _;

use crate::common::{Folder, bytes_of, clicks, fail, succeed};

const USAGE: i32 = 2;
const DATA: i32 = 3;
const MODEL: i32 = 4;
const IO: i32 = 5;

/// Trains on `content`, which must fail with this exit code. The message must contain all of `words`.
fn refused(code: i32, content: impl AsRef<[u8]>, words: &[&str]) {
    let folder = Folder::new();
    let data = folder.write("bad.libsvm", content);
    let error = fail(code, &["train", "lr", "--data", &data, "--model", &folder.path("model")]);
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
    assert!(!std::path::Path::new(&folder.path("model")).exists(), "no model of bad data");
}

#[test]
fn empty_files_and_blank_lines_hold_no_records() {
    refused(DATA, "", &["bad.libsvm"]);
    refused(DATA, "\n\n  \n", &["no records"]);
}

#[test]
fn bad_lines_name_file_line_and_column() {
    let good = clicks(10, 1);
    refused(DATA, format!("{good}1 3:nan\n"), &["bad.libsvm:11:"]);
    refused(DATA, format!("{good}1 9223372036854775808:1\n"), &["bad.libsvm:11:"]);
    refused(DATA, format!("{good}1 3:1 7:1 3:1\n"), &["bad.libsvm:11:", "3"]);
    refused(DATA, format!("{good}7 3:1\n"), &["bad.libsvm:11:", "7"]);
}

#[test]
fn one_class_only_is_an_error() {
    refused(DATA, "1 1:1\n1 2:1\n", &["one class only"]);
}

#[test]
fn bad_lines_can_be_skipped_and_are_counted() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", format!("{}1 x\n{}", clicks(50, 1), clicks(50, 2)));
    let model = folder.path("model");
    let said = succeed(&["train", "lr", "--data", &data, "--model", &model, "--bad-lines", "skip=1"]);
    assert!(said.contains("skipped 1 bad line,") && said.contains("a.libsvm:51:"), "{said}");
    let two = folder.write("b.libsvm", format!("{}1 x\n1 y\n", clicks(50, 1)));
    let error =
        fail(DATA, &["train", "lr", "--data", &two, "--model", &folder.path("m"), "--bad-lines", "skip=1"]);
    assert!(error.contains("2 bad lines, 1 allowed"), "{error}");
}

#[test]
fn feature_numbers_beyond_the_dimensions_are_bad_lines() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", "1 1:1 4:1\n0 2:1\n1 7:1\n0 3:1\n");
    let small = folder.write("b.libsvm", "1 1:1 4:1\n0 2:1\n");
    let (model, other) = (folder.path("model"), folder.path("other"));
    let train = ["train", "lr", "--data", &data, "--model", &model, "--set", "dimensions=5"];
    for servers in [&[][..], &["--servers", "1", "--workers", "1"]] {
        let error = fail(DATA, &[&train[..], servers].concat());
        assert!(error.contains("a.libsvm:3:3") && error.contains("dimensions = 5"), "{error}");
    }
    assert!(succeed(&[&train[..], &["--bad-lines", "skip=1"]].concat()).contains("skipped 1 bad"));
    let error = fail(DATA, &["evaluate", "--model", &model, "--data", &data]);
    assert!(error.contains("a.libsvm:3:3"), "{error}");
    let output = folder.path("scores.csv");
    fail(DATA, &["predict", "--model", &model, "--data", &data, "--output", &output]);
    let validate = ["--data", &small, "--validate", &data, "--model", &other, "--set", "dimensions=5"];
    fail(DATA, &[&["train", "lr"][..], &validate].concat());
}

#[test]
fn dimensions_that_no_memory_holds_are_refused_with_the_sum() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(50, 1));
    let huge = ["--set", "dimensions=1099511627776", "--set", "optimizer=ftrl"];
    let train = ["train", "lr", "--data", &data, "--model", &folder.path("model")];
    let error = fail(USAGE, &[&train[..], &huge].concat());
    assert!(
        error.contains("the matrices take 12288.00 GiB") && error.contains("leave dimensions out"),
        "{error}"
    );
}

#[test]
fn a_share_for_validation_that_takes_all_or_no_records_says_so() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(20, 1));
    let train = ["train", "lr", "--data", &data, "--model", &folder.path("model"), "--set"];
    for (share, words) in
        [("validation_share=0.999", "holds out all"), ("validation_share=0.0001", "holds out none")]
    {
        for servers in [&[][..], &["--servers", "1", "--workers", "1"]] {
            let error = fail(USAGE, &[&train[..], &[share], servers].concat());
            assert!(error.contains(words) && error.contains(share), "{error}");
        }
    }
}

#[test]
fn names_of_labels_are_told_as_names() {
    let folder = Folder::new();
    let model = folder.path("model");
    let three = folder.write("three.csv", "x,y\n1,a\n2,b\n3,c\n");
    let error = fail(USAGE, &["train", "lr", "--data", &three, "--model", &model]);
    assert!(error.contains("3 distinct names: a, b, c") && error.contains("softmax"), "{error}");
    let one = folder.write("one.csv", "x,y\n1,a\n2,a\n");
    for algorithm in ["lr", "softmax"] {
        let error = fail(DATA, &["train", algorithm, "--data", &one, "--model", &model]);
        assert!(error.contains("have the label 'a'"), "{error}");
    }
}

#[test]
fn values_of_one_name_that_add_up_to_infinity_are_a_bad_line() {
    let folder = Folder::new();
    let data = folder.write("a.vw", "1 |f a:3e38 a:3e38\n-1 |f b\n1 |f c\n");
    let train = ["train", "lr", "--data", &data, "--model", &folder.path("model")];
    let error = fail(DATA, &train);
    assert!(error.contains("a.vw:1:3") && error.contains("stay finite"), "{error}");
    succeed(&[&train[..], &["--bad-lines", "skip=1"]].concat());
}

#[test]
fn a_label_that_was_guessed_is_told_also_when_nothing_else_is() {
    let folder = Folder::new();
    let data = folder.write("a.csv", "a,b,price\n1,2,3.5\n2,1,4.5\n3,3,1.5\n");
    for extra in [&[][..], &["--quiet"], &["--servers", "1", "--workers", "1"]] {
        let model = folder.path("model");
        let train = ["train", "linear", "--data", &data, "--model", &model, "--overwrite"];
        let said = succeed(&[&train[..], extra].concat());
        assert!(said.contains("label: column 'price', the last"), "{said}");
    }
    let error = fail(USAGE, &["train", "lr", "--data", &data, "--model", &folder.path("lr")]);
    assert!(error.contains("'price'") && error.contains("--label"), "{error}");
}

#[test]
fn vw_lines_without_a_label_are_counted_in_training_and_need_a_flag_in_prediction() {
    let folder = Folder::new();
    let text = "1 |f a\n-1 |f b\n|f a\n'tag |f b\n1 |f a c\n-1 |f b c\n";
    let (data, model, output) = (folder.write("a.vw", text), folder.path("model"), folder.path("scores.csv"));
    let said = succeed(&["train", "lr", "--data", &data, "--model", &model, "--tasks", "2"]);
    assert!(said.contains("records without a label are left out: 2"), "{said}");
    let predict = ["predict", "--model", &model, "--data", &data, "--output", &output];
    assert!(fail(DATA, &predict).contains("a.vw:3:1"));
    succeed(&[&predict[..], &["--no-label"]].concat());
    assert_eq!(std::fs::read_to_string(output).unwrap().lines().count(), 7, "a line each, and the header");
}

#[test]
fn a_truncated_gzip_names_the_file() {
    let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    whole.write_all(clicks(500, 1).as_bytes()).unwrap();
    let whole = whole.finish().unwrap();
    let folder = Folder::new();
    let data = folder.write("a.libsvm.gz", &whole[..whole.len() / 2]);
    let error = fail(DATA, &["train", "lr", "--data", &data, "--model", &folder.path("model")]);
    assert!(error.contains("a.libsvm.gz") && error.contains("byte"), "{error}");
}

#[test]
fn a_pattern_that_matches_nothing_says_where_it_looked() {
    let folder = Folder::new();
    let pattern = folder.path("*.libsvm");
    let error = fail(IO, &["train", "lr", "--data", &pattern, "--model", &folder.path("model")]);
    assert!(error.contains("*.libsvm") && error.contains("nothing matches"), "{error}");
}

#[test]
fn an_existing_model_is_kept_unless_overwritten() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(100, 1));
    let model = folder.path("model");
    let train = ["train", "lr", "--data", &data, "--model", &model];
    succeed(&train);
    let before = bytes_of(&model);
    let error = fail(USAGE, &train);
    assert!(error.contains("--overwrite"), "{error}");
    assert!(bytes_of(&model) == before);
    succeed(&[&train[..], &["--overwrite"]].concat());
    let mine = folder.path("precious");
    std::fs::create_dir(&mine).unwrap();
    folder.write("precious/thesis.txt", "years of work");
    let error = fail(USAGE, &["train", "lr", "--data", &data, "--model", &mine, "--overwrite"]);
    assert!(error.contains("neither a model nor an empty folder"), "{error}");
    assert_eq!(bytes_of(&mine).len(), 1);
}

#[test]
fn no_command_writes_over_what_it_reads_or_has_not_made() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(100, 1));
    let (model, report, scores) = (folder.path("model"), folder.path("run.json"), folder.path("scores.csv"));
    let train = ["train", "lr", "--data", &data, "--quiet", "--set", "epochs=1"];
    succeed(&[&train[..], &["--model", &model, "--report", &report]].concat());
    let predict = ["predict", "--model", &model, "--data", &data, "--quiet"];
    succeed(&[&predict[..], &["--output", &scores]].concat());
    let thesis = folder.write("thesis.csv", "years,of,work\n");
    let link = folder.path("link.libsvm");
    std::fs::hard_link(&data, &link).unwrap();
    let before: Vec<_> = [&folder.path(""), &model].map(|folder| files_of(folder)).into();
    let weights = folder.path("model/weights.safetensors");
    let next = folder.path("next");
    let refusals: &[(&[&str], &[&str], &str)] = &[
        (&predict, &["--output", &data, "--overwrite"], "would replace"),
        (&predict, &["--output", &link, "--overwrite"], "would replace"),
        (&predict, &["--output", &weights, "--overwrite"], "inside the model"),
        (&predict, &["--output", &folder.path("model/scores.csv")], "inside the model"),
        (&predict, &["--output", &scores], "--overwrite"),
        (&predict, &["--output", &report, "--overwrite"], "is not a file of scores"),
        (&train, &["--model", &next, "--report", &data, "--overwrite"], "would replace"),
        (&train, &["--model", &next, "--report", &report], "--overwrite"),
        (&train, &["--model", &next, "--report", &thesis, "--overwrite"], "is not a report"),
        (&train, &["--model", &next, "--report", &folder.path("next/run.json")], "inside the model"),
        (&train, &["--model", &folder.path("model/next")], "inside the model"),
        (&train, &["--model", &data, "--overwrite"], "would replace"),
        (&["evaluate", "--data", &data], &["--model", ""], "--model"),
    ];
    for size in [&[][..], &["--servers", "1"]] {
        for (command, more, part) in refusals {
            let size = if command[0] == "train" { size } else { &[] };
            let error = fail(USAGE, &[command, more, size].concat());
            assert!(error.contains(part), "{more:?}: {error}");
        }
    }
    let after: Vec<_> = [&folder.path(""), &model].map(|folder| files_of(folder)).into();
    assert!(before == after);
    folder.write("model/thesis.txt", "years of work");
    let error = fail(USAGE, &[&train[..], &["--model", &model, "--overwrite"]].concat());
    assert!(error.contains("thesis.txt") && error.contains("not part of the model"), "{error}");
    std::fs::remove_file(folder.path("model/thesis.txt")).unwrap();
    // An earlier output of the same kind is replaced.
    succeed(&[&train[..], &["--model", &model, "--report", &report, "--overwrite"]].concat());
    succeed(&[&predict[..], &["--output", &scores, "--overwrite"]].concat());
}

fn files_of(folder: &str) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    let mut files: Vec<_> =
        files.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn generated_files_replace_only_generated_ones() {
    let folder = Folder::new();
    let size = ["--rows", "100", "--test-rows", "0", "--dimensions", "5000", "--nonzeros", "10"];
    let output = folder.path("out");
    let generate = [&["generate", "ctr", "--output", &output][..], &size].concat();
    succeed(&generate);
    let error = fail(USAGE, &generate);
    assert!(error.contains("train.libsvm already exists") && error.contains("--overwrite"), "{error}");
    succeed(&[&generate[..], &["--overwrite"]].concat());
    std::fs::remove_file(folder.path("out/meta.json")).unwrap();
    let error = fail(USAGE, &[&generate[..], &["--overwrite"]].concat());
    assert!(error.contains("is not a file of an earlier `generate`"), "{error}");
}

#[test]
fn an_unwritable_output_is_found_before_the_work() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(100, 1));
    let file = folder.write("file", "");
    let error = fail(IO, &["train", "lr", "--data", &data, "--model", &format!("{file}/model")]);
    assert!(error.contains("file/model"), "{error}");
    let report = folder.path("no/such/report.json");
    fail(IO, &["train", "lr", "--data", &data, "--model", &folder.path("m"), "--report", &report]);
    succeed(&["train", "lr", "--data", &data, "--model", &folder.path("m")]);
    let output = folder.path("no/such/scores.csv");
    fail(IO, &["predict", "--model", &folder.path("m"), "--data", &data, "--output", &output]);
}

#[test]
fn a_flipped_byte_in_any_model_file_is_an_error_with_both_checksums() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(200, 1));
    let model = folder.path("model");
    let next = folder.path("next");
    succeed(&["train", "lr", "--data", &data, "--model", &model]);
    // Continuing training reads every file; `evaluate` neither needs nor reads the state of the optimizer.
    let train_on = ["train", "lr", "--data", &data, "--model", &next, "--from", &model];
    let evaluate = ["evaluate", "--model", &model, "--data", &data];
    for (name, bytes) in bytes_of(&model) {
        let name = name.to_str().unwrap();
        let readers: &[&[&str]] =
            if name == "optimizer.safetensors" { &[&train_on] } else { &[&train_on, &evaluate] };
        for position in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut broken = bytes.clone();
            broken[position] ^= 0x04;
            folder.write(&format!("model/{name}"), &broken);
            for reader in readers {
                let error = fail(MODEL, reader);
                assert!(
                    error.contains(name) && error.contains("checksum is"),
                    "{name} at {position}: {error}"
                );
            }
        }
        folder.write(&format!("model/{name}"), &bytes[..bytes.len() - 1]);
        for reader in readers {
            fail(MODEL, reader);
        }
        folder.write(&format!("model/{name}"), &bytes);
    }
    succeed(&evaluate);
    succeed(&train_on);
}

#[test]
fn a_model_of_another_version_names_both_versions() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(200, 1));
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &data, "--model", &model]);
    let text = std::fs::read_to_string(folder.path("model/model.json")).unwrap();
    folder.write("model/model.json", text.replace("\"format_version\": 3", "\"format_version\": 7"));
    let error = fail(MODEL, &["inspect", &model]);
    assert!(error.contains("version 7") && error.contains("version 3"), "{error}");
    let error = fail(MODEL, &["inspect", &folder.path("nothing")]);
    assert!(error.contains("is not a model"), "{error}");
}

#[test]
fn wrong_parameters_say_the_range_and_the_nearest_name() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(10, 1));
    let model = folder.path("model");
    let train = |extra: &[&str]| {
        fail(USAGE, &[&["train", "lr", "--data", &data, "--model", &model][..], extra].concat())
    };
    let error = train(&["--set", "learning_rate=-1"]);
    assert!(error.contains("learning_rate") && error.contains("-1"), "{error}");
    assert!(train(&["--set", "learning_rat=1"]).contains("did you mean learning_rate"));
    let error = train(&["--set", "interactions=ab"]);
    assert!(
        error.contains("interactions is a key of the job") && error.contains("--interactions ab"),
        "{error}"
    );
    let error = train(&["--set", "optimizer=ftrl", "--set", "rho=2"]);
    assert!(error.contains("rho=2 has no effect with optimizer=ftrl, only with admm"), "{error}");
    assert!(train(&["--consistency", "ssp"]).contains("ssp:N"));
    assert!(train(&["--seeed", "1"]).contains("--seed"));
    assert!(fail(USAGE, &["train", "l", "--data", &data, "--model", &model]).contains("lr"));
    assert!(fail(USAGE, &["train", "--data", &data, "--model", &model]).contains("algorithm"));
}

#[test]
fn a_full_disk_under_kept_blocks_is_an_error_of_writing() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(100, 1));
    let scratch = folder.write("no_folder", "");
    let keep = ["--memory-limit", "0", "--scratch", &scratch, "--set", "epochs=2"];
    let model = folder.path("model");
    let error = fail(IO, &[&["train", "lr", "--data", &data, "--model", &model][..], &keep].concat());
    assert!(error.contains("no_folder"), "{error}");
}

#[test]
fn a_validation_file_may_have_more_columns_than_training() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(100, 1));
    let wider = folder.write("b.libsvm", "1 1:1 900:1\n0 30:1 77777777777:1\n");
    succeed(&["train", "lr", "--data", &data, "--validate", &wider, "--model", &folder.path("model")]);
}

/// Collects the pointer of every number in a JSON value.
fn numbers(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Number(_) => found.push(at.to_owned()),
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| numbers(item, &format!("{at}/{i}"), found));
        }
        serde_json::Value::Object(members) => {
            members.iter().for_each(|(name, member)| numbers(member, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

#[test]
fn a_forged_manifest_never_panics() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(200, 1));
    let model = folder.path("model");
    let settings = ["--set", "dimensions=60", "--set", "standardize=true", "--set", "epochs=1"];
    succeed(&[&["train", "lr", "--data", &data, "--model", &model][..], &settings].concat());
    let path = std::path::Path::new(&model);
    let text = std::fs::read_to_string(path.join("model.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest.as_object_mut().unwrap().remove("crc32c");
    let mut pointers = Vec::new();
    numbers(&manifest, "", &mut pointers);
    assert!(pointers.iter().any(|at| at.ends_with("stored_rows")), "{pointers:?}");
    let forgeries = [0u64, 1, 1 << 40, 1 << 63, u64::MAX];
    for at in pointers {
        for forged in forgeries {
            let mut other = manifest.clone();
            *other.pointer_mut(&at).unwrap() = forged.into();
            folder.write("model/model.json", crate::common::sealed(&other));
            for with_slots in [false, true] {
                let read = std::panic::catch_unwind(|| {
                    model::Model::read(path, with_slots)?;
                    let mut files = model::ModelReader::open(path, with_slots)?;
                    let scoring = families::all().load(&files.manifest.model)?;
                    engine::runtime::score::ModelScorer::new(&mut files, scoring, 1, &families::functions())
                        .map(drop)
                });
                assert!(read.is_ok(), "{at} = {forged} panics");
            }
        }
    }
    folder.write("model/model.json", &text);
    succeed(&["evaluate", "--model", &model, "--data", &data]);
}

#[test]
fn what_a_user_can_bring_about_is_no_fault_of_the_program() {
    let folder = Folder::new();
    let model = folder.path("model");
    let huge = folder.write("huge.libsvm", "1 1:3e38 2:3e38\n0 1:-3e38 2:3e38\n".repeat(8));
    let data = folder.write("a.libsvm", clicks(100, 1));
    let lbfgs = ["--set", "optimizer=lbfgs", "--set", "l2=1"];
    for (data, set) in [(&huge, &lbfgs[..]), (&data, &["--set", "dimensions=1099511627776"])] {
        for size in [&[][..], &["--servers", "1"]] {
            let train = ["train", "lr", "--data", data, "--model", &model, "--quiet"];
            let output = crate::common::seraphim(&[&train[..], set, size].concat());
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | USAGE | DATA)), "{set:?} {size:?}: {error}");
        }
    }
}
