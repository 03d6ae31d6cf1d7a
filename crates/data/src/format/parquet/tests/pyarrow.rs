//! Files of pyarrow, pandas and Spark, which `fuzz/corpus/parquet.py` made.

use math::hash::named_key;

use super::{Batch, Case, LabelRule, corpus, entries};

/// Columns of the file of all types, in order, without the label.
const TYPES: [&str; 28] = [
    "bool", "f16", "f32", "f64", "d9", "d18", "d38", "d76", "date32", "ts_s", "ts_ms", "ts_us", "ts_ns",
    "time_ms", "time_us", "null", "string", "binary", "large", "category", "i8", "u8", "i16", "u16", "i32",
    "u32", "i64", "u64",
];

/// Those of them that hold names.
const NAMES: [&str; 4] = ["string", "binary", "large", "category"];

/// Returns the entry of column `name` in record `r`; the fourth record is null in all columns.
fn entry(key: usize, name: &str, r: usize) -> Option<(u64, f32)> {
    let is_missing = r == 3 || name == "null";
    if is_missing {
        return (!NAMES.contains(&name)).then(|| (named_key(name.as_bytes(), b"missing"), 1.0));
    }
    let v = r as f64 + 1.0;
    let word = |text: String| Some((named_key(name.as_bytes(), text.as_bytes()), 1.0));
    let number = match name {
        "bool" => f64::from(u8::from((r + 1).is_multiple_of(2))),
        "f16" | "f32" | "f64" | "time_ms" | "time_us" => v + 0.5,
        "d9" | "d18" | "d38" | "d76" => v + 0.25,
        "date32" => v * 86_400.0,
        "ts_s" => v * 1000.0,
        "ts_ms" | "ts_us" | "ts_ns" => v * 1000.0 + 0.5,
        "string" => return word(format!("word {}", (r + 1) % 2)),
        "binary" => return word(format!("bytes {}", r + 1)),
        "large" => return word(format!("large {}", r + 1)),
        "category" => return word(format!("kind {}", (r + 1) % 2)),
        signed if signed.starts_with('i') => -v,
        _ => v + 100.0,
    };
    (number != 0.0).then_some((key as u64, number as f32))
}

fn read(name: &str) -> Batch {
    Case::of(&corpus(name)).read().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn has_all_types(name: &str, columns: &[&str]) {
    let batch = read(name);
    assert_eq!(batch.labels, [1.0, 0.0, 1.0, 0.0, 1.0], "{name}");
    for r in 0..batch.record_count() {
        let columns = columns.iter().enumerate();
        let expected: Vec<_> = columns.filter_map(|(key, column)| entry(key, column, r)).collect();
        assert_eq!(entries(&batch, r), expected, "{name}, record {r}");
    }
}

#[test]
fn every_type_is_read_from_every_codec_page_version_and_encoding() {
    for name in ["none", "snappy", "gzip", "brotli", "lz4", "zstd", "delta_v1", "delta_v2"] {
        has_all_types(&format!("types_{name}"), &TYPES);
    }
    let unlike = ["ts_s", "ts_ms", "ts_us", "date32", "time_ms", "time_us"];
    let columns: Vec<&str> = TYPES.into_iter().filter(|name| !unlike.contains(name)).collect();
    has_all_types("types_int96", &columns);
}

#[test]
fn vectors_of_spark_are_sparse_or_dense() {
    let batch = read("spark_vectors");
    let expected: [&[(u64, f32)]; 5] = [&[(1, 2.0), (4, 0.5)], &[(0, 1.0), (2, 3.0)], &[], &[], &[(1, 7.0)]];
    for (r, expected) in expected.into_iter().enumerate() {
        assert_eq!(entries(&batch, r), expected, "record {r}");
    }
}

#[test]
fn lists_of_floats_are_dense_vectors_in_which_null_and_nan_are_missing() {
    let batch = read("dense_vectors");
    let expected: [&[(u64, f32)]; 5] = [&[(0, 1.0), (2, 3.0)], &[(0, 0.5)], &[], &[], &[(1, 7.0)]];
    for (r, expected) in expected.into_iter().enumerate() {
        assert_eq!(entries(&batch, r), expected, "record {r}");
    }
    let batch = read("dense_fixed");
    assert_eq!(entries(&batch, 1), [(0, 0.5), (1, 2.0)]);
    let schema = Case::of(&corpus("dense_fixed")).open(None).unwrap().schema();
    assert!(schema.columns.is_empty(), "features are numbered");
}

#[test]
fn pairs_maps_and_lists_of_indices_give_the_same_records() {
    let names = ["lists_pyarrow_v1", "lists_pyarrow_v2", "maps"];
    for name in names {
        let batch = read(name);
        let expected: [&[(u64, f32)]; 5] = [&[(1, 2.0), (4, 0.5)], &[(0, 1.0)], &[], &[], &[(7, 3.0)]];
        for (r, expected) in expected.into_iter().enumerate() {
            assert_eq!(entries(&batch, r), expected, "{name}, record {r}");
        }
    }
    assert_eq!(read("pairs"), read("maps"));
}

#[test]
fn the_index_of_pandas_is_no_feature_unless_it_is_asked_for() {
    let mut case = Case::of(&corpus("pandas_index"));
    let mut reader = case.reader([0]).unwrap();
    let mut batch = Batch::default();
    reader.next_batch(10, &mut batch).unwrap();
    assert_eq!((entries(&batch, 1), batch.labels.len()), (vec![(0, 2.0)], 3));
    let notices = case.open(None).unwrap().notices().join("\n");
    assert!(notices.contains("'__index_level_0__'") && notices.contains("is skipped"), "{notices}");
    case.options.weight = Some("__index_level_0__".to_owned());
    assert_eq!(case.read().unwrap().weights, [7.0, 8.0, 9.0]);
}

#[test]
fn the_columns_of_all_types_can_be_labels_and_groups() {
    for (label, expected) in [("ts_us", 1000.5), ("d38", 1.25), ("f16", 1.5), ("date32", 86_400.0)] {
        let mut case = Case::of(&corpus("types_zstd"));
        case.options.label = Some(label.to_owned());
        case.options.group = Some("category".to_owned());
        case.options.label_rule = LabelRule::Real;
        let mut batch = Batch::default();
        let error = case.reader([0]).unwrap().next_batch(10, &mut batch).unwrap_err().to_string();
        assert!(
            error.contains("records.parquet:4:")
                && error.contains("as the label (column")
                && error.contains("found null"),
            "{error}"
        );
        assert_eq!(batch.labels[0], expected, "{label}");
        assert_eq!(batch.groups[0], named_key(b"category", b"kind 1"));
    }
}
