use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int8Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray,
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, root_as_footer};
use arrow_schema::{DataType, Field};
use math::random::{Purpose, stream};

use crate::arrays::{Arrays, MemoryInputs};
use crate::format::FormatTable;
use crate::format::testing::gzip;
use crate::input::Input;
use crate::options::FormatOptions;
use crate::schema::{ColumnKind, Schema};
use crate::source::{Source, SourceConfig, read_bytes};
use crate::{Batch, Error, InputPurpose, LabelRule};

/// The ways in which record batches become bytes.
const WAYS: [(bool, Option<CompressionType>); 6] = [
    (true, None),
    (true, Some(CompressionType::LZ4_FRAME)),
    (true, Some(CompressionType::ZSTD)),
    (false, None),
    (false, Some(CompressionType::LZ4_FRAME)),
    (false, Some(CompressionType::ZSTD)),
];

/// Records with numbers, strings and strings of a dictionary.
fn table(start: i64, count: i64) -> RecordBatch {
    let labels: Vec<i64> = (start..start + count).map(|i| i % 2).collect();
    let sizes: Vec<f64> = (start..start + count).map(|i| i as f64).collect();
    let colors: Vec<String> = sizes.iter().map(|size| format!("color {}", size % 7.0)).collect();
    let kinds: DictionaryArray<Int32Type> = labels.iter().map(|label| ["a", "b"][*label as usize]).collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("label", Arc::new(Int64Array::from(labels))),
        ("size", Arc::new(Float64Array::from(sizes))),
        ("color", Arc::new(StringArray::from(colors))),
        ("kind", Arc::new(kinds)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Vectors as Spark ML has them: sparse ones and dense ones.
fn vectors() -> RecordBatch {
    let integers =
        |lists: Vec<Option<Vec<Option<i32>>>>| ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let lists = |lists: Vec<Vec<f64>>| {
        let lists = lists.into_iter().map(|list| Some(list.into_iter().map(Some).collect::<Vec<_>>()));
        ListArray::from_iter_primitive::<arrow_array::types::Float64Type, _, _>(lists)
    };
    let item =
        |name: &str, array: ArrayRef| (Arc::new(Field::new(name, array.data_type().clone(), true)), array);
    let columns = StructArray::from(vec![
        item("type", Arc::new(Int8Array::from(vec![0, 1, 0]))),
        item("size", Arc::new(Int32Array::from(vec![Some(9), None, Some(9)]))),
        item("indices", Arc::new(integers(vec![Some(vec![Some(1), Some(8)]), None, Some(vec![])]))),
        item("values", Arc::new(lists(vec![vec![0.5, 2.0], vec![0.0, 3.0, 0.25], vec![]]))),
    ]);
    let columns: [(&str, ArrayRef); 2] =
        [("label", Arc::new(Float64Array::from(vec![1.0, 0.0, 1.0]))), ("features", Arc::new(columns))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn encode((is_file, compression): (bool, Option<CompressionType>), batches: &[RecordBatch]) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let (mut bytes, schema) = (Vec::new(), batches[0].schema());
    if is_file {
        let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap();
    } else {
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap();
    }
    bytes
}

fn open(files: Vec<Input>) -> Result<Source, Error> {
    open_with(files, LabelRule::Real)
}

fn open_with(files: Vec<Input>, label_rule: LabelRule) -> Result<Source, Error> {
    let options = FormatOptions { label_rule, ..FormatOptions::default() };
    let config = SourceConfig { options, ..SourceConfig::default() };
    Source::from_inputs(files, &config, None, &FormatTable::builtin())
}

/// A label and entries.
type Record = (f64, Vec<(u64, f32)>);

/// The records of each task.
fn records(source: &Source, task_count: usize) -> Result<Vec<Vec<Record>>, Error> {
    let read = |splits| {
        let mut reader = source.reader(splits)?;
        let (mut records, mut batch) = (Vec::new(), Batch::default());
        while reader.next_batch(1000, &mut batch)? {
            for r in 0..batch.record_count() {
                let value = |e: usize| batch.values.get(e).copied().unwrap_or(1.0);
                let entry = |e: usize| (batch.columns[batch.indices[e] as usize], value(e));
                records.push((batch.labels[r], batch.entries(r).map(entry).collect()));
            }
        }
        Ok(records)
    };
    source.splits(task_count).into_iter().map(read).collect()
}

fn in_memory(batches: &[RecordBatch]) -> Source {
    let mut inputs = MemoryInputs::default();
    let name = inputs.add("table", Arrays::Arrow(batches.to_vec().into())).unwrap();
    let config = SourceConfig { inputs: vec![name], ..SourceConfig::default() };
    Source::open(&config, &FormatTable::builtin().with_memory(inputs)).unwrap()
}

#[test]
fn files_and_streams_have_the_records_of_their_batches() {
    for batches in [vec![table(0, 5000), table(5000, 2), table(5002, 300)], vec![vectors()]] {
        let expected = records(&in_memory(&batches), 1).unwrap();
        for way in WAYS {
            let source = open(vec![Input::memory("bytes", encode(way, &batches)).unwrap()]).unwrap();
            assert_eq!(source.schema().format, "arrow");
            assert_eq!(records(&source, 1).unwrap(), expected, "{way:?}");
            // It can be read again.
            assert_eq!(records(&source, 1).unwrap(), expected, "{way:?}");
        }
    }
}

#[test]
fn tasks_share_a_file_and_one_of_them_reads_a_stream() {
    let batches = [table(0, 9000), table(9000, 4000)];
    let expected = records(&in_memory(&batches), 1).unwrap().remove(0);
    let file = open(vec![Input::memory("file", encode(WAYS[1], &batches)).unwrap()]).unwrap();
    for task_count in 2..6 {
        let shares = records(&file, task_count).unwrap();
        assert!(shares.iter().all(|share| !share.is_empty()), "{task_count}");
        assert_eq!(shares.concat(), expected, "{task_count}");
    }
    let sequence = open(vec![Input::memory("stream", encode(WAYS[3], &batches)).unwrap()]).unwrap();
    let counts: Vec<usize> = records(&sequence, 3).unwrap().iter().map(Vec::len).collect();
    assert_eq!(counts, [13000, 0, 0]);
}

#[test]
fn what_cannot_be_read_at_any_offset_is_a_stream() {
    let batches = [table(0, 100)];
    let expected = records(&in_memory(&batches), 1).unwrap();
    for way in WAYS {
        let bytes = encode(way, &batches);
        let source = open(vec![Input::memory("table.arrow.gz", gzip(&bytes)).unwrap()]).unwrap();
        assert_eq!(records(&source, 1).unwrap(), expected, "{way:?}");
        let pipe = Input::stream("a pipe".to_owned(), Box::new(std::io::Cursor::new(bytes))).unwrap();
        assert_eq!(records(&open(vec![pipe]).unwrap(), 1).unwrap(), expected, "{way:?}");
    }
}

#[test]
fn names_of_labels_need_an_input_that_can_be_read_twice() {
    let columns: [(&str, ArrayRef); 2] = [
        ("label", Arc::new(StringArray::from(vec!["yes", "no"]))),
        ("size", Arc::new(Float64Array::from(vec![1.0, 2.0]))),
    ];
    let bytes = encode(WAYS[3], &[RecordBatch::try_from_iter(columns).unwrap()]);
    let pipe = Input::stream("a pipe".to_owned(), Box::new(std::io::Cursor::new(bytes.clone()))).unwrap();
    let error = open(vec![pipe]).err().expect("they are not known before the end").to_string();
    assert!(error.contains("write it to a file"), "{error}");
    let files = vec![Input::memory("bytes", bytes).unwrap()];
    let source = open_with(files, LabelRule::Class).unwrap();
    assert_eq!(source.schema().label_names, ["no", "yes"]);
    assert_eq!(records(&source, 1).unwrap()[0][1].0, 0.0);
}

#[test]
fn the_index_that_pandas_wrote_is_no_feature() {
    let batch = table(0, 10);
    let pandas = r#"{"index_columns": ["size", {"kind": "range"}]}"#;
    let schema = batch.schema().as_ref().clone().with_metadata([("pandas".to_owned(), pandas.to_owned())]);
    let batch = RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec()).unwrap();
    let source = open(vec![Input::memory("bytes", encode(WAYS[0], &[batch])).unwrap()]).unwrap();
    let names: Vec<&str> = source.schema().columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["color", "kind"]);
    assert!(source.notices()[0].contains("'size' is an index that pandas wrote"), "{:?}", source.notices());
}

#[test]
fn records_to_predict_on_need_no_weight_whatever_their_features_are() {
    for (table, count) in [(table(0, 3), 3), (vectors(), 3)] {
        let weights: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 0.5]));
        let fields = table.schema().fields().iter().cloned().collect::<Vec<_>>();
        let weight = Arc::new(Field::new("w", DataType::Float64, false));
        let schema = arrow_schema::Schema::new([fields, vec![weight]].concat());
        let columns = [table.columns(), &[weights]].concat();
        let trained = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let options = FormatOptions { weight: Some("w".to_owned()), ..FormatOptions::default() };
        let config = SourceConfig { options, ..SourceConfig::default() };
        let formats = FormatTable::builtin();
        let input = |batch: &RecordBatch| {
            vec![Input::memory("bytes", encode(WAYS[0], std::slice::from_ref(batch))).unwrap()]
        };
        let source = Source::from_inputs(input(&trained), &config, None, &formats).unwrap();
        for (purpose, has_label) in [(InputPurpose::Prediction, false), (InputPurpose::Evaluation, true)] {
            let options = FormatOptions { has_label, purpose, ..FormatOptions::default() };
            let config = SourceConfig { options, ..SourceConfig::default() };
            let unlabelled = table.project(&(1..table.num_columns()).collect::<Vec<_>>()).unwrap();
            let batch = if has_label { &table } else { &unlabelled };
            let other = Source::from_inputs(input(batch), &config, Some(source.schema()), &formats).unwrap();
            assert_eq!(records(&other, 1).unwrap()[0].len(), count);
        }
    }
}

