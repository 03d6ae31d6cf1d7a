//! Arrays give the records of files with the same numbers.

use std::sync::Arc;

use super::{Arrays, Buffer, CsrArrays, DenseArrays, MemoryInputs, Numbers, RecordAttributes};
use crate::format::testing::{Row, open_arrays, options, rows, rows_of};
use crate::{Batch, Error, FormatOptions, FormatTable, LabelRule, Schema, Source, SourceConfig};

fn attributes(labels: &[f64]) -> RecordAttributes {
    RecordAttributes { labels: labels.into(), ..RecordAttributes::default() }
}

fn csr() -> CsrArrays {
    CsrArrays {
        offsets: [0, 2, 2, 5].into(),
        features: [3, 70, 1, 3, 9].into(),
        values: [1.0, 2.5, -1.0, 0.0, 4.0].into(),
        attributes: attributes(&[1.0, 0.0, 1.0]),
        ..CsrArrays::default()
    }
}

fn dense() -> DenseArrays {
    let values = [1.0, 0.0, 3.0, f32::NAN, 5.0, 6.0];
    DenseArrays {
        values: values.into(),
        columns: 3,
        attributes: attributes(&[1.0, 0.0]),
        ..DenseArrays::default()
    }
}

fn read(arrays: Arrays, options: &FormatOptions, task_count: usize) -> Result<Vec<Row>, Error> {
    let source = open_arrays("rows", arrays, options, None)?;
    let mut all = Vec::new();
    for splits in source.splits(task_count) {
        let mut reader = source.reader(splits)?;
        let mut batch = Batch::default();
        while reader.next_batch(700, &mut batch)? {
            assert!(batch.record_count() <= 700, "{} records", batch.record_count());
            all.extend(rows_of(&batch));
        }
    }
    Ok(all)
}

#[test]
fn sparse_rows_are_those_of_libsvm_and_libffm() {
    let expected = rows("libsvm", &options(), "1 3:1 70:2.5\n0\n1 1:-1 9:4\n").unwrap();
    assert_eq!(read(Arrays::Csr(csr()), &options(), 1).unwrap(), expected);
    let ones = CsrArrays { values: Buffer::default(), fields: [0, 1, 0, 1, 1].into(), ..csr() };
    let expected = rows("libffm", &options(), "1 0:3:1 1:70:1\n0\n1 0:1:1 1:3:1 1:9:1\n").unwrap();
    assert_eq!(read(Arrays::Csr(ones), &options(), 1).unwrap(), expected);
}

#[test]
fn numbers_of_another_owner_are_read_where_they_are_and_it_is_kept_until_the_end() {
    struct Owner(Arc<[f32]>);
    impl AsRef<[f32]> for Owner {
        fn as_ref(&self) -> &[f32] {
            &self.0[1..]
        }
    }
    let numbers: Arc<[f32]> = [9.0, 1.0, 0.0, 3.0, f32::NAN, 5.0, 6.0].into();
    let borrowed = DenseArrays { values: Buffer::new(Owner(Arc::clone(&numbers))).into(), ..dense() };
    let Numbers::F32(values) = &borrowed.values else { panic!("they stay what they are") };
    assert_eq!(values.as_ptr(), numbers[1..].as_ptr());
    let own = read(Arrays::Dense(dense()), &options(), 1).unwrap();
    assert_eq!(read(Arrays::Dense(borrowed), &options(), 1).unwrap(), own);
    assert_eq!(Arc::strong_count(&numbers), 1, "the owner is dropped with the last clone");
}

#[test]
fn doubles_that_are_close_together_keep_their_digits() {
    let values = [1_764_200_009.0, 0.1, 1_764_200_001.0, f64::NAN];
    let doubles = DenseArrays { values: Numbers::F64(values.into()), columns: 2, ..dense() };
    let with_origins = FormatOptions { subtracts_origins: true, ..options() };
    let expected = rows("dense", &with_origins, "1,1764200009,.1\n0,1764200001,\n").unwrap();
    assert_eq!(read(Arrays::Dense(doubles.clone()), &with_origins, 1).unwrap(), expected);
    let too_large = DenseArrays { values: Numbers::F64([1e39; 4].into()), ..doubles };
    let error = read(Arrays::Dense(too_large), &options(), 1).unwrap_err().to_string();
    assert!(error.contains("a finite number within the range of f32"), "{error}");
}

