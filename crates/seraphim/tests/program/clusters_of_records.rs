//! KMeans as a user runs it: formats, deployments, predictions, continued training, and what is refused.

#![cfg(feature = "parquet")]
#![allow(
    clippy::unwrap_used,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "helpers of tests"
)]

use crate::common::parquet_file::{self, Table};
use crate::common::{Folder, fail, number, succeed, train_everywhere};
use math::random::{Purpose, stream};

/// Colors, sizes and towns of records around three centres, and the group of each.
fn table(count: usize) -> (Table, Vec<usize>) {
    let mut random = stream(4, Purpose::Test, 0, 0);
    let (mut table, mut groups) = (Table::default(), Vec::new());
    for i in 0..count {
        let group = i % 3;
        table.labels.push(i32::from(i % 2 == 0));
        table.colors.push(["red", "green", "blue"][group].to_owned());
        table.towns.push(["Rome", "Oslo"][random.below(2) as usize].to_owned());
        table.sizes.push(group as f64 * 20.0 + random.uniform());
        groups.push(group);
    }
    (table, groups)
}

fn csv(table: &Table) -> String {
    let mut text = "color,size,town\n".to_owned();
    for ((color, size), town) in table.colors.iter().zip(&table.sizes).zip(&table.towns) {
        text += &format!("{color},{size},{town}\n");
    }
    text
}

