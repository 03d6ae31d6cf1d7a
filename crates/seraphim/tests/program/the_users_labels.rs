//! Promise: labels and columns keep the names or numbers of the user in all inputs and outputs.

#![allow(
    clippy::unwrap_used,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "small helpers of tests"
)]

use crate::common::{Folder, clicks, fail, succeed};

/// Deployments that must give the same result: in this process, and on servers.
const DEPLOYMENTS: [&[&str]; 2] = [&[], &["--servers", "2", "--workers", "2"]];

/// `clicks` as CSV with two columns, the labels 0 and 1 replaced by `labels`.
fn table(records: u64, labels: &[&str]) -> String {
    let mut text = String::from("sum,small,answer\n");
    for (i, line) in clicks(records, 1).lines().enumerate() {
        let mut fields = line.split(' ');
        let label: usize = fields.next().unwrap().parse().unwrap();
        let keys: Vec<u64> = fields.map(|field| field.split(':').next().unwrap().parse().unwrap()).collect();
        let small = keys.iter().filter(|key| **key < 25).count();
        // With more than two labels, every other record of class 0 has the third.
        let label = if label == 0 && i % 2 == 0 && labels.len() > 2 { 2 } else { label };
        text += &format!("{},{small},{}\n", keys.len(), labels[label]);
    }
    text
}

struct Job {
    folder: Folder,
    data: String,
}

impl Job {
    fn new(labels: &[&str]) -> Self {
        let folder = Folder::new();
        let data = folder.write("train.csv", table(400, labels));
        Self { folder, data }
    }

    fn arguments(&self, name: &str, algorithm: &str, settings: &[&str], deployment: &[&str]) -> Vec<String> {
        let model = self.folder.path(name);
        let fixed = ["train", algorithm, "--data", &self.data, "--label", "answer", "--model", &model];
        let common = ["--tasks", "2", "--quiet", "--set", "epochs=2", "--set", "standardize=false"];
        let optimizer = ["--set", "optimizer=adagrad", "--set", "shuffle=none"];
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let all = fixed.into_iter().chain(common).chain(optimizer).chain(settings);
        all.chain(deployment.iter().copied()).map(str::to_owned).collect()
    }

    /// Trains and returns the bytes of the weights.
    fn weights(&self, name: &str, algorithm: &str, settings: &[&str], deployment: &[&str]) -> Vec<u8> {
        let arguments = self.arguments(name, algorithm, settings, deployment);
        succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        std::fs::read(self.folder.path(&format!("{name}/weights.safetensors"))).unwrap()
    }

