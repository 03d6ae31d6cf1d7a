//! What commands print for people, line by line. Numbers with decimals are not compared here.

use crate::common::{Folder, fail, seraphim, succeed};

/// A table of forty people and, in its seventh line, one field too few.
fn people(folder: &Folder) -> String {
    let mut rows: Vec<String> = (0..40)
        .map(|i| {
            let label = if (i >= 20) == (i % 7 == 0) { "no" } else { "yes" };
            format!("{i},{},{label}\n", if i % 2 == 0 { "blue" } else { "red" })
        })
        .collect();
    rows.insert(5, "5,red\n".into());
    folder.write("people.csv", format!("x,color,bought\n{}", rows.concat()))
}

/// A model of the people.
fn trained(folder: &Folder) -> (String, String) {
    let (data, model) = (people(folder), folder.path("model"));
    let fixed = ["train", "lr", "--data", &data, "--bad-lines", "skip=3", "--model", &model];
    succeed(&[&fixed[..], &["--set", "epochs=2", "--set", "optimizer=ftrl"]].concat());
    (data, model)
}

/// A text with `DIR` for the folder of the test and `#` for each number with decimals.
fn masked(folder: &Folder, text: &str) -> String {
    let text = text.replace(&folder.path(""), "DIR/");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out += &rest[..at];
        rest = &rest[at..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        out += if number.contains('.') { "#" } else { number };
        rest = &rest[number.len()..];
    }
    out + rest
}

fn told(folder: &Folder, arguments: &[&str]) -> String {
    masked(folder, &succeed(arguments))
}

#[test]
fn training_tells_what_was_skipped_what_is_learned_and_where_it_is() {
    let folder = Folder::new();
    let (data, model) = (people(&folder), folder.path("model"));
    let good = folder.write("good.csv", "x,color,bought\n1,red,no\n30,blue,yes\n2,blue,no\n25,red,yes\n");
    let train = ["train", "lr", "--quiet", "--data", &data, "--validate", &good, "--bad-lines", "skip=3"];
    let settings = ["--model", &model, "--set", "epochs=2", "--set", "optimizer=ftrl"];
    assert_eq!(
        told(&folder, &[&train[..], &settings].concat()),
        "note: label: column 'bought', the last\n\
         skipped 1 bad line, the first: DIR/people.csv:7:6: expected 3 fields, as in the first row, found 2 fields\n\
         labels      2 named classes: no, yes\n\
         training    log_loss #  auc #  accuracy #\n\
         validation  log_loss #  auc #  accuracy #\n\
         model saved in DIR/model: 3 weight rows, 854 bytes, after 2 epochs over 40 records in # s\n"
    );
    let points = folder.write("points.csv", "x,y\n1,2\n1,3\n9,9\n");
    let clusters = ["train", "kmeans", "--quiet", "--data", &points, "--model", &folder.path("clusters")];
    assert_eq!(
        told(&folder, &[&clusters[..], &["--set", "k=2"]].concat()),
        "training    loss #  inertia #\n\
         model saved in DIR/clusters: centres of 2 rows, norms of 1 row, 248 bytes, after 2 epochs over 3 records in # s\n"
    );
}

