//! Promise: the same records give the same model, in this process and on any servers and workers. The input may be
//! plain or compressed, one file or many, a folder, a pattern or standard input, text, Parquet or Arrow, with numbers or names
//! as features.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::arrow_file;
use crate::common::parquet_file::{self, Table};
use crate::common::{Folder, clicks, command, gzip, succeed, train_everywhere};
use math::random::{Purpose, stream};

/// Keeps the files with the features of a model: weights and names. The other files describe the input too, which
/// differs between runs.
fn features(mut files: Vec<(PathBuf, Vec<u8>)>) -> Vec<(PathBuf, Vec<u8>)> {
    files.retain(|(name, _)| {
        ["weights.safetensors", "dictionary.tsv"].iter().any(|kept| name.ends_with(kept))
    });
    files
}

/// Set for files and streams alike: the default reads a stream once, and trains on a file to the minimum.
const OPTIMIZER: &str = "optimizer=ftrl";

/// Returns the features of a model that one task trains on `data`: only the records and their order matter then. Also
/// checks that the model of three tasks is the same in every deployment.
fn trained(folder: &Folder, data: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    train_everywhere(folder, &[&["lr", "--tasks", "3", "--set", OPTIMIZER, "--data"], data].concat());
    let model = folder.path("model");
    let fixed = ["train", "lr", "--quiet", "--overwrite", "--model", &model, "--tasks", "1"];
    succeed(&[&fixed[..], &["--set", OPTIMIZER, "--data"], data].concat());
    features(crate::common::bytes_of(&model))
}

/// Trains on all records as one file and as a folder of two files, plain and compressed.
fn in_all_ways(folder: &Folder, ending: &str, first: &str, second: &str, header: &str) {
    let whole = folder.write(&format!("whole.{ending}"), format!("{header}{first}{second}"));
    let expected = trained(folder, &[&whole]);
    let packed = folder.write(&format!("whole.{ending}.gz"), gzip(format!("{header}{first}{second}")));
    assert!(trained(folder, &[&packed]) == expected, "{ending}: gzip");
    let parts = format!("parts_{ending}");
    std::fs::create_dir(folder.path(&parts)).unwrap();
    folder.write(&format!("{parts}/a.{ending}"), format!("{header}{first}"));
    folder.write(&format!("{parts}/b.{ending}.gz"), gzip(format!("{header}{second}")));
    folder.write(&format!("{parts}/_SUCCESS"), "");
    assert!(trained(folder, &[&folder.path(&parts)]) == expected, "{ending}: a folder");
}

