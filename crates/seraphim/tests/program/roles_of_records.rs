//! Promise: what a record has besides numbers and names (words, times, the two ends of an edge) means the same in every
//! format and in every deployment.

#![cfg(feature = "parquet")]
#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "helpers of tests"
)]

use std::path::PathBuf;

use crate::common::parquet_file::{self, Table};
use crate::common::{Folder, arrow_file, bytes_of, fail, succeed, train_everywhere};
use math::random::{Purpose, stream};

/// The weights of a model, and the names of its features.
fn features(mut files: Vec<(PathBuf, Vec<u8>)>) -> Vec<(PathBuf, Vec<u8>)> {
    files.retain(|(name, _)| {
        ["weights.safetensors", "dictionary.tsv"].iter().any(|kept| name.ends_with(kept))
    });
    files
}

/// What a training with this data learns, which is the same in every deployment.
fn learned(folder: &Folder, arguments: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    features(train_everywhere(folder, arguments))
}

/// Records whose label depends on their words.
fn reviews(count: usize) -> Table {
    let mut random = stream(8, Purpose::Test, 0, 0);
    let mut table = Table::default();
    for _ in 0..count {
        let label = random.below(2) as i32;
        let words: Vec<String> = (0..=random.below(6))
            .map(|_| match random.below(3) {
                0 => ["poor", "good"][label as usize].to_owned(),
                _ => format!("w{}", random.below(20)),
            })
            .collect();
        table.labels.push(label);
        table.colors.push(words.join(" "));
        table.towns.push(format!("town {}", random.below(3)));
        table.sizes.push(random.below(8) as f64);
    }
    table
}

#[test]
fn words_of_a_column_are_the_same_features_in_csv_parquet_and_arrow() {
    let (folder, table) = (Folder::new(), reviews(600));
    let mut text = "label,color,size,town\n".to_owned();
    for (((label, words), town), size) in
        table.labels.iter().zip(&table.colors).zip(&table.towns).zip(&table.sizes)
    {
        text += &format!("{label},{words},{size},{town}\n");
    }
    let csv = folder.write("reviews.csv", text);
    let (parquet, arrow) = (folder.path("reviews.parquet"), folder.path("reviews.arrow"));
    parquet_file::write(&parquet, &table);
    arrow_file::write(&arrow, &table);
    // One task, because tasks get other shares of other files.
    let fixed = ["lr", "--token-columns", "color", "--tasks", "1", "--set", "optimizer=ftrl", "--data"];
    let expected = learned(&folder, &[&fixed[..], &[&csv]].concat());
    for other in [&parquet, &arrow] {
        assert!(learned(&folder, &[&fixed[..], &[other]].concat()) == expected, "{other}");
    }
    let names =
        String::from_utf8(expected.iter().find(|file| file.0.ends_with("dictionary.tsv")).unwrap().1.clone());
    let names = names.unwrap();
    assert!(
        names.contains("color=good\n") && names.contains("town=town 1\n") && !names.contains("good "),
        "{names}"
    );
    // The model reads words in each format, without being told.
    let model = folder.path("everywhere");
    let scores =
        |data: &str| succeed(&["predict", "--model", &model, "--data", data, "--output", "-", "--quiet"]);
    let of_csv = scores(&csv);
    assert_eq!((scores(&parquet), scores(&arrow)), (of_csv.clone(), of_csv));
    let said = succeed(&["evaluate", "--model", &model, "--data", &csv, "--json"]);
    let metrics: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(metrics.to_string().contains("\"auc\":0.9"), "{metrics}");
}

#[test]
fn documents_are_the_bags_of_words_of_vowpal_wabbit() {
    let (folder, table) = (Folder::new(), reviews(400));
    let text = folder.write("documents.txt", table.colors.join("\n"));
    let vw = folder
        .write("documents.vw", table.colors.iter().map(|words| format!("0 | {words}\n")).collect::<String>());
    let fixed = ["kmeans", "--set", "k=3", "--tasks", "1", "--data"];
    let expected = learned(&folder, &[&fixed[..], &[&text, "--format", "text"]].concat());
    // The names of the features differ: those of namespaces have the namespace.
    assert!(learned(&folder, &[&fixed[..], &[&vw]].concat())[1..] == expected[1..]);
    assert!(expected[0].0.ends_with("dictionary.tsv") && expected[1].0.ends_with("weights.safetensors"));
    // With several tasks, each deployment gives one model.
    let fixed = ["kmeans", "--set", "k=3", "--tasks", "3", "--format", "text", "--data", &text];
    assert!(!learned(&folder, &fixed).is_empty());
}

#[test]
fn edges_are_records_with_two_nodes_in_two_fields() {
    let folder = Folder::new();
    let mut random = stream(9, Purpose::Test, 0, 0);
    let edges: Vec<(u64, u64)> = (0..500).map(|_| (random.below(30), 30 + random.below(30))).collect();
    let line = |(source, target): &(u64, u64)| format!("{source}\t{target}\n");
    let graph =
        folder.write("graph.edges", format!("# a graph\n{}", edges.iter().map(line).collect::<String>()));
    let ffm = |(source, target): &(u64, u64)| format!("0 0:{source}:1 1:{target}:1\n");
    let ffm = folder.write("graph.ffm", edges.iter().map(ffm).collect::<String>());
    let fixed = ["kmeans", "--set", "k=3", "--tasks", "1", "--data"];
    let expected = learned(&folder, &[&fixed[..], &[&graph]].concat());
    assert!(learned(&folder, &[&fixed[..], &[&ffm]].concat()) == expected);
    let weighted = |(source, target): &(u64, u64)| format!("n{source},n{target},{}\n", 1 + source % 3);
    let weighted = folder.write("weighted.edges", edges.iter().map(weighted).collect::<String>());
    let model = learned(&folder, &["kmeans", "--set", "k=3", "--tasks", "2", "--data", &weighted]);
    let names =
        String::from_utf8_lossy(&model.iter().find(|file| file.0.ends_with("dictionary.tsv")).unwrap().1);
    assert!(names.contains("\tn7\n"), "{names}");
}