#[test]
fn a_type_that_is_no_feature_is_refused_with_its_column() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0, 1].into());
    let item = Arc::new(Field::new("item", lists.data_type().clone(), true));
    let nested = ListArray::new(item, offsets, Arc::new(lists), None);
    assert!(matches!(nested.data_type(), DataType::List(_)));
    let columns: [(&str, ArrayRef); 2] =
        [("label", Arc::new(Float64Array::from(vec![1.0]))), ("words", Arc::new(nested))];
    let bytes = encode(WAYS[0], &[RecordBatch::try_from_iter(columns).unwrap()]);
    let error = open(vec![Input::memory("bytes", bytes).unwrap()]).err().unwrap().to_string();
    assert!(error.contains("bytes: column 'words' is a list of lists"), "{error}");
}

/// Lists of words, as the Tokenizer of Spark makes them. One is null, one word is null, and one is empty.
fn words() -> RecordBatch {
    let lists = [Some("good film good"), None, Some("bad"), Some("")];
    let mut words = ListBuilder::new(StringBuilder::new());
    for list in lists {
        match list {
            Some(text) => {
                text.split(' ').for_each(|word| words.values().append_value(word));
                words.append(true);
            }
            None => words.append(false),
        }
    }
    words.values().append_value("new york");
    words.values().append_null();
    words.append(true);
    let columns: [(&str, ArrayRef); 3] = [
        ("label", Arc::new(Float64Array::from(vec![1.0, 0.0, 0.0, 1.0, 1.0]))),
        ("words", Arc::new(words.finish())),
        ("size", Arc::new(Float64Array::from(vec![0.5, 0.0, 2.0, 0.0, 0.0]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn lists_of_strings_are_tokens() {
    let key = |word: &str| math::hash::named_key(b"words", word.as_bytes());
    let good: Vec<(u64, f32)> = vec![(key("good"), 2.0), (key("film"), 1.0), (1, 0.5)];
    let expected = [good, vec![], vec![(key("bad"), 1.0), (1, 2.0)], vec![], vec![(key("new york"), 1.0)]];
    let (asked, none) = (vec!["words".to_owned()], vec![]);
    for (way, token_columns) in WAYS.iter().flat_map(|way| [(way, &asked), (way, &none)]) {
        let options = FormatOptions { token_columns: token_columns.clone(), ..FormatOptions::default() };
        let config = SourceConfig { options, ..SourceConfig::default() };
        let bytes = encode(*way, &[words().slice(0, 2), words().slice(2, 3)]);
        let files = vec![Input::memory("bytes", bytes).unwrap()];
        let source = Source::from_inputs(files, &config, None, &FormatTable::builtin()).unwrap();
        assert_eq!(source.schema().columns[0].kind, ColumnKind::Tokens);
        let found = records(&source, 1).unwrap().concat();
        for ((_, found), expected) in found.iter().zip(&expected) {
            let sorted = |entries: &[(u64, f32)]| {
                let mut entries = entries.to_vec();
                entries.sort_by_key(|(key, _)| *key);
                entries
            };
            assert_eq!(sorted(found), sorted(expected), "{way:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn lists_of_strings_stand_for_tokens_of_training_only() {
    let open_like = |batch: &RecordBatch, like: Option<&Schema>| {
        let files = vec![Input::memory("bytes", encode(WAYS[0], std::slice::from_ref(batch))).unwrap()];
        let options = FormatOptions { token_columns: vec![], ..FormatOptions::default() };
        let config = SourceConfig { options, ..SourceConfig::default() };
        Source::from_inputs(files, &config, like, &FormatTable::builtin())
    };
    let texts = |words: ArrayRef| {
        let [label, size] = [0, 2].map(words_column);
        RecordBatch::try_from_iter([("label", label), ("words", words), ("size", size)]).unwrap()
    };
    let lists = open_like(&words(), None).unwrap();
    // Tokens of training may be texts here.
    let line: ArrayRef = Arc::new(StringArray::from(vec!["good film good", "", "bad", "", "york"]));
    let read = open_like(&texts(line.clone()), Some(lists.schema())).unwrap();
    assert_eq!(records(&read, 1).unwrap()[0][2].1, records(&lists, 1).unwrap()[0][2].1);
    // A string of training is one value, and no list.
    let strings = open_like(&texts(line), None).unwrap();
    let error = open_like(&words(), Some(strings.schema())).err().unwrap().to_string();
    assert!(error.contains("column 'words' is a list of strings here, but was none in training"), "{error}");
}

fn words_column(column: usize) -> ArrayRef {
    Arc::clone(words().column(column))
}

#[test]
fn cut_data_are_an_error_with_the_file() {
    let batches = [table(0, 50), table(50, 50)];
    for way in WAYS {
        let bytes = encode(way, &batches);
        let (mut whole, mut refused) = (0, 0);
        for end in 0..bytes.len() {
            match read_bytes("arrow", &FormatOptions::default(), &bytes[..end]) {
                Ok(_) => whole += 1,
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(
                        text.contains("bytes") && (end == 0 || text.contains("cut short")),
                        "{end}: {text}"
                    );
                }
            }
        }
        // A stream may end after any message, and need not say so.
        assert!(refused > 0 && whole <= if way.0 { 0 } else { 20 }, "{way:?}: {whole} of {refused}");
    }
}

#[test]
fn changed_data_are_an_error_or_records() {
    const MUTANTS: usize = 1500;
    let mut random = stream(1, Purpose::Test, 1, 0);
    let tables: [&[RecordBatch]; 2] = [&[table(0, 20)], &[vectors()]];
    let originals: Vec<Vec<u8>> =
        WAYS.iter().flat_map(|way| tables.map(|batches| encode(*way, batches))).collect();
    let mut refused = 0;
    for mutant in 0..MUTANTS {
        let mut bytes = originals[mutant % originals.len()].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = if random.below(2) == 0 {
                bytes[at] ^ (1 << random.below(8))
            } else {
                random.below(256) as u8
            };
        }
        refused += usize::from(read_bytes("arrow", &FormatOptions::default(), &bytes).is_err());
    }
    assert!(refused > MUTANTS / 10 && refused < MUTANTS, "{refused}");
}

#[test]
fn a_number_of_records_that_cannot_be_is_refused_before_memory_is_taken() {
    for way in WAYS {
        let bytes = encode(way, &[table(0, 5000)]);
        let counts: Vec<usize> =
            (0..bytes.len() - 8).filter(|at| bytes[*at..*at + 8] == 5000u64.to_le_bytes()).collect();
        // The first one is that of the record batch; its columns have their own.
        assert!(counts.len() > 1, "{way:?}");
        for count in [i64::MAX, 1 << 40, -1] {
            let mut bytes = bytes.clone();
            bytes[counts[0]..counts[0] + 8].copy_from_slice(&count.to_le_bytes());
            let error = read_bytes("arrow", &FormatOptions::default(), &bytes).unwrap_err().to_string();
            assert!(error.contains(&format!("a record batch of {count} records in ")), "{way:?}: {error}");
        }
    }
}

#[test]
fn so_is_a_number_of_strings_of_a_dictionary() {
    const STRINGS: usize = 1777;
    let texts: Vec<String> = (0..2 * STRINGS).map(|r| format!("kind {}", r % STRINGS)).collect();
    let kinds: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
    let labels = Float64Array::from_iter_values((0..texts.len()).map(|r| (r % 2) as f64));
    let columns: [(&str, ArrayRef); 2] = [("kind", Arc::new(kinds)), ("label", Arc::new(labels))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for way in WAYS {
        let bytes = encode(way, std::slice::from_ref(&batch));
        assert_eq!(read_bytes("arrow", &FormatOptions::default(), &bytes).unwrap().len(), 4);
        let number = (STRINGS as u64).to_le_bytes();
        let at = (0..bytes.len() - 8).find(|at| bytes[*at..*at + 8] == number).expect("a dictionary batch");
        for count in [i64::MAX, 1 << 40, -1] {
            let mut bytes = bytes.clone();
            bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
            let error = read_bytes("arrow", &FormatOptions::default(), &bytes).unwrap_err().to_string();
            assert!(error.contains(&format!("a record batch of {count} records in ")), "{way:?}: {error}");
        }
    }
}

#[test]
fn dictionaries_that_the_footer_names_twice_are_refused() {
    let kinds: DictionaryArray<Int32Type> =
        (0..500).map(|r| format!("{r:0>100}")).collect::<Vec<_>>().iter().map(String::as_str).collect();
    let sizes: DictionaryArray<Int32Type> = (0..500).map(|r| ["small", "large"][r % 2]).collect();
    let labels = Float64Array::from_iter_values((0..500).map(|r| f64::from(r % 2)));
    let columns: [(&str, ArrayRef); 3] =
        [("kind", Arc::new(kinds)), ("size", Arc::new(sizes)), ("label", Arc::new(labels))];
    let mut bytes = encode(WAYS[0], &[RecordBatch::try_from_iter(columns).unwrap()]);
    assert!(read_bytes("arrow", &FormatOptions::default(), &bytes).is_ok());
    // The footer lies before its length (four bytes) and the magic (six bytes).
    let end = bytes.len() - 10;
    let length = u32::from_le_bytes(*bytes[end..].first_chunk().unwrap()) as usize;
    let footer = root_as_footer(&bytes[end - length..end]).unwrap();
    let blocks: Vec<[u8; 24]> = footer.dictionaries().unwrap().iter().map(|block| block.0).collect();
    let at = bytes.windows(24).position(|window| window == blocks[1]).unwrap();
    bytes[at..at + 24].copy_from_slice(&blocks[0]);
    let error = read_bytes("arrow", &FormatOptions::default(), &bytes).unwrap_err().to_string();
    assert!(error.contains("its dictionaries are longer than the file"), "{error}");
}

/// The error of reading `batch` compressed, where the first buffer of `length` bytes claims to have `other` bytes.
fn with_length(batch: &RecordBatch, length: u64, other: i64) -> String {
    let mut bytes = encode(WAYS[1], std::slice::from_ref(batch));
    let at =
        bytes.windows(8).position(|window| window == length.to_le_bytes()).expect("a buffer of this length");
    bytes[at..at + 8].copy_from_slice(&other.to_le_bytes());
    read_bytes("arrow", &FormatOptions::default(), &bytes).unwrap_err().to_string()
}

#[test]
fn a_decompressed_length_that_cannot_be_is_refused_before_memory_is_taken() {
    for length in [i64::MAX, 1 << 40, 1 << 31, -7] {
        let error = with_length(&table(0, 5000), 40_000, length);
        assert!(error.contains(&format!("compressed bytes claims to hold {length} bytes;")), "{error}");
    }
    // So many compressed bytes might stand for more than a record batch may have.
    let mut random = stream(1, Purpose::Test, 2, 0);
    let noise = Float64Array::from_iter_values((0..40_000).map(|_| random.below(1 << 20) as f64));
    let batch = RecordBatch::try_from_iter([("label", Arc::new(noise) as ArrayRef)]).unwrap();
    let error = with_length(&batch, 320_000, (4 << 30) + 1);
    assert!(error.contains("a record batch of more than 4294967296 bytes"), "{error}");
}

#[test]
fn a_message_that_is_not_where_the_footer_says_is_refused_before_memory_is_taken() {
    // Four bytes later the library finds the message that it expects, but the buffers of its body are not those of before.
    for way in WAYS.into_iter().filter(|(is_file, _)| *is_file) {
        let bytes = encode(way, &[table(0, 5000)]);
        for missing in 1..=16 {
            let mut bytes = bytes.clone();
            bytes.drain(8..8 + missing);
            let error = read_bytes("arrow", &FormatOptions::default(), &bytes).unwrap_err().to_string();
            assert!(
                error.contains("a message does not begin with the continuation indicator"),
                "{way:?}, {missing}: {error}"
            );
        }
    }
}

#[test]
fn files_of_a_folder_may_be_empty_and_must_have_the_same_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    std::fs::write(path("a.arrow"), encode(WAYS[0], &[table(0, 10)])).unwrap();
    std::fs::write(path("b.arrow"), encode(WAYS[0], &[table(0, 0)])).unwrap();
    std::fs::write(path("c.arrows"), encode(WAYS[3], &[table(10, 10)])).unwrap();
    let inputs = vec![folder.path().display().to_string()];
    let config = SourceConfig { inputs, ..SourceConfig::default() };
    let source = Source::open(&config, &FormatTable::builtin()).unwrap();
    assert_eq!(records(&source, 2).unwrap().concat().len(), 20);
    std::fs::write(path("d.arrow"), encode(WAYS[0], &[vectors()])).unwrap();
    let error = Source::open(&config, &FormatTable::builtin()).err().unwrap().to_string();
    assert!(error.contains("d.arrow: columns differ from training"), "{error}");
}