#[test]
fn files_folders_patterns_and_standard_input() {
    let folder = Folder::new();
    let (first, second) = (clicks(400, 1), clicks(300, 2));
    in_all_ways(&folder, "libsvm", &first, &second, "");
    let expected = trained(&folder, &[&folder.path("whole.libsvm")]);
    let (a, b) = (folder.path("parts_libsvm/a.libsvm"), folder.path("parts_libsvm/b.libsvm.gz"));
    assert!(trained(&folder, &[&a, &b]) == expected, "two files");
    assert!(trained(&folder, &[&a, "--data", &b]) == expected, "two flags");
    assert!(trained(&folder, &[&folder.path("parts_libsvm/?.libsvm*")]) == expected, "a pattern");
    let model = folder.path("piped");
    let fixed = ["train", "lr", "--data", "-", "--model", &model, "--tasks", "1", "--quiet"];
    let arguments = [&fixed[..], &["--set", OPTIMIZER]].concat();
    let mut child = command(&arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{first}{second}").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(features(crate::common::bytes_of(&model)) == expected, "standard input");
}

#[test]
fn values_left_out_are_one() {
    let folder = Folder::new();
    let text = clicks(400, 3);
    let valued = folder.write("valued.libsvm", &text);
    let dummy = folder.write("dummy.libsvm", text.replace(":1 ", " ").replace(":1\n", "\n"));
    assert!(trained(&folder, &[&valued]) == trained(&folder, &[&dummy]));
}

/// Number of towns in tables: each occurs in so few records that tasks meet names which no other task meets.
const TOWNS: u64 = 200;

fn table(count: u64, seed: u64) -> Table {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut table = Table::default();
    for _ in 0..count {
        let (color, town, size) = (random.below(5) as usize, random.below(TOWNS), random.below(8));
        let chance = [0.1, 0.9, 0.3, 0.7, 0.5][color];
        table.labels.push(i32::from(random.uniform() < chance));
        table.colors.push(["red", "green", "blue", "no color", "ros\u{e9}"][color].to_owned());
        table.towns.push(format!("town {town}"));
        table.sizes.push(size as f64 / 4.0);
    }
    table
}

fn lines(table: &Table, line: impl Fn(i32, &str, f64, &str) -> String) -> String {
    let names = table.colors.iter().zip(&table.towns);
    let records = table.labels.iter().zip(names).zip(&table.sizes);
    records.map(|((label, (color, town)), size)| line(*label, color, *size, town) + "\n").collect()
}

fn csv(table: &Table) -> String {
    lines(table, |label, color, size, town| format!("{label},{color},{size},{town}"))
}

fn vw(table: &Table) -> String {
    lines(table, |label, color, size, town| {
        let (color, town) = (color.replace(' ', "_"), town.replace(' ', "_"));
        format!("{} |color {color} |town {town} size:{size}", 2 * label - 1)
    })
}

fn ffm(table: &Table) -> String {
    lines(table, |label, color, size, _| format!("{label} 0:{}:1 1:0:{size}", color.len()))
}

fn dense(table: &Table) -> String {
    lines(table, |label, color, size, town| format!("{label} {} {size} {}", color.len(), town.len()))
}

#[test]
fn names_in_tables() {
    let folder = Folder::new();
    let (first, second) = (table(300, 4), table(200, 5));
    let header = "label,color,size,town\n";
    in_all_ways(&folder, "csv", &csv(&first), &csv(&second), header);
    let expected = trained(&folder, &[&folder.path("whole.csv")]);
    std::fs::create_dir(folder.path("parquet")).unwrap();
    parquet_file::write(&folder.path("parquet/a.parquet"), &first);
    parquet_file::write(&folder.path("parquet/b.parquet"), &second);
    assert!(trained(&folder, &[&folder.path("parquet")]) == expected, "Parquet");
    std::fs::create_dir(folder.path("arrow")).unwrap();
    arrow_file::write(&folder.path("arrow/a.arrow"), &first);
    arrow_file::write(&folder.path("arrow/b.arrows"), &second);
    assert!(trained(&folder, &[&folder.path("arrow")]) == expected, "Arrow");
}

#[test]
fn more_names_than_one_message_has_and_tasks_that_know_the_same_ones() {
    /// More than the 65,536 names of a piece.
    const NAMES: u64 = 70_000;

    let folder = Folder::new();
    let line = |i: u64| format!("{},user {:05}\n", i % 2, i * 7919 % NAMES);
    let text: String = (0..NAMES + NAMES / 2).map(line).collect();
    let data = folder.write("users.csv", format!("label,user\n{text}"));
    let model = train_everywhere(
        &folder,
        &["lr", "--tasks", "3", "--set", OPTIMIZER, "--set", "epochs=1", "--data", &data],
    );
    let (_, names) = model.iter().find(|(name, _)| name.ends_with("dictionary.tsv")).unwrap();
    let names = String::from_utf8_lossy(names);
    assert_eq!(names.lines().count() as u64, NAMES + 1, "a heading, and each name once");
    let keys = names.lines().skip(1).map(|line| line.split_once('\t').unwrap());
    let keys: Vec<(u64, &str)> = keys.map(|(key, name)| (key.parse().unwrap(), name)).collect();
    assert!(keys.is_sorted_by(|a, b| a.0 < b.0));
    assert!(keys.iter().all(|(key, name)| *key == math::hash::named_key(b"user", &name.as_bytes()[5..])));
}

#[test]
fn names_in_vw_text() {
    let folder = Folder::new();
    in_all_ways(&folder, "vw", &vw(&table(300, 6)), &vw(&table(200, 7)), "");
}

#[test]
fn fields_and_rows_of_numbers() {
    let folder = Folder::new();
    let (first, second) = (table(300, 8), table(200, 9));
    in_all_ways(&folder, "ffm", &ffm(&first), &ffm(&second), "");
    in_all_ways(&folder, "dense", &dense(&first), &dense(&second), "");
}

#[test]
fn lists_of_numbers_in_parquet_and_arrow() {
    let folder = Folder::new();
    let (first, second) = (clicks(400, 10), clicks(300, 11));
    let text = folder.write("whole.libsvm", format!("{first}{second}"));
    std::fs::create_dir(folder.path("parquet")).unwrap();
    parquet_file::write_lists(&folder.path("parquet/a.parquet"), &first);
    parquet_file::write_lists(&folder.path("parquet/b.parquet"), &second);
    let expected = trained(&folder, &[&text]);
    assert!(trained(&folder, &[&folder.path("parquet")]) == expected, "Parquet");
    std::fs::create_dir(folder.path("arrow")).unwrap();
    arrow_file::write_lists(&folder.path("arrow/a.arrow"), &first);
    arrow_file::write_lists(&folder.path("arrow/b.arrow"), &second);
    assert!(trained(&folder, &[&folder.path("arrow")]) == expected, "Arrow");
}
