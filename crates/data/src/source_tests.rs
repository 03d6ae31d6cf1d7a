//! What an opened input says of its features, and how it is cut.

use crate::{Batch, Error, FormatOptions, FormatTable, Input, LabelRule, Schema, Source, SourceConfig};

/// Two records of each format, and whether their features are columns, and whether they have numbers.
const SAMPLES: [(&str, &str, bool, bool); 5] = [
    ("libsvm", "1 1:1 2:5\n0 2:1\n", false, true),
    ("libffm", "1 0:1:1\n0 1:2:1\n", false, true),
    ("vw", "1 |f a\n-1 |f b\n", false, false),
    ("dense", "1,2,3\n0,4,5\n", true, true),
    ("csv", "a,b,y\n2,3,1\n4,5,0\n", true, true),
];

fn config(format: &str) -> SourceConfig {
    SourceConfig { format: Some(format.to_owned()), ..SourceConfig::default() }
}

fn open(text: &str, config: &SourceConfig, like: Option<&Schema>) -> Result<Source, Error> {
    let files = vec![Input::memory("records", text.as_bytes())?];
    Source::from_inputs(files, config, like, &FormatTable::builtin())
}

fn error_of(text: &str, config: &SourceConfig, like: Option<&Schema>) -> Option<String> {
    open(text, config, like).err().map(|error| error.to_string())
}

#[test]
fn records_of_another_format_are_read_when_their_features_are_alike() {
    for (trained, text, by_columns, _) in SAMPLES {
        let schema = open(text, &config(trained), None).unwrap().schema().clone();
        for (scored, text, other_by_columns, _) in SAMPLES {
            let error = error_of(text, &config(scored), Some(&schema)).unwrap_or_default();
            let differ = by_columns != other_by_columns || (trained == "vw") != (scored == "vw");
            assert_eq!(error.contains("whose features are"), differ, "{trained}, {scored}: {error}");
            if differ {
                let kinds = [(other_by_columns, scored), (by_columns, trained)]
                    .map(|(by_columns, _)| if by_columns { "columns" } else { "keys in each record" });
                let said = format!(
                    "it is {scored}, whose features are {}; the features of the model are {} of {trained}",
                    kinds[0], kinds[1]
                );
                assert!(error.contains(&said), "{error}");
            }
        }
    }
}

#[test]
fn a_limit_of_feature_numbers_is_for_features_that_have_numbers() {
    let with_limit = |format: &str, limit: u64| {
        let mut config = config(format);
        config.options.key_limit = Some(crate::KeyLimit { limit, setting: "dimensions" });
        config
    };
    for (format, text, by_columns, is_numbered) in SAMPLES {
        let error = error_of(text, &with_limit(format, 2), None);
        assert_eq!(error.is_none(), is_numbered, "{format}: {error:?}");
        let too_few = error_of(text, &with_limit(format, 1), None).unwrap_or_default();
        assert_eq!(
            too_few.contains("1 is too few for the 2 feature columns"),
            by_columns,
            "{format}: {too_few}"
        );
    }
    let names = [
        ("vw", "1 |n a\n", "(vw) have names"),
        ("csv", "city,y\nRome,1\n", "column 'city' of records have names"),
    ];
    for (format, text, expected) in names {
        let error = error_of(text, &with_limit(format, 2), None).unwrap();
        assert!(error.starts_with("dimensions: ") && error.contains(expected), "{error}");
        assert!(error.contains("remove this setting"), "{error}");
    }
    let mut products = with_limit("csv", 9);
    products.options.interactions = vec![vec!["a".to_owned(), "b".to_owned()]];
    let error = error_of("a,b,y\n2,3,1\n", &products, None).unwrap();
    assert!(error.contains("interactions have no numbers"), "{error}");
}

