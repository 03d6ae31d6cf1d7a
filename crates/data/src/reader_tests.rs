//! Laws of reading: each record once and in order, whatever the splits, line ends and compression.

use crate::format::testing::{Row, gzip, read_whole, rows_of};
use crate::label::LabelKind;
use crate::sink::HoldoutRule;
use crate::{
    BadLinePolicy, Batch, Error, FormatOptions, FormatTable, Input, LabelRule, Source, SourceConfig,
};
use math::random::{Purpose, stream};
use proptest::prelude::*;

fn config() -> SourceConfig {
    SourceConfig { format: Some("libsvm".into()), ..SourceConfig::default() }
}

fn over(files: &[&[u8]], config: &SourceConfig) -> Result<Source, Error> {
    let files: Result<Vec<_>, _> =
        files.iter().enumerate().map(|(at, bytes)| Input::memory(format!("file{at}"), *bytes)).collect();
    Source::from_inputs(files?, config, None, &FormatTable::builtin())
}

/// Returns the labels of all records, task after task, and the reported bytes.
fn labels(source: &Source, task_count: usize, batch_size: usize) -> Result<(Vec<f64>, u64), Error> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for splits in source.splits(task_count) {
        let mut reader = source.reader(splits)?;
        let mut batch = Batch::default();
        while reader.next_batch(batch_size, &mut batch)? {
            assert!(batch.record_count() <= batch_size);
            all.extend_from_slice(&batch.labels);
        }
        bytes += reader.summary().bytes_read;
    }
    Ok((all, bytes))
}

/// Makes a file of numbered records with all kinds of lines between them, and returns it with the number of its
/// records.
fn file(first: usize, lines: &[(u8, usize)], last_line_ends: bool) -> (Vec<u8>, usize) {
    let (mut bytes, mut count) = (Vec::new(), 0);
    for (at, (kind, length)) in lines.iter().enumerate() {
        match kind {
            0 => {}
            1 => bytes.extend_from_slice(b"# comment"),
            _ => {
                bytes.extend_from_slice(format!("{}", first + count).as_bytes());
                bytes.extend((0..*length).flat_map(|key| format!(" {key}:1").into_bytes()));
                count += 1;
            }
        }
        if at + 1 < lines.len() || last_line_ends {
            bytes.extend_from_slice(if length % 3 == 0 { b"\r\n" } else { b"\n" });
        }
    }
    (bytes, count)
}

proptest! {
    #[test]
    fn each_record_is_read_once_and_in_order(
        files in prop::collection::vec((prop::collection::vec((0u8..6, 0usize..30), 0..20), any::<bool>()), 1..4),
        task_count in 1usize..12,
        batch_size in 1usize..9,
    ) {
        let (mut contents, mut total) = (Vec::new(), 0);
        for (lines, last_line_ends) in &files {
            let (bytes, count) = file(total, lines, *last_line_ends);
            contents.push(bytes);
            total += count;
        }
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let source = over(&contents, &config()).unwrap();
        let (labels, bytes) = labels(&source, task_count, batch_size).unwrap();
        let expected: Vec<f64> = (0..total).map(|label| label as f64).collect();
        prop_assert_eq!(labels, expected);
        prop_assert_eq!(Some(bytes), source.size_bytes());
    }

    #[test]
    fn any_bytes_are_records_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in ["libsvm", "libffm", "vw", "dense", "csv"] {
            let _ = crate::read_bytes(format, &FormatOptions::default(), &bytes);
        }
    }

    #[test]
    fn almost_text_is_records_or_an_error(text in "[0-9a:|'\",;.# \t\r\n+-]{0,80}") {
        for format in ["libsvm", "libffm", "vw", "dense", "csv"] {
            let _ = crate::read_bytes(format, &FormatOptions::default(), text.as_bytes());
        }
    }
}