#[test]
fn labels_may_have_names_and_those_of_the_model_are_searched_in_them() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let named = |label_names: &[&str]| {
        let attributes = RecordAttributes { label_names: names(label_names), ..attributes(&[1.0, 0.0]) };
        Arrays::Dense(DenseArrays { attributes, ..dense() })
    };
    let options = FormatOptions { label_rule: LabelRule::Class, ..options() };
    let labels = |arrays: Arrays, trained: Option<&Schema>| -> Result<Vec<f64>, Error> {
        let source = open_arrays("rows", arrays, &options, trained)?;
        let mut reader = source.reader(source.splits(1).remove(0))?;
        let mut batch = Batch::default();
        reader.next_batch(10, &mut batch)?;
        Ok(batch.labels)
    };
    let schema = open_arrays("rows", named(&["no", "yes"]), &options, None).unwrap().schema().clone();
    assert_eq!(schema.label_names, ["no", "yes"]);
    assert_eq!(labels(named(&["no", "yes"]), None).unwrap(), [1.0, 0.0]);
    assert_eq!(labels(named(&["yes", "no"]), Some(&schema)).unwrap(), [0.0, 1.0]);
    assert_eq!(labels(named(&["7", "3"]), None).unwrap(), [3.0, 7.0], "numbers stay numbers");
    let error = labels(named(&["no", "maybe"]), Some(&schema)).unwrap_err().to_string();
    assert!(error.contains("a label of training") && error.contains("maybe"), "{error}");
    let error = labels(named(&["no"]), None).unwrap_err().to_string();
    assert!(error.contains("the label of record 0 is 1; there are 1 names"), "{error}");
    let real = FormatOptions { label_rule: LabelRule::Real, ..options.clone() };
    let error = open_arrays("rows", named(&["no", "yes"]), &real, None).err().unwrap().to_string();
    assert!(error.contains("this algorithm needs numbers"), "{error}");
}

#[test]
fn dense_rows_are_those_of_dense_text_and_csv() {
    let expected = rows("dense", &options(), "1,1,0,3\n0,,5,6\n").unwrap();
    let found = read(Arrays::Dense(dense()), &options(), 1).unwrap();
    assert_eq!(found, expected);
    let named = DenseArrays { names: ["a", "b", "c"].map(str::to_owned).to_vec(), ..dense() };
    let mut with_fields = options();
    (with_fields.keep_zeros, with_fields.uses_fields) = (true, true);
    let found = read(Arrays::Dense(named), &with_fields, 1).unwrap();
    assert_eq!((found[0].entries.len(), &found[1].fields), (3, &vec![0, 1, 2]));
}

#[test]
fn tasks_share_rows_and_read_each_once_with_its_weight_and_group() {
    let count = 5000;
    let rows = CsrArrays {
        offsets: (0..=count).collect(),
        features: (0..count).collect(),
        attributes: RecordAttributes {
            label_names: Vec::new(),
            labels: (0..count).map(|i| (i % 2) as f64).collect(),
            weights: (0..count).map(|i| 1.0 + (i % 3) as f32).collect(),
            groups: (0..count).map(|i| i / 10).collect(),
            times: (0..count).map(|i| i as f64 / 4.0).collect(),
        },
        ..CsrArrays::default()
    };
    let alone = read(Arrays::Csr(rows.clone()), &options(), 1).unwrap();
    assert_eq!(alone.len(), 5000);
    assert!(alone.iter().zip(0..).all(|(row, i)| row.entries == [(i, 1.0)]
        && row.weight == 1.0 + (i % 3) as f32
        && row.group == Some(i / 10)
        && row.time == Some(i as f64 / 4.0)));
    for task_count in [2, 3, 7] {
        assert_eq!(read(Arrays::Csr(rows.clone()), &options(), task_count).unwrap(), alone);
    }
}

#[test]
fn the_size_is_that_of_all_numbers() {
    assert_eq!(Arrays::Csr(csr()).size_bytes(), 8 * (4 + 5) + 4 * 5 + 8 * 3);
    let mut all = csr();
    all.fields = [0, 1, 0, 1, 1].into();
    all.attributes.weights = [1.0, 2.0, 3.0].into();
    (all.attributes.groups, all.attributes.times) = ([1, 1, 2].into(), [1.0, 2.0, 3.0].into());
    let expected = 8 * (4 + 5) + 4 * (5 + 5) + 4 * 3 + 8 * (3 + 3 + 3);
    assert_eq!((Arrays::Csr(all).size_bytes(), Arrays::Csr(csr()).record_count()), (expected, 3));
    let dense = Arrays::Dense(dense());
    assert_eq!((dense.size_bytes(), dense.record_count()), (4 * 6 + 8 * 2, 2));
}

