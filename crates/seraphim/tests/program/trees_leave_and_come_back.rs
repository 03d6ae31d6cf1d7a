//! What users do with trees besides scores: contributions and leaves, the text model of LightGBM out and in, pictures.

use std::fmt::Write as _;

use math::random::{Purpose, stream};

use crate::common::{Folder, fail, succeed};

/// A table with numbers, missing ones, categories, and a label of some names.
fn table(count: usize, names: &[&str]) -> String {
    let mut random = stream(11, Purpose::Test, 0, 0);
    let mut text = "town,age,income,kind\n".to_owned();
    for _ in 0..count {
        let (town, age, income) = (random.below(9), random.below(60), random.normal());
        let score = f64::from(u8::from(age > 25)) + income + f64::from(u8::from([2, 5].contains(&town)));
        let kind =
            names[((score + 1.5) * names.len() as f64 / 5.0).clamp(0.0, names.len() as f64 - 1.0) as usize];
        let income = if random.below(8) == 0 { String::new() } else { format!("{income:.3}") };
        let town = if random.below(20) == 0 { String::new() } else { format!("town {town}") };
        writeln!(text, "{town},{age},{income},{kind}").expect("a string takes all");
    }
    text
}

/// The columns of a prediction with their numbers, without that of the label.
fn predict(folder: &Folder, model: &str, more: &[&str]) -> (Vec<String>, Vec<Vec<f64>>) {
    let (model, data) = (folder.path(model), folder.path("data.csv"));
    let fixed = ["predict", "--model", &model, "--data", &data, "--quiet", "--output", "-"];
    let text = succeed(&[&fixed[..], more].concat());
    let mut lines = text.lines();
    let names: Vec<String> = lines.next().expect("a header").split(',').map(str::to_owned).collect();
    let first = names.iter().position(|name| !["label", "predicted"].contains(&name.as_str())).unwrap_or(0);
    let numbers =
        |line: &str| line.split(',').skip(first).map(|field| field.parse().expect("a number")).collect();
    (names[first..].to_vec(), lines.map(numbers).collect())
}

fn train(folder: &Folder, objective: &str, names: &[&str]) {
    let data = folder.write("data.csv", table(900, names));
    let (model, objective) = (folder.path("model"), format!("objective={objective}"));
    let fixed =
        ["train", "gbdt", "--data", &data, "--label", "kind", "--model", &model, "--quiet", "--overwrite"];
    let settings = ["--set", &objective, "--set", "iterations=12", "--set", "leaves=9"];
    succeed(&[&fixed[..], &settings].concat());
}

#[test]
fn contributions_add_up_to_the_raw_scores_and_leaves_are_counted() {
    let folder = Folder::new();
    for (objective, names) in [("logistic", &["no", "yes"][..]), ("softmax", &["a", "b", "c"])] {
        train(&folder, objective, names);
        let (_, raw) = predict(&folder, "model", &["--raw-scores"]);
        let (columns, contributions) = predict(&folder, "model", &["--contributions"]);
        let classes = if objective == "softmax" { names.len() } else { 1 };
        assert_eq!(columns.len(), classes * 4);
        match classes {
            1 => assert_eq!(columns, ["town", "age", "income", "expected_value"]),
            _ => assert_eq!(columns[3..5], ["a:expected_value", "b:town"]),
        }
        assert_eq!((raw.len(), contributions.len()), (900, 900));
        for (raw, contributions) in raw.iter().zip(&contributions) {
            for (raw, own) in raw.iter().zip(contributions.chunks(4)) {
                let sum: f64 = own.iter().sum();
                assert!((sum - raw).abs() < 1e-9 * raw.abs().max(1e-3), "{sum} {raw}");
            }
        }
        assert!(contributions.iter().any(|own| own[0] != 0.0));
        let (columns, leaves) = predict(&folder, "model", &["--leaves"]);
        assert_eq!((columns.len(), columns[1].as_str()), (12 * classes, "tree_1"));
        assert!(leaves.iter().flatten().all(|leaf| leaf.fract() == 0.0 && (0.0..9.0).contains(leaf)));
        // Servers and workers write the same bytes.
        let (model, data, out) = (folder.path("model"), folder.path("data.csv"), folder.path("out.csv"));
        for flag in ["--contributions", "--leaves"] {
            let fixed =
                ["predict", "--model", &model, "--data", &data, "--quiet", "--overwrite", flag, "--output"];
            let plain = succeed(&[&fixed[..], &["-"]].concat());
            succeed(&[&fixed[..], &[&out, "--servers", "2", "--workers", "2"]].concat());
            assert!(std::fs::read_to_string(&out).unwrap() == plain, "{flag}");
        }
    }
}