#[test]
fn lines_longer_than_the_buffer_are_carried_over() {
    let long = (0..200_000).map(|key| format!(" {key}:1")).collect::<Vec<_>>().concat();
    let text = format!("1{long}\n0 1:1\n1{long}");
    for task_count in [1, 2, 5] {
        let source = over(&[text.as_bytes()], &config()).unwrap();
        assert_eq!(labels(&source, task_count, 10).unwrap().0, [1.0, 0.0, 1.0]);
    }
}

#[test]
fn compressed_files_go_whole_to_tasks_and_tell_their_bytes() {
    let (text, count) = file(0, &[(2, 5); 1000], true);
    let (zipped, packed) = (gzip(&text), zstd::encode_all(&text[..], 1).unwrap());
    let source = over(&[&text, &zipped, &packed], &config()).unwrap();
    for task_count in [1, 2, 3] {
        let (labels, bytes) = labels(&source, task_count, 64).unwrap();
        assert_eq!(labels.len(), 3 * count);
        assert_eq!(Some(bytes), source.size_bytes());
    }
}

#[test]
fn a_bad_line_is_named_by_file_line_and_column_in_every_split() {
    let (text, _) = file(0, &[(2, 5), (0, 1), (1, 1), (2, 9)], true);
    let bad = [&text[..], b"1 3:x\n", &text].concat();
    let zipped = gzip(&bad);
    for (content, task_count) in [(&bad, 1), (&bad, 2), (&bad, 3), (&bad, 7), (&zipped, 2)] {
        let source = over(&[&text, content], &config()).unwrap();
        let error = labels(&source, task_count, 64).unwrap_err().to_string();
        assert!(error.starts_with("file1:5:5: expected a number, found 'x'"), "{task_count} tasks: {error}");
    }
}

#[test]
fn a_feature_number_beyond_the_limit_is_a_bad_line_with_its_place() {
    for (format, text, place) in [
        ("libsvm", &b"1 1:1\n0 4:1 7:2\n1 9:1\n"[..], "file0:2:7"),
        ("libffm", b"1 0:1:1\n0 0:4:1 7:7:2\n1 7:9:1\n", "file0:2:9"),
    ] {
        let mut config = SourceConfig { format: Some(format.into()), ..config() };
        config.options.key_limit = Some(crate::KeyLimit { limit: 5, setting: "dimensions" });
        let error = labels(&over(&[text], &config).unwrap(), 1, 10).unwrap_err().to_string();
        assert!(error.starts_with(place), "{error}");
        assert!(error.contains("below 5 (dimensions = 5), found index 7"), "{error}");
        config.bad_lines = BadLinePolicy::Skip { limit: 2 };
        assert_eq!(labels(&over(&[text], &config).unwrap(), 1, 10).unwrap().0, [1.0]);
    }
}

#[test]
fn values_that_lose_digits_are_counted() {
    let csv: &[u8] = b"a,y\n16777216,1\n16777217,0.1\n5,16777219\n7,3.14159265358979\n";
    for (format, text, feature) in [
        ("csv", csv, Some(("column 'a'", 16_777_217.0))),
        ("libsvm", b"0.5 1:1 7:16777217\n3 1:2\n", Some(("feature 7", 16_777_217.0))),
        ("libffm", b"3 1:1:2\n0.5 0:1:1 0:7:-16777217\n", Some(("feature 7", -16_777_217.0))),
        ("vw", b"1700000001 |n a:16777216 b:1e30\n", None),
        ("libsvm", b"0.1 1:0.3 3:33554432 4:12345678.5\n", None),
    ] {
        let config = SourceConfig { format: Some(format.into()), ..config() };
        let source = over(&[text], &config).unwrap();
        let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
        while reader.next_batch(10, &mut Batch::default()).unwrap() {}
        let features = &reader.summary().rounded.features;
        let first = features.iter().next().map(|(name, numbers)| (name.as_str(), numbers.first));
        assert_eq!(first, feature, "{format}");
    }
}