    fn refused(&self, code: i32, algorithm: &str, settings: &[&str], deployment: &[&str]) -> String {
        let arguments = self.arguments("refused", algorithm, settings, deployment);
        fail(code, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

#[test]
fn class_weights_and_the_positive_label_name_the_labels_of_the_data() {
    let weighted = Job::new(&["0", "1"]).weights("model", "lr", &["class_weights=0:1,1:5"], &[]);
    let plain = Job::new(&["0", "1"]).weights("model", "lr", &[], &[]);
    assert!(weighted != plain, "weights of classes change the model");
    for deployment in DEPLOYMENTS {
        let of = |labels: &[&str], settings: &[&str]| {
            Job::new(labels).weights("model", "lr", settings, deployment)
        };
        for (labels, settings) in [
            (&["1", "2"][..], &["positive_label=2", "class_weights=2:5,1:1"][..]),
            (&["2", "1"], &["positive_label=1", "class_weights=1:5"]),
            (&["-1", "1"], &["class_weights=-1:1,1:5"]),
            (&["no", "yes"], &["class_weights=no:1,yes:5"]),
            (&["b", "a"], &["positive_label=a", "class_weights=a:5"]),
            (&["x", "yes", "no"], &["positive_label=yes", "class_weights=yes:5"]),
            (&["1:2", "3:4"], &["class_weights=3:4:5"]),
        ] {
            assert!(of(labels, settings) == weighted, "{labels:?} {settings:?} {deployment:?}");
        }
        let named = of(&["no", "yes"], &["positive_label=yes"]);
        assert!(named == plain, "{deployment:?}: yes is the second name anyway");
    }
}

#[test]
fn class_weights_of_softmax_name_the_labels_of_the_data() {
    let weighted = Job::new(&["0", "1", "2"]).weights("model", "softmax", &["class_weights=1:5,2:3"], &[]);
    for deployment in DEPLOYMENTS {
        let named = Job::new(&["a", "b", "c"]);
        assert!(named.weights("model", "softmax", &["class_weights=b:5,c:3"], deployment) == weighted);
        let numbered = Job::new(&["7", "8", "9"]);
        assert!(numbered.weights("model", "softmax", &["class_weights=8:5,9:3"], deployment) == weighted);
    }
}

#[test]
fn a_label_that_no_record_has_is_refused_with_those_that_exist() {
    for deployment in DEPLOYMENTS {
        let refused = |labels: &[&str], algorithm: &str, settings: &[&str], words: &[&str]| {
            let error = Job::new(labels).refused(2, algorithm, settings, deployment);
            assert!(words.iter().all(|word| error.contains(word)), "{labels:?} {settings:?}: {error}");
        };
        refused(&["no", "yes"], "lr", &["positive_label=yess"], &["'yess'", "did you mean yes?", "no, yes"]);
        refused(&["no", "yes"], "lr", &["class_weights=1:5"], &["class_weights", "'1'", "no, yes"]);
        refused(&["1", "2"], "lr", &["positive_label=3"], &["positive_label", "'3'", "1, 2"]);
        refused(&["1", "2"], "lr", &["positive_label=yes"], &["positive_label", "'yes'", "1, 2"]);
        refused(&["0", "1"], "lr", &["class_weights=-1:5"], &["'-1'", "0, 1"]);
        refused(&["a", "b", "c"], "softmax", &["class_weights=d:5"], &["'d'", "a, b, c"]);
        refused(&["0", "1", "2"], "softmax", &["class_weights=3:5"], &["'3'", "0, 1, 2"]);
    }
    let refused = |labels: &[&str], settings: &[&str], word: &str| {
        let error = Job::new(labels).refused(2, "lr", settings, &[]);
        assert!(error.contains(word), "{labels:?} {settings:?}: {error}");
    };
    refused(&["a", "b", "c"], &[], "3 distinct names: a, b, c");
    refused(&["1", "16777216", "16777217"], &["positive_label=16777217"], "cannot be distinguished");
    refused(&["0", "1"], &["class_weights=0:2,0.0:3"], "twice");
    refused(&["1", "2", "3"], &["positive_label=2", "class_weights=1:4"], "count as one class");
}

#[test]
fn a_model_of_another_positive_label_does_not_go_on_and_says_the_names() {
    let job = Job::new(&["no", "yes"]);
    job.weights("model", "lr", &["positive_label=no"], &[]);
    let from = job.folder.path("model");
    let error = job.refused(4, "lr", &["positive_label=yes"], &["--from", &from]);
    assert!(error.contains("positive_label is no, that of the job is yes"), "{error}");
}

#[test]
fn records_that_count_nothing_are_an_error() {
    let job = Job::new(&["0", "1"]);
    let mut weighted = String::from("weight,");
    weighted += &table(400, &["0", "1"]).replace('\n', "\n0,");
    let data = job.folder.write("weighted.csv", weighted.trim_end_matches("0,"));
    for deployment in DEPLOYMENTS {
        let error = job.refused(3, "lr", &["class_weights=0:0,1:0"], deployment);
        assert!(error.contains("class_weights") && error.contains("weight 0"), "{error}");
        for settings in [&["optimizer=adagrad"][..], &["optimizer=lbfgs", "epochs=auto", "shuffle=batches"]] {
            let mut arguments = job.arguments("refused", "lr", settings, deployment);
            arguments[3] = data.clone();
            arguments.extend(["--weight", "weight"].map(str::to_owned));
            let error = fail(3, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(error.contains("every record has the weight 0"), "{settings:?}: {error}");
        }
    }
}

/// A model of a table with weights, groups and names of labels, and the table without header.
struct Scored {
    folder: Folder,
    rows: Vec<[String; 6]>,
}

const COLUMNS: [&str; 6] = ["id", "sum", "weight", "small", "query", "answer"];

impl Scored {
    fn new(algorithm: &str, labels: &[&str]) -> Self {
        let rows = table(300, &["0", "1", "2"][..labels.len()]);
        let rows = rows.lines().skip(1).enumerate().map(|(i, line)| {
            let [sum, small, answer] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let id = if i == 7 { "\"seven, \"\"7\"\"\"".to_owned() } else { format!("r{i}") };
            let answer = labels[answer.parse::<usize>().unwrap()];
            let quoted = format!("\"{}\"", answer.replace('"', "\"\""));
            [id, sum.into(), (1 + i % 3).to_string(), small.into(), (i / 10).to_string(), quoted]
        });
        let scored = Self { folder: Folder::new(), rows: rows.collect() };
        let (data, model) = (scored.write("train.csv", &COLUMNS, true), scored.folder.path("model"));
        let columns = ["--label", "answer", "--weight", "weight", "--group", "query", "--skip-columns", "id"];
        succeed(
            &[&["train", algorithm, "--data", &data, "--model", &model, "--set", "epochs=2"][..], &columns]
                .concat(),
        );
        scored
    }

    /// Writes the table with these columns.
    fn write(&self, name: &str, columns: &[&str], header: bool) -> String {
        let at = |column: &str| COLUMNS.iter().position(|name| *name == column).unwrap();
        let mut text = if header { columns.join(",") + "\n" } else { String::new() };
        for row in &self.rows {
            let fields: Vec<&str> = columns.iter().map(|column| row[at(column)].as_str()).collect();
            text += &(fields.join(",") + "\n");
        }
        self.folder.write(name, text)
    }

    fn predict(&self, data: &str, more: &[&str]) -> String {
        let model = self.folder.path("model");
        succeed(&[&["predict", "--model", &model, "--data", data, "--output", "-"][..], more].concat())
    }
}

#[test]
fn predictions_need_no_weights_groups_or_header() {
    let scored = Scored::new("lr", &["no", "yes"]);
    let expected = scored.predict(&scored.write("all.csv", &COLUMNS, true), &[]);
    assert!(expected.starts_with("label,score\n"), "{expected}");
    for (columns, header) in [
        (&["id", "sum", "small", "answer"][..], true),
        (&["answer", "small", "sum"], true),
        (&COLUMNS, false),
        (&["sum", "small", "answer"], false),
    ] {
        let data = scored.write("some.csv", columns, header);
        assert!(scored.predict(&data, &[]) == expected, "{columns:?} {header}");
    }
    let data = scored.write("some.csv", &["sum", "small"], false);
    let scores: String =
        expected.lines().map(|line| format!("{}\n", line.split_once(',').unwrap().1)).collect();
    assert!(scored.predict(&data, &["--no-label"]) == scores);
    let data = scored.write("some.csv", &["sum"], false);
    let model = scored.folder.path("model");
    let error = fail(3, &["predict", "--model", &model, "--data", &data, "--output", "-"]);
    assert!(error.contains("training had 6: id, sum, weight, small, query, answer"), "{error}");
    let data = scored.write("some.csv", &["sum", "small", "answer"], true);
    let evaluated = succeed(&["evaluate", "--model", &model, "--data", &data]);
    assert!(evaluated.contains("no column 'weight'"), "{evaluated}");
}

#[test]
fn predictions_write_labels_as_the_data_do() {
    let names = ["plain", "q\"q", "with, comma"];
    let scored = Scored::new("softmax", &names);
    let text = scored.predict(&scored.write("all.csv", &COLUMNS, true), &[]);
    let mut lines = text.lines();
    let header = "label,predicted,probability_plain,\"probability_q\"\"q\",\"probability_with, comma\"";
    assert_eq!(lines.next(), Some(header));
    for (line, row) in lines.zip(&scored.rows) {
        let label = row[5].trim_matches('"').replace("\"\"", "\"");
        let label = if label.contains([',', '"']) { row[5].clone() } else { label };
        assert!(line.starts_with(&format!("{label},")), "{line}: {label}");
        let predicted = &line[label.len() + 1..];
        assert!(
            ["plain,", "\"q\"\"q\",", "\"with, comma\","].iter().any(|name| predicted.starts_with(name)),
            "{line}"
        );
    }
    let scored = Scored::new("lr", &["no", "yes"]);
    let text = scored.predict(&scored.write("all.csv", &COLUMNS, true), &[]);
    for (line, row) in text.lines().skip(1).zip(&scored.rows) {
        assert_eq!(line.split(',').next(), Some(row[5].trim_matches('"')));
    }
    let model = scored.folder.path("model");
    assert!(succeed(&["inspect", &model]).contains("positive     yes"));
    assert!(succeed(&["inspect", &model, "--json"]).contains("\"positive_label\": \"yes\""));
}

#[test]
fn columns_of_the_data_are_carried_into_the_predictions() {
    let scored = Scored::new("lr", &["no", "yes"]);
    let plain = scored.predict(&scored.write("all.csv", &COLUMNS, true), &[]);
    let mut expected = String::from("query,id,label,score\n");
    for (line, row) in plain.lines().skip(1).zip(&scored.rows) {
        expected += &format!("{},{},{line}\n", row[4], row[0]);
    }
    for (columns, header, kept) in [
        (&COLUMNS[..], true, "query,id"),
        (&["id", "small", "answer", "query", "sum"], true, "query,id"),
        (&COLUMNS, true, "4,0"),
    ] {
        let data = scored.write("some.csv", columns, header);
        for tasks in ["1", "3"] {
            let text = scored.predict(&data, &["--keep-columns", kept, "--tasks", tasks]);
            assert!(text == expected, "{columns:?} {kept}:\n{text}");
        }
    }
    // Without a header, a column that training did not have is between the others.
    let data = scored.write("some.csv", &["sum", "id", "small", "answer"], false);
    let text = scored.predict(&data, &["--keep-columns", "1"]);
    let without_query = |line: &str| format!("{}\n", line.split_once(',').unwrap().1);
    let expected: String = expected.lines().skip(1).map(without_query).collect();
    assert!(text == format!("1,label,score\n{expected}"), "{text}");
}

#[test]
fn columns_that_cannot_be_carried_are_refused() {
    let scored = Scored::new("lr", &["no", "yes"]);
    let (data, model) = (scored.write("all.csv", &COLUMNS, true), scored.folder.path("model"));
    let refused = |data: &str, kept: &str| {
        fail(2, &["predict", "--model", &model, "--data", data, "--output", "-", "--keep-columns", kept])
    };
    assert!(refused(&data, "idd").contains("did you mean 'id'"));
    assert!(refused(&data, "id,0").contains("twice"));
    let renamed = std::fs::read_to_string(&data).unwrap().replacen("id,", "score,", 1);
    let renamed = scored.folder.write("renamed.csv", renamed);
    assert!(refused(&renamed, "score").contains("two columns 'score'"));
    let sparse = scored.folder.write("train.libsvm", clicks(300, 1));
    let model = scored.folder.path("sparse");
    succeed(&["train", "lr", "--data", &sparse, "--model", &model, "--set", "epochs=1"]);
    let error =
        fail(2, &["predict", "--model", &model, "--data", &sparse, "--output", "-", "--keep-columns", "id"]);
    assert!(error.contains("libsvm has no columns") && error.contains("line by line"), "{error}");
}

#[test]
#[cfg(feature = "parquet")]
fn predictions_in_text_and_in_parquet_are_the_same() {
    let scored = Scored::new("softmax", &["plain", "q\"q", "with, comma"]);
    let data = scored.write("all.csv", &COLUMNS, true);
    let output = |name: &str| {
        let (model, output) = (scored.folder.path("model"), scored.folder.path(name));
        let arguments = ["predict", "--model", &model, "--data", &data, "--output", &output];
        succeed(&[&arguments[..], &["--keep-columns", "query,id"]].concat());
        output
    };
    let (text, binary) = (output("scores.csv"), output("scores.parquet"));
    // Every column but `id` and `query` is the label or a feature of a second model, so equal scores prove equal
    // columns.
    let model = scored.folder.path("second");
    let columns = ["--label", "label", "--skip-columns", "id,query"];
    succeed(&[&["train", "softmax", "--data", &text, "--model", &model][..], &columns].concat());
    let predicted = |data: &str| succeed(&["predict", "--model", &model, "--data", data, "--output", "-"]);
    assert!(predicted(&text) == predicted(&binary));
}