#[test]
fn a_model_is_shown_with_its_origin_its_size_and_its_largest_weights() {
    let folder = Folder::new();
    let (_, model) = trained(&folder);
    let all = told(&folder, &["inspect", &model, "--top", "2"]);
    let (head, rest) = all.split_once("parameters\n").unwrap();
    assert_eq!(
        head,
        "DIR/model: lr model, format version 3\n\
         written by   seraphim #\n\
         trained on   DIR/people.csv (40 records, 2 epochs, 1 task, bsp, seed 1)\n\
         training     log_loss #  auc #  accuracy #\n\
         classes      no, yes\n\
         positive     yes\n\
         size         854 bytes\n\
         matrix       weights: 3 stored rows x 1 column, F32\n\
         matrix       intercept: 1 stored row x 1 column, F32\n\
         matrix       moments: 1 stored row x 3 columns, F64\n"
    );
    let (parameters, weights) = rest.split_once("largest weights\n").unwrap();
    assert!(parameters.contains("  epochs = 2\n") && parameters.contains("  optimizer = ftrl\n"), "{all}");
    assert_eq!(
        weights, "  x                              #\n  color=blue                     #\n",
        "the third is left out"
    );
    assert!(!succeed(&["inspect", &model, "--top", "0"]).contains("largest"));
    let shown: serde_json::Value =
        serde_json::from_str(&succeed(&["inspect", &model, "--json", "--top", "5"])).unwrap();
    assert_eq!((&shown["size_bytes"], &shown["positive_label"]), (&854.into(), &"yes".into()));
    let largest = shown["largest_weights"].as_array().unwrap();
    let sizes: Vec<f64> = largest.iter().map(|row| row["values"][0].as_f64().unwrap().abs()).collect();
    assert!(sizes.len() == 3 && sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    assert!(largest.iter().all(|row| row["name"].is_string() && row["key"].is_u64()), "{largest:?}");
}

#[test]
fn scores_are_told_with_their_columns_and_their_label() {
    let folder = Folder::new();
    let (data, model) = trained(&folder);
    let one = folder.write("one.csv", "x,color,bought\n30,red,yes\n");
    let output = folder.path("scores.csv");
    let scored = |data: &str, more: &[&str]| {
        let fixed = ["predict", "--model", &model, "--data", data, "--bad-lines", "skip=3", "--overwrite"];
        let output = seraphim(&[&fixed[..], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        masked(&folder, &String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(
        scored(&data, &["--output", &output]),
        "skipped 1 bad line: no score for them\n\
         40 scores written to DIR/scores.csv (label, score; score: for label yes)\n"
    );
    assert_eq!(
        scored(&one, &["--output", &output]),
        "1 score written to DIR/scores.csv (label, score; score: for label yes)\n"
    );
    assert_eq!(scored(&data, &["--output", "-"]), "skipped 1 bad line: no score for them\n");
    assert_eq!(scored(&data, &["--output", &output, "--quiet"]), "");
}

#[test]
fn an_evaluation_has_its_metrics_and_tables() {
    let folder = Folder::new();
    let (data, model) = trained(&folder);
    let evaluate = ["evaluate", "--model", &model, "--data", &data, "--bad-lines", "skip=3"];
    assert_eq!(
        told(&folder, &evaluate),
        "skipped 1 bad line\n\
         records     40\n\
         labels      2 named classes: no, yes\n\
         accuracy    #\n\
         auc         #\n\
         calibration #\n\
         f1          #\n\
         log_loss    #\n\
         loss        #\n\
         precision   #\n\
         recall      #\n\
         confusion matrix (one row per label, one column per prediction, 1 above #)\n\
         \x20       no  yes\n\
         \x20 no    16    4\n\
         \x20 yes    4   16\n\
         calibration (predicted  mean  observed share  records)\n\
         \x20 # to #  #  #  20\n\
         \x20 # to #  #  #  20\n"
    );
    let lower = succeed(&[&evaluate[..], &["--threshold", "0.25"]].concat());
    assert!(
        lower.contains(", 1 above 0.25)\n        no  yes\n  no     0   20\n  yes    0   20\n"),
        "{lower}"
    );
}

#[test]
fn a_confusion_matrix_has_few_classes_and_sums_of_weights() {
    let folder = Folder::new();
    let table = |classes: u32| {
        let row = |i: u32| format!("{i},0.5,a class with a long name {}\n", i % classes);
        format!("x,w,class\n{}", (0..classes * 2).map(row).collect::<String>())
    };
    let model = folder.path("model");
    let evaluated = |classes: u32| {
        let data = folder.write("data.csv", table(classes));
        let fixed = ["--data", &data, "--label", "class", "--weight", "w", "--model", &model];
        succeed(&[&["train", "softmax", "--quiet", "--overwrite", "--set", "epochs=1"], &fixed[..]].concat());
        let text = succeed(&[&["evaluate"], &fixed[..]].concat());
        text.split_once("confusion").unwrap().1.to_owned()
    };
    let few = evaluated(3);
    let mut lines = few.lines();
    assert_eq!(lines.next(), Some(" matrix (one row per label, one column per prediction)"));
    let names = ["a class with a l"; 3].join("  ");
    assert_eq!(lines.next(), Some(format!("  {:16}  {names}", "").as_str()));
    let mut sum = 0.0;
    for line in lines.by_ref().take(3) {
        let (name, numbers) = line.split_at(18);
        assert_eq!(name, "  a class with a l");
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        assert_eq!(numbers.len(), 3, "{line}");
        assert!(numbers.iter().all(|number| number.ends_with(".500") || !number.contains('.')), "{line}");
        sum += numbers.iter().map(|number| number.parse::<f64>().unwrap()).sum::<f64>();
    }
    assert_eq!((sum, lines.next()), (3.0, None), "six records of weight one half");
    assert!(evaluated(20).starts_with(" matrix"));
    assert_eq!(evaluated(21), "   of 21 classes: see --json\n");
}

#[test]
fn generated_data_are_told_with_their_best_model() {
    let folder = Folder::new();
    let fixed = ["generate", "ctr", "--rows", "100", "--dimensions", "500", "--nonzeros", "5"];
    let run = |test_rows: &str, name: &str| {
        let output = folder.path(name);
        told(&folder, &[&fixed[..], &["--test-rows", test_rows, "--output", &output]].concat())
    };
    assert_eq!(
        run("10", "both"),
        "wrote DIR/both/train.libsvm\nwrote DIR/both/test.libsvm\nwrote DIR/both/meta.json\n\
         train: # % positive; the true model has AUC #, log loss #\n\
         test: # % positive; the true model has AUC #, log loss #\n"
    );
    assert_eq!(
        run("0", "one"),
        "wrote DIR/one/train.libsvm\nwrote DIR/one/meta.json\n\
         train: # % positive; the true model has AUC #, log loss #\n"
    );
    let meta = std::fs::read_to_string(folder.path("both/meta.json")).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    let sizes = meta["slot_sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|size| size.as_u64().unwrap()).sum::<u64>(), 500);
    assert_eq!((sizes.len(), &meta["train_rows"], &meta["test_rows"]), (5, &100.into(), &10.into()));
}

#[test]
fn numbers_of_generated_data_are_checked() {
    let folder = Folder::new();
    let output = folder.path("out");
    let run = |flag: &str, value: &str| {
        fail(
            2,
            &[
                "generate",
                "ctr",
                "--output",
                &output,
                "--nonzeros",
                "5",
                "--rows",
                "10",
                "--test-rows",
                "0",
                flag,
                value,
            ],
        )
    };
    for (flag, value, expected) in [
        ("--dimensions", "19", "from 20 (4 times --nonzeros) to 2^53"),
        ("--dimensions", "9007199254740993", "2^53"),
        ("--zipf", "1", "a number above 0, not 1, up to 10"),
        ("--zipf", "0", "a number above 0"),
        ("--zipf", "10.5", "up to 10"),
        ("--sigma", "-1", "from 0 to 100"),
        ("--bias", "101", "from -100 to 100"),
        ("--seed", "16777216", "below 2^24"),
        ("--threads", "0", "from 1 to 1024"),
    ] {
        let error = run(flag, value);
        assert!(error.contains(flag) && error.contains(value) && error.contains(expected), "{error}");
    }
    assert!(!std::path::Path::new(&output).exists(), "nothing is written");
    let smallest = ["--nonzeros", "5", "--dimensions", "20", "--rows", "10", "--test-rows", "0"];
    succeed(
        &[&["generate", "ctr", "--output", &output], &smallest[..], &["--zipf", "10", "--seed", "16777215"]]
            .concat(),
    );
}

#[test]
fn parameters_are_checked_without_data() {
    assert!(succeed(&["algorithms", "lr", "--set", "l2=1", "--set", "optimizer=lbfgs"]).starts_with("lr: "));
    let error = fail(2, &["algorithms", "lr", "--set", "lerning_rate=1"]);
    assert!(error.contains("did you mean learning_rate?"), "{error}");
    assert!(fail(2, &["algorithms", "lr", "--set", "l2"]).contains("NAME=VALUE"));
    fail(2, &["algorithms", "--set", "l2=1"]);
}

/// Probabilities of raw scores are those that are written without the flag; a raw score is exact where a probability is
/// rounded to 1.
#[test]
fn raw_scores_are_those_before_they_become_probabilities() {
    let folder = Folder::new();
    let rows = |names: &[&str]| -> String {
        let lines: Vec<_> =
            (0..60).map(|i| format!("{},{}\n", i * 50, names[i * names.len() / 60])).collect();
        lines.concat()
    };
    let scores = |model: &str, data: &str, more: &[&str]| -> Vec<Vec<f64>> {
        let fixed = ["predict", "--model", model, "--data", data, "--quiet", "--output", "-"];
        let text = succeed(&[&fixed[..], more].concat());
        let numbers = |line: &str| line.split(',').skip(1).filter_map(|field| field.parse().ok()).collect();
        text.lines().skip(1).map(numbers).collect()
    };
    for (algorithm, names) in
        [("lr", &["no", "yes"][..]), ("softmax", &["a", "b", "c"][..]), ("fm", &["no", "yes"])]
    {
        let data = folder.write(&format!("{algorithm}.csv"), format!("x,kind\n{}", rows(names)));
        let model = folder.path(algorithm);
        succeed(&["train", algorithm, "--data", &data, "--model", &model, "--quiet"]);
        let (raw, plain) = (scores(&model, &data, &["--raw-scores"]), scores(&model, &data, &[]));
        assert_eq!((raw.len(), plain.len()), (60, 60));
        for (raw, plain) in raw.iter().zip(&plain) {
            let expected = if algorithm == "softmax" {
                let sum: f64 = raw.iter().map(|score| score.exp()).sum();
                raw.iter().map(|score| score.exp() / sum).collect()
            } else {
                vec![1.0 / (1.0 + (-raw[0]).exp())]
            };
            assert!(expected.iter().zip(plain).all(|(a, b)| (a - b).abs() < 1e-9), "{raw:?} {plain:?}");
        }
    }
    let fixed = ["predict", "--model", &folder.path("softmax"), "--data", &folder.path("softmax.csv")];
    let text = succeed(&[&fixed[..], &["--quiet", "--raw-scores", "--output", "-"]].concat());
    assert!(text.starts_with("label,predicted,score_a,score_b,score_c\n"), "{text}");
}

#[test]
fn algorithms_and_functions_are_listed_as_tables() {
    let all = succeed(&["algorithms"]);
    assert!(all.starts_with("fm         Factorization machine: "), "{all}");
    assert!(all.ends_with(
        "`seraphim algorithms NAME` lists the parameters of one; give them as --set name=value.\n"
    ));
    let one = succeed(&["algorithms", "lr"]);
    assert!(
        one.starts_with(
            "lr: Logistic regression: probability of label 1\n\n  optimizer = auto\n      auto | ftrl"
        ),
        "{one}"
    );
    assert!(one.contains("\n  class_weights = (none)\n"), "{one}");
    let table = succeed(&["algorithms", "lr", "--markdown"]);
    let head = "## lr\nLogistic regression: probability of label 1\n\n| name | type and range | default | unit | meaning |\n";
    assert!(table.starts_with(head) && table.contains("\n| `optimizer` | auto \\| ftrl \\| "), "{table}");
    let listed: serde_json::Value = serde_json::from_str(&succeed(&["algorithms", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), all.lines().count() - 2);
    let functions = succeed(&["functions"]);
    let mut rows = functions.lines();
    assert_eq!(rows.next(), Some("name               kind  reads      writes"));
    assert_eq!(rows.next(), Some("abs                push  1          1"));
    let listed: serde_json::Value = serde_json::from_str(&succeed(&["functions", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), rows.count() + 1);
    assert_eq!(listed[0]["name"], "abs");
}

#[test]
fn a_function_on_a_model_tells_its_result_or_what_it_has_changed() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", "1 1:1 2:1\n0 2:1\n1 1:1\n0 3:1\n");
    let model = folder.path("model");
    succeed(&["train", "lr", "--quiet", "--data", &data, "--model", &model]);
    assert_eq!(told(&folder, &["apply", &model, "--function", "sum"]).lines().count(), 1);
    let doubled = ["apply", &model, "--function", "scalar_mul", "--argument", "2"];
    let output = folder.path("doubled");
    let said = told(&folder, &[&doubled[..], &["--output", &output]].concat());
    assert_eq!(said, "scalar_mul has changed 3 of 4 values of weights; the model is saved in DIR/doubled\n");
    let error = fail(2, &["apply", &model, "--function", "scalar_mul", "--argument", "two"]);
    assert!(error.contains("--argument") && error.contains("JSON"), "{error}");
}

#[test]
fn checkpoints_are_listed_verified_and_removed() {
    // Steps in an epoch of 40 records.
    const STEPS: u64 = 4;
    let folder = Folder::new();
    let (data, place) = (people(&folder), folder.path("saved"));
    let fixed =
        ["train", "lr", "--quiet", "--data", &data, "--bad-lines", "skip=3", "--model", &folder.path("m")];
    let often = [
        "--set",
        "epochs=6000",
        "--set",
        "standardize=false",
        "--set",
        "batch_size=10",
        "--checkpoint-every",
        "1ticks",
    ];
    succeed(&[&fixed[..], &often, &["--checkpoints", &place, "--checkpoint-keep", "1000"]].concat());
    let listed = succeed(&["checkpoints", "list", &place]);
    let (title, rows) = listed.split_once('\n').unwrap();
    assert_eq!(masked(&folder, title), "training DIR/m of lr");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(&["checkpoints", "list", &place, "--json"])).unwrap();
    let values = json.as_array().unwrap();
    assert!(values.len() == rows.lines().count() && !values.is_empty(), "{listed}");
    for (row, value) in rows.lines().zip(values) {
        let number = |name: &str| value[name].as_u64().unwrap();
        let (epoch, clock) = (number("epoch"), number("clock"));
        let is_within = value["is_within_epoch"].as_bool().unwrap();
        let steps = if is_within { STEPS } else { 0 };
        assert!((epoch * STEPS..=epoch * STEPS + steps).contains(&clock), "{value}");
        let place = if is_within { "within" } else { "before" };
        let size = engine::amounts::bytes(number("size_bytes"));
        let expected =
            format!("{:08}  {place} epoch {}, clock {clock}, 1 task, {size}", number("number"), epoch + 1);
        assert_eq!(row, expected);
        assert_eq!(value["tasks"], 1);
    }
    let verified = told(&folder, &["checkpoints", "verify", &place]);
    for (row, value) in verified.lines().zip(values) {
        let begin = format!("{:08}  whole: 1 state, ", value["number"].as_u64().unwrap());
        assert!(row.starts_with(&begin) && row.contains(" rows, "), "{row}");
    }
    let all = values.len() - 1;
    let said = succeed(&["checkpoints", "prune", &place, "--keep", "1"]);
    assert_eq!(said, format!("removed {}\n", engine::amounts::counted(all as u64, "checkpoint")));
    assert_eq!(succeed(&["checkpoints", "list", &place]).lines().count(), 2);
}