/// Records in the order of their days, and the same records of the first days and of the others.
fn days() -> [String; 3] {
    let mut random = stream(10, Purpose::Test, 0, 0);
    let header = "label,x,day\n";
    let mut texts = [header.to_owned(), header.to_owned(), header.to_owned()];
    for _ in 0..600 {
        let (x, day) = (random.uniform() - 0.5, random.below(28) + 1);
        let line = format!("{},{x:.4},2026-01-{day:02}\n", i32::from(x + random.uniform() / 4.0 > 0.1));
        texts[0] += &line;
        texts[if day < 21 { 1 } else { 2 }] += &line;
    }
    texts
}

#[test]
fn records_from_a_time_on_validate_and_do_not_train() {
    let folder = Folder::new();
    let [all, early, late] = days();
    let (all, early, late) =
        (folder.write("all.csv", all), folder.write("early.csv", early), folder.write("late.csv", late));
    let fixed = ["lr", "--tasks", "1", "--set", "optimizer=adagrad", "--set", "epochs=3"];
    let cut = ["--time", "day", "--validate-from", "2026-01-21", "--data", &all];
    let held_out = learned(&folder, &[&fixed[..], &cut].concat());
    let report = |arguments: &[&str]| -> serde_json::Value {
        let model = folder.path("reported");
        let said = succeed(
            &[&["train"], &fixed[..], arguments, &["--model", &model, "--overwrite", "--json"]].concat(),
        );
        serde_json::from_str(&said).unwrap()
    };
    let separate = ["--data", &early, "--validate", &late, "--skip-columns", "day"];
    let [with_cut, with_files] = [report(&cut), report(&separate)];
    let last =
        |report: &serde_json::Value, what: &str| report["epochs"][2][what]["log_loss"].as_f64().unwrap();
    assert_eq!(last(&with_cut, "validation"), last(&with_files, "validation"), "{with_cut}");
    assert_eq!(features(bytes_of(&folder.path("reported"))), held_out);
    // In every deployment, with several tasks.
    assert!(!learned(&folder, &[&["lr", "--tasks", "3"], &cut[..]].concat()).is_empty());
    // Data to predict on need no times.
    let model = folder.path("everywhere");
    let plain = folder.write("plain.csv", "x\n0.3\n-0.4\n");
    let scored =
        succeed(&["predict", "--model", &model, "--data", &plain, "--output", "-", "--no-label", "--quiet"]);
    assert_eq!(scored.lines().count(), 3, "{scored}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = Folder::new();
    let [all, ..] = days();
    let all = folder.write("all.csv", all);
    let text = folder.write("documents.txt", "a b\nb c\n");
    let edges = folder.write("plain.edges", "1 2\n2 3\n");
    let model = folder.path("model");
    let refused = |code: i32, arguments: &[&str], words: &str| {
        let said = fail(code, &[&["train"], arguments, &["--model", &model, "--quiet"]].concat());
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(!std::path::Path::new(&model).exists());
    };
    let from = |time| ["lr", "--data", &all, "--time", "day", "--validate-from", time];
    refused(
        2,
        &from("2030-01-01"),
        "validate_from=2030-01-01 holds out none of the records; take an earlier time",
    );
    refused(
        2,
        &from("2020-01-01"),
        "validate_from=2020-01-01 holds out all of the records; take a later time",
    );
    refused(2, &from("soon"), "\"soon\" is not a number, or a date as in 2026-01-31");
    refused(2, &["lr", "--data", &all, "--validate-from", "3"], "name their column with --time");
    refused(
        2,
        &["lr", "--data", &all, "--time", "day"],
        "hold out the latest records with --validate-from TIME",
    );
    let twice = [&from("2026-01-21")[..], &["--set", "validation_share=0.1"]].concat();
    refused(2, &twice, "leave one of them out");
    let files = [&from("2026-01-21")[..], &["--validate", &all]].concat();
    refused(2, &files, "leave one of them out");
    refused(2, &["lr", "--data", &text, "--format", "text"], "lines of text have no labels");
    refused(2, &["lr", "--data", &edges], "edges have no labels");
    refused(2, &["lr", "--data", &all, "--token-columns", "dya"], "day");
    // Edges may have times without a column; each of them has to have one.
    let timed: String = (0..100).map(|i| format!("{} {} 1 {i}\n", i % 7, 7 + i % 5)).collect();
    let timed = folder.write("timed.edges", timed);
    let late = ["kmeans", "--data", &timed, "--set", "k=2", "--validate-from", "50"];
    let held_out = folder.path("held_out");
    let said = succeed(&[&["train"], &late[..], &["--model", &held_out, "--json"]].concat());
    assert!(said.contains("\"validation\": {"), "{said}");
    let late = ["kmeans", "--data", &edges, "--set", "k=2", "--validate-from", "50"];
    refused(3, &late, "plain.edges:1:1: expected a time of the record");
    let undated = folder.write("undated.csv", "label,x,day\n1,2,2026-01-01\n0,3,later\n");
    let late = ["lr", "--data", &undated, "--time", "day", "--validate-from", "2026-01-02"];
    refused(3, &late, "undated.csv:3:5");
}
