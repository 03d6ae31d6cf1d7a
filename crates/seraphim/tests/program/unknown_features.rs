//! Promise: who scores records of features that training did not have is told of it, in every format, for every family, in one
//! process and on servers.

use crate::common::{Folder, seraphim, succeed};

/// All that a command prints.
fn told(arguments: &[&str]) -> String {
    let output = seraphim(arguments);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("output is text");
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// Records of two classes; `feature` writes a feature with this number, and `end` what is behind each record.
fn records(head: &str, feature: impl Fn(u32) -> String, between: &str) -> String {
    (0..40u32).fold(head.to_owned(), |text, record| {
        let features = [record % 4, 4 + record % 3, 7 + record % 5].map(&feature);
        text + &format!("{}{between}{}\n", record % 2, features.join(between))
    })
}

/// Trains on one file, evaluates and predicts another one, and returns what is told, which is the same on servers.
fn told_of(folder: &Folder, algorithm: &[&str], train: &str, other: &str) -> String {
    let (model, scores) = (folder.path("model"), folder.path(&format!("{}.csv", algorithm[0])));
    succeed(
        &[&["train"], algorithm, &["--data", train, "--model", &model, "--overwrite", "--quiet"]].concat(),
    );
    let note = |text: &str| {
        text.lines().find(|line| line.contains("unknown to the model")).unwrap_or_default().to_owned()
    };
    let evaluate = ["evaluate", "--model", &model, "--data", other];
    let predict = ["predict", "--model", &model, "--data", other, "--output", &scores, "--overwrite"];
    let alone = note(&told(&evaluate));
    for on in [&["--servers", "1"][..], &["--servers", "2", "--workers", "2"]] {
        assert_eq!(note(&told(&[&evaluate[..], on].concat())), alone, "{algorithm:?} {train}");
        assert_eq!(note(&told(&[&predict[..], on].concat())), alone, "{algorithm:?} {train}");
    }
    assert_eq!(note(&told(&predict)), alone);
    assert!(note(&told(&["evaluate", "--model", &model, "--data", train])).is_empty(), "its own data");
    let validated =
        [&["train"], algorithm, &["--data", train, "--validate", other, "--model", &model]].concat();
    let validated = note(&told(&[&validated[..], &["--overwrite", "--tasks", "2"]].concat()));
    let expected =
        alone.strip_prefix("note: ").map_or(String::new(), |note| format!("note: validation: {note}"));
    assert_eq!(validated, expected, "{algorithm:?} {train}");
    alone
}

#[test]
fn other_names_and_numbers_are_told_for_every_family_and_format() {
    let folder = Folder::new();
    let vw = |space: &str| records("", |number| format!("|{space} f{number}"), " ");
    let table = |value: &str| {
        let row = |number: u32| format!("{value}{number}");
        records("label,a,b,c\n", row, ",")
    };
    let libsvm = |base: u32| records("", |number| format!("{}:1", base + number), " ");
    let libffm = |base: u32| records("", |number| format!("{}:{}:1", number / 4 % 3, base + number), " ");
    for (name, train, other, example) in [
        ("a.vw", vw("n"), vw("m"), "'m^f"),
        ("a.csv", table("red"), table("Red"), "=Red"),
        ("a.libsvm", libsvm(1), libsvm(101), "'10"),
        ("a.libffm", libffm(1), libffm(101), "'10"),
    ] {
        let (train, other) = (folder.write(name, train), folder.write(&format!("other-{name}"), other));
        for algorithm in [&["lr"][..], &["fm"], &["ffm"], &["gbdt"], &["kmeans", "--set", "k=2"]] {
            let has_fields = name.ends_with("csv") || name.ends_with("libffm");
            if algorithm[0] == "ffm" && !has_fields {
                continue;
            }
            let options: &[&str] =
                if name.ends_with("csv") && algorithm[0] != "kmeans" { &["--label", "label"] } else { &[] };
            let note = told_of(&folder, &[algorithm, options].concat(), &train, &other);
            assert!(note.contains("of 1") && note.contains(example), "{algorithm:?} {name}: {note:?}");
        }
    }
}

#[test]
fn features_that_are_counted_from_0_are_told_although_few_are_unknown() {
    let folder = Folder::new();
    let lines = |base: u32| {
        (0..40u32).fold(String::new(), |text, record| {
            let features =
                (0..40u32).map(|feature| format!("{}:{}", base + feature, 1 + (feature * record) % 7));
            text + &format!("{} {}\n", record % 2, features.collect::<Vec<_>>().join(" "))
        })
    };
    let (one, zero) = (folder.write("one.libsvm", lines(1)), folder.write("zero.libsvm", lines(0)));
    let note = told_of(&folder, &["lr"], &one, &zero);
    assert!(note.contains("40 of 1600 entries (2.5 %)") && note.contains("count from 0"), "{note}");
    let note = told_of(&folder, &["fm"], &zero, &one);
    assert!(note.contains("count from 1") && note.contains("'40'"), "{note}");
}