#[test]
fn inputs_are_shared_by_their_sizes() {
    let rows = |count: u64, width: u64| CsrArrays {
        offsets: (0..=count).map(|record| record * width).collect(),
        features: (0..count * width).collect(),
        attributes: attributes(&vec![1.0; count as usize]),
        ..CsrArrays::default()
    };
    // About 80 and 70 kB.
    let (narrow, wide) = (rows(4000, 1), rows(400, 20));
    let mut memory = MemoryInputs::default();
    let inputs = [("narrow", narrow), ("wide", wide)];
    let inputs = inputs.map(|(name, rows)| memory.add(name, Arrays::Csr(rows)).unwrap()).to_vec();
    let config = SourceConfig { inputs, ..SourceConfig::default() };
    let source = Source::open(&config, &FormatTable::builtin().with_memory(memory)).unwrap();
    let counts = source.splits(2).into_iter().map(|splits| {
        let (mut reader, mut batch) = (source.reader(splits).unwrap(), Batch::default());
        while reader.next_batch(1000, &mut batch).unwrap() {}
        reader.summary().record_count
    });
    let counts: Vec<u64> = counts.collect();
    assert_eq!(counts.iter().sum::<u64>(), 4400);
    assert!((3400..4000).contains(&counts[0]), "{counts:?}");
}

#[test]
fn roles_of_columns_are_refused_for_rows_without_columns() {
    let named = || Some("x".to_owned());
    let list = || vec!["x".to_owned()];
    for (option, asked) in [
        ("label", FormatOptions { label: named(), ..options() }),
        ("weight", FormatOptions { weight: named(), ..options() }),
        ("group", FormatOptions { group: named(), ..options() }),
        ("time", FormatOptions { time: named(), ..options() }),
        ("keep_columns", FormatOptions { keep_columns: list(), ..options() }),
        ("skip_columns", FormatOptions { skip_columns: list(), ..options() }),
        ("text_columns", FormatOptions { text_columns: list(), ..options() }),
        ("token_columns", FormatOptions { token_columns: list(), ..options() }),
        ("interactions", FormatOptions { interactions: vec![list()], ..options() }),
    ] {
        match read(Arrays::Csr(csr()), &asked, 1) {
            Err(Error::BadOption { option: found, .. }) => assert_eq!(found, option),
            other => panic!("{option}: {other:?}"),
        }
    }
}

#[test]
fn scored_rows_have_the_columns_of_training() {
    let named = |names: [&str; 3]| {
        let names = names.map(str::to_owned).to_vec();
        Arrays::Dense(DenseArrays { names, ..dense() })
    };
    let open = |arrays, schema| open_arrays("rows", arrays, &options(), schema);
    let trained = open(named(["a", "b", "c"]), None).unwrap().schema().clone();
    assert!(open(named(["a", "b", "c"]), Some(&trained)).is_ok());
    assert!(open(named(["a", "c", "b"]), Some(&trained)).is_ok(), "columns are found by their names");
    let error = open(named(["a", "d", "b"]), Some(&trained)).err().unwrap().to_string();
    assert!(error.contains("1 of the 3 feature columns of training are missing: c"), "{error}");
    let error = open(Arrays::Dense(dense_of(2)), Some(&trained)).err().unwrap().to_string();
    assert!(error.contains("it has 2 columns, and 3 are expected (a, b, c)"), "{error}");
    let numbered = open(Arrays::Dense(dense()), None).unwrap().schema().clone();
    assert!(open(Arrays::Dense(dense()), Some(&numbered)).is_ok());
    let error = open(Arrays::Dense(dense_of(6)), Some(&numbered)).err().unwrap().to_string();
    assert!(error.contains("it has 6 columns, and 3 are expected (1, 2, 3)"), "{error}");
}