#[test]
fn models_without_trees_refuse_what_trees_can() {
    let folder = Folder::new();
    let data = folder.write("data.csv", table(100, &["no", "yes"]));
    let model = folder.path("lr");
    succeed(&["train", "lr", "--data", &data, "--label", "kind", "--model", &model, "--quiet"]);
    for flag in ["--leaves", "--contributions"] {
        let error = fail(2, &["predict", "--model", &model, "--data", &data, "--output", "-", flag]);
        assert!(error.contains(flag) && error.contains("gbdt"), "{error}");
    }
    for format in ["lightgbm", "text", "graphviz"] {
        let error = fail(3, &["export", &model, "--format", format]);
        assert!(error.contains("no trees"), "{error}");
    }
    let both = ["predict", "--model", &model, "--data", &data, "--output", "-", "--leaves", "--raw-scores"];
    assert!(fail(2, &both).contains("different outputs"));
    let tree = ["export", &model, "--tree", "1"];
    assert!(fail(2, &tree).contains("--tree"));
}

#[test]
fn a_model_that_was_written_for_lightgbm_is_read_again() {
    let folder = Folder::new();
    for (objective, names) in [("logistic", &["no", "yes"][..]), ("softmax", &["a", "b", "c"])] {
        train(&folder, objective, names);
        let (model, text, again) = (folder.path("model"), folder.path("model.txt"), folder.path("again"));
        let (data, classes) = (folder.path("data.csv"), names.join(","));
        succeed(&["export", &model, "--format", "lightgbm", "--output", &text, "--overwrite"]);
        let import = ["import", "lightgbm", &text, "--model", &again, "--label", "kind", "--overwrite"];
        let told = succeed(&[&import[..], &["--classes", &classes]].concat());
        assert!(told.starts_with("12 iterations over 3 features"), "{told}");
        for more in [&[][..], &["--raw-scores"], &["--leaves"], &["--contributions"]] {
            let (before, after) = (predict(&folder, "model", more), predict(&folder, "again", more));
            assert_eq!(before.0, after.0);
            for (before, after) in before.1.iter().flatten().zip(after.1.iter().flatten()) {
                assert!((before - after).abs() < 1e-12 * before.abs().max(1.0), "{more:?}: {before} {after}");
            }
        }
        let evaluate = |model: &str| succeed(&["evaluate", "--model", model, "--data", &data]);
        let metric = |text: &str| text.lines().find(|line| line.starts_with("log_loss")).map(str::to_owned);
        assert_eq!(metric(&evaluate(&model)), metric(&evaluate(&again)));
        let inspected = succeed(&["inspect", &again]);
        assert!(
            inspected.contains("imported     from ") && inspected.contains("12 iterations"),
            "{inspected}"
        );
        let objective = format!("objective={objective}");
        let on =
            ["--from", &again, "--model", &folder.path("more"), "--set", "leaves=9", "--set", &objective];
        let error = fail(3, &[&["train", "gbdt", "--data", &data, "--label", "kind"], &on[..]].concat());
        assert!(error.contains("imported"), "{error}");
    }
    let (text, model) = (folder.path("model.txt"), folder.path("none"));
    let whole = std::fs::read_to_string(&text).unwrap();
    std::fs::write(&text, &whole[..whole.len() / 2]).unwrap();
    let error = fail(3, &["import", "lightgbm", &text, "--model", &model]);
    assert!(error.contains("model.txt") && error.contains("cut off"), "{error}");
    assert!(!std::path::Path::new(&model).exists());
    fail(2, &["import", "lightgbm", &text, "--model", &model, "--first-feature", "1"]);
}

#[test]
fn a_tree_is_shown_as_text_and_as_a_graph() {
    let folder = Folder::new();
    train(&folder, "logistic", &["no", "yes"]);
    let model = folder.path("model");
    let text = succeed(&["export", &model, "--format", "text", "--tree", "3"]);
    assert!(text.starts_with("tree 3\n") && text.contains("leaf 0: ") && text.contains(" records"), "{text}");
    assert!(
        ["income <= ", "age <= ", "town is one of town "].iter().any(|part| text.contains(part)),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1 + 9 + 8);
    let out = folder.path("trees.dot");
    succeed(&["export", &model, "--format", "graphviz", "--output", &out]);
    succeed(&["export", &model, "--format", "graphviz", "--output", &out, "--overwrite"]);
    let graphs = std::fs::read_to_string(&out).unwrap();
    assert_eq!((graphs.matches("digraph").count(), graphs.matches(" -> ").count()), (12, 12 * 16));
    assert!(fail(3, &["export", &model, "--format", "text", "--tree", "12"]).contains("no tree 12"));
}