/// The cluster of each record in a CSV of predictions.
fn clusters(path: &str) -> Vec<usize> {
    let text = std::fs::read_to_string(path).unwrap();
    let (header, lines) = text.split_once('\n').unwrap();
    let at = header.split(',').position(|name| name == "cluster").unwrap();
    lines.lines().map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

/// Whether the clusters are the groups under other numbers.
fn are_same(clusters: &[usize], groups: &[usize]) -> bool {
    let first = |group: usize| clusters[groups.iter().position(|other| *other == group).unwrap()];
    clusters.iter().zip(groups).all(|(cluster, group)| *cluster == first(*group))
}

#[test]
fn every_format_and_deployment_finds_the_groups() {
    let folder = Folder::new();
    let (table, groups) = table(300);
    let text = folder.write("a.csv", csv(&table));
    let columns = folder.path("a.parquet");
    parquet_file::write(&columns, &table);
    let lines = |of: &dyn Fn(usize) -> String| (0..groups.len()).map(of).collect::<String>();
    let libsvm = folder.write(
        "a.libsvm",
        lines(&|i| format!("{} {}:1 9:{}\n", table.labels[i], 1 + groups[i], table.sizes[i])),
    );
    let libffm = folder.write(
        "a.libffm",
        lines(&|i| format!("{} 0:{}:1 1:9:{}\n", table.labels[i], 1 + groups[i], table.sizes[i])),
    );
    let vw = folder.write(
        "a.vw",
        lines(&|i| format!("{} | {} size:{}\n", table.labels[i], table.colors[i], table.sizes[i])),
    );
    for (data, more) in
        [(&text, &[][..]), (&columns, &["--label", "label"]), (&libsvm, &[]), (&libffm, &[]), (&vw, &[])]
    {
        for method in ["lloyd", "mini_batch"] {
            let method = format!("method={method}");
            let job = ["kmeans", "--tasks", "3", "--set", "k=3", "--set", &method, "--data", data];
            train_everywhere(&folder, &[&job[..], more].concat());
            let (model, scores) = (folder.path("everywhere"), folder.path("scores.csv"));
            succeed(&["predict", "--model", &model, "--data", data, "--output", &scores, "--overwrite"]);
            assert!(are_same(&clusters(&scores), &groups), "{data} {method}");
            let metrics = succeed(&["evaluate", "--model", &model, "--data", data, "--json"]);
            assert!(number(&metrics, "/metrics/simplified_silhouette") > 0.9, "{data} {method}: {metrics}");
        }
    }
}

#[test]
fn ssp_and_asp_find_them_too() {
    let folder = Folder::new();
    let (table, groups) = table(300);
    let data = folder.write("a.csv", csv(&table));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    for consistency in ["ssp:2", "asp"] {
        for method in ["method=lloyd", "method=mini_batch"] {
            let job = [
                "train",
                "kmeans",
                "--quiet",
                "--overwrite",
                "--data",
                &data,
                "--model",
                &model,
                "--tasks",
                "3",
            ];
            let how = ["--set", "k=3", "--set", method, "--consistency", consistency, "--servers", "2"];
            succeed(&[&job[..], &how].concat());
            succeed(&["predict", "--model", &model, "--data", &data, "--output", &scores, "--overwrite"]);
            assert!(are_same(&clusters(&scores), &groups), "{consistency} {method}");
        }
    }
}

#[test]
fn a_table_has_a_label_only_if_it_is_named() {
    let folder = Folder::new();
    // The column y would be the label of other algorithms.
    let text: String = (0..60).map(|i| format!("{}.5,{}\n", i / 30, i % 2 * 90)).collect();
    let data = folder.write("a.csv", format!("x,y\n{text}"));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    let train = |more: &[&str]| {
        let job = ["train", "kmeans", "--overwrite", "--set", "k=2", "--data", &data, "--model", &model];
        let output = succeed(&[&job[..], more].concat());
        succeed(&["predict", "--model", &model, "--data", &data, "--output", &scores, "--overwrite"]);
        assert!(!output.contains("label"), "{output}");
        clusters(&scores)
    };
    let halves: Vec<usize> = (0..60).map(|i| i / 30).collect();
    let alternating: Vec<usize> = (0..60).map(|i| i % 2).collect();
    assert!(are_same(&train(&[]), &alternating), "y is a feature");
    assert!(are_same(&train(&["--label", "y"]), &halves), "y is not read");
    let kept = ["--keep-columns", "y", "--output", &scores, "--overwrite"];
    succeed(&[&["predict", "--model", &model, "--data", &data][..], &kept].concat());
    assert!(std::fs::read_to_string(&scores).unwrap().starts_with("y,cluster,distance\n"));
}

#[test]
fn records_of_standard_input_are_read_once() {
    let folder = Folder::new();
    let (table, groups) = table(300);
    let data = folder.write("a.csv", csv(&table));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    for sets in ["method=lloyd", "method=mini_batch epochs=1", "method=mini_batch epochs=3"] {
        let job =
            ["train", "kmeans", "--quiet", "--overwrite", "--data", "-", "--format", "csv", "--set", "k=3"];
        let sets: Vec<_> = sets.split(' ').flat_map(|set| ["--set", set]).collect();
        let mut child = crate::common::command(&[&job[..], &sets, &["--model", &model]].concat());
        let input = std::fs::File::open(&data).unwrap();
        let output = child.stdin(input).output().unwrap();
        assert!(output.status.success(), "{sets:?}: {}", String::from_utf8_lossy(&output.stderr));
        succeed(&["predict", "--model", &model, "--data", &data, "--output", &scores, "--overwrite"]);
        assert!(are_same(&clusters(&scores), &groups), "{sets:?}");
    }
}

#[test]
fn training_goes_on_from_its_own_centres() {
    let folder = Folder::new();
    let (table, _) = table(200);
    let data = folder.write("a.csv", csv(&table));
    let (first, second) = (folder.path("first"), folder.path("second"));
    let train = |model: &str, more: &[&str]| {
        let job = ["train", "kmeans", "--json", "--quiet", "--overwrite", "--data", &data, "--model", model];
        succeed(&[&job[..], more].concat())
    };
    train(&first, &["--set", "k=3", "--set", "tolerance=0"]);
    let report = train(&second, &["--set", "k=3", "--set", "tolerance=0", "--from", &first]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["epochs"].as_array().unwrap().len() <= 2, "nothing is left to move: {report}");
    let rows = |model: &str| std::fs::read(format!("{model}/weights.safetensors")).unwrap();
    assert!(rows(&first) == rows(&second));
    let other = ["train", "kmeans", "--data", &data, "--model", &second, "--overwrite", "--from", &first];
    let error = fail(4, &[&other[..], &["--set", "k=4"]].concat());
    assert!(error.contains('3') && error.contains('4') && error.contains('k'), "{error}");
    for method in ["method=lloyd", "method=mini_batch"] {
        let fewer = folder.write("fewer.libsvm", "1 1:1\n0 1:2\n1 1:3\n");
        let more = folder.write("more.libsvm", "1 1:1 7:5\n0 1:2 9:5\n1 1:3\n");
        let earlier = folder.path("earlier");
        let job = ["train", "kmeans", "--quiet", "--overwrite", "--set", "k=2", "--set", method];
        succeed(&[&job[..], &["--data", &more, "--model", &earlier]].concat());
        let error =
            fail(3, &[&job[..], &["--data", &fewer, "--model", &second, "--from", &earlier]].concat());
        assert!(error.contains("features that the training data lack"), "{error}");
    }
    let error =
        fail(4, &["train", "lr", "--data", &data, "--model", &second, "--overwrite", "--from", &first]);
    assert!(error.contains("family \"kmeans\""), "{error}");
}

#[test]
fn what_cannot_be_clustered_is_refused() {
    let folder = Folder::new();
    let data = folder.write("a.csv", "x,y\n1,2\n3,4\n0,0\n");
    let model = folder.path("model");
    for deployment in [&[][..], &["--servers", "1"]] {
        let train = |set: &str| {
            let job = ["train", "kmeans", "--quiet", "--data", &data, "--model", &model];
            let sets = set.split(' ').flat_map(|set| ["--set", set]).collect::<Vec<_>>();
            fail(if set.contains("k=0") { 2 } else { 3 }, &[&job[..], &sets, deployment].concat())
        };
        assert!(train("k=4").contains("k=4 is more than the 3 training records"));
        assert!(train("k=2 distance=cosine").contains("only zeros"));
        assert!(train("k=0").contains("[1, 65536]"));
        assert!(!std::path::Path::new(&model).exists());
    }
    let nan = folder.write("nan.csv", "x,y\n1,2\n3,inf\n0,0\n");
    let error = fail(3, &["train", "kmeans", "--set", "k=1", "--data", &nan, "--model", &model]);
    assert!(error.contains("nan.csv:3"), "{error}");
}

#[test]
fn a_model_of_a_family_that_the_program_lacks_is_refused() {
    let folder = Folder::new();
    let data = folder.write("a.csv", "x,y\n1,2\n3,4\n0,0\n");
    let model = folder.path("model");
    succeed(&["train", "kmeans", "--quiet", "--set", "k=2", "--data", &data, "--model", &model]);
    let path = format!("{model}/model.json");
    let mut manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(manifest["model"]["family"], "kmeans");
    manifest["model"]["family"] = "forests".into();
    manifest.as_object_mut().unwrap().remove("crc32c");
    std::fs::write(&path, crate::common::sealed(&manifest)).unwrap();
    let scores = folder.path("scores.csv");
    for command in [
        &["predict", "--model", &model, "--data", &data, "--output", &scores][..],
        &["evaluate", "--model", &model, "--data", &data],
        &["inspect", &model],
    ] {
        let error = fail(4, command);
        assert!(
            error.contains("\"forests\"") && error.contains("kmeans, linear, recommender, topics, trees"),
            "{error}"
        );
    }
}