/// One record of ones.
fn dense_of(columns: usize) -> DenseArrays {
    let values = vec![1.0; columns].into();
    DenseArrays { values, columns, attributes: attributes(&[1.0]), ..DenseArrays::default() }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    type Change = fn(&mut CsrArrays);
    let csr_cases: [(&str, Change); 13] = [
        ("feature 9223372036854775808 of entry 1", |rows| rows.features = [3, 1 << 63, 1, 3, 9].into()),
        ("groups has 2 numbers", |rows| rows.attributes.groups = [1, 2].into()),
        ("times has 4 numbers", |rows| rows.attributes.times = [1.0, 2.0, 3.0, 4.0].into()),
        ("the time of record 2 is inf", |rows| rows.attributes.times = [1.0, 2.0, f64::INFINITY].into()),
        ("the weight of record 0 is NaN", |rows| rows.attributes.weights = [f32::NAN, 1.0, 1.0].into()),
        ("offsets is empty", |rows| rows.offsets = Buffer::default()),
        ("begins with 1", |rows| rows.offsets = [1, 5].into()),
        ("falls from 5 to 2", |rows| rows.offsets = [0, 5, 2, 5].into()),
        ("ends with 4, and features has 5", |rows| rows.offsets = [0, 2, 2, 4].into()),
        ("values has 2 numbers, and there are 5 entries", |rows| rows.values = [1.0, 2.0].into()),
        ("fields has 1 numbers", |rows| rows.fields = [1].into()),
        ("labels has 2 numbers, and there are 3 records", |rows| rows.attributes.labels = [1.0, 0.0].into()),
        ("the weight of record 1 is -1", |rows| rows.attributes.weights = [1.0, -1.0, 1.0].into()),
    ];
    for (expected, change) in csr_cases {
        let mut rows = csr();
        change(&mut rows);
        let error = read(Arrays::Csr(rows), &options(), 1).unwrap_err().to_string();
        assert!(error.starts_with("memory:rows: ") && error.contains(expected), "{error}");
    }
    let none = CsrArrays { offsets: [0].into(), ..CsrArrays::default() };
    let error = read(Arrays::Csr(none), &options(), 1).unwrap_err();
    assert_eq!(error.to_string(), "memory:rows: it has no records");
    let error = read(Arrays::Dense(DenseArrays { columns: 4, ..dense() }), &options(), 1).unwrap_err();
    assert_eq!(error.to_string(), "memory:rows: 6 values are no rows of 4 columns");
    let error = read(Arrays::Dense(DenseArrays { columns: 0, ..dense() }), &options(), 1).unwrap_err();
    assert_eq!(error.to_string(), "memory:rows: 6 values are no rows of 0 columns");
    let names = vec!["a".to_owned()];
    let error = read(Arrays::Dense(DenseArrays { names, ..dense() }), &options(), 1).unwrap_err();
    assert!(error.to_string().contains("1 names for 3 columns"), "{error}");
}

#[test]
fn values_that_cannot_be_and_missing_labels_are_errors_with_the_record() {
    let infinite = CsrArrays { values: [1.0, f32::INFINITY, 1.0, 1.0, 1.0].into(), ..csr() };
    let error = read(Arrays::Csr(infinite), &options(), 1).unwrap_err().to_string();
    assert!(error.contains("memory:rows:1:2") && error.contains("finite"), "{error}");
    let infinite = DenseArrays { values: [1.0, 0.0, 3.0, f32::NAN, 5.0, f32::INFINITY].into(), ..dense() };
    let error = read(Arrays::Dense(infinite), &options(), 1).unwrap_err().to_string();
    assert!(error.contains("memory:rows:2:3") && error.contains("finite"), "{error}");
    let twice = CsrArrays { features: [3, 3, 1, 3, 9].into(), ..csr() };
    let error = read(Arrays::Csr(twice), &options(), 1).unwrap_err().to_string();
    assert!(error.contains("feature 3 twice"), "{error}");
    let unlabelled = CsrArrays { attributes: RecordAttributes::default(), ..csr() };
    let error = read(Arrays::Csr(unlabelled.clone()), &options(), 1).unwrap_err().to_string();
    assert!(error.contains("it has no labels"), "{error}");
    let mut no_label = options();
    no_label.has_label = false;
    assert_eq!(read(Arrays::Csr(unlabelled), &no_label, 1).unwrap().len(), 3);
}