#[test]
fn text_that_is_not_read_is_named_with_what_to_do() {
    for (content, what, advice) in [
        (&b"a\0,\0b\0\n\x001\0,\x002\0\n\0"[..], "UTF-16", "UTF-8"),
        (b"\0a\0,\0b\0\n\x001\0,\x002\0\n", "UTF-16", "UTF-8"),
        (b"first,second\r1,2\r3,4\r", "lines end with CR alone", "LF"),
    ] {
        let error = over(&[content], &SourceConfig::default()).err().unwrap().to_string();
        assert!(error.starts_with("file0 is ") && error.contains(what) && error.contains(advice), "{error}");
    }
    assert!(over(&[b"a,label\r\n1,0\r\n2,1\r\n"], &SourceConfig::default()).is_ok());
}

#[test]
fn files_that_cannot_be_unpacked_are_named() {
    let tar = [&[b'x'; 257][..], b"ustar\x0000", &[0; 200]].concat();
    for (content, what) in [
        (&b"\xfd7zXZ\x00\x00\x04"[..], "xz"),
        (b"PK\x03\x04\x14\x00", "zip"),
        (b"BZh91AY&SY\x00", "bzip2"),
        (&tar, "tar"),
        (&gzip(&tar), "tar"),
    ] {
        let error = over(&[content], &SourceConfig::default()).err().unwrap().to_string();
        assert!(
            error.starts_with("file0 is ") && error.contains(what) && error.contains("decompress it"),
            "{error}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv.br");
    std::fs::write(&path, b"\x0b\x02\x80").unwrap();
    assert!(Input::file(path).err().unwrap().to_string().contains("brotli"));
}

#[test]
fn bad_lines_are_skipped_up_to_the_limit_and_shown() {
    let text = b"1 1:1\n1 x\n0 2:1 2:1\n0 3:1\n2 4:nan\n";
    let mut config = config();
    config.bad_lines = BadLinePolicy::Skip { limit: 3 };
    let source = over(&[text], &config).unwrap();
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    let mut batch = Batch::default();
    assert!(reader.next_batch(10, &mut batch).unwrap());
    assert_eq!(rows_of(&batch), [Row::new(Some(1.0), &[(1, 1.0)]), Row::new(Some(0.0), &[(3, 1.0)])]);
    assert!(!reader.next_batch(10, &mut batch).unwrap());
    let summary = reader.summary();
    assert_eq!((summary.bad_line_count, summary.bad_lines.len(), summary.record_count), (3, 3, 2));
    assert!(summary.bad_lines[1].contains("file0:3:7") && summary.bad_lines[1].contains("index 2 again"));
    config.bad_lines = BadLinePolicy::Skip { limit: 2 };
    let error = labels(&over(&[text], &config).unwrap(), 1, 10).unwrap_err();
    assert!(matches!(error, Error::TooManyBadLines { count: 3, limit: 2, .. }), "{error}");
}

#[test]
fn a_refused_label_is_a_bad_line() {
    let mut config = config();
    config.options.label_rule = LabelRule::Binary { positive: None };
    let source = over(&[b"1 1:1\n-1 1:1\n2 1:1\n"], &config).unwrap();
    let error = labels(&source, 1, 10).unwrap_err().to_string();
    assert!(error.contains("file0:3:1") && error.contains("neither 0/1 nor -1/1"), "{error}");
    config.bad_lines = BadLinePolicy::Skip { limit: 1 };
    let source = over(&[b"1 1:1\n-1 1:1\n2 1:1\n"], &config).unwrap();
    assert_eq!(labels(&source, 1, 10).unwrap().0, [1.0, 0.0]);
}

#[test]
fn held_out_records_and_the_others_are_all_records() {
    let (text, count) = file(0, &[(2, 3); 500], true);
    let source = over(&[&text], &config()).unwrap();
    let read = || {
        let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
        reader.set_holdout(HoldoutRule::Share(0.2, stream(1, Purpose::Validation, 0, 0)));
        let (mut kept, mut batch) = (Vec::new(), Batch::default());
        while reader.next_batch(64, &mut batch).unwrap() {
            kept.extend_from_slice(&batch.labels);
        }
        let held: Vec<f64> = reader.take_holdout().iter().flat_map(|batch| batch.labels.clone()).collect();
        (kept, held)
    };
    let (kept, held) = read();
    // 100 records are expected; the deviation is 9, and five of them are allowed.
    assert!((55..145).contains(&held.len()), "{}", held.len());
    let mut all = [&kept[..], &held].concat();
    all.sort_by(f64::total_cmp);
    assert_eq!(all, (0..count).map(|label| label as f64).collect::<Vec<_>>());
    assert_eq!((kept, held), read());
}

#[test]
fn records_from_a_time_on_are_held_out() {
    let mut config = config();
    config.format = Some("csv".into());
    config.options.time = Some("at".into());
    let source = over(&[b"at,x,y\n30,1,1\n10,2,2\n20,3,3\n25,4,4\n5,5,5\n"], &config).unwrap();
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    reader.set_holdout(HoldoutRule::From(20.0));
    let mut batch = Batch::default();
    assert!(reader.next_batch(64, &mut batch).unwrap());
    let late = reader.take_holdout();
    assert_eq!((rows_of(&batch).len(), late.len()), (2, 1));
    assert_eq!((&batch.labels[..], &batch.times[..]), (&[2.0, 5.0][..], &[10.0, 5.0][..]));
    assert_eq!((&late[0].labels[..], &late[0].times[..]), (&[1.0, 3.0, 4.0][..], &[30.0, 20.0, 25.0][..]));
    let values = |rows: &[Row]| rows.iter().map(|row| row.entries.clone()).collect::<Vec<_>>();
    assert_eq!(values(&rows_of(&late[0])), [[(0, 1.0)], [(0, 3.0)], [(0, 4.0)]]);
}

#[test]
fn empty_files_and_blank_lines_have_no_records() {
    for content in [&b""[..], b"\n \r\n\t\n", b"# nothing\n"] {
        let source = over(&[content], &config()).unwrap();
        assert!(labels(&source, 3, 10).unwrap().0.is_empty());
    }
    assert!(matches!(over(&[b"", b" \n"], &SourceConfig::default()), Err(Error::NoRecords { .. })));
}

#[test]
fn formats_are_told_by_their_first_lines() {
    for (text, format) in [
        ("1 2:3 4:5\n", "libsvm"),
        ("# c\n\n1 qid:3 4:5\n", "libsvm"),
        ("1 0:2:3 1:4:5\n", "libffm"),
        ("1 |n a b:2\n", "vw"),
        ("1 2 3\n", "dense"),
        ("1,2,NA\n", "dense"),
        ("a,b\n1,2\n", "csv"),
        ("a\tb\n1\t2\n", "csv"),
        ("1 tag|f a:1\n-1 tag2|f b\n", "vw"),
        ("1|2|x\n3|4|y\n", "csv"),
        ("1 2 3\n4 5 x\n6 7 y\n", "none"),
        ("1,2,3\n4,5,x\n6,7,y\n", "csv"),
        ("5 apples|green tea|1\n6 pears|x y|0\n", "none"),
    ] {
        for content in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            let mut config = SourceConfig::default();
            config.options.label_rule = LabelRule::Class;
            match over(&[&content], &config) {
                Ok(source) => assert_eq!(source.schema().format, format, "{text}"),
                Err(Error::FormatNotRecognized { .. }) => assert_eq!(format, "none", "{text}"),
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
    let unknown = over(&[b"\x00\x01 what is this\n"], &SourceConfig::default());
    assert!(matches!(unknown, Err(Error::FormatNotRecognized { .. })));
    let slip = SourceConfig { format: Some("libsmv".into()), ..SourceConfig::default() };
    assert!(over(&[b""], &slip).err().unwrap().to_string().contains("did you mean 'libsvm'"));
}

#[test]
fn a_byte_order_mark_is_taken_off() {
    let source = over(&[b"\xef\xbb\xbf1 2:3\n"], &config()).unwrap();
    assert_eq!(labels(&source, 1, 10).unwrap().0, [1.0]);
}

#[test]
fn a_byte_order_mark_before_a_header_is_no_part_of_it() {
    let csv = SourceConfig { format: Some("csv".into()), ..SourceConfig::default() };
    let (marked, plain) = (&b"\xef\xbb\xbfa,y\n3,1\n"[..], &b"a,y\n4,0\n"[..]);
    for files in [[marked, plain], [plain, marked], [marked, marked]] {
        let source = over(&files, &csv).unwrap();
        assert_eq!(source.schema().order, ["a", "y"]);
        assert_eq!(labels(&source, 1, 10).unwrap().0.len(), 2);
    }
    let error = labels(&over(&[plain, b"\xef\xbb\xbfb,y\n1,1\n"], &csv).unwrap(), 1, 10).unwrap_err();
    assert!(error.to_string().contains("file1:1") && error.to_string().contains("'b,y'"), "{error}");
    let long = [&[b'b'; 300][..], b",y\n1,1\n"].concat();
    let error = labels(&over(&[plain, &long], &csv).unwrap(), 1, 10).unwrap_err().to_string();
    assert!(error.contains("bbb...'") && error.contains("'a,y'") && error.len() < 400, "{error}");
}

#[test]
fn what_is_ignored_is_told_and_nothing_else() {
    for (format, text, expected) in [
        ("libsvm", &b"1 1:1\n0 2:1\n"[..], ""),
        ("libsvm", b"1 1:1\n0 qid:3 2:1\n", "qid is ignored"),
        ("libffm", b"1 0:2:1\n", ""),
        ("vw", b"1 |f a\n", ""),
        ("vw", b"1 2 |f a\n", ""),
        ("vw", b"1 2 0 |f a\n", "base values"),
        ("vw", b"1 1 0.5 tag|f a\n", "tags are ignored; base values"),
    ] {
        let source = over(&[text], &SourceConfig { format: Some(format.into()), ..config() }).unwrap();
        let reader = read_whole(&source);
        let told = [source.notices(), &reader.summary().notices[..]].concat().join("; ");
        assert!(told.starts_with(expected) && told.is_empty() == expected.is_empty(), "{format}: {told:?}");
    }
}

#[test]
fn a_stream_is_recognized_and_read_once_by_the_first_task() {
    let (text, count) = file(0, &[(2, 3); 100], true);
    for content in [text.clone(), gzip(&text)] {
        let raw = Box::new(std::io::Cursor::new(content));
        let files = vec![Input::stream("standard input".into(), raw).unwrap()];
        let source =
            Source::from_inputs(files, &SourceConfig::default(), None, &FormatTable::builtin()).unwrap();
        assert_eq!(source.size_bytes(), None);
        assert_eq!(source.splits(3).iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0]);
        assert_eq!(labels(&source, 3, 10).unwrap().0.len(), count);
        assert!(matches!(labels(&source, 1, 10), Err(Error::StandardInputTaken)));
    }
}

#[path = "../../seraphim/tests/program/common/skip.rs"]
#[allow(clippy::print_stdout, reason = "says that a test is skipped")]
mod skip;

/// Returns the number of records of a real data set and its label kind; `None` when the data set is not installed.
fn real(name: &str, format: Option<&str>) -> Option<(usize, LabelKind)> {
    let root = std::env::var("SERAPHIM_DATA")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").to_owned());
    let path = format!("{root}/{name}");
    if !std::path::Path::new(&path).exists() {
        skip::skip(&format!("{path} is not there (SERAPHIM_DATA names its root)"));
        return None;
    }
    let mut config = SourceConfig { inputs: vec![path], ..SourceConfig::default() };
    config.format = format.map(str::to_owned);
    config.options.label_rule = LabelRule::Class;
    if name.starts_with("california") {
        config.options.label_rule = LabelRule::Real;
    }
    let source = Source::open(&config, &FormatTable::builtin()).unwrap();
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    let (mut count, mut batch) = (0, Batch::default());
    while reader.next_batch(1000, &mut batch).unwrap() {
        count += batch.record_count();
    }
    Some((count, reader.summary().labels.kind()))
}

#[test]
fn real_sets_are_read() {
    for (name, format, kind) in [
        ("a9a/train.libsvm.gz", None, LabelKind::MinusPlusOne),
        ("agaricus/train.libsvm.gz", None, LabelKind::ZeroOne),
        ("news20/train.libsvm.gz", None, LabelKind::Classes),
        ("criteo_tiny/ffm200.train.ffm.gz", None, LabelKind::ZeroOne),
        ("california/train.csv.gz", None, LabelKind::Real),
        ("adult_raw/train.csv.gz", None, LabelKind::ZeroOne),
        ("higgs7k/train.tsv.gz", Some("dense"), LabelKind::ZeroOne),
        ("multi5/train.tsv.gz", Some("dense"), LabelKind::Classes),
    ] {
        let Some((count, seen)) = real(name, format) else { continue };
        assert!(count > 100, "{name}: {count}");
        assert_eq!(seen, kind, "{name}");
    }
}

#[test]
fn columns_of_folders_are_told_where_they_are_left_out() {
    let file = Input::memory("a", &b"1 3:1\n"[..]).unwrap();
    let file = file.with_partition(vec![("day".to_owned(), "1".to_owned())]);
    let source = Source::from_inputs(vec![file], &config(), None, &FormatTable::builtin()).unwrap();
    let notices = source.notices().join("\n");
    assert!(notices.contains("(day)") && notices.contains("ignored"), "{notices}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_told_by_its_bytes_under_any_name() {
    use crate::parquet_writer::{ColumnData, ColumnType, ParquetWriter};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let columns = [("x", ColumnType::F64), ("label", ColumnType::F64)];
    let mut writer = ParquetWriter::create(&path, &columns).unwrap();
    writer.write(&[ColumnData::F64(&[5.0, 6.0]), ColumnData::F64(&[0.0, 1.0])]).unwrap();
    writer.finish().unwrap();
    let files = [Input::file(&path).unwrap()];
    let source =
        Source::from_inputs(files.to_vec(), &SourceConfig::default(), None, &FormatTable::builtin()).unwrap();
    assert_eq!(source.schema().format, "parquet");
    assert_eq!(FormatTable::builtin().recognize_for_schema(&files, "csv").unwrap().name, "parquet");
}

#[test]
fn the_summary_has_what_was_asked_for_of_the_batches_handed_out() {
    let text = b"1 2:1 7:1\n0 7:.5 9:1\n1 2:3\n1 5000:1\n";
    let summary = |prepare: fn(&mut crate::Reader), batch_size: usize, is_whole: bool| {
        let source = over(&[text], &config()).unwrap();
        let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
        prepare(&mut reader);
        let mut batch = Batch::default();
        while reader.next_batch(batch_size, &mut batch).unwrap() && is_whole {}
        reader.summary().clone()
    };
    for batch_size in [1, 2, 100] {
        let plain = summary(|_| (), batch_size, true);
        assert_eq!((plain.record_count, plain.largest_key, plain.largest_field), (4, Some(5000), None));
        assert!(plain.feature_count == 0 && plain.survey.is_none(), "nobody asked for them");
        let counted = summary(crate::Reader::count_features, batch_size, true);
        assert_eq!(counted.feature_count, 4, "2, 7, 9 and 5000");
        let surveyed = summary(|reader| reader.enable_survey(false), batch_size, true).survey.unwrap();
        assert_eq!((surveyed.record_count, surveyed.entry_count), (4, 6));
        assert!(surveyed.quantiles(7).is_none());
        let values = summary(|reader| reader.enable_survey(true), batch_size, true).survey.unwrap();
        assert!(values.quantiles(7).is_some() && values.quantiles(8).is_none());
    }
    let started = summary(crate::Reader::count_features, 1, false);
    assert_eq!((started.record_count, started.feature_count), (1, 0), "features are counted at the end");
}
