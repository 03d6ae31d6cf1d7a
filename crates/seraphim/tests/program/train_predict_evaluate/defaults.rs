//! Which settings the program chooses by default, and the warning about a model that has learned nothing.

use math::random::{Purpose, stream};

use crate::common::{Folder, clicks, number, real_data, seraphim, succeed};

/// A table of prices, of sizes in square millimetres and of names, with some sizes missing. The label is whether the
/// price is above 500,000.
fn houses(records: u64, seed: u64) -> String {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut text = String::from("size,rooms,town,dear,price\n");
    for record in 0..records {
        let (size, rooms) = (5e7 + 2e8 * random.uniform(), 1 + random.below(6));
        let town = ["Rome", "Oslo", "Lima"][random.below(3) as usize];
        let base = if town == "Oslo" { 2e5 } else { 5e4 };
        let price = base + 2e-3 * size + 2e4 * rooms as f64 + 3e4 * random.normal();
        let shown = if record % 10 == 3 { String::new() } else { format!("{size:.0}") };
        let dear = u8::from(price > 5e5);
        text.push_str(&format!("{shown},{rooms},{town},{dear},{price:.0}\n"));
    }
    text
}

fn report_of(path: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("the file was written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The settings that the data decide appear once each with their reason. They are equal in the report and in the model,
/// and as flags they train the same bytes.
#[test]
fn what_is_chosen_is_said_and_saved_and_trains_the_same_bytes() {
    let folder = Folder::new();
    let table = folder.write("houses.csv", houses(800, 5));
    let numbered = folder.write("clicks.libsvm", clicks(2000, 6));
    let cases: [(&str, &str, &[&str], &str); 6] = [
        ("lr", &table, &["--label", "dear", "--skip-columns", "price"], "lbfgs"),
        ("linear", &table, &["--label", "price", "--skip-columns", "dear"], "lbfgs"),
        ("linear", &table, &["--label", "price", "--skip-columns", "dear", "--set", "beta=2"], "ftrl"),
        ("svm", &table, &["--label", "dear", "--skip-columns", "price"], "lbfgs"),
        ("svm", &table, &["--label", "dear", "--skip-columns", "price", "--set", "loss=hinge"], "ftrl"),
        ("lr", &numbered, &["--tasks", "3"], "lbfgs"),
    ];
    for (i, (algorithm, data, flags, optimizer)) in cases.into_iter().enumerate() {
        let (auto, given) = (folder.path(&format!("auto{i}")), folder.path(&format!("given{i}")));
        let report = folder.path(&format!("report{i}.json"));
        let words = ["train", algorithm, "--data", data, "--model", &auto, "--report", &report];
        let output = seraphim(&[&words[..], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = report_of(&report);
        let settings = report["settings"].as_object().unwrap();
        assert_eq!(settings["optimizer"], optimizer, "{said}");
        assert!(said.contains(&format!("optimizer={optimizer}: ")), "{said}");
        assert!(report["choices"].as_array().unwrap().len() >= 2, "{report}");
        let manifest = report_of(&format!("{auto}/model.json"));
        assert_eq!(manifest["settings"], report["settings"]);
        let read = |name: &&String| {
            let text = settings[*name].as_str().unwrap();
            ["optimizer", "l2", "standardize", "normalize", "loss"].contains(&name.as_str())
                || (*name == "beta" && text != "1")
        };
        let pairs: Vec<String> = settings
            .keys()
            .filter(read)
            .map(|name| format!("{name}={}", settings[name].as_str().unwrap()))
            .collect();
        let flags: Vec<&str> =
            flags.iter().copied().filter(|flag| !flag.contains('=') && *flag != "--set").collect();
        let mut words = vec!["train", algorithm, "--data", data, "--model", &given];
        words.extend(flags);
        words.extend(pairs.iter().flat_map(|pair| ["--set", pair.as_str()]));
        succeed(&words);
        let weights = |model: &str| std::fs::read(format!("{model}/weights.safetensors")).unwrap();
        assert!(weights(&auto) == weights(&given), "{algorithm} {pairs:?}: other bytes");
    }
}

/// Every optimizer learns prices of half a million from columns of a hundred million.
#[test]
fn columns_and_labels_of_any_scale_are_learnt() {
    let folder = Folder::new();
    let (train, test) =
        (folder.write("train.csv", houses(2000, 7)), folder.write("test.csv", houses(500, 8)));
    let run = |name: &str, algorithm: &str, flags: &[&str]| {
        let model = folder.path(name);
        succeed(&[&["train", algorithm, "--data", &train, "--model", &model][..], flags].concat());
        succeed(&["evaluate", "--model", &model, "--data", &test, "--json"])
    };
    let price = ["--label", "price", "--skip-columns", "dear"];
    for (name, algorithm, more) in [
        ("auto", "linear", &[][..]),
        ("ftrl", "linear", &["--set", "optimizer=ftrl"]),
        ("huber", "huber", &["--set", "optimizer=ftrl"]),
    ] {
        let metrics = run(name, algorithm, &[&price[..], more].concat());
        // Noise and missing sizes limit R2 to about .84.
        assert!(number(&metrics, "/metrics/r2") > 0.75, "{name}: {metrics}");
    }
    let dear = ["--label", "dear", "--skip-columns", "price"];
    for (name, more) in [("dear", &[][..]), ("dear_ftrl", &["--set", "optimizer=ftrl"])] {
        let metrics = run(name, "lr", &[&dear[..], more].concat());
        assert!(number(&metrics, "/metrics/auc") > 0.9, "{name}: {metrics}");
    }
}

/// In one column, a missing value is informative.
#[test]
fn a_missing_number_counts_as_the_mean_and_is_a_feature_of_its_own() {
    let folder = Folder::new();
    let mut text = String::from("x,y,label\n");
    for i in 0..400 {
        let missing = i % 4 == 0;
        let x = if missing { String::new() } else { (i % 7).to_string() };
        text.push_str(&format!("{x},{},{}\n", i % 5, u8::from(missing != (i % 40 == 0))));
    }
    let (data, model) = (folder.write("data.csv", text), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--label", "label", "--model", &model]);
    assert!(std::fs::read_to_string(format!("{model}/dictionary.tsv")).unwrap().contains("x=missing"));
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &data, "--json"]);
    assert!(number(&metrics, "/metrics/accuracy") > 0.9, "{metrics}");
}

#[test]
fn a_model_that_has_learned_nothing_says_so() {
    let folder = Folder::new();
    let data = folder.write("houses.csv", houses(800, 9));
    let report = folder.path("report.json");
    let model = folder.path("model");
    let set = ["--set", "optimizer=adagrad", "--set", "learning_rate=300", "--set", "epochs=3"];
    let words = ["train", "lr", "--data", &data, "--label", "dear", "--model", &model, "--report", &report];
    let output = succeed(&[&words[..], &["--skip-columns", "price"], &set].concat());
    assert!(output.contains("note: ") && output.contains("would be better"), "{output}");
    let notices = report_of(&report)["notices"].to_string();
    assert!(notices.contains("learning_rate (now 300)"), "{notices}");
}

#[test]
fn values_too_large_for_an_optimizer_are_an_error_of_the_data() {
    let folder = Folder::new();
    let mut text = String::from("x,label\n");
    (0..60).for_each(|i| text.push_str(&format!("{}3e38,{}\n", if i % 3 == 0 { "-" } else { "" }, i % 2)));
    let data = folder.write("data.csv", text);
    let run = |name: &str, set: &[&str]| {
        let model = folder.path(name);
        let words = ["train", "lr", "--data", &data, "--label", "label", "--model", &model];
        seraphim(&[&words[..], set].concat())
    };
    for optimizer in ["optimizer=lbfgs", "optimizer=admm"] {
        let output = run("plain", &["--set", optimizer, "--set", "standardize=false"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{optimizer}: {error}");
        assert!(error.contains("standardize=true"), "{optimizer}: {error}");
    }
    assert!(run("scaled", &[]).status.success());
}

/// A data set: its name, algorithm, file extension, flags, metric and required value.
type Default = (&'static str, &'static str, &'static str, &'static [&'static str], &'static str, f64);

/// Required values of the defaults: what scikit-learn 1.9 reaches with its defaults, less .003.
const DEFAULTS: &[Default] = &[
    ("a9a", "lr", "libsvm.gz", &[], "/metrics/auc", 0.8991),
    ("agaricus", "lr", "libsvm.gz", &[], "/metrics/auc", 0.997),
    ("adult_raw", "lr", "csv.gz", &["--label", "income"], "/metrics/auc", 0.9043),
    ("higgs7k", "lr", "tsv.gz", &["--label", "0"], "/metrics/auc", 0.6902),
    ("frappe", "lr", "libsvm.gz", &[], "/metrics/auc", 0.9279),
    ("california", "linear", "csv.gz", &["--label", "target"], "/metrics/r2", 0.5995),
    ("abalone", "linear", "libsvm.gz", &[], "/metrics/r2", 0.4919),
    ("multi5", "softmax", "tsv.gz", &["--label", "0"], "/metrics/accuracy", 0.203),
];

#[test]
fn defaults_reach_what_others_reach() {
    let folder = Folder::new();
    let check =
        |name: &str, algorithm: &str, [train, test]: [&str; 2], flags: &[&str], metric: &str, bar: f64| {
            let model = folder.path(name);
            succeed(&[&["train", algorithm, "--data", train, "--model", &model][..], flags].concat());
            let metrics = succeed(&["evaluate", "--model", &model, "--data", test, "--json"]);
            assert!(number(&metrics, metric) >= bar, "{name}: {metrics}");
        };
    let example =
        |part: &str| format!("{}/../../examples/breast_cancer/{part}.csv", env!("CARGO_MANIFEST_DIR"));
    let files = [example("train"), example("test")];
    check("example", "lr", [&files[0], &files[1]], &["--label", "benign"], "/metrics/auc", 0.99);
    for (set, algorithm, ending, flags, metric, bar) in DEFAULTS {
        let Some(data) = real_data(set) else { continue };
        let file = |part: &str| data.join(format!("{part}.{ending}")).to_str().unwrap().to_owned();
        check(set, algorithm, [&file("train"), &file("test")], flags, metric, *bar);
    }
}