#[cfg(feature = "parquet")]
#[test]
fn record_batches_are_tables_whose_columns_must_agree() {
    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    let batch = |start: i64, count: i64| {
        let labels: Vec<i64> = (start..start + count).map(|i| i % 2).collect();
        let sizes: Vec<f64> = (start..start + count).map(|i| i as f64).collect();
        let colors: Vec<&str> = labels.iter().map(|label| ["red", "blue"][*label as usize]).collect();
        let columns: [(&str, ArrayRef); 3] = [
            ("label", Arc::new(Int64Array::from(labels))),
            ("size", Arc::new(Float64Array::from(sizes))),
            ("color", Arc::new(StringArray::from(colors))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let arrays = Arrays::Arrow([batch(0, 5000), batch(5000, 10)].into());
    let alone = read(arrays.clone(), &options(), 1).unwrap();
    assert_eq!(alone.len(), 5010);
    assert_eq!(alone[7].entries[0], (0, 7.0));
    assert_eq!((alone[7].label, alone[7].entries.len()), (1.0, 2));
    assert_eq!(read(arrays, &options(), 3).unwrap(), alone);
    let other =
        RecordBatch::try_from_iter([("label", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let error = read(Arrays::Arrow([batch(0, 5), other].into()), &options(), 1).unwrap_err().to_string();
    assert!(error.contains("record batch 1 has other columns than the first one"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn tables_have_columns_of_tokens_and_of_times() {
    use crate::{ColumnKind, InputPurpose};
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
    use math::hash::named_key;
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1500, 2500]));
    let dates: ArrayRef = Arc::new(StringArray::from(vec!["1970-01-01", "1970-01-02"]));
    let batch = |at: &ArrayRef| {
        let columns: [(&str, ArrayRef); 4] = [
            ("label", Arc::new(Float64Array::from(vec![1.0, 0.0]))),
            ("at", Arc::clone(at)),
            ("title", Arc::new(StringArray::from(vec![Some("b a b"), None]))),
            ("size", Arc::new(Float64Array::from(vec![4.0, 5.0]))),
        ];
        Arrays::Arrow([RecordBatch::try_from_iter(columns).unwrap()].into())
    };
    let named = || Some("at".to_owned());
    let tokens = || vec!["title".to_owned()];
    let asked = FormatOptions { time: named(), token_columns: tokens(), ..options() };
    let found = read(batch(&times), &asked, 1).unwrap();
    let key = |token: &str| named_key(b"title", token.as_bytes());
    let mut bag = vec![(key("a"), 1.0), (key("b"), 2.0)];
    bag.sort_by_key(|entry| entry.0);
    bag.push((1, 4.0));
    assert_eq!((found[0].time, found[1].time), (Some(1.5), Some(2.5)));
    assert_eq!((&found[0].entries, &found[1].entries[..]), (&bag, &[(1, 5.0)][..]));
    let sequence = FormatOptions { keeps_token_order: true, ..asked.clone() };
    let entries = read(batch(&dates), &sequence, 1).unwrap().remove(0);
    assert_eq!(entries.entries, [(key("b"), 1.0), (key("a"), 1.0), (key("b"), 1.0), (1, 4.0)]);
    assert_eq!(read(batch(&dates), &asked, 1).unwrap()[1].time, Some(86_400.0));

    let mut memory = MemoryInputs::default();
    let inputs = vec![memory.add("rows", batch(&times)).unwrap()];
    let config = SourceConfig { inputs, options: asked.clone(), ..SourceConfig::default() };
    let formats = FormatTable::builtin().with_memory(memory);
    let schema = Source::open(&config, &formats).unwrap().schema().clone();
    assert_eq!((schema.time.clone(), schema.columns[0].kind), (named(), ColumnKind::Tokens));
    // The times of training are not read for scores.
    let purpose = InputPurpose::Prediction;
    let scoring =
        SourceConfig { options: FormatOptions { purpose, has_label: false, ..options() }, ..config };
    let source = Source::open_with_schema(&scoring, &schema, &formats).unwrap();
    let mut scored = Batch::default();
    assert!(source.reader(source.splits(1).remove(0)).unwrap().next_batch(10, &mut scored).unwrap());
    assert_eq!((scored.times.len(), &rows_of(&scored)[0].entries), (0, &bag));

    let none: ArrayRef = Arc::new(StringArray::from(vec![Some("1970-01-01"), None]));
    let errors = [
        (read(batch(&none), &asked, 1), "a time in column 'at': a number, or a date"),
        (
            read(batch(&times), &FormatOptions { token_columns: vec!["size".into()], ..options() }, 1),
            "must be a string",
        ),
        (
            read(batch(&times), &FormatOptions { token_columns: vec!["titel".into()], ..options() }, 1),
            "title",
        ),
        (read(batch(&times), &FormatOptions { label: named(), ..asked }, 1), "'at'"),
    ];
    for (result, expected) in errors {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn arrays_have_the_format_of_files_with_the_same_records() {
    let fields = CsrArrays { fields: [0, 1, 0, 1, 1].into(), ..csr() };
    let names = DenseArrays { names: ["a", "b", "c"].map(str::to_owned).to_vec(), ..dense() };
    for (arrays, format) in [
        (Arrays::Csr(csr()), "libsvm"),
        (Arrays::Csr(fields), "libffm"),
        (Arrays::Dense(dense()), "dense"),
        (Arrays::Dense(names), "csv"),
    ] {
        let source = open_arrays("rows", arrays, &options(), None).unwrap();
        assert_eq!(source.schema().format, format);
    }
}

#[test]
fn arrays_of_one_kind_are_read_together_and_not_with_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svm");
    std::fs::write(&path, "1 1:2\n").unwrap();
    let open = |inputs: &[&str]| {
        let mut memory = MemoryInputs::default();
        memory.add("a", Arrays::Csr(csr())).unwrap();
        memory.add("b", Arrays::Csr(csr())).unwrap();
        memory.add("c", Arrays::Dense(dense())).unwrap();
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        let config = SourceConfig { inputs, options: options(), ..SourceConfig::default() };
        Source::open(&config, &FormatTable::builtin().with_memory(memory))
    };
    let source = open(&["memory:a", "memory:b"]).unwrap();
    assert_eq!(crate::format::testing::read_whole(&source).summary().record_count, 6);
    assert_eq!(source.files().len(), 2);
    let refused = |inputs: &[&str]| open(inputs).err().expect("these are not read together").to_string();
    let file = path.to_string_lossy();
    for inputs in [["memory:a", &file], [&*file, "memory:a"]] {
        let text = refused(&inputs);
        assert!(text.contains("arrays in memory and files cannot be read together"), "{text}");
    }
    let text = refused(&["memory:a", "memory:c"]);
    assert!(text.contains("arrays of different kinds cannot be read together"), "{text}");
    let text = refused(&["memory:d"]);
    assert!(text.contains("memory:d"), "{text}");
}

#[test]
fn arrays_are_no_bytes_of_a_file() {
    let input = crate::Input::of_arrays("a", &Arrays::Csr(csr()));
    assert!(input.head().unwrap().bytes.is_empty() && input.arrays().is_some() && input.is_rereadable());
    assert_eq!((input.path(), input.bytes(), input.size_bytes()), (None, None, Some(116)));
    let text = input.open_at(0).err().expect("no bytes").to_string();
    assert!(text.contains("arrays in memory are not bytes of a file"), "{text}");
}

#[test]
fn labels_are_needed_by_what_learns_or_measures() {
    let unlabelled = || Arrays::Csr(CsrArrays { attributes: RecordAttributes::default(), ..csr() });
    let trained = open_arrays("rows", Arrays::Csr(csr()), &options(), None).unwrap();
    let open = |arrays, purpose| {
        let options = FormatOptions { purpose, ..options() };
        let source = open_arrays("rows", arrays, &options, Some(trained.schema()))?;
        let mut reader = source.reader(source.splits(1).remove(0))?;
        let mut batch = Batch::default();
        reader.next_batch(10, &mut batch).map(|_| batch.labels)
    };
    for purpose in [crate::InputPurpose::Training, crate::InputPurpose::Evaluation] {
        assert!(matches!(open(unlabelled(), purpose), Err(Error::BadArrays { .. })), "{purpose:?}");
    }
    assert_eq!(open(unlabelled(), crate::InputPurpose::Prediction).unwrap(), [0.0; 3]);
    assert_eq!(open(Arrays::Csr(csr()), crate::InputPurpose::Prediction).unwrap(), [1.0, 0.0, 1.0]);
    let unused = FormatOptions { uses_labels: false, ..options() };
    assert_eq!(read(unlabelled(), &unused, 1).unwrap().len(), 3);
}
