//! Promise: labels are the user's labels, names or numbers, wherever they are written or read.

mod common;

use common::{Folder, clicks, fail, succeed};

/// Ways to run a job that must give the same: in this process, and on servers.
const DEPLOYMENTS: [&[&str]; 2] = [&[], &["--servers", "2", "--workers", "2"]];

/// `clicks` as CSV of two columns, with the labels 0 and 1 written as `labels` says.
fn table(records: u64, labels: &[&str]) -> String {
    let mut text = String::from("sum,small,answer\n");
    for (i, line) in clicks(records, 1).lines().enumerate() {
        let mut fields = line.split(' ');
        let label: usize = fields.next().unwrap().parse().unwrap();
        let keys: Vec<u64> = fields.map(|field| field.split(':').next().unwrap().parse().unwrap()).collect();
        let small = keys.iter().filter(|key| **key < 25).count();
        // More labels than two: every other record of class 0 has the third.
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

    /// The bytes of the weights.
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
    refused(&["a", "b", "c"], &[], "3 names: a, b, c");
    refused(&["0", "1"], &["class_weights=0:2,0.0:3"], "twice");
    refused(&["1", "2", "3"], &["positive_label=2", "class_weights=1:4"], "count as one class");
}

#[test]
fn a_model_of_another_positive_label_does_not_go_on_and_says_the_names() {
    let job = Job::new(&["no", "yes"]);
    job.weights("model", "lr", &["positive_label=no"], &[]);
    let from = job.folder.path("model");
    let error = job.refused(4, "lr", &["positive_label=yes"], &["--from", &from]);
    assert!(error.contains("positive_label is no, the job's yes"), "{error}");
}