#[test]
fn settings_of_columns_need_columns() {
    for (format, text, by_columns, _) in SAMPLES {
        let options = FormatOptions { keep_columns: vec!["1".to_owned()], ..FormatOptions::default() };
        let keeps = SourceConfig { options, ..config(format) };
        let error = error_of(text, &keeps, None).unwrap_or_default();
        assert_eq!(error.contains("has no columns to copy"), !by_columns, "{format}: {error}");
    }
    let options =
        FormatOptions { interactions: vec![vec!["1".into(), "2".into()]], ..FormatOptions::default() };
    let error = error_of(SAMPLES[0].1, &SourceConfig { options, ..config("libsvm") }, None).unwrap();
    assert!(error.contains("libsvm has no columns, namespaces or fields to multiply"), "{error}");
}

#[test]
fn chunks_are_the_input_in_its_order() {
    let text = "1 1:1\n".repeat(1000);
    let files = [("a", text.as_str()), ("b", "0 2:1\n")];
    let files = files.map(|(name, text)| Input::memory(name, text.as_bytes()).unwrap()).to_vec();
    let source = Source::from_inputs(files, &config("libsvm"), None, &FormatTable::builtin()).unwrap();
    assert_eq!(source.size_bytes(), Some(6006));
    let chunks = source.chunks(7);
    assert!(chunks.len() >= 7, "{chunks:?}");
    let mut counts = [0, 0];
    for chunk in &chunks {
        let mut reader = source.reader(vec![chunk.clone()]).unwrap();
        while reader.next_batch(100, &mut Batch::default()).unwrap() {}
        counts[chunk.file] += reader.summary().record_count;
    }
    assert_eq!(counts, [1000, 1]);
    assert!(chunks.is_sorted_by_key(|chunk| (chunk.file, chunk.range.sort_key())), "{chunks:?}");
}

/// Reads all splits of `task_count` tasks: the summaries of their readers, or the first error.
fn summaries(source: &Source, task_count: usize) -> Result<Vec<crate::ReadSummary>, Error> {
    let read = |splits| {
        let mut reader = source.reader(splits)?;
        while reader.next_batch(1000, &mut Batch::default())? {}
        Ok(reader.summary().clone())
    };
    source.splits(task_count).into_iter().map(read).collect()
}

#[test]
fn a_label_that_is_refused_has_its_place_among_other_fields() {
    for (text, place) in
        [("a,b,y\n1,2,0\n3,4,1\n5,6,7\n", "records:4:5"), ("y;a\n0;2\n1;2\n \"7\" ;2\n", "records:4:2")]
    {
        let mut config = config("csv");
        config.options.label_rule = LabelRule::Binary { positive: None };
        match summaries(&open(text, &config, None).unwrap(), 1) {
            Err(error) => assert!(error.to_string().starts_with(place), "{error}"),
            Ok(_) => panic!("{text}"),
        }
    }
}

#[test]
fn lines_before_a_late_split_are_counted_over_all_of_the_file() {
    let mut text = "1 1:1 2:1\n".repeat(80_000);
    text.push_str("1 1:x\n");
    let source = open(&text, &config("libsvm"), None).unwrap();
    for task_count in [1, 2, 3] {
        match summaries(&source, task_count) {
            Err(Error::BadLine(bad)) => {
                assert_eq!((bad.line, bad.column), (80_001, 5), "{task_count} tasks");
                assert_eq!(bad.actual, "'x'", "{task_count} tasks");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn long_tokens_are_cut_in_messages() {
    for (length, expected) in
        [(40, format!("'{}'", "x".repeat(40))), (41, format!("'{}...'", "x".repeat(40)))]
    {
        let text = format!("{} 1:1\n", "x".repeat(length));
        match summaries(&open(&text, &config("libsvm"), None).unwrap(), 1) {
            Err(Error::BadLine(bad)) => assert_eq!(bad.actual, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_rule_for_labels_is_that_of_later_readers() {
    let mut source = open("1 1:1\n-1 2:1\n", &config("libsvm"), None).unwrap();
    let labels = |source: &Source| {
        let mut batch = Batch::default();
        let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
        reader.next_batch(10, &mut batch).unwrap();
        batch.labels
    };
    assert_eq!(labels(&source), [1.0, -1.0]);
    source.set_label_rule(LabelRule::Binary { positive: None });
    assert_eq!(labels(&source), [1.0, 0.0]);
    assert_eq!(source.files().len(), 1);
}

#[test]
fn bad_lines_are_counted_over_all_readers_of_a_source() {
    let text = "1 1:1\n1 x\n".repeat(50);
    let with_limit = |limit| {
        let bad_lines = crate::BadLinePolicy::Skip { limit };
        open(&text, &SourceConfig { bad_lines, ..config("libsvm") }, None).unwrap()
    };
    for (limit, is_allowed) in [(50, true), (49, false)] {
        let source = with_limit(limit);
        let found = summaries(&source, 2).unwrap();
        assert_eq!(found.iter().map(|summary| summary.bad_line_count).sum::<u64>(), 50);
        assert_eq!(source.bad_lines().count, 50);
        assert_eq!(source.check_bad_lines().is_ok(), is_allowed, "limit {limit}");
    }
}

#[test]
fn a_table_whose_labels_are_not_used_has_none() {
    let options =
        FormatOptions { uses_labels: false, label: Some("a".to_owned()), ..FormatOptions::default() };
    let unused = SourceConfig { options, ..config("csv") };
    let source = open("a,b,y\n2,3,1\n4,5,0\n", &unused, None).unwrap();
    assert_eq!((source.schema().label.as_deref(), source.schema().columns.len()), (None, 2));
    assert_eq!(source.schema().skip_columns, ["a"]);
}

#[test]
fn features_of_every_text_that_lose_digits_are_told() {
    for (format, text, name) in [
        ("libsvm", "1 2:16777219\n", "feature 2"),
        ("libffm", "1 0:2:16777219\n", "feature 2"),
        ("vw", "1 |n a b:16777219\n", "other features"),
        ("dense", "1,16777219\n", "column '1'"),
        ("csv", "a,y\n16777219,1\n", "column 'a'"),
    ] {
        let rounded = &summaries(&open(text, &config(format), None).unwrap(), 1).unwrap()[0].rounded;
        let numbers = crate::RoundedNumbers { count: 1, first: 16_777_219.0 };
        assert_eq!(rounded.features, [(name.to_owned(), numbers)].into(), "{format}");
        let exact = text.replace("16777219", "16777216");
        let rounded = &summaries(&open(&exact, &config(format), None).unwrap(), 1).unwrap()[0].rounded;
        assert!(rounded.features.is_empty(), "{format}");
    }
}

#[test]
fn a_refused_label_is_shown_where_it_stands() {
    let error = |format: &str, label: Option<&str>, text: &str| {
        let options = FormatOptions {
            label: label.map(str::to_owned),
            label_rule: LabelRule::Binary { positive: None },
            ..FormatOptions::default()
        };
        let config = SourceConfig { format: Some(format.to_owned()), options, ..SourceConfig::default() };
        let input = Input::memory("file", text.as_bytes().to_vec()).unwrap();
        let source = Source::from_inputs(vec![input], &config, None, &FormatTable::builtin()).unwrap();
        let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
        let mut batch = Batch::default();
        loop {
            match reader.next_batch(100, &mut batch) {
                Ok(true) => {}
                Ok(false) => panic!("the label is no class of two"),
                Err(error) => return error.to_string(),
            }
        }
    };
    for (format, label, text, place) in [
        ("csv", Some("y"), "a,b,y,c\n7,2,0,4\n3,1,1,5\n7,1,\"7\",6\n", "file:4:5"),
        ("csv", Some("a"), "a,b\n0,1\n1,7\n7,7\n", "file:4:1"),
        ("dense", None, "0 1\n1 7\n  7 7\n", "file:3:3"),
        ("libsvm", None, "1 1:1\n 7 1:1\n", "file:2:2"),
        ("vw", None, "1 |f a\n7 |f a\n", "file:2:1"),
    ] {
        let error = error(format, label, text);
        assert!(error.contains(place) && error.contains("label 7"), "{format}: {error}");
    }
}
